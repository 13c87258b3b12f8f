//! Chat templates: Jinja as transformers sets it, with bounds on what a template may use up.

use crate::added_tokens::{TokenBreaker, refuse_unbreakable};
use crate::bounds;
use crate::conversation::{Breakers, Conversation};
use crate::methods::call_method;
use crate::python::{MARKER_VARIABLE, format_value, tojson};
use crate::strftime::strftime_now;
use crate::tokenizer::AddedToken;
use minijinja::machinery;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};

/// Work of one rendering: instructions, and 64 bytes of text for each. It bounds memory as well.
const FUEL: u64 = 10_000_000;
const MAX_RECURSION: usize = 500;
const PARSER_STACK: usize = 64 << 20;
const MAX_OUTPUT: usize = 8 << 20;
const MAX_SOURCE: usize = 256 << 10;
const MAX_ERROR_CHARS: usize = 1000;

const NAME: &str = "chat_template";

pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    special_tokens: Vec<(String, Value)>,
    breakers: Breakers,
}

pub struct Rendered {
    pub text: String,
    /// Where typed tokens had to be marked.
    pub marker: Option<char>,
}

impl ChatTemplate {
    /// `special_tokens`: a JSON object such as {"bos_token": "<s>"}, passed to the template.
    pub fn new(
        source: &str,
        special_tokens: &str,
        added_tokens: &[AddedToken],
    ) -> Result<Self, String> {
        if source.len() > MAX_SOURCE {
            return Err(format!("got {} bytes, expected at most {MAX_SOURCE}", source.len()));
        }
        refuse_unbreakable(added_tokens)?;
        // As Jinja does.
        let source = source.replace("\r\n", "\n").replace('\r', "\n");
        let environment = on_own_stack(|| compile(&source)).map_err(|error| describe(&error))?;
        Ok(Self {
            environment,
            source,
            special_tokens: parse_special_tokens(special_tokens)?,
            breakers: Breakers {
                all: TokenBreaker::new(added_tokens.iter()),
                special: TokenBreaker::new(added_tokens.iter().filter(|token| token.special)),
            },
        })
    }

    pub fn render(&self, request: &str) -> Result<Rendered, String> {
        let conversation = Conversation::from_json(request, &self.source, &self.breakers)?;
        let marker = conversation.marker;
        let text = self.run(conversation).map_err(|error| {
            let text = describe(&error);
            marker.map_or(text.clone(), |marker| text.replace(marker, ""))
        })?;
        Ok(Rendered { text, marker })
    }

    fn run(&self, conversation: Conversation) -> Result<String, Error> {
        let marker = conversation.marker.map(|marker| marker.to_string());
        let hidden = (MARKER_VARIABLE.to_string(), Value::from(marker));
        let variables = self.special_tokens.iter().cloned();
        let variables = variables.chain(conversation.variables).chain([hidden]);
        let variables = Value::from_pairs(variables);
        let template = self.environment.get_template(NAME)?;
        let compiled = machinery::get_compiled_template(&template);
        let instructions = bounds::with_measures(&compiled.instructions);
        let mut text = String::new();
        let mut output = machinery::make_string_output(&mut text);
        machinery::eval(
            &self.environment,
            &instructions,
            variables,
            &compiled.blocks,
            &mut output,
            AutoEscape::None,
        )?;
        if text.len() > MAX_OUTPUT {
            let text = format!("the chat template wrote more than {MAX_OUTPUT} bytes");
            return Err(Error::new(ErrorKind::InvalidOperation, text));
        }
        Ok(text)
    }
}

/// The environment with the template in it.
fn compile(source: &str) -> Result<Environment<'static>, Error> {
    let mut environment = environment()?;
    bounds::check_tokens(source, environment.syntax())?;
    environment.add_template_owned(NAME, source.to_string())?;
    Ok(environment)
}

/// Runs work that recurses deeply, on a stack of known size.
fn on_own_stack<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    let failed = |text: String| Error::new(ErrorKind::InvalidOperation, text);
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(PARSER_STACK)
            .spawn_scoped(scope, work)
            .map_err(|error| failed(format!("no thread for parsing: {error}")))?
            .join()
            .unwrap_or_else(|_| Err(failed("parsing failed".to_string())))
    })
}

/// What transformers' environment has beyond Jinja's own.
fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_unknown_method_callback(call_method);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(MAX_RECURSION);
    environment.set_formatter(format_value);
    bounds::add_functions(&mut environment);
    environment.add_filter("tojson", tojson);
    environment.add_test("sequence", is_sequence);
    environment.add_test("callable", |value: &Value| value.kind() == ValueKind::Plain);
    environment.add_function("raise_exception", |text: String| {
        Err::<Value, Error>(Error::new(ErrorKind::InvalidOperation, text).with_source(Raised))
    });
    environment.add_function("strftime_now", |format: String| {
        strftime_now(&format).map_err(|text| Error::new(ErrorKind::InvalidOperation, text))
    });
    Ok(environment)
}

/// Jinja counts everything with a length and items: strings and dicts too.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map)
}

fn parse_special_tokens(json: &str) -> Result<Vec<(String, Value)>, String> {
    let tokens: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let Some(object) = tokens.as_object() else {
        return Err("got special tokens of another kind, expected an object".to_string());
    };
    let pairs = object.try_iter_pairs().into_iter().flatten();
    Ok(pairs.map(|(name, token)| (name.to_string(), token)).collect())
}

/// Marks an error that the template itself raised.
#[derive(Debug)]
struct Raised;

impl std::fmt::Display for Raised {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str("raised by the template")
    }
}

impl std::error::Error for Raised {}

/// One sentence for a user: the template's own words, or what failed and where.
fn describe(error: &Error) -> String {
    let mut sources = std::iter::successors(std::error::Error::source(error), |e| e.source());
    let text = match error.detail() {
        Some(detail) if sources.any(|source| source.is::<Raised>()) => {
            format!("the chat template refused the request: {detail}")
        }
        _ => error.to_string(),
    };
    text.chars().take(MAX_ERROR_CHARS).collect()
}

#[cfg(test)]
mod tests;
