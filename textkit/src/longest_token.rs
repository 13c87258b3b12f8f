//! How much of a text one token can stand for.

use crate::byte_alphabet::ByteAlphabet;
use tokenizers::{
    Model, ModelWrapper, NormalizerWrapper, PreTokenizerWrapper, SplitDelimiterBehavior, Tokenizer,
};

/// NFC makes a text shorter by no more: U+0390 has two bytes, its longest spelling seven.
const NFC_SHORTENS: usize = 4;

/// The most bytes of a text that become one token. None for a tokenizer that may drop some of the
/// text, or is built in a way that isn't known here.
pub fn most_bytes(tokenizer: &Tokenizer, alphabet: &ByteAlphabet) -> Option<usize> {
    let added = tokenizer.get_added_tokens_decoder();
    let strips = added.values().any(|token| token.lstrip || token.rstrip);
    let splits = tokenizer.get_pre_tokenizer().is_some_and(keeps_bytes);
    if strips || !splits || !knows_all_bytes(tokenizer.get_model(), alphabet) {
        return None;
    }
    let tokens = tokenizer.get_model().get_vocab();
    let of_model = tokens.keys().map(|token| alphabet.bytes_of(token).len());
    let longest = of_model.chain(added.values().map(|token| token.content.len())).max()?;
    Some(longest * shortened(tokenizer.get_normalizer())?)
}

/// By how much a normalizer shortens a text at most.
fn shortened(normalizer: Option<&NormalizerWrapper>) -> Option<usize> {
    match normalizer {
        None => Some(1),
        Some(NormalizerWrapper::NFC(_)) => Some(NFC_SHORTENS),
        Some(_) => None,
    }
}

/// Whether a text's bytes all reach the model, each as its character.
fn keeps_bytes(pre_tokenizer: &PreTokenizerWrapper) -> bool {
    match pre_tokenizer {
        PreTokenizerWrapper::ByteLevel(_) => true,
        PreTokenizerWrapper::Sequence(steps) => match steps.as_ref() {
            [first @ .., PreTokenizerWrapper::ByteLevel(_)] => first.iter().all(keeps_text),
            _ => false,
        },
        _ => false,
    }
}

fn keeps_text(step: &PreTokenizerWrapper) -> bool {
    match step {
        PreTokenizerWrapper::Split(split) => split.behavior != SplitDelimiterBehavior::Removed,
        PreTokenizerWrapper::Digits(_) => true,
        _ => false,
    }
}

/// A character that is no token would be dropped, or become one with its neighbours.
fn knows_all_bytes(model: &ModelWrapper, alphabet: &ByteAlphabet) -> bool {
    let ModelWrapper::BPE(bpe) = model else {
        return false;
    };
    // With one of them a character is looked up in another spelling.
    let is_plain = |affix: &Option<String>| affix.as_ref().is_none_or(String::is_empty);
    if !is_plain(&bpe.continuing_subword_prefix) || !is_plain(&bpe.end_of_word_suffix) {
        return false;
    }
    alphabet.characters().all(|character| model.token_to_id(&character.to_string()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::TextTokenizer;
    use serde_json::{Value, json};

    /// A tokenizer.json whose tokens are all bytes, "ab" and "abc", with changes.
    fn file_with(change: impl Fn(&mut Value)) -> Vec<u8> {
        let alphabet = ByteAlphabet::new();
        let mut vocab = serde_json::Map::new();
        for token in alphabet.characters().map(String::from).chain(["ab".into(), "abc".into()]) {
            vocab.insert(token, json!(vocab.len()));
        }
        let mut file = json!({
            "added_tokens": [{"id": 258, "content": "<|é|>", "special": true, "normalized": false,
                              "single_word": false, "lstrip": false, "rstrip": false}],
            "normalizer": null,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false,
                              "use_regex": false},
            "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false,
                        "use_regex": false},
            "model": {"type": "BPE", "vocab": vocab, "merges": ["a b", "ab c"]},
        });
        change(&mut file);
        file.to_string().into_bytes()
    }

    fn most_of(change: impl Fn(&mut Value)) -> Option<usize> {
        TextTokenizer::from_json(&file_with(change)).unwrap().most_bytes()
    }

    #[test]
    fn is_of_the_longest_token() {
        assert_eq!(most_of(|_| ()), Some("<|é|>".len()));
        assert_eq!(most_of(|file| file["added_tokens"] = json!([])), Some(3));
        assert_eq!(
            most_of(|file| file["normalizer"] = json!({"type": "NFC"})),
            Some(NFC_SHORTENS * "<|é|>".len())
        );
    }

    #[test]
    fn holds_where_a_text_gets_shorter() {
        let tokenizer = TextTokenizer::from_json(&file_with(|file| {
            file["normalizer"] = json!({"type": "NFC"});
            file["added_tokens"] = json!([]);
            file["model"]["merges"] = json!([]);
            let vocab = file["model"]["vocab"].as_object_mut().unwrap();
            vocab.retain(|token, _| token.chars().count() == 1);
        }));
        let tokenizer = tokenizer.unwrap();
        let most = tokenizer.most_bytes().unwrap();
        for text in ["\u{1fbe}\u{308}\u{301}", "\u{2126}\u{314}\u{342}\u{345}", "\u{212a}"] {
            let tokens = tokenizer.encode_text(text).unwrap().len();
            assert!(text.len() <= tokens * most, "{text:?}: {tokens} tokens");
        }
    }

    #[test]
    fn is_unknown_where_text_may_be_dropped() {
        let split = |behavior| {
            let split = json!({"type": "Split", "pattern": {"String": "x"}, "behavior": behavior,
                               "invert": false});
            most_of(|file| {
                let bytes = file["pre_tokenizer"].clone();
                file["pre_tokenizer"] =
                    json!({"type": "Sequence", "pretokenizers": [split, bytes]});
            })
        };
        assert!(split("Isolated").is_some());
        assert_eq!(split("Removed"), None);
        assert_eq!(most_of(|file| file["pre_tokenizer"] = json!(null)), None);
        assert_eq!(most_of(|file| file["normalizer"] = json!({"type": "Lowercase"})), None);
        assert_eq!(most_of(|file| file["added_tokens"][0]["rstrip"] = json!(true)), None);
        assert_eq!(
            most_of(|file| {
                file["model"]["vocab"].as_object_mut().unwrap().remove("z");
            }),
            None
        );
    }
}
