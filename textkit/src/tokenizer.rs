//! A byte-level BPE tokenizer, read from the text of tokenizer.json.

use crate::byte_alphabet::ByteAlphabet;
use crate::longest_token::most_bytes;
use tokenizers::tokenizer::{
    Model, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer,
};
use tokenizers::{DecoderWrapper, ModelWrapper, Tokenizer};

/// A token that stands beside the model's vocabulary, such as `<|im_start|>` or `<think>`.
#[derive(Clone, Debug)]
pub struct AddedToken {
    pub id: u32,
    pub content: String,
    pub special: bool,
    /// Matched on normalized text, so that other spellings of it match as well.
    pub normalized: bool,
}

pub struct TextTokenizer {
    tokenizer: Tokenizer,
    alphabet: ByteAlphabet,
    added_tokens: Vec<AddedToken>,
    size: u32,
    most_bytes: Option<usize>,
}

impl TextTokenizer {
    pub fn from_json(json: &[u8]) -> Result<Self, String> {
        let tokenizer = Tokenizer::from_bytes(json).map_err(|error| error.to_string())?;
        require_byte_level_bpe(&tokenizer)?;
        let added_tokens = list_added_tokens(&tokenizer);
        let size = tokenizer.get_vocab(true).values().max().map_or(0, |id| id + 1);
        if i32::try_from(size).is_err() {
            return Err(format!("got a token id of {}, expected ids below 2^31", size - 1));
        }
        let alphabet = ByteAlphabet::new();
        let most_bytes = most_bytes(&tokenizer, &alphabet);
        Ok(Self { tokenizer, alphabet, added_tokens, size, most_bytes })
    }

    /// 1 + the highest id.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The most bytes of a text that become one token, where there is a bound.
    pub fn most_bytes(&self) -> Option<usize> {
        self.most_bytes
    }

    /// By ascending id.
    pub fn added_tokens(&self) -> &[AddedToken] {
        &self.added_tokens
    }

    /// Ids of text in which added tokens are recognised, as Hugging Face does, except where
    /// `marker` stands inside them; markers themselves leave no trace.
    pub fn encode_prompt(&self, marked: &str, marker: Option<char>) -> Result<Vec<u32>, String> {
        let mut pieces = self
            .tokenizer
            .get_added_vocabulary()
            .extract_and_normalize(self.tokenizer.get_normalizer(), marked);
        if let Some(marker) = marker {
            pieces
                .normalize(|piece| {
                    if piece.get_original().contains(marker) {
                        let text: String =
                            piece.get_original().chars().filter(|c| *c != marker).collect();
                        *piece = NormalizedString::from(text);
                        self.normalize(piece)?;
                    }
                    Ok(())
                })
                .map_err(|error| error.to_string())?;
        }
        self.encode_pieces(pieces)
    }

    /// Ids of text in which no added token is recognised.
    pub fn encode_text(&self, text: &str) -> Result<Vec<u32>, String> {
        let mut pieces = PreTokenizedString::from(text);
        pieces.normalize(|piece| self.normalize(piece)).map_err(|error| error.to_string())?;
        self.encode_pieces(pieces)
    }

    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, String> {
        for id in ids {
            self.known_token(*id)?;
        }
        self.tokenizer.decode(ids, skip_special).map_err(|error| error.to_string())
    }

    /// The bytes that an id adds to the decoded text.
    pub fn token_bytes(&self, id: u32, skip_special: bool) -> Result<Vec<u8>, String> {
        let token = self.known_token(id)?;
        if skip_special && self.tokenizer.get_added_vocabulary().is_special_token(&token) {
            return Ok(Vec::new());
        }
        Ok(self.alphabet.bytes_of(&token))
    }

    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.tokenizer.token_to_id(token)
    }

    pub fn id_to_token(&self, id: u32) -> Option<String> {
        let added = self.tokenizer.get_added_vocabulary().simple_id_to_token(id);
        added.or_else(|| self.tokenizer.get_model().id_to_token(id))
    }

    fn known_token(&self, id: u32) -> Result<String, String> {
        self.id_to_token(id).ok_or_else(|| {
            format!("got token id {id}, expected one of this tokenizer's (below {})", self.size)
        })
    }

    fn normalize(&self, piece: &mut NormalizedString) -> tokenizers::Result<()> {
        match self.tokenizer.get_normalizer() {
            Some(normalizer) => normalizer.normalize(piece),
            None => Ok(()),
        }
    }

    /// Hugging Face's own `encode` without what a file may ask for beside: truncation, padding and
    /// post-processing.
    fn encode_pieces(&self, mut pieces: PreTokenizedString) -> Result<Vec<u32>, String> {
        if let Some(pre_tokenizer) = self.tokenizer.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut pieces).map_err(|error| error.to_string())?;
        }
        pieces
            .tokenize(|piece| self.tokenizer.get_model().tokenize(piece.get()))
            .map_err(|error| error.to_string())?;
        let splits = pieces.get_splits(OffsetReferential::Normalized, OffsetType::Byte);
        let tokens = splits.iter().filter_map(|(_, _, tokens)| tokens.as_ref()).flatten();
        Ok(tokens.map(|token| token.id).collect())
    }
}

/// Decoding byte by byte, and the promise that text without added tokens yields none, hold for
/// byte-level BPE.
fn require_byte_level_bpe(tokenizer: &Tokenizer) -> Result<(), String> {
    let bpe = matches!(tokenizer.get_model(), ModelWrapper::BPE(_));
    let byte_level = matches!(tokenizer.get_decoder(), Some(DecoderWrapper::ByteLevel(_)));
    if bpe && byte_level {
        Ok(())
    } else {
        Err("got another kind of tokenizer, expected byte-level BPE (model \"BPE\", decoder \
             \"ByteLevel\") as Qwen's checkpoints have"
            .to_string())
    }
}

fn list_added_tokens(tokenizer: &Tokenizer) -> Vec<AddedToken> {
    let mut tokens: Vec<AddedToken> = tokenizer
        .get_added_tokens_decoder()
        .into_iter()
        .map(|(id, token)| AddedToken {
            id,
            content: token.content,
            special: token.special,
            normalized: token.normalized,
        })
        .collect();
    tokens.sort_by_key(|token| token.id);
    tokens
}
