//! Grammars of tool calls: a wrapper in Lark around the grammar of each tool's parameters.

use crate::grammar_spec::{Layout, with_layout};
use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use serde_json::{Map, Value, json};

const MAX_TOOLS: usize = 128;
const MAX_NAME: usize = 64;
/// Looked at for one parameter: references may run in circles.
const MAX_SCHEMAS: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Hermes,
    Xml,
}

pub struct Tool {
    name: String,
    pub parameters: Value,
}

/// Calls of these tools, and nothing else: one, or with `parallel` one after the other.
pub struct ToolCalls {
    format: Format,
    parallel: bool,
    pub tools: Vec<Tool>,
}

impl ToolCalls {
    pub fn from_json(spec: &mut Value) -> Result<Self, String> {
        let format = match spec["format"].as_str() {
            Some("hermes") => Format::Hermes,
            Some("xml") => Format::Xml,
            format => return Err(format!("got tool calls in the format {format:?}")),
        };
        let tools = spec["tools"].as_array_mut().map(std::mem::take).unwrap_or_default();
        if tools.is_empty() || tools.len() > MAX_TOOLS {
            return Err(format!("got {} tools, expected 1 to {MAX_TOOLS}", tools.len()));
        }
        let tools =
            tools.into_iter().map(Tool::from_json).collect::<Result<Vec<Tool>, String>>()?;
        Ok(Self { format, parallel: spec["parallel"] == true, tools })
    }
}

impl Tool {
    fn from_json(mut tool: Value) -> Result<Self, String> {
        let name = tool["name"].as_str().unwrap_or_default().to_string();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
            return Err(format!(
                "got the tool name {name:?}, expected 1 to {MAX_NAME} letters, digits, '_', '-', '.'"
            ));
        }
        let parameters = match tool["parameters"].take() {
            Value::Null => json!({}),
            parameters => parameters,
        };
        let parameters = object_schema(parameters, &name)?;
        Ok(Self { name, parameters })
    }
}

/// Arguments are an object, even where a schema doesn't say so.
fn object_schema(mut parameters: Value, tool: &str) -> Result<Value, String> {
    let Some(members) = parameters.as_object_mut() else {
        return Err(format!("got parameters of {tool} that are no object, expected a schema"));
    };
    let kind = members.entry("type").or_insert(json!("object"));
    if kind != "object" {
        return Err(format!("got parameters of {tool} of the type {kind}, expected \"object\""));
    }
    Ok(parameters)
}

pub fn tool_grammar(calls: &ToolCalls) -> Result<TopLevelGrammar, String> {
    let mut writer = Writer::default();
    let names: Vec<String> = (0..calls.tools.len()).map(|index| format!("call_{index}")).collect();
    // Behind reasoning models write an empty line first.
    let more = if calls.parallel { r#" ("\n" call)*"# } else { "" };
    writer.lark =
        format!("start: LINES? call{more}\nLINES: /\\n{{1,2}}/\ncall: {}\n", names.join(" | "));
    for (tool, rule) in calls.tools.iter().zip(&names) {
        match calls.format {
            Format::Hermes => writer.add_hermes_call(tool, rule)?,
            Format::Xml => writer.add_xml_call(tool, rule)?,
        }
    }
    let mut grammars = vec![GrammarWithLexer::from_lark(writer.lark)];
    grammars.append(&mut writer.schemas);
    Ok(TopLevelGrammar { grammars, max_tokens: None })
}

#[derive(Default)]
struct Writer {
    lark: String,
    schemas: Vec<GrammarWithLexer>,
}

impl Writer {
    fn add_hermes_call(&mut self, tool: &Tool, rule: &str) -> Result<(), String> {
        let arguments = self.add_schema(tool.parameters.clone(), Layout::Free)?;
        let begin = quoted(&format!("<tool_call>\n{{\"name\": \"{}\", \"arguments\": ", tool.name));
        let end = quoted("}\n</tool_call>");
        self.lark += &format!("{rule}: {begin} {arguments} {end}\n");
        Ok(())
    }

    fn add_xml_call(&mut self, tool: &Tool, rule: &str) -> Result<(), String> {
        let mut parts = vec![quoted(&format!("<tool_call>\n<function={}>\n", tool.name))];
        let empty = Map::new();
        let properties = tool.parameters["properties"].as_object().unwrap_or(&empty);
        let required = tool.parameters["required"].as_array().map(Vec::as_slice).unwrap_or(&[]);
        refuse_unseen(tool, properties, required)?;
        for (index, (key, schema)) in properties.iter().enumerate() {
            let parameter = format!("{rule}_{index}");
            self.add_parameter(tool, key, schema, &parameter)?;
            let is_required = required.iter().any(|name| name == key);
            parts.push(if is_required { parameter } else { format!("{parameter}?") });
        }
        parts.push(quoted("</function>\n</tool_call>"));
        self.lark += &format!("{rule}: {}\n", parts.join(" "));
        Ok(())
    }

    fn add_parameter(
        &mut self,
        tool: &Tool,
        key: &str,
        schema: &Value,
        rule: &str,
    ) -> Result<(), String> {
        if key.is_empty() || key.contains(['<', '>', '\n', '\r']) {
            return Err(format!("got the parameter name {key:?}, expected one without '<', '>'"));
        }
        let mut values = Values::default();
        collect_values(schema, &tool.parameters, &mut values)
            .map_err(|text| format!("parameter {key:?} of {}: {text}", tool.name))?;
        let begin = quoted(&format!("<parameter={key}>\n"));
        let end = quoted("\n</parameter>\n");
        let mut alternatives = Vec::new();
        for (index, text) in values.texts.iter().enumerate() {
            let terminal = format!("{}_{index}", rule.to_uppercase());
            self.lark += &format!("{terminal}: {text} {end}\n");
            alternatives.push(terminal);
        }
        if !values.schemas.is_empty() {
            let mut json = json!({"anyOf": values.schemas});
            copy_definitions(&tool.parameters, &mut json);
            let json = self.add_schema(json, Layout::OneLine)?;
            alternatives.push(format!("{json} {end}"));
        }
        self.lark += &format!("{rule}: {begin} ({})\n", alternatives.join(" | "));
        Ok(())
    }

    /// A reference to the grammar of a schema.
    fn add_schema(&mut self, schema: Value, layout: Layout) -> Result<String, String> {
        let name = format!("schema_{}", self.schemas.len());
        let mut grammar = GrammarWithLexer::from_json_schema(with_layout(schema, layout)?);
        grammar.name = Some(name.clone());
        self.schemas.push(grammar);
        Ok(format!("@{name}"))
    }
}

/// What of a schema the form of one element for each property can't keep.
fn refuse_unseen(
    tool: &Tool,
    properties: &Map<String, Value>,
    required: &[Value],
) -> Result<(), String> {
    const UNSEEN: [&str; 7] =
        ["allOf", "anyOf", "oneOf", "$ref", "minProperties", "maxProperties", "patternProperties"];
    if let Some(key) = UNSEEN.iter().find(|key| tool.parameters.get(**key).is_some()) {
        return Err(format!(
            "got \"{key}\" beside the properties of {}, expected properties alone in this format",
            tool.name
        ));
    }
    let known = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
    match required.iter().find(|name| !known(name)) {
        Some(name) => {
            Err(format!("got {name} among what {} requires, but no such property", tool.name))
        }
        None => Ok(()),
    }
}

/// Ways to write a parameter: plain text for strings, JSON for the rest.
#[derive(Default)]
struct Values {
    texts: Vec<String>,
    schemas: Vec<Value>,
    schemas_seen: usize,
}

fn collect_values(schema: &Value, root: &Value, values: &mut Values) -> Result<(), String> {
    values.schemas_seen += 1;
    if values.schemas_seen > MAX_SCHEMAS {
        return Err(format!("got over {MAX_SCHEMAS} options or references"));
    }
    let Some(members) = schema.as_object() else {
        values.texts.push(free_text(&Map::new())?);
        return Ok(());
    };
    let Some(key) =
        ["$ref", "allOf", "anyOf", "oneOf"].iter().find(|key| members.contains_key(**key))
    else {
        return collect_plain_values(members, values);
    };
    refuse_siblings(members, key)?;
    match &members[*key] {
        Value::String(reference) => {
            let target = reference.strip_prefix('#').and_then(|path| root.pointer(path));
            let target = target.ok_or_else(|| format!("got the reference {reference:?}"))?;
            collect_values(target, root, values)
        }
        Value::Array(options) if *key != "allOf" || options.len() == 1 => {
            options.iter().try_for_each(|option| collect_values(option, root, values))
        }
        _ => Err(format!("got \"{key}\", which this format can't keep")),
    }
}

/// What stands beside options would have to hold for each of them.
fn refuse_siblings(members: &Map<String, Value>, key: &str) -> Result<(), String> {
    const SILENT: [&str; 7] =
        ["title", "description", "default", "examples", "$comment", "deprecated", "readOnly"];
    let other = members.keys().find(|other| *other != key && !SILENT.contains(&other.as_str()));
    match other {
        Some(other) => Err(format!("got \"{other}\" beside \"{key}\", expected \"{key}\" alone")),
        None => Ok(()),
    }
}

fn collect_plain_values(members: &Map<String, Value>, values: &mut Values) -> Result<(), String> {
    let constants = members.get("const").map(std::slice::from_ref);
    let constants = constants.or(members.get("enum").and_then(Value::as_array).map(Vec::as_slice));
    if let Some(constants) = constants {
        let (texts, others): (Vec<&Value>, Vec<&Value>) =
            constants.iter().partition(|constant| constant.is_string());
        if !texts.is_empty() {
            values.texts.push(choice_of(&texts)?);
        }
        if !others.is_empty() {
            values.schemas.push(json!({"enum": others}));
        }
        return Ok(());
    }
    let mut others = Vec::new();
    for kind in kinds_of(members) {
        if kind == "string" {
            values.texts.push(free_text(members)?);
        } else {
            others.push(kind);
        }
    }
    if !others.is_empty() {
        let mut schema = members.clone();
        schema.insert("type".to_string(), json!(others));
        values.schemas.push(Value::Object(schema));
    }
    Ok(())
}

/// A parameter without a type is text, as in the templates' own parsers.
fn kinds_of(members: &Map<String, Value>) -> Vec<String> {
    match members.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).map(str::to_string).collect()
        }
        _ => vec!["string".to_string()],
    }
}

fn choice_of(texts: &[&Value]) -> Result<String, String> {
    let mut choices = Vec::with_capacity(texts.len());
    for text in texts.iter().filter_map(|text| text.as_str()) {
        if text.contains("</parameter>") {
            return Err("got a constant with \"</parameter>\" in it".to_string());
        }
        choices.push(quoted(text));
    }
    Ok(format!("({})", choices.join(" | ")))
}

/// Text up to the closing tag.
fn free_text(members: &Map<String, Value>) -> Result<String, String> {
    if let Some(key) = ["pattern", "format"].iter().find(|key| members.contains_key(**key)) {
        return Err(format!("got \"{key}\" for a text, which this format can't keep"));
    }
    let length = |key: &str| members.get(key).and_then(Value::as_u64);
    let bounds = match (length("minLength"), length("maxLength")) {
        (None, None) => String::new(),
        (min, max) => format!(
            " & /(?s:.{{{},{}}})/",
            min.unwrap_or(0),
            max.map(|max| max.to_string()).unwrap_or_default()
        ),
    };
    Ok(format!(r"(/(?s:.*)/ & ~/(?s:.*)<\/parameter>(?s:.*)/{bounds})"))
}

fn copy_definitions(from: &Value, to: &mut Value) {
    for key in ["$defs", "definitions"] {
        if let Some(definitions) = from.get(key) {
            to[key] = definitions.clone();
        }
    }
}

/// A string of Lark, which is one of JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
