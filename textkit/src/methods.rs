//! Methods of Python's str that minijinja-contrib doesn't have.

use minijinja::value::{Tuple, Value, from_args};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat;

/// Calls a method that a value doesn't have by itself.
pub fn call_method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return pycompat::unknown_method_callback(state, value, method, args);
    };
    match method {
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Ok(Value::from(text.strip_prefix(prefix).unwrap_or(text)))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Ok(Value::from(text.strip_suffix(suffix).unwrap_or(text)))
        }
        "partition" => {
            let separator = separator(args)?;
            Ok(match text.split_once(separator) {
                Some((before, after)) => strings([before, separator, after]),
                None => strings([text, "", ""]),
            })
        }
        "rpartition" => {
            let separator = separator(args)?;
            Ok(match text.rsplit_once(separator) {
                Some((before, after)) => strings([before, separator, after]),
                None => strings(["", "", text]),
            })
        }
        _ => pycompat::unknown_method_callback(state, value, method, args),
    }
}

fn separator(args: &[Value]) -> Result<&str, Error> {
    match from_args(args)? {
        ("",) => Err(Error::new(ErrorKind::InvalidOperation, "got an empty separator")),
        (separator,) => Ok(separator),
    }
}

fn strings(texts: [&str; 3]) -> Value {
    Value::from(Tuple::from(texts.map(Value::from)))
}
