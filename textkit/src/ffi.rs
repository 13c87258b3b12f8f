//! The C interface of include/textkit.h. Every panic ends here and becomes an error text.
//!
//! # Safety
//! All functions are unsafe for one reason: their pointers must be what textkit.h demands.
#![allow(clippy::missing_safety_doc)]

use crate::detokenizer::StreamingDetokenizer;
use crate::grammar::{Grammar, GrammarCompiler, GrammarState};
use crate::template::ChatTemplate;
use crate::tokenizer::TextTokenizer;
use minijinja::value::Value;
use std::cell::Cell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Once};

type Tokenizer = Arc<TextTokenizer>;

/// textkit.h promises that these are used from several threads at once.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<TextTokenizer>();
    shared::<ChatTemplate>();
    shared::<GrammarCompiler>();
    shared::<Grammar>();
};

#[repr(C)]
pub struct Text {
    data: *mut u8,
    size: usize,
}

#[repr(C)]
pub struct Ids {
    data: *mut i32,
    size: usize,
}

/// Words that belong to a grammar state.
#[repr(C)]
pub struct Mask {
    words: *const u32,
    size: usize,
}

impl Text {
    const NONE: Self = Self { data: ptr::null_mut(), size: 0 };

    fn new(text: String) -> Self {
        let bytes = Box::leak(text.into_bytes().into_boxed_slice());
        Self { data: bytes.as_mut_ptr(), size: bytes.len() }
    }
}

impl Ids {
    fn new(ids: Vec<u32>) -> Self {
        let ids: Box<[i32]> = ids.into_iter().map(signed).collect();
        let ids = Box::leak(ids);
        Self { data: ids.as_mut_ptr(), size: ids.len() }
    }
}

/// Ids fit: a tokenizer with higher ones isn't loaded.
fn signed(id: u32) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX)
}

fn unsigned(id: i32) -> Result<u32, String> {
    u32::try_from(id).map_err(|_| format!("got token id {id}, expected one of 0 or above"))
}

/// Writes the result of `work`, and returns NULL; or its error or panic as a text for C.
unsafe fn answer<T>(result: *mut T, work: impl FnOnce() -> Result<T, String>) -> *mut c_char {
    match caught(work) {
        Ok(made) => {
            unsafe { result.write(made) };
            ptr::null_mut()
        }
        Err(text) => {
            let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
            CString::new(bytes).unwrap_or_default().into_raw()
        }
    }
}

pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    silence_caught_panics();
    CATCHING.set(CATCHING.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(CATCHING.get() - 1);
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(format!("internal failure of textkit: {}", text.unwrap_or_default()))
    })
}

thread_local! {
    static CATCHING: Cell<usize> = const { Cell::new(0) };
}

/// A library doesn't print: the text of a panic that is caught reaches the caller.
fn silence_caught_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if CATCHING.get() == 0 {
                print(panic);
            }
        }));
    });
}

/// Frees an object that a constructor below made. A destructor that panics leaks.
unsafe fn free<T: ?Sized>(object: *mut T) {
    if !object.is_null() {
        let _ = caught(|| {
            drop(unsafe { Box::from_raw(object) });
            Ok(())
        });
    }
}

unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, size) } }
}

unsafe fn utf8<'a>(data: *const c_char, size: usize) -> Result<&'a str, String> {
    let bytes = unsafe { slice(data.cast::<u8>(), size) };
    std::str::from_utf8(bytes)
        .map_err(|error| format!("got invalid UTF-8 at byte {}", error.valid_up_to()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_free_error(error: *mut c_char) {
    if !error.is_null() {
        drop(unsafe { CString::from_raw(error) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_free_text(text: Text) {
    unsafe { free(ptr::slice_from_raw_parts_mut(text.data, text.size)) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_free_ids(ids: Ids) {
    unsafe { free(ptr::slice_from_raw_parts_mut(ids.data, ids.size)) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_tokenizer_new(
    json: *const c_char,
    size: usize,
    tokenizer: *mut *mut Tokenizer,
) -> *mut c_char {
    let load = || {
        let json = unsafe { slice(json.cast::<u8>(), size) };
        Ok(Box::into_raw(Box::new(Arc::new(TextTokenizer::from_json(json)?))))
    };
    unsafe { answer(tokenizer, load) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_tokenizer_free(tokenizer: *mut Tokenizer) {
    unsafe { free(tokenizer) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_tokenizer_describe(
    tokenizer: *const Tokenizer,
    json: *mut Text,
) -> *mut c_char {
    let describe = || {
        let tokenizer = unsafe { &*tokenizer };
        let added_tokens = tokenizer.added_tokens().iter().map(|token| {
            Value::from_pairs([
                ("id", Value::from(token.id)),
                ("content", Value::from(token.content.as_str())),
                ("special", Value::from(token.special)),
            ])
        });
        let description = Value::from_pairs([
            ("size", Value::from(tokenizer.size())),
            ("most_bytes", Value::from(tokenizer.most_bytes())),
            ("added_tokens", added_tokens.collect()),
        ]);
        serde_json::to_string(&description).map(Text::new).map_err(|error| error.to_string())
    };
    unsafe { answer(json, describe) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_encode_prompt(
    tokenizer: *const Tokenizer,
    text: *const c_char,
    size: usize,
    marker: u32,
    ids: *mut Ids,
) -> *mut c_char {
    let encode = || {
        let (tokenizer, text) = unsafe { (&*tokenizer, utf8(text, size)?) };
        let marker = if marker == 0 { None } else { char::from_u32(marker) };
        tokenizer.encode_prompt(text, marker).map(Ids::new)
    };
    unsafe { answer(ids, encode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_encode_text(
    tokenizer: *const Tokenizer,
    text: *const c_char,
    size: usize,
    ids: *mut Ids,
) -> *mut c_char {
    let encode = || {
        let (tokenizer, text) = unsafe { (&*tokenizer, utf8(text, size)?) };
        tokenizer.encode_text(text).map(Ids::new)
    };
    unsafe { answer(ids, encode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_decode(
    tokenizer: *const Tokenizer,
    ids: *const i32,
    size: usize,
    skip_special: bool,
    text: *mut Text,
) -> *mut c_char {
    let decode = || {
        let (tokenizer, ids) = unsafe { (&*tokenizer, slice(ids, size)) };
        let ids = ids.iter().map(|id| unsigned(*id)).collect::<Result<Vec<u32>, String>>()?;
        tokenizer.decode(&ids, skip_special).map(Text::new)
    };
    unsafe { answer(text, decode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_token_to_id(
    tokenizer: *const Tokenizer,
    token: *const c_char,
    size: usize,
    id: *mut i32,
) -> *mut c_char {
    let find = || {
        let (tokenizer, token) = unsafe { (&*tokenizer, utf8(token, size)?) };
        Ok(tokenizer.token_to_id(token).map_or(-1, signed))
    };
    unsafe { answer(id, find) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_id_to_token(
    tokenizer: *const Tokenizer,
    id: i32,
    token: *mut Text,
) -> *mut c_char {
    let find = || {
        let tokenizer = unsafe { &*tokenizer };
        let found = u32::try_from(id).ok().and_then(|id| tokenizer.id_to_token(id));
        Ok(found.map_or(Text::NONE, Text::new))
    };
    unsafe { answer(token, find) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_template_new(
    source: *const c_char,
    source_size: usize,
    special_tokens: *const c_char,
    special_tokens_size: usize,
    tokenizer: *const Tokenizer,
    chat_template: *mut *mut ChatTemplate,
) -> *mut c_char {
    let load = || {
        let source = unsafe { utf8(source, source_size)? };
        let special_tokens = unsafe { utf8(special_tokens, special_tokens_size)? };
        let tokenizer = unsafe { &*tokenizer };
        let loaded = ChatTemplate::new(source, special_tokens, tokenizer.added_tokens())?;
        Ok(Box::into_raw(Box::new(loaded)))
    };
    unsafe { answer(chat_template, load) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_template_free(chat_template: *mut ChatTemplate) {
    unsafe { free(chat_template) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_template_render(
    chat_template: *const ChatTemplate,
    request: *const c_char,
    size: usize,
    text: *mut Text,
    marker: *mut u32,
) -> *mut c_char {
    let render = || {
        let (chat_template, request) = unsafe { (&*chat_template, utf8(request, size)?) };
        let rendered = chat_template.render(request)?;
        unsafe { marker.write(rendered.marker.map_or(0, u32::from)) };
        Ok(Text::new(rendered.text))
    };
    unsafe { answer(text, render) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_detokenizer_new(
    tokenizer: *const Tokenizer,
    skip_special: bool,
    detokenizer: *mut *mut StreamingDetokenizer,
) -> *mut c_char {
    let make = || {
        let tokenizer = Arc::clone(unsafe { &*tokenizer });
        Ok(Box::into_raw(Box::new(StreamingDetokenizer::new(tokenizer, skip_special))))
    };
    unsafe { answer(detokenizer, make) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_detokenizer_free(detokenizer: *mut StreamingDetokenizer) {
    unsafe { free(detokenizer) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_detokenizer_push(
    detokenizer: *mut StreamingDetokenizer,
    id: i32,
    text: *mut Text,
) -> *mut c_char {
    let push = || unsafe { &mut *detokenizer }.push(unsigned(id)?).map(Text::new);
    unsafe { answer(text, push) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_detokenizer_finish(
    detokenizer: *mut StreamingDetokenizer,
    text: *mut Text,
) -> *mut c_char {
    let finish = || Ok(Text::new(unsafe { &mut *detokenizer }.finish()));
    unsafe { answer(text, finish) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_grammar_compiler_new(
    tokenizer: *const Tokenizer,
    vocabulary: usize,
    ends: *const i32,
    end_count: usize,
    compiler: *mut *mut GrammarCompiler,
) -> *mut c_char {
    let make = || {
        let (tokenizer, ends) = unsafe { (&*tokenizer, slice(ends, end_count)) };
        let ends = ends.iter().map(|id| unsigned(*id)).collect::<Result<Vec<u32>, String>>()?;
        Ok(Box::into_raw(Box::new(GrammarCompiler::new(tokenizer, vocabulary, &ends)?)))
    };
    unsafe { answer(compiler, make) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_grammar_compiler_free(compiler: *mut GrammarCompiler) {
    unsafe { free(compiler) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_grammar_compile(
    compiler: *const GrammarCompiler,
    spec: *const c_char,
    size: usize,
    grammar: *mut *mut Grammar,
) -> *mut c_char {
    let compile = || {
        let (compiler, spec) = unsafe { (&*compiler, utf8(spec, size)?) };
        Ok(Box::into_raw(Box::new(compiler.compile(spec)?)))
    };
    unsafe { answer(grammar, compile) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_grammar_free(grammar: *mut Grammar) {
    unsafe { free(grammar) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_grammar_state_new(
    grammar: *const Grammar,
    state: *mut *mut GrammarState,
) -> *mut c_char {
    let make = || Ok(Box::into_raw(Box::new(unsafe { &*grammar }.state())));
    unsafe { answer(state, make) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_grammar_state_copy(
    state: *const GrammarState,
    copy: *mut *mut GrammarState,
) -> *mut c_char {
    let make = || Ok(Box::into_raw(Box::new(unsafe { &*state }.clone())));
    unsafe { answer(copy, make) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_grammar_state_free(state: *mut GrammarState) {
    unsafe { free(state) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_grammar_allowed(
    state: *mut GrammarState,
    mask: *mut Mask,
) -> *mut c_char {
    let find = || {
        let words = unsafe { &mut *state }.allowed()?;
        Ok(Mask { words: words.as_ptr(), size: words.len() })
    };
    unsafe { answer(mask, find) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_grammar_accept(
    state: *mut GrammarState,
    id: i32,
    finished: *mut bool,
) -> *mut c_char {
    let accept = || {
        let state = unsafe { &mut *state };
        state.accept(unsigned(id)?)?;
        Ok(state.finished())
    };
    unsafe { answer(finished, accept) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_grammar_acceptable(
    state: *mut GrammarState,
    ids: *const i32,
    size: usize,
    count: *mut usize,
) -> *mut c_char {
    let find = || {
        let ids = unsafe { slice(ids, size) };
        let ids = ids.iter().map(|id| unsigned(*id)).collect::<Result<Vec<u32>, String>>()?;
        unsafe { &mut *state }.acceptable(&ids)
    };
    unsafe { answer(count, find) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn textkit_grammar_can_end(
    state: *mut GrammarState,
    can_end: *mut bool,
) -> *mut c_char {
    unsafe { answer(can_end, || (&mut *state).can_end()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn error_of(work: impl FnOnce() -> Result<i32, String>) -> Option<String> {
        let mut result = 0;
        let error = unsafe { answer(&mut result, work) };
        if error.is_null() {
            return None;
        }
        let text = unsafe { CStr::from_ptr(error) }.to_str().unwrap().to_string();
        unsafe { textkit_free_error(error) };
        Some(text)
    }

    #[test]
    fn errors_and_panics_become_texts() {
        assert_eq!(error_of(|| Err("a\0b".to_string())).unwrap(), "ab");
        assert_eq!(error_of(|| panic!("at {}", 7)).unwrap(), "internal failure of textkit: at 7");
        assert_eq!(error_of(|| panic!("here")).unwrap(), "internal failure of textkit: here");
        assert_eq!(error_of(|| Ok(1)), None);
    }

    #[test]
    fn broken_input_is_refused() {
        let mut tokenizer = ptr::null_mut();
        let error = unsafe { textkit_tokenizer_new(c"{}".as_ptr(), 2, &mut tokenizer) };
        assert!(!error.is_null() && tokenizer.is_null());
        unsafe { textkit_free_error(error) };
        assert!(unsafe { utf8(c"\xFF".as_ptr(), 1) }.is_err());
        assert!(unsafe { utf8(ptr::null(), 0) }.unwrap().is_empty());
    }

    #[test]
    fn nothing_is_freed_for_null() {
        unsafe {
            textkit_free_error(ptr::null_mut());
            textkit_free_text(Text::NONE);
            textkit_free_ids(Ids { data: ptr::null_mut(), size: 0 });
            textkit_tokenizer_free(ptr::null_mut());
        }
    }
}
