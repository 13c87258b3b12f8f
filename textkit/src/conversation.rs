//! What a template sees of a request: checked, put into the form that transformers gives it, and
//! with every typed token marked.

use crate::added_tokens::{MarkerChoice, TokenBreaker};
use minijinja::value::{Value, ValueKind};

/// Variables that aren't a request's to set.
const RESERVED: [&str; 11] = [
    "messages",
    "conversation",
    "tools",
    "documents",
    "add_generation_prompt",
    "continue_final_message",
    "chat_template",
    "tokenize",
    "raise_exception",
    "strftime_now",
    "namespace",
];

/// Names under which a message carries its reasoning; the first is the one that templates read.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// A request as a template's variables.
pub struct Conversation {
    pub variables: Vec<(String, Value)>,
    /// The marker in the variables' strings, where there is one.
    pub marker: Option<char>,
}

/// Which tokens are broken in what kind of text.
pub struct Breakers {
    pub all: TokenBreaker,
    pub special: TokenBreaker,
}

impl Conversation {
    /// `json`: {"messages": […], "tools": […]|null, "add_generation_prompt": bool, "kwargs": {…}}.
    pub fn from_json(json: &str, template: &str, breakers: &Breakers) -> Result<Self, String> {
        let request: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let mut marking = Marking::new(&request, template)?;
        let messages = messages(&field(&request, "messages"), breakers, &mut marking)?;
        let tools = tools(&field(&request, "tools"))?;
        let mut variables = vec![
            ("messages".to_string(), messages),
            ("tools".to_string(), marking.mark(&tools, &breakers.all)),
            ("documents".to_string(), Value::from(())),
            ("add_generation_prompt".to_string(), field(&request, "add_generation_prompt")),
        ];
        for (name, value) in kwargs(&field(&request, "kwargs"))? {
            variables.push((name, marking.mark(&value, &breakers.all)));
        }
        Ok(Self { variables, marker: marking.used.then_some(marking.marker) })
    }
}

struct Marking {
    marker: char,
    used: bool,
}

impl Marking {
    fn new(request: &Value, template: &str) -> Result<Self, String> {
        let mut choice = MarkerChoice::default();
        choice.avoid(template);
        avoid_strings(request, &mut choice);
        let marker = choice.marker().ok_or(
            "got text with all of the noncharacters U+FDD0 to U+FDEF, expected one of them unused",
        )?;
        Ok(Self { marker, used: false })
    }

    /// The value with its strings (keys included) marked.
    fn mark(&mut self, value: &Value, breaker: &TokenBreaker) -> Value {
        match value.kind() {
            ValueKind::String => {
                let marked = value.as_str().and_then(|text| breaker.mark(text, self.marker));
                self.used |= marked.is_some();
                marked.map_or_else(|| value.clone(), Value::from)
            }
            ValueKind::Seq => items(value).map(|item| self.mark(&item, breaker)).collect(),
            ValueKind::Map => Value::from_pairs(
                pairs(value)
                    .map(|(key, item)| (self.mark(&key, breaker), self.mark(&item, breaker)))
                    .collect::<Vec<_>>(),
            ),
            _ => value.clone(),
        }
    }
}

fn avoid_strings(value: &Value, choice: &mut MarkerChoice) {
    match value.kind() {
        ValueKind::String => choice.avoid(value.as_str().unwrap_or_default()),
        ValueKind::Seq => items(value).for_each(|item| avoid_strings(&item, choice)),
        ValueKind::Map => pairs(value).for_each(|(key, item)| {
            avoid_strings(&key, choice);
            avoid_strings(&item, choice);
        }),
        _ => {}
    }
}

fn messages(messages: &Value, breakers: &Breakers, marking: &mut Marking) -> Result<Value, String> {
    if messages.kind() != ValueKind::Seq {
        return Err(format!("got messages: {}, expected a list", messages.kind()));
    }
    let mut seen = Vec::new();
    for (index, message) in items(messages).enumerate() {
        if message.kind() != ValueKind::Map {
            return Err(format!("got messages[{index}]: {}, expected an object", message.kind()));
        }
        // A model's own reasoning and tool calls come back as text in its messages.
        let from_model = field(&message, "role").as_str() == Some("assistant");
        let breaker = if from_model { &breakers.special } else { &breakers.all };
        seen.push(marking.mark(&as_transformers(&message), breaker));
    }
    if seen.is_empty() {
        return Err("got no messages, expected at least one".to_string());
    }
    Ok(Value::from(seen))
}

/// As transformers' `apply_chat_template`: keys with null are dropped, and reasoning appears under
/// the names that templates read.
fn as_transformers(message: &Value) -> Value {
    let mut fields: Vec<(Value, Value)> =
        pairs(message).filter(|(_, value)| !value.is_none()).collect();
    let reasoning = REASONING.iter().map(|name| field(message, name)).find(|text| !text.is_none());
    if let Some(reasoning) = reasoning {
        let position =
            |fields: &[(Value, Value)], name| fields.iter().position(|(key, _)| key == &name);
        if position(&fields, Value::from("thinking")).is_none() {
            fields.insert(0, (Value::from("thinking"), reasoning.clone()));
        }
        match position(&fields, Value::from(REASONING[0])) {
            Some(index) => fields[index].1 = reasoning,
            None => fields.push((Value::from(REASONING[0]), reasoning)),
        }
    }
    Value::from_pairs(fields)
}

fn tools(tools: &Value) -> Result<Value, String> {
    if tools.is_none() {
        return Ok(tools.clone());
    }
    if tools.kind() != ValueKind::Seq || items(tools).any(|tool| tool.kind() != ValueKind::Map) {
        return Err("got tools of another kind, expected a list of objects".to_string());
    }
    Ok(tools.clone())
}

fn kwargs(kwargs: &Value) -> Result<Vec<(String, Value)>, String> {
    if kwargs.is_none() {
        return Ok(Vec::new());
    }
    if kwargs.kind() != ValueKind::Map {
        return Err(format!("got template kwargs: {}, expected an object", kwargs.kind()));
    }
    let mut named = Vec::new();
    for (key, value) in pairs(kwargs) {
        let name = key.as_str().unwrap_or_default();
        if RESERVED.contains(&name) {
            return Err(format!("got the template kwarg \"{name}\", which isn't yours to set"));
        }
        named.push((name.to_string(), value));
    }
    Ok(named)
}

/// The value at a key; none where there is none.
fn field(object: &Value, key: &str) -> Value {
    match object.get_attr(key) {
        Ok(value) if !value.is_undefined() => value,
        _ => Value::from(()),
    }
}

fn items(value: &Value) -> impl Iterator<Item = Value> + use<> {
    value.try_iter().into_iter().flatten()
}

fn pairs(value: &Value) -> impl Iterator<Item = (Value, Value)> + use<> {
    value.as_object().and_then(|object| object.try_iter_pairs()).into_iter().flatten()
}
