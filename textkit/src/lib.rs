//! Text for whimbrel: Hugging Face tokenizers and minijinja chat templates behind a C interface
//! (include/textkit.h). Everything here is const after load and may be used from several threads;
//! a detokenizer belongs to one.

mod added_tokens;
mod bounds;
mod byte_alphabet;
mod conversation;
mod detokenizer;
mod ffi;
mod methods;
mod python;
mod strftime;
mod template;
mod tokenizer;
