//! Values as Python writes them: `str`, `repr` and `json.dumps`.

use crate::bounds::MAX_DEPTH;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, Output, State};

/// Text is paid for in portions of this many bytes.
const PORTION: usize = 1024;

/// What fuel pays for, as in minijinja's own serialization.
const BYTES_PER_FUEL: u64 = 4;

/// The variable that holds a conversation's marker; no template can spell this name.
pub const MARKER_VARIABLE: &str = "marker of typed tokens";

/// Prints a value as Python's `str` does.
pub fn format_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    if value.as_object().is_none() && !is_float(value) {
        return minijinja::escape_formatter(out, state, value);
    }
    let mut text = PaidText::new(state);
    write_repr(&mut text, value, 0)?;
    out.write_str(&text.finish()?).map_err(Error::from)
}

/// The filter `tojson` with the arguments that transformers gives it.
pub fn tojson(state: &State, value: &Value, options: Kwargs) -> Result<String, Error> {
    let layout = JsonLayout::from_kwargs(state, &options)?;
    let mut text = PaidText::new(state);
    layout.write(&mut text, value, 0)?;
    text.finish()
}

/// Text that is written at the cost of the template's fuel: a small value can hold another one
/// many times over, and that again.
struct PaidText<'a, 'template, 'env> {
    state: &'a State<'template, 'env>,
    text: String,
    paid: usize,
}

impl<'a, 'template, 'env> PaidText<'a, 'template, 'env> {
    fn new(state: &'a State<'template, 'env>) -> Self {
        Self { state, text: String::new(), paid: 0 }
    }

    fn push(&mut self, text: &str) -> Result<(), Error> {
        self.text.push_str(text);
        if self.text.len() - self.paid >= PORTION {
            self.pay()?;
        }
        Ok(())
    }

    fn pay(&mut self) -> Result<(), Error> {
        let unpaid = (self.text.len() - self.paid) as u64;
        self.paid = self.text.len();
        self.state.consume_fuel(unpaid / BYTES_PER_FUEL)
    }

    fn finish(mut self) -> Result<String, Error> {
        self.pay()?;
        Ok(self.text)
    }
}

fn refuse_depth(depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        let text = format!("got values nested deeper than {MAX_DEPTH} levels");
        return Err(Error::new(ErrorKind::InvalidOperation, text));
    }
    Ok(())
}

fn is_float(value: &Value) -> bool {
    value.is_number() && !value.is_integer()
}

fn write_repr(out: &mut PaidText, value: &Value, depth: usize) -> Result<(), Error> {
    refuse_depth(depth)?;
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            let brackets = match (value.is_tuple(), value.len()) {
                (true, Some(1)) => ("(", ",)"),
                (true, _) => ("(", ")"),
                (false, _) => ("[", "]"),
            };
            out.push(brackets.0)?;
            for (index, item) in value.try_iter()?.enumerate() {
                out.push(if index == 0 { "" } else { ", " })?;
                write_repr(out, &item, depth + 1)?;
            }
            out.push(brackets.1)
        }
        ValueKind::Map => {
            out.push("{")?;
            for (index, (key, item)) in pairs(value).enumerate() {
                out.push(if index == 0 { "" } else { ", " })?;
                write_repr(out, &key, depth + 1)?;
                out.push(": ")?;
                write_repr(out, &item, depth + 1)?;
            }
            out.push("}")
        }
        ValueKind::Number if is_float(value) => out.push(&float_repr(value)),
        ValueKind::Undefined => out.push("Undefined"),
        _ => out.push(&format!("{value:?}")),
    }
}

/// `json.dumps` with its options resolved.
struct JsonLayout {
    ensure_ascii: bool,
    sort_keys: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    marker: Option<char>,
}

impl JsonLayout {
    fn from_kwargs(state: &State, options: &Kwargs) -> Result<Self, Error> {
        let indent = match options.get::<Option<Value>>("indent")? {
            None => None,
            Some(value) if value.is_none() => None,
            Some(value) => Some(indent_text(&value)?),
        };
        let separators: Option<(String, String)> =
            match options.get::<Option<Value>>("separators")? {
                Some(pair) if !pair.is_none() => {
                    let item = |index| {
                        let text = pair.get_item_by_index(index)?;
                        Ok::<_, Error>(text.as_str().unwrap_or_default().to_string())
                    };
                    Some((item(0)?, item(1)?))
                }
                _ => None,
            };
        let (item_separator, key_separator) = separators.unwrap_or_else(|| {
            let item = if indent.is_some() { "," } else { ", " };
            (item.to_string(), ": ".to_string())
        });
        let layout = Self {
            ensure_ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
            sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
            indent,
            item_separator,
            key_separator,
            marker: state
                .lookup(MARKER_VARIABLE)
                .and_then(|marker| marker.as_str()?.chars().next()),
        };
        options.assert_all_used()?;
        Ok(layout)
    }

    fn write(&self, out: &mut PaidText, value: &Value, depth: usize) -> Result<(), Error> {
        refuse_depth(depth)?;
        match value.kind() {
            ValueKind::None => out.push("null"),
            ValueKind::Bool => out.push(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if is_float(value) => out.push(&json_float(value)),
            ValueKind::Number => out.push(&value.to_string()),
            ValueKind::String => self.write_text(out, value.as_str().unwrap_or_default()),
            ValueKind::Seq => self.write_list(out, value, depth),
            ValueKind::Map => self.write_object(out, value, depth),
            kind => Err(not_serializable(kind)),
        }
    }

    fn write_list(&self, out: &mut PaidText, list: &Value, depth: usize) -> Result<(), Error> {
        out.push("[")?;
        let mut empty = true;
        for item in list.try_iter()? {
            self.begin_item(out, empty, depth + 1)?;
            empty = false;
            self.write(out, &item, depth + 1)?;
        }
        self.end_items(out, empty, depth)?;
        out.push("]")
    }

    fn write_object(&self, out: &mut PaidText, object: &Value, depth: usize) -> Result<(), Error> {
        let mut fields = Vec::new();
        for (key, value) in pairs(object) {
            fields.push((json_key(&key)?, value));
        }
        if self.sort_keys {
            fields.sort_by(|a, b| a.0.cmp(&b.0));
        }
        out.push("{")?;
        let empty = fields.is_empty();
        for (index, (key, value)) in fields.iter().enumerate() {
            self.begin_item(out, index == 0, depth + 1)?;
            self.write_text(out, key)?;
            out.push(&self.key_separator)?;
            self.write(out, value, depth + 1)?;
        }
        self.end_items(out, empty, depth)?;
        out.push("}")
    }

    fn begin_item(&self, out: &mut PaidText, first: bool, depth: usize) -> Result<(), Error> {
        if !first {
            out.push(&self.item_separator)?;
        }
        self.new_line(out, depth)
    }

    fn end_items(&self, out: &mut PaidText, empty: bool, depth: usize) -> Result<(), Error> {
        if empty { Ok(()) } else { self.new_line(out, depth) }
    }

    fn new_line(&self, out: &mut PaidText, depth: usize) -> Result<(), Error> {
        let Some(indent) = &self.indent else { return Ok(()) };
        out.push("\n")?;
        (0..depth).try_for_each(|_| out.push(indent))
    }

    fn write_text(&self, out: &mut PaidText, text: &str) -> Result<(), Error> {
        let mut escaped = String::with_capacity(text.len() + 2);
        escaped.push('"');
        for c in text.chars() {
            match c {
                '"' => escaped.push_str("\\\""),
                '\\' => escaped.push_str("\\\\"),
                '\n' => escaped.push_str("\\n"),
                '\r' => escaped.push_str("\\r"),
                '\t' => escaped.push_str("\\t"),
                '\u{8}' => escaped.push_str("\\b"),
                '\u{c}' => escaped.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && self.must_be_escaped(c)) => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        escaped.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => escaped.push(c),
            }
        }
        escaped.push('"');
        out.push(&escaped)
    }

    fn must_be_escaped(&self, c: char) -> bool {
        c > '~' && Some(c) != self.marker
    }
}

fn indent_text(value: &Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_string());
    }
    match value.as_i64() {
        Some(width) if width <= 64 => Ok(" ".repeat(usize::try_from(width).unwrap_or(0))),
        _ => Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("tojson got indent={value}, expected a string or at most 64"),
        )),
    }
}

fn json_key(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_string()),
        ValueKind::None => Ok("null".to_string()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_string()),
        ValueKind::Number if is_float(key) => Ok(json_float(key)),
        ValueKind::Number => Ok(key.to_string()),
        kind => Err(not_serializable(kind)),
    }
}

fn not_serializable(kind: ValueKind) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("tojson can't serialize a value: {kind}"))
}

fn json_float(value: &Value) -> String {
    match float_repr(value).as_str() {
        "nan" => "NaN".to_string(),
        "inf" => "Infinity".to_string(),
        "-inf" => "-Infinity".to_string(),
        finite => finite.to_string(),
    }
}

/// Python's `repr` of a float: the shortest digits that read back equal; an exponent below 1e-4
/// and from 1e16 on.
fn float_repr(value: &Value) -> String {
    let number = f64::try_from(value.clone()).unwrap_or(f64::NAN);
    if number.is_nan() {
        return "nan".to_string();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{number}");
        if plain.contains('.') { plain } else { plain + ".0" }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.abs())
    }
}

fn pairs(value: &Value) -> impl Iterator<Item = (Value, Value)> + use<> {
    value.as_object().and_then(|object| object.try_iter_pairs()).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_as_python_writes_them() {
        let repr = |number: f64| float_repr(&Value::from(number));
        for (number, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (9007199254740993.0, "9007199254740992.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(repr(number), text);
        }
    }
}
