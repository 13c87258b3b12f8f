//! Text for whimbrel: Hugging Face tokenizers, minijinja chat templates and llguidance grammars
//! behind a C interface (include/textkit.h). Everything here is const after load and may be used
//! from several threads; a detokenizer and a grammar state belong to one.

mod added_tokens;
mod bounds;
mod byte_alphabet;
mod conversation;
mod detokenizer;
mod ffi;
mod grammar;
mod grammar_spec;
mod longest_token;
mod methods;
mod python;
mod strftime;
mod template;
mod tokenizer;
mod tool_grammar;
