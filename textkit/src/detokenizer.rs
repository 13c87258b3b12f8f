//! Ids to text as they come, never splitting a UTF-8 character.

use crate::tokenizer::TextTokenizer;
use std::sync::Arc;

pub struct StreamingDetokenizer {
    tokenizer: Arc<TextTokenizer>,
    skip_special: bool,
    utf8: Utf8Stream,
}

impl StreamingDetokenizer {
    pub fn new(tokenizer: Arc<TextTokenizer>, skip_special: bool) -> Self {
        Self { tokenizer, skip_special, utf8: Utf8Stream::default() }
    }

    pub fn push(&mut self, id: u32) -> Result<String, String> {
        let bytes = self.tokenizer.token_bytes(id, self.skip_special)?;
        Ok(self.utf8.push(&bytes))
    }

    pub fn finish(&mut self) -> String {
        self.utf8.finish()
    }
}

/// Bytes to text. Holds back at most three bytes: the beginning of a character.
#[derive(Default)]
struct Utf8Stream {
    held: Vec<u8>,
}

impl Utf8Stream {
    /// Invalid bytes become U+FFFD by the same rule as in `String::from_utf8_lossy` (and Python).
    fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest: &[u8] = &self.held;
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    rest = after;
                    match error.error_len() {
                        None => break,
                        Some(length) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            rest = &rest[length..];
                        }
                    }
                }
            }
        }
        self.held = rest.to_vec();
        text
    }

    fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        String::from_utf8_lossy(&held).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_pieces(bytes: &[u8], size: usize) -> String {
        let mut stream = Utf8Stream::default();
        let mut text = String::new();
        for piece in bytes.chunks(size) {
            text.push_str(&stream.push(piece));
        }
        text + &stream.finish()
    }

    #[test]
    fn any_split_gives_the_whole() {
        let cases: [&[u8]; 8] = [
            "ü𝄞한👩‍👩‍👧 e\u{301}\r\n".as_bytes(),
            b"\xFF\xFE\x80",
            b"a\xE4\xBD",
            b"a\xE4\xBDb",
            b"\xF0\x9F\x91",
            b"\xF0\x9F\xF0\x9F\x91\xA9",
            b"\xED\xA0\x80\xC0\xAF\xF5\x80",
            b"",
        ];
        for bytes in cases {
            for size in 1..=bytes.len().max(1) {
                assert_eq!(in_pieces(bytes, size), String::from_utf8_lossy(bytes), "size {size}");
            }
        }
    }

    #[test]
    fn holds_back_only_a_beginning() {
        let mut stream = Utf8Stream::default();
        assert_eq!(stream.push(b"a\xE4\xBD"), "a");
        assert_eq!(stream.push(b"\xA0b"), "你b");
        assert_eq!(stream.push(b"\xF0"), "");
        assert_eq!(stream.push(b"x"), "\u{FFFD}x");
    }
}
