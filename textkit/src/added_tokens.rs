//! Keeps text of a user text: a marker goes into every spelling of an added token, so that after
//! rendering only the template's own tokens still match.

use crate::tokenizer::AddedToken;

/// Markers are Unicode noncharacters: never assigned, untouched by normalization and by templates.
const FIRST_MARKER: char = '\u{FDD0}';
const MARKERS: u32 = 32;

/// Finds a marker that no text contains.
#[derive(Default)]
pub struct MarkerChoice {
    used: u32,
}

impl MarkerChoice {
    pub fn avoid(&mut self, text: &str) {
        for c in text.chars() {
            let index = u32::from(c).wrapping_sub(u32::from(FIRST_MARKER));
            if index < MARKERS {
                self.used |= 1 << index;
            }
        }
    }

    pub fn marker(&self) -> Option<char> {
        let index = self.used.trailing_ones();
        let in_range = index < MARKERS;
        in_range.then(|| char::from_u32(u32::from(FIRST_MARKER) + index)).flatten()
    }
}

/// The tokens that may not appear in a kind of text.
pub struct TokenBreaker {
    tokens: Vec<String>,
}

impl TokenBreaker {
    /// A token of one character has no inside to put a marker in; it stays what it is, which
    /// `refuse_unbreakable` allows for tokens that aren't special only.
    pub fn new<'a>(tokens: impl Iterator<Item = &'a AddedToken>) -> Self {
        let longer = tokens.filter(|token| token.content.chars().nth(1).is_some());
        Self { tokens: longer.map(|token| token.content.clone()).collect() }
    }

    /// The text with markers, or None where it needs none.
    pub fn mark(&self, text: &str, marker: char) -> Option<String> {
        let mut cuts = self.cuts(text);
        if cuts.is_empty() {
            return None;
        }
        cuts.sort_unstable();
        cuts.dedup();
        let mut marked = String::with_capacity(text.len() + 3 * cuts.len());
        let mut begin = 0;
        for cut in cuts {
            marked.push_str(&text[begin..cut]);
            marked.push(marker);
            begin = cut;
        }
        marked.push_str(&text[begin..]);
        Some(marked)
    }

    /// Where markers go: behind the first character of each whole token, and at an end of the text
    /// where it could complete a token together with what the template puts beside it.
    fn cuts(&self, text: &str) -> Vec<usize> {
        let mut cuts = Vec::new();
        for token in &self.tokens {
            let mut from = 0;
            while let Some(found) = text[from..].find(token.as_str()) {
                from += found + first_char_len(&text[from + found..]);
                cuts.push(from);
            }
            if ends_with_beginning_of(text, token) {
                cuts.push(text.len());
            }
            if begins_with_end_of(text, token) || is_inside_of(text, token) {
                cuts.push(0);
            }
        }
        cuts
    }
}

/// Typed text could not be told from these tokens, so their tokenizer can't be used with chat.
pub fn refuse_unbreakable(tokens: &[AddedToken]) -> Result<(), String> {
    for token in tokens.iter().filter(|token| token.special) {
        if token.normalized || token.content.chars().nth(1).is_none() {
            return Err(format!(
                "got the special token {:?} (normalized: {}), expected special tokens of several \
                 characters that are matched before normalization",
                token.content, token.normalized
            ));
        }
    }
    Ok(())
}

/// Two text parts may be rendered without anything between them: `<|im_` and `end|>`.
fn ends_with_beginning_of(text: &str, token: &str) -> bool {
    proper_cuts(token).any(|cut| {
        let beginning = &token[..cut];
        // A template may trim white space, which a marker behind it would prevent.
        !beginning.ends_with(char::is_whitespace) && text.ends_with(beginning)
    })
}

fn begins_with_end_of(text: &str, token: &str) -> bool {
    proper_cuts(token).any(|cut| {
        let end = &token[cut..];
        !end.starts_with(char::is_whitespace) && text.starts_with(end)
    })
}

/// A template may write `'<' ~ key ~ '>'`. Plain words stay as they are: templates compare them
/// ("image", "tool"), and no special token is a plain word between two characters.
fn is_inside_of(text: &str, token: &str) -> bool {
    let plain_word = text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    !plain_word && text.len() < token.len() && token.contains(text)
}

/// The positions between two characters of a token.
fn proper_cuts(token: &str) -> impl Iterator<Item = usize> + '_ {
    token.char_indices().map(|(position, _)| position).skip(1)
}

fn first_char_len(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(content: &str, special: bool) -> AddedToken {
        AddedToken { id: 0, content: content.to_string(), special, normalized: false }
    }

    fn mark(text: &str) -> String {
        let tokens = [token("<|im_end|>", true), token("<think>", false), token("aa", false)];
        let breaker = TokenBreaker::new(tokens.iter());
        breaker.mark(text, '\u{FDD0}').unwrap_or(text.to_string()).replace('\u{FDD0}', "^")
    }

    #[test]
    fn breaks_whole_tokens() {
        assert_eq!(mark("x <|im_end|> y"), "x <^|im_end|> y");
        assert_eq!(mark("<think><think>."), "<^think><^think>.");
        assert_eq!(mark("baaab"), "ba^a^ab");
        assert_eq!(mark("plain < text > here"), "plain < text > here");
    }

    #[test]
    fn breaks_tokens_put_together_from_parts() {
        assert_eq!(mark("so <|im_"), "so <|im_^");
        assert_eq!(mark("end|> so"), "^end|> so");
        assert_eq!(mark("> quoted"), "^> quoted");
        assert_eq!(mark("|im_end|"), "^|im_end|");
        assert_eq!(mark("think"), "think");
        assert_eq!(mark("im_"), "im_");
        assert_eq!(mark(""), "");
    }

    #[test]
    fn marker_is_one_that_no_text_contains() {
        let marker = |texts: &[&str]| {
            let mut choice = MarkerChoice::default();
            texts.iter().for_each(|text| choice.avoid(text));
            choice.marker()
        };
        assert_eq!(marker(&["a", "\u{FDCF}\u{FDF0}"]), Some('\u{FDD0}'));
        assert_eq!(marker(&["a\u{FDD0}", "\u{FDD1}\u{FDD3}"]), Some('\u{FDD2}'));
        let all: String = ('\u{FDD0}'..='\u{FDEF}').collect();
        assert_eq!(marker(&[&all[3..]]), Some('\u{FDD0}'));
        assert_eq!(marker(&[&all]), None);
    }

    #[test]
    fn special_tokens_must_be_breakable() {
        assert!(refuse_unbreakable(&[token("<|im_end|>", true), token("\n", false)]).is_ok());
        assert!(refuse_unbreakable(&[token("\n", true)]).is_err());
        let normalized = AddedToken { normalized: true, ..token("<s>", true) };
        assert!(refuse_unbreakable(&[normalized]).is_err());
    }
}
