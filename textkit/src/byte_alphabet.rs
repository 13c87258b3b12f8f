//! The alphabet of byte-level BPE (GPT-2): each byte is written as one printable character.

/// Characters above this belong to no byte: 256 + the 68 bytes that aren't printable.
const ALPHABET_END: usize = 324;

/// Maps a character of the alphabet to its byte.
pub struct ByteAlphabet {
    byte_of: [Option<u8>; ALPHABET_END],
}

impl ByteAlphabet {
    pub fn new() -> Self {
        let mut byte_of = [None; ALPHABET_END];
        let mut next_shifted = 256;
        for byte in 0..=255u8 {
            let printable = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
            let character = if printable {
                usize::from(byte)
            } else {
                next_shifted += 1;
                next_shifted - 1
            };
            byte_of[character] = Some(byte);
        }
        Self { byte_of }
    }

    pub fn characters(&self) -> impl Iterator<Item = char> + '_ {
        let known = self.byte_of.iter().zip('\0'..).filter(|(byte, _)| byte.is_some());
        known.map(|(_, character)| character)
    }

    /// The bytes that a token stands for. A token with a character outside the alphabet (an added
    /// token such as "<|标|>") stands for its own UTF-8, as in Hugging Face's decoder.
    pub fn bytes_of(&self, token: &str) -> Vec<u8> {
        token
            .chars()
            .map(|character| self.byte_of.get(character as usize).copied().flatten())
            .collect::<Option<Vec<u8>>>()
            .unwrap_or_else(|| token.as_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_one_character() {
        let alphabet = ByteAlphabet::new();
        let mut seen = [false; 256];
        for byte in alphabet.byte_of.iter().flatten() {
            assert!(!seen[usize::from(*byte)]);
            seen[usize::from(*byte)] = true;
        }
        assert!(seen.iter().all(|seen| *seen));
    }

    #[test]
    fn known_characters() {
        let alphabet = ByteAlphabet::new();
        assert_eq!(alphabet.bytes_of("Ġa"), b" a");
        assert_eq!(alphabet.bytes_of("Ċ"), b"\n");
        assert_eq!(alphabet.bytes_of("Ã©"), "é".as_bytes());
        assert_eq!(alphabet.bytes_of("标a"), "标a".as_bytes());
    }
}
