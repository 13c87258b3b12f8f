//! Bounds beside minijinja's fuel, for templates that mean harm.
//!
//! Fuel pays for instructions and for the bytes and items that they make, but some work isn't paid
//! for: printing or comparing a list that holds another list many times over, and that again; or
//! descending into a list nested a hundred thousand deep, which ends the process. So every value
//! that a template makes is measured before anything is done with it: after each instruction that
//! makes one stands a call of a function here. A value stays plain data of bounded depth and size.

use minijinja::machinery::{Instruction, Instructions, Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{DynObject, ObjectRepr, Value};
use minijinja::{Environment, Error, ErrorKind, State};
use std::collections::HashMap;

/// Levels of lists and dicts in each other.
pub const MAX_DEPTH: usize = 100;

/// Values in a value and 64 bytes of text, each counted as often as it is reached.
const MAX_SIZE: u64 = 1 << 20;
const BYTES_PER_UNIT: u64 = 64;

/// Units of size that one fuel pays for.
const UNITS_PER_FUEL: u64 = 8;

/// Tokens of one `{{ … }}` or `{% … %}`, and `elif`s: chains of them are parsed recursively.
const MAX_CHAIN: usize = 4096;

// No template can spell these names.
const MEASURED: &str = "measured value";
const STORED: &str = "stored value";
const COMPARED: &str = "compared value";

pub fn add_functions(environment: &mut Environment) {
    environment.add_function(MEASURED, measured);
    environment.add_function(STORED, stored);
    environment.add_function(COMPARED, compared);
}

/// Refuses a template that would take too much stack or memory before anything is measured.
pub fn check_tokens(source: &str, syntax: &SyntaxConfig) -> Result<(), Error> {
    let mut elifs = 0;
    let mut block = Block::default();
    for token in tokenize(source, false, syntax.clone()) {
        let token = token?.0;
        elifs += usize::from(matches!(token, Token::Ident("elif")));
        if matches!(token, Token::VariableStart | Token::BlockStart) {
            block = Block::default();
        }
        block.add(&token)?;
        if elifs > MAX_CHAIN {
            return Err(refusal(format!("there are more than {MAX_CHAIN} elifs")));
        }
    }
    Ok(())
}

/// The tokens of one `{{ … }}` or `{% … %}` so far.
#[derive(Default)]
struct Block {
    tokens: usize,
    open: Vec<Group>,
    behind_mul: bool,
    behind_operand: bool,
    behind_constant_list: bool,
}

/// A pair of brackets that is still open.
#[derive(Default)]
struct Group {
    behind_mul: bool,
    is_list: bool,
    has_name: bool,
}

impl Block {
    fn add(&mut self, token: &Token) -> Result<(), Error> {
        self.tokens += 1;
        if self.tokens > MAX_CHAIN {
            return Err(refusal(format!("an expression has more than {MAX_CHAIN} parts")));
        }
        let repeats = self.behind_constant_list && matches!(token, Token::Mul);
        self.behind_constant_list = false;
        match token {
            Token::BracketOpen | Token::ParenOpen => self.open.push(Group {
                behind_mul: self.behind_mul,
                is_list: matches!(token, Token::BracketOpen) && !self.behind_operand,
                has_name: false,
            }),
            Token::BracketClose | Token::ParenClose => {
                let group = self.open.pop().unwrap_or_default();
                self.behind_constant_list = group.is_list && !group.has_name;
                if let Some(outer) = self.open.last_mut() {
                    outer.is_list |= group.is_list;
                    outer.has_name |= group.has_name;
                }
                if group.behind_mul && self.behind_constant_list {
                    return Err(repeated_constant());
                }
            }
            Token::Ident(_) => {
                if let Some(group) = self.open.last_mut() {
                    group.has_name = true;
                }
            }
            _ => {}
        }
        self.behind_mul = matches!(token, Token::Mul);
        self.behind_operand = is_operand_end(token);
        if repeats { Err(repeated_constant()) } else { Ok(()) }
    }
}

/// Whether a bracket behind it would be an index.
fn is_operand_end(token: &Token) -> bool {
    matches!(
        token,
        Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::BracketClose
            | Token::ParenClose
            | Token::BraceClose
    )
}

/// The compiler works constant expressions out itself, at no cost of fuel.
fn repeated_constant() -> Error {
    refusal("a constant list is repeated".into())
}

/// The instructions with calls that measure what they make, store and compare.
pub fn with_measures<'source>(instructions: &Instructions<'source>) -> Instructions<'source> {
    let originals: Vec<&Instruction<'source>> =
        (0..).map_while(|index| instructions.get(index)).collect();
    let mut positions = Vec::with_capacity(originals.len() + 1);
    let mut next = 0;
    for original in &originals {
        positions.push(next);
        next += (before(original).len() + 1 + after(original).len()) as u32;
    }
    positions.push(next);
    let mut result = Instructions::new(instructions.name(), instructions.source());
    for (index, original) in originals.iter().enumerate() {
        let line = instructions.get_line(index as u32).unwrap_or(0) as u16;
        let group = before(original).into_iter().chain([moved(original, &positions)]);
        for instruction in group.chain(after(original)) {
            result.add_with_line(instruction, line);
        }
    }
    result
}

/// What stands before an instruction that uses the two topmost values.
fn before(instruction: &Instruction) -> Vec<Instruction<'static>> {
    match instruction {
        // The namespace lies on top, the value below it.
        Instruction::SetAttr(_) => vec![Instruction::Swap, call(STORED), Instruction::Swap],
        Instruction::Eq
        | Instruction::Ne
        | Instruction::Gt
        | Instruction::Gte
        | Instruction::Lt
        | Instruction::Lte
        | Instruction::In
        | Instruction::CompareAndPreserve(_) => {
            vec![call(COMPARED), Instruction::Swap, call(COMPARED), Instruction::Swap]
        }
        _ => Vec::new(),
    }
}

/// What stands behind an instruction that leaves a value of its own making on top.
fn after(instruction: &Instruction) -> Vec<Instruction<'static>> {
    match instruction {
        Instruction::BuildList(_)
        | Instruction::BuildTuple(_)
        | Instruction::BuildMap(_)
        | Instruction::Add
        | Instruction::Mul
        | Instruction::Slice
        | Instruction::ApplyFilter(..)
        | Instruction::CallFunction(..)
        | Instruction::CallMethod(..)
        | Instruction::CallObject(_) => vec![call(MEASURED)],
        Instruction::LoadConst(value) if value.as_object().is_some() && !value.is_kwargs() => {
            vec![call(MEASURED)]
        }
        _ => Vec::new(),
    }
}

fn call(function: &'static str) -> Instruction<'static> {
    Instruction::CallFunction(function, Some(1))
}

/// The instruction with its jump target at the new position.
fn moved<'source>(instruction: &Instruction<'source>, positions: &[u32]) -> Instruction<'source> {
    let to = |target: &u32| positions[*target as usize];
    match instruction {
        Instruction::Iterate(target) => Instruction::Iterate(to(target)),
        Instruction::Jump(target) => Instruction::Jump(to(target)),
        Instruction::JumpIfFalse(target) => Instruction::JumpIfFalse(to(target)),
        Instruction::JumpIfFalseOrPop(target) => Instruction::JumpIfFalseOrPop(to(target)),
        Instruction::JumpIfTrueOrPop(target) => Instruction::JumpIfTrueOrPop(to(target)),
        Instruction::BuildMacro(name, target, flags) => {
            Instruction::BuildMacro(name, to(target), *flags)
        }
        other => (*other).clone(),
    }
}

fn measured(state: &mut State, value: Value) -> Result<Value, Error> {
    let Some(object) = value.as_object() else { return Ok(value) };
    let value = match object.repr() {
        ObjectRepr::Plain => return Ok(value),
        ObjectRepr::Iterable => listed(state, object)?,
        _ => value,
    };
    measure(state, &value, 0)?;
    Ok(value)
}

fn compared(state: &mut State, value: Value) -> Result<Value, Error> {
    if value.as_object().is_some() {
        let extent = measure(state, &value, 0)?;
        state.consume_fuel(extent.size / UNITS_PER_FUEL)?;
    }
    Ok(value)
}

/// A namespace that holds itself, even through a macro, has no end and is never freed.
fn stored(value: Value) -> Result<Value, Error> {
    match value.as_object() {
        Some(object) if !is_data(object) => Err(refusal("a namespace can hold data only".into())),
        _ => Ok(value),
    }
}

/// A lazy iterable as a list. Lazy ones on top of each other are another way of nesting.
fn listed(state: &State, object: &DynObject) -> Result<Value, Error> {
    let mut items = Vec::new();
    for item in object.try_iter().into_iter().flatten() {
        state.consume_fuel(1)?;
        items.push(item);
        if items.len() as u64 > MAX_SIZE {
            return Err(too_large());
        }
    }
    Ok(Value::from(items))
}

#[derive(Clone, Copy, Default)]
struct Extent {
    depth: usize,
    size: u64,
}

/// Lists that were measured, by address; a reference to each keeps the address its own.
#[derive(Default)]
struct MeasuredLists(HashMap<usize, (Value, Extent)>);

fn measure(state: &mut State, value: &Value, level: usize) -> Result<Extent, Error> {
    let Some(object) = value.as_object() else { return Ok(scalar_extent(value)) };
    let list = object.downcast_ref::<Vec<Value>>();
    let address = list.map(|list| std::ptr::from_ref(list) as usize);
    let known = state.get_or_insert_extension(MeasuredLists::default());
    if let Some((_, extent)) = address.and_then(|address| known.0.get(&address)) {
        return within_bounds(*extent, level);
    }
    let mut extent = Extent { depth: 1, size: 1 };
    if level > 0 && !is_data(object) {
        return Err(refusal("lists, dicts and namespaces can hold data only".into()));
    }
    if object.enumerator_len().is_some_and(|length| length as u64 > MAX_SIZE) {
        return Err(too_large());
    }
    within_bounds(extent, level)?;
    let mut visited = 0;
    for item in parts(object) {
        visited += 1;
        let inner = measure(state, &item, level + 1)?;
        extent.depth = extent.depth.max(inner.depth + 1);
        extent.size += inner.size;
        within_bounds(extent, level)?;
    }
    state.consume_fuel(visited / UNITS_PER_FUEL)?;
    if let Some(address) = address {
        let known = state.get_or_insert_extension(MeasuredLists::default());
        known.0.insert(address, (value.clone(), extent));
    }
    Ok(extent)
}

/// The items of a list, the keys and values of a dict.
fn parts(object: &DynObject) -> Box<dyn Iterator<Item = Value>> {
    match object.repr() {
        ObjectRepr::Map => {
            let pairs = object.try_iter_pairs().into_iter().flatten();
            Box::new(pairs.flat_map(|(key, value)| [key, value]))
        }
        ObjectRepr::Seq => Box::new(object.try_iter().into_iter().flatten()),
        _ => Box::new(std::iter::empty()),
    }
}

fn scalar_extent(value: &Value) -> Extent {
    let bytes = value.as_str().map_or(0, str::len) as u64;
    Extent { depth: 0, size: 1 + bytes / BYTES_PER_UNIT }
}

fn within_bounds(extent: Extent, level: usize) -> Result<Extent, Error> {
    if extent.depth + level > MAX_DEPTH {
        return Err(refusal(format!("values are nested deeper than {MAX_DEPTH} levels")));
    }
    if extent.size > MAX_SIZE {
        return Err(too_large());
    }
    Ok(extent)
}

/// Whether it is none of those that refer to a template's variables.
fn is_data(object: &DynObject) -> bool {
    let name = object.type_name();
    let refers = ["::Namespace", "::Macro", "::Loop"].iter().any(|end| name.ends_with(end));
    object.repr() != ObjectRepr::Plain && !refers
}

fn too_large() -> Error {
    refusal("a list or dict became too large".into())
}

fn refusal(text: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, text)
}
