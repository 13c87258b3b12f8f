use super::*;
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

const VOCABULARY: usize = 4000;

fn tokenizer() -> &'static TextTokenizer {
    static TOKENIZER: OnceLock<TextTokenizer> = OnceLock::new();
    TOKENIZER.get_or_init(|| {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-qwen3-vl-4bit/tokenizer.json");
        TextTokenizer::from_json(&std::fs::read(file).unwrap()).unwrap()
    })
}

fn id(token: &str) -> u32 {
    tokenizer().token_to_id(token).unwrap()
}

fn ends() -> [u32; 2] {
    [id("<|im_end|>"), id("<|endoftext|>")]
}

fn compiler() -> &'static GrammarCompiler {
    static COMPILER: OnceLock<GrammarCompiler> = OnceLock::new();
    COMPILER.get_or_init(|| GrammarCompiler::new(tokenizer(), VOCABULARY, &ends()).unwrap())
}

fn compile(schema: Value) -> Result<Grammar, String> {
    compiler().compile(&json!({"kind": "json_schema", "schema": schema}).to_string())
}

fn refusal(schema: Value) -> String {
    compile(schema).err().expect("got a grammar, expected a refusal")
}

fn allowed(state: &mut GrammarState) -> Vec<u32> {
    let words = state.allowed().unwrap();
    let is_set = |id: &u32| words[*id as usize / 32] >> (id % 32) & 1 == 1;
    (0..VOCABULARY as u32).filter(is_set).collect()
}

/// Whether the text is taken, token by token, and may end there.
fn takes(grammar: &Grammar, text: &str) -> bool {
    let mut state = grammar.state();
    for id in tokenizer().encode_text(text).unwrap() {
        if !allowed(&mut state).contains(&id) || state.accept(id).is_err() {
            return false;
        }
    }
    state.can_end().unwrap()
}

fn tools(format: &str, parallel: bool, tools: Value) -> Result<Grammar, String> {
    let spec =
        json!({"kind": "tool_calls", "format": format, "parallel": parallel, "tools": tools});
    compiler().compile(&spec.to_string())
}

#[test]
fn ends_are_allowed_exactly_where_the_grammar_may_end() {
    let grammar =
        compile(json!({"type": "object", "properties": {"a": {"type": "integer"}}})).unwrap();
    let mut state = grammar.state();
    for token in tokenizer().encode_text("{\"a\": 12}").unwrap() {
        assert!(!state.can_end().unwrap() && !state.finished());
        assert!(!allowed(&mut state).iter().any(|id| ends().contains(id)));
        state.accept(token).unwrap();
    }
    assert!(state.can_end().unwrap());
    assert!(ends().iter().all(|end| allowed(&mut state).contains(end)));
    state.accept(ends()[1]).unwrap();
    assert!(state.finished() && state.can_end().unwrap());
    assert_eq!(allowed(&mut state), {
        let mut ends = ends();
        ends.sort_unstable();
        ends
    });
}

#[test]
fn ids_without_text_are_never_allowed() {
    // Any text: nothing but special tokens and logits without a token is left out.
    let grammar =
        tools("xml", false, json!([{"name": "f", "parameters": {"properties": {"a": {}}}}]));
    let mut state = grammar.unwrap().state();
    let text = "<tool_call>\n<function=f>\n<parameter=a>\n";
    tokenizer().encode_text(text).unwrap().iter().for_each(|id| state.accept(*id).unwrap());
    let ids = allowed(&mut state);
    assert!(ids.contains(&id("a")) && ids.contains(&id("<think>")));
    assert!(!ids.contains(&id("<|im_start|>")) && !ids.contains(&id("<|image_pad|>")));
    assert!(ids.iter().all(|id| *id < tokenizer().size()));
    let mut wrong = state.clone();
    assert!(wrong.accept(id("<|im_start|>")).is_err());
    assert!(wrong.allowed().is_err() && !wrong.finished());
    assert!(state.accept(tokenizer().size()).is_err());
}

#[test]
fn a_copy_goes_its_own_way() {
    let grammar = compile(json!({"enum": ["ab", "ac"]})).unwrap();
    let (quote, a, b, c) = (id("\""), id("a"), id("b"), id("c"));
    let mut state = grammar.state();
    assert_eq!(state.acceptable(&[quote, a, b, b]).unwrap(), 3);
    state.accept(quote).unwrap();
    state.accept(a).unwrap();
    let mut copy = state.clone();
    state.accept(b).unwrap();
    copy.accept(c).unwrap();
    assert_eq!((state.acceptable(&[b]).unwrap(), copy.acceptable(&[quote]).unwrap()), (0, 1));
    copy.accept(quote).unwrap();
    assert!(copy.finished() && copy.acceptable(&[quote]).unwrap() == 0);
}

#[test]
fn an_answer_that_grows_too_complex_ends_alone() {
    let grammar = compile(pattern(".*a.{2000}")).unwrap();
    let mut state = grammar.state();
    state.accept(id("\"")).unwrap();
    let mut copy = state.clone();
    let mut random = 1_u64;
    let error = (0..2000).find_map(|_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let letter = if random >> 40 & 1 == 0 { "a" } else { "b" };
        state.allowed().err().or_else(|| state.accept(id(letter)).err())
    });
    assert!(error.unwrap().contains("too many states"));
    assert!(state.allowed().is_err() && !state.finished());
    assert!(copy.allowed().is_ok() && grammar.state().allowed().is_ok());
}

#[test]
fn hermes_calls_are_those_of_the_tools() {
    let parameters = json!({"properties": {"city": {"type": "string"}}, "required": ["city"]});
    let list =
        json!([{"name": "now", "parameters": null}, {"name": "at", "parameters": parameters}]);
    let now = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
    let at = "<tool_call>\n{\"name\": \"at\", \"arguments\": {\"city\": \"a<b\"}}\n</tool_call>";
    let one = tools("hermes", false, list.clone()).unwrap();
    let more = tools("hermes", true, list).unwrap();
    for grammar in [&one, &more] {
        assert!(takes(grammar, now) && takes(grammar, at) && takes(grammar, &format!("\n\n{at}")));
        for text in ["", "Hi", "<tool_call>\n{\"name\": \"at\", \"arguments\": {}}\n</tool_call>"] {
            assert!(!takes(grammar, text), "{text}");
        }
        assert!(!takes(grammar, &now.replace("now", "new")));
    }
    let both = format!("{at}\n{now}");
    assert!(takes(&more, &both) && !takes(&one, &both));
}

#[test]
fn xml_calls_have_their_parameters_in_order() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "any"},
            "short": {"type": "string", "maxLength": 3},
            "kind": {"enum": ["x", "y", 1]},
            "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "list": {"$ref": "#/$defs/list"}
        },
        "required": ["text"],
        "$defs": {"list": {"type": "array", "items": {"type": "boolean"}}}
    });
    let grammar = tools("xml", false, json!([{"name": "f", "parameters": parameters}])).unwrap();
    let call = |parameters: &[(&str, &str)]| {
        let written = parameters
            .iter()
            .map(|(key, value)| format!("<parameter={key}>\n{value}\n</parameter>\n"));
        let inside: String = written.collect();
        format!("<tool_call>\n<function=f>\n{inside}</function>\n</tool_call>")
    };
    let text = ("text", "a\n\"b\" </param> {");
    for good in [
        &[text][..],
        &[("text", "")],
        &[text, ("short", "abc")],
        &[text, ("kind", "x"), ("list", "[true, false]")],
        &[text, ("kind", "1"), ("count", "null")],
        &[text, ("short", ""), ("kind", "y"), ("count", "-12"), ("list", "[]")],
    ] {
        assert!(takes(&grammar, &call(good)), "{good:?}");
    }
    for bad in [
        &[][..],
        &[("short", "abc"), text],
        &[text, ("short", "abcd")],
        &[text, ("kind", "z")],
        &[text, ("count", "many")],
        &[text, ("list", "[1]")],
        &[text, ("other", "1")],
        &[("text", "a\n</parameter>\nb")],
    ] {
        assert!(!takes(&grammar, &call(bad)), "{bad:?}");
    }
}

#[test]
fn tools_that_a_format_cannot_keep_are_refused() {
    let refused = |format: &str, name: &str, parameters: Value| {
        tools(format, false, json!([{"name": name, "parameters": parameters}])).err().unwrap()
    };
    let one = |schema: Value| json!({"properties": {"a": schema}});
    for (parameters, reason) in [
        (one(json!({"type": "string", "pattern": "a"})), "pattern"),
        (one(json!({"type": "string", "format": "date"})), "format"),
        (one(json!({"$ref": "other.json"})), "other.json"),
        (one(json!({"anyOf": [{"type": "string"}], "maxLength": 3})), "maxLength"),
        (one(json!({"allOf": [{}, {}]})), "allOf"),
        (one(json!({"const": "</parameter>"})), "</parameter>"),
        (one(json!({"type": "array", "uniqueItems": true})), "uniqueItems"),
        (json!({"properties": {"a>": {}}}), "a>"),
        (json!({"required": ["b"]}), "\"b\""),
        (json!({"anyOf": []}), "anyOf"),
        (
            json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}},
                "properties": {"a": {"$ref": "#/$defs/a"}}}),
            "256",
        ),
    ] {
        let error = refused("xml", "f", parameters);
        assert!(error.contains(reason), "{error}");
    }
    for format in ["xml", "hermes"] {
        assert!(refused(format, "a b", Value::Null).contains("a b"));
        assert!(refused(format, "", Value::Null).contains("name"));
        assert!(refused(format, "f", json!({"type": "array"})).contains("array"));
        assert!(refused(format, "f", json!(3)).contains("schema"));
        assert!(tools(format, false, json!([])).is_err());
    }
    assert!(refused("morse", "f", Value::Null).contains("morse"));
}

fn nested(depth: usize, leaf: Value, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(leaf, |value, _| wrap(value))
}

fn many(count: usize, make: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..count).map(make).collect()
}

fn named(count: usize, name: impl Fn(usize) -> String, make: impl Fn(usize) -> Value) -> Value {
    Value::Object((0..count).map(|index| (name(index), make(index))).collect())
}

fn pattern(text: &str) -> Value {
    json!({"type": "string", "pattern": text})
}

fn option(index: usize) -> Value {
    let key = format!("p{index}");
    json!({"type": "object", "properties": {&key: {"type": "string"}}, "required": [key]})
}

/// F21, F22: each is compiled or refused inside the bounds.
fn hostile_schemas() -> Vec<(&'static str, Value)> {
    let name = |index: usize| format!("p{index}");
    let text = |_: usize| json!({"type": "string"});
    let next = |index: usize| json!({"$ref": format!("#/$defs/p{}", index + 1)});
    let doubled = |index: usize| {
        let both = json!({"properties": {"a": next(index), "b": next(index)}});
        json!({"allOf": [both, both]})
    };
    let longer = |index: usize| format!("{}{index}", "(a|b)*".repeat(index % 20 + 1));
    vec![
        ("10,000 choices", json!({"enum": many(10_000, |i| json!(format!("value-{i:06}")))})),
        ("10,000 numbers", json!({"enum": many(10_000, |i| json!(i * 37))})),
        ("a large constant", json!({"const": named(3000, name, |i| json!(i))})),
        ("choices of choices", json!({"allOf": many(2, |_| json!({"anyOf": many(100, option)}))})),
        ("choices to the 16th", json!({"allOf": many(16, |_| json!({"anyOf": many(2, option)}))})),
        ("one of 1,000", json!({"oneOf": many(1000, option)})),
        ("2,000 properties", json!({"type": "object", "properties": named(2000, name, text)})),
        ("500 merged", json!({"allOf": many(500, option)})),
        ("a chain", json!({"$ref": "#/$defs/p0", "$defs": named(2000, name, next)})),
        ("a bomb", json!({"$ref": "#/$defs/p0", "$defs": named(20, name, doubled)})),
        ("a loop", json!({"$ref": "#"})),
        (
            "a loop of two",
            json!({"$ref": "#/$defs/p0", "$defs": {"p0": next(0), "p1": next(usize::MAX)}}),
        ),
        ("a loop of all", json!({"allOf": [{"$ref": "#"}]})),
        ("a tree", json!({"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}})),
        ("a loop of options", json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]})),
        (
            "many types",
            json!({"anyOf": many(3000, |i| json!({"type": ["array", "string"], "minLength": i}))}),
        ),
        ("(a*)*", pattern("^(a*)*$")),
        ("(a|a)*b", pattern("^(a|a)*b$")),
        ("(a+)+", pattern("^(a+)+$")),
        ("([a-z]+)+.com", pattern("^([a-zA-Z0-9]+\\.)*([a-z]+)+[a-z]$")),
        ("(.*)*=", pattern("(.*)*=.*")),
        ("*a", pattern("*a")),
        ("{1,1e9}", pattern("^a{1,1000000000}$")),
        ("{1000} thrice", pattern("^((a{1000}){1000}){1000}$")),
        ("{0,100} four times", pattern("^((((a|b){0,100}){0,100}){0,100}){0,100}$")),
        (".*a.{2000}", pattern(".*a.{2000}")),
        ("200 groups", pattern(&format!("{}a{}", "(".repeat(200), ")".repeat(200)))),
        ("60,000 groups", pattern(&format!("{}a{}", "(".repeat(60_000), ")".repeat(60_000)))),
        ("2,000 stars", pattern(&format!("{}a{}", "(".repeat(2000), ")*".repeat(2000)))),
        ("long classes", pattern(&r"\p{L}\p{N}\w".repeat(1300))),
        ("patterns of all", json!({"allOf": many(32, |i| pattern(&format!("a{i}.*b")))})),
        ("8 patterns of all", json!({"allOf": many(8, |i| pattern(&format!("a{i}.*b")))})),
        (
            "8 merged names",
            json!({"allOf": many(2, |_| json!({"patternProperties": named(4, longer, text)}))}),
        ),
        ("patterns of names", json!({"patternProperties": named(16, longer, text)})),
        ("a billion letters", json!({"type": "string", "minLength": 1_000_000_000})),
        ("a million letters", json!({"type": "string", "maxLength": 1_000_000})),
        ("a billion items", json!({"type": "array", "items": text(0), "minItems": 1_000_000_000})),
        (
            "items of items",
            nested(5, text(0), |v| json!({"type": "array", "items": v, "minItems": 1000})),
        ),
        ("many properties", json!({"type": "object", "minProperties": 100_000})),
        ("multiples", json!({"type": "integer", "multipleOf": 999_999_937})),
        (
            "common multiples",
            json!({"allOf": many(3, |i| json!({"type": "integer", "multipleOf": 9949 + 2 * i}))}),
        ),
        ("tiny multiples", json!({"type": "number", "multipleOf": 1e-9})),
        (
            "a wide range",
            json!({"type": "number", "minimum": -1.2345678901234e300, "maximum": 1.2e-300}),
        ),
        ("broad and deep", nested(10, text(0), |v| json!({"properties": {"a": v, "b": v}}))),
        ("too deep", nested(17, text(0), |v| json!({"properties": {"a": v}}))),
        ("far too deep", nested(60, text(0), |v| json!({"anyOf": [v]}))),
    ]
}

/// Peak of this process's memory since `forget_peak`, in KiB.
#[cfg(target_os = "linux")]
fn peak() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[test]
fn hostile_schemas_end_inside_the_bounds() {
    for (name, schema) in hostile_schemas() {
        let is_late = |error: &String| error.contains("takes over");
        let grammar = compile(schema);
        assert!(!grammar.as_ref().is_err_and(is_late), "{name} took over 2 s");
        if let Ok(grammar) = grammar {
            walk(&grammar, 40, name.len() as u64);
        }
    }
}

/// Random tokens that the mask allows. A step may fail where a grammar is too complex.
fn walk(grammar: &Grammar, steps: usize, seed: u64) -> Vec<u32> {
    let mut state = grammar.state();
    let mut random = seed;
    let mut ids = Vec::new();
    for _ in 0..steps {
        let Ok(_) = state.allowed() else { break };
        let choices = allowed(&mut state);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let id = choices[(random >> 33) as usize % choices.len()];
        if ends().contains(&id) || state.accept(id).is_err() {
            break;
        }
        ids.push(id);
    }
    ids
}

/// In a process of its own, whose memory nobody else takes.
#[cfg(target_os = "linux")]
#[test]
fn hostile_schemas_take_little_memory() {
    const ALONE: &str = "TEXTKIT_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let name = "grammar::tests::hostile_schemas_take_little_memory";
        let program = std::env::current_exe().unwrap();
        let mut alone = std::process::Command::new(program);
        let output = alone.args(["--exact", name]).env(ALONE, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    compiler();
    for (name, schema) in hostile_schemas() {
        forget_peak();
        let before = peak();
        drop(compile(schema));
        assert!(peak() - before < 64 << 10, "{name} took {} KiB", peak() - before);
    }
}

#[test]
fn refusals_say_why() {
    for (schema, reason) in [
        (json!({"type": "string", "pattern": "*a"}), "repetition operator missing expression"),
        (json!({"not": {}}), "\"not\""),
        (json!({"type": "array", "uniqueItems": true}), "uniqueItems"),
        (json!({"type": "string", "format": "weird"}), "weird"),
        (json!({"$ref": "http://example.com/a"}), "example.com"),
        (json!({"$ref": "file:///etc/passwd"}), "does not fetch"),
        (json!({"$ref": "#/$defs/gone"}), "gone"),
        (json!({"$ref": "#"}), "no text"),
        (json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}), "oneOf"),
        (json!({"type": "integer", "minimum": 3, "maximum": 2}), "minimum"),
        (json!({"type": "thing"}), "thing"),
        (json!({"properties": {"a": {"x-guidance": {"item_separator": ";"}}}}), "x-guidance"),
        (json!({"x-guidance": {"whitespace_pattern": "a"}}), "x-guidance"),
        (nested(33, json!(1), |v| json!([v])), "32 levels"),
        (json!({"patternProperties": named(17, |i| format!("a{i}"), |_| json!({}))}), "at most 16"),
        (json!({"allOf": many(9, |_| pattern("a"))}), "at most 8"),
        (json!({"anyOf": many(33, |_| pattern("a"))}), "at most 32"),
        (pattern(&"a".repeat(17 << 10)), "16384"),
        (json!("a"), "expected an object"),
        (json!(false), "expected an object"),
        (json!({"description": "a".repeat(256 << 10)}), "262144"),
    ] {
        let error = refusal(schema);
        assert!(error.contains(reason) && !error.contains('\n'), "{error}");
        assert!(error.len() < 4 * MAX_ERROR_CHARS);
    }
    for spec in ["", "{", "[]", "{}", "{\"kind\":\"poem\"}"] {
        assert!(compiler().compile(spec).is_err());
    }
}

#[test]
fn a_compiler_needs_ends_and_a_logit_for_each_token() {
    let size = tokenizer().size() as usize;
    let refused = |vocabulary, ends: &[u32]| {
        GrammarCompiler::new(tokenizer(), vocabulary, ends).err().unwrap()
    };
    assert!(refused(size - 1, &ends()).contains("logits"));
    assert!(refused(size, &[]).contains("ends"));
    assert!(refused(size, &[size as u32]).contains("below"));
}

#[test]
fn work_that_takes_too_long_is_left_alone() {
    static STOP: AtomicBool = AtomicBool::new(false);
    assert_eq!(in_time(|| Ok(7)), Ok(7));
    assert!(in_time::<i32>(|| panic!("no")).unwrap_err().contains("no"));
    let late = in_time(|| {
        while !STOP.load(Ordering::Relaxed) {
            std::hint::black_box(0);
        }
        Ok(7)
    });
    STOP.store(true, Ordering::Relaxed);
    assert!(late.unwrap_err().contains("takes over 2 s"));
}

#[test]
fn white_space_has_an_end() {
    let grammar = compile(json!({"type": "object"})).unwrap();
    assert!(takes(&grammar, &format!("{{{}}}", "\n".repeat(64))));
    assert!(!takes(&grammar, &format!("{{{}}}", "\n".repeat(65))));
}
