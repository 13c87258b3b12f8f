//! What a grammar is asked for by, in JSON, and the bounds on it:
//! `{"kind":"json_object"}`, `{"kind":"json_schema","schema":S}`, or
//! `{"kind":"tool_calls","format":"hermes"|"xml","parallel":bool,"tools":[{"name":…,"parameters":S}]}`.

use crate::tool_grammar::{ToolCalls, tool_grammar};
use llguidance::JsonCompileOptions;
use llguidance::api::TopLevelGrammar;
use serde_json::{Map, Value, json};

const MAX_BYTES: usize = 256 << 10;
const MAX_DEPTH: usize = 32;
const MAX_PATTERNS: usize = 32;
/// Where schemas are merged: a text that must match all of several patterns.
const MAX_MERGED_PATTERNS: usize = 8;
const MAX_PATTERN_PROPERTIES: usize = 16;
const MAX_PATTERN_BYTES: usize = 16 << 10;

/// White space between two parts of a JSON text. Without an end a model can write it for ever.
const WHITE_SPACE: &str = r"[\x20\x0A\x0D\x09]{1,64}";

/// How JSON is written.
#[derive(Clone, Copy)]
pub enum Layout {
    /// White space of the model's choice, up to 64 characters in one place.
    Free,
    /// `{"a": 1, "b": [2, 3]}`, as templates write values in XML.
    OneLine,
}

pub fn to_grammar(spec: &str) -> Result<TopLevelGrammar, String> {
    if spec.len() > MAX_BYTES {
        return Err(format!("got {} bytes, expected at most {MAX_BYTES}", spec.len()));
    }
    let mut spec: Value = serde_json::from_str(spec).map_err(|error| error.to_string())?;
    match spec["kind"].as_str() {
        Some("json_object") => json_grammar(json!({"type": "object"})),
        Some("json_schema") => json_grammar(spec["schema"].take()),
        Some("tool_calls") => {
            let calls = ToolCalls::from_json(&mut spec)?;
            calls.tools.iter().try_for_each(|tool| check_schema(&tool.parameters))?;
            tool_grammar(&calls)
        }
        kind => Err(format!("got a grammar of the kind {kind:?}, expected another")),
    }
}

fn json_grammar(schema: Value) -> Result<TopLevelGrammar, String> {
    check_schema(&schema)?;
    Ok(TopLevelGrammar::from_json_schema(with_layout(schema, Layout::Free)?))
}

/// The schema with llguidance's own options in it.
pub fn with_layout(schema: Value, layout: Layout) -> Result<Value, String> {
    let mut schema = match schema {
        Value::Object(_) => schema,
        Value::Bool(true) => json!({}),
        _ => return Err("got a schema of another kind, expected an object".to_string()),
    };
    let mut options = JsonCompileOptions {
        json_allow_general_unicode_escapes: true,
        ..JsonCompileOptions::default()
    };
    match layout {
        Layout::Free => options.whitespace_pattern = Some(WHITE_SPACE.to_string()),
        Layout::OneLine => {
            options.whitespace_flexible = false;
            options.item_separator = ", ".to_string();
            options.key_separator = ": ".to_string();
        }
    }
    options.apply_to(&mut schema);
    Ok(schema)
}

#[derive(Default)]
struct Patterns {
    count: usize,
    bytes: usize,
    are_merged: bool,
}

fn check_schema(schema: &Value) -> Result<(), String> {
    let mut patterns = Patterns::default();
    check_value(schema, 0, &mut patterns)?;
    let (most, merged) = match patterns.are_merged {
        true => (MAX_MERGED_PATTERNS, " beside allOf, or $ref with more than that"),
        false => (MAX_PATTERNS, ""),
    };
    if patterns.count > most {
        return Err(format!("got {} patterns{merged}, expected at most {most}", patterns.count));
    }
    if patterns.bytes > MAX_PATTERN_BYTES {
        return Err(format!(
            "got patterns of {} bytes, expected at most {MAX_PATTERN_BYTES}",
            patterns.bytes
        ));
    }
    Ok(())
}

fn check_value(value: &Value, depth: usize, patterns: &mut Patterns) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("got a schema nested deeper than {MAX_DEPTH} levels"));
    }
    match value {
        Value::Array(items) => {
            items.iter().try_for_each(|item| check_value(item, depth + 1, patterns))
        }
        Value::Object(members) => {
            check_members(members, patterns)?;
            members.values().try_for_each(|member| check_value(member, depth + 1, patterns))
        }
        _ => Ok(()),
    }
}

fn check_members(members: &Map<String, Value>, patterns: &mut Patterns) -> Result<(), String> {
    // It would change what the grammar takes for JSON.
    if members.contains_key("x-guidance") {
        return Err("got the key \"x-guidance\", expected JSON Schema's own".to_string());
    }
    patterns.are_merged |= merges(members);
    if let Some(Value::String(pattern)) = members.get("pattern") {
        patterns.count += 1;
        patterns.bytes += pattern.len();
    }
    let Some(Value::Object(properties)) = members.get("patternProperties") else {
        return Ok(());
    };
    if properties.len() > MAX_PATTERN_PROPERTIES {
        return Err(format!(
            "got {} patternProperties, expected at most {MAX_PATTERN_PROPERTIES}",
            properties.len()
        ));
    }
    patterns.count += properties.len();
    patterns.bytes += properties.keys().map(String::len).sum::<usize>();
    Ok(())
}

/// Whether a value must keep several schemas at once.
fn merges(members: &Map<String, Value>) -> bool {
    const SCHEMAS: [&str; 9] = [
        "$ref",
        "anyOf",
        "oneOf",
        "pattern",
        "properties",
        "patternProperties",
        "additionalProperties",
        "items",
        "prefixItems",
    ];
    let count = SCHEMAS.iter().filter(|key| members.contains_key(**key)).count();
    let has_options = SCHEMAS[..3].iter().any(|key| members.contains_key(*key));
    members.contains_key("allOf") || (has_options && count > 1)
}
