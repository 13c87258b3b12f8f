//! What a model may write next, by llguidance: grammars over the bytes of a tokenizer's tokens.

use crate::ffi::caught;
use crate::grammar_spec::to_grammar;
use crate::tokenizer::TextTokenizer;
use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::toktrie::{
    ApproximateTokEnv, InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie,
};
use llguidance::{Matcher, ParserFactory, earley::SlicedBiasComputer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Of processor time, and in all.
const MAX_COMPILE_TIME: Duration = Duration::from_secs(2);
const MAX_WAIT: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_millis(100);
const COMPILE_STACK: usize = 64 << 20;
/// At once, those included that outlived their caller's patience and end by themselves.
const MAX_COMPILING: usize = 8;
static COMPILING: AtomicUsize = AtomicUsize::new(0);

const MAX_ERROR_CHARS: usize = 500;

/// A state of the lexer takes 1 to 2 KiB; the rest bounds the time of a step to some 20 ms.
fn limits() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 10_000,
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 200_000,
        step_max_items: 50_000,
        max_lexer_states: 16_000,
        max_grammar_size: 50_000,
        precompute_large_lexemes: false,
        verbose_errors: false,
    }
}

/// Made once for a tokenizer and a width of logits.
pub struct GrammarCompiler {
    factory: Arc<ParserFactory>,
    vocabulary: usize,
}

/// A compiled grammar: never changed, so that any number of states start from it.
pub struct Grammar {
    beginning: Matcher,
    vocabulary: usize,
}

/// One answer so far.
pub struct GrammarState {
    matcher: Matcher,
    vocabulary: usize,
    mask: SimpleVob,
}

impl GrammarCompiler {
    /// `vocabulary`: the number of logits, which may be more than the tokenizer has tokens; those
    /// are never allowed. `ends`: the ids that end an answer.
    pub fn new(tokenizer: &TextTokenizer, vocabulary: usize, ends: &[u32]) -> Result<Self, String> {
        let trie = token_trie(tokenizer, vocabulary, ends)?;
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let capabilities = InferenceCapabilities::default();
        let slices = SlicedBiasComputer::general_slices();
        let mut factory =
            ParserFactory::new(&environment, capabilities, &slices).map_err(one_line)?;
        factory.quiet();
        *factory.limits_mut() = limits();
        Ok(Self { factory: Arc::new(factory), vocabulary })
    }

    /// `spec`: JSON, see `grammar_spec`.
    pub fn compile(&self, spec: &str) -> Result<Grammar, String> {
        let grammar = to_grammar(spec)?;
        let factory = Arc::clone(&self.factory);
        let beginning = in_time(move || start(&factory, grammar))?;
        Ok(Grammar { beginning, vocabulary: self.vocabulary })
    }
}

impl Grammar {
    pub fn state(&self) -> GrammarState {
        GrammarState {
            matcher: self.beginning.deep_clone(),
            vocabulary: self.vocabulary,
            mask: SimpleVob::new(),
        }
    }
}

impl GrammarState {
    /// A bit for each id, 32 in a word, the lowest first. Where the grammar is at its end only the
    /// ends are left.
    pub fn allowed(&mut self) -> Result<&[u32], String> {
        self.mask = self.matcher.compute_mask_or_eos().map_err(one_line)?;
        Ok(&self.mask.as_slice()[..self.vocabulary.div_ceil(32)])
    }

    /// How many of the ids could follow one after the other; changes nothing.
    pub fn acceptable(&mut self, ids: &[u32]) -> Result<usize, String> {
        if self.matcher.is_stopped() && !self.matcher.is_error() {
            return Ok(0);
        }
        self.matcher.validate_tokens(ids).map_err(one_line)
    }

    pub fn accept(&mut self, id: u32) -> Result<(), String> {
        if self.finished() {
            let environment = self.matcher.tok_env().map_err(one_line)?;
            let is_end = environment.tok_trie().eos_tokens().contains(&id);
            return if is_end { Ok(()) } else { Err(format!("got {id} behind the grammar's end")) };
        }
        self.matcher.consume_token(id).map_err(one_line)
    }

    pub fn can_end(&mut self) -> Result<bool, String> {
        if self.finished() {
            return Ok(true);
        }
        self.matcher.is_accepting().map_err(one_line)
    }

    /// Whether nothing but an end may follow, or an end came.
    pub fn finished(&self) -> bool {
        self.matcher.stop_reason().is_ok() && self.matcher.is_stopped()
    }
}

impl Clone for GrammarState {
    fn clone(&self) -> Self {
        Self {
            matcher: self.matcher.deep_clone(),
            vocabulary: self.vocabulary,
            mask: SimpleVob::new(),
        }
    }
}

fn token_trie(
    tokenizer: &TextTokenizer,
    vocabulary: usize,
    ends: &[u32],
) -> Result<TokTrie, String> {
    let size = tokenizer.size() as usize;
    let count = u32::try_from(vocabulary).ok().filter(|_| vocabulary >= size);
    let count = count.ok_or_else(|| {
        format!("got {vocabulary} logits, expected at least one for each of {size} tokens")
    })?;
    let first_end =
        *ends.first().ok_or("got no token that ends an answer, expected at least one")?;
    if let Some(end) = ends.iter().find(|end| **end >= count) {
        return Err(format!("got {end} as an end, expected an id below {count}"));
    }
    let mut words: Vec<Vec<u8>> = (0..count).map(|id| token_word(tokenizer, id)).collect();
    for end in ends {
        words[*end as usize] = special_word(*end);
    }
    let trie = TokTrie::from(&TokRxInfo::new(count, first_end), &words);
    Ok(trie.with_eos_tokens(ends))
}

/// What a token writes. A special token writes no text, so no text of a grammar may be made of it.
fn token_word(tokenizer: &TextTokenizer, id: u32) -> Vec<u8> {
    let shown = tokenizer.token_bytes(id, true).unwrap_or_default();
    if shown.is_empty() && id < tokenizer.size() { special_word(id) } else { shown }
}

fn special_word(id: u32) -> Vec<u8> {
    let mut word = vec![TokTrie::SPECIAL_TOKEN_MARKER];
    word.extend_from_slice(format!("<special {id}>").as_bytes());
    word
}

fn start(factory: &ParserFactory, grammar: TopLevelGrammar) -> Result<Matcher, String> {
    let parser = factory.create_parser(grammar).map_err(one_line)?;
    let mut matcher = Matcher::new(Ok(parser));
    // What can't be begun is refused now.
    matcher.compute_mask().map_err(one_line)?;
    Ok(matcher)
}

/// Runs work on a thread of its own, with a stack of known size, and leaves it alone where it takes
/// too long: the crate's own limits end it later.
fn in_time<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let slot = CompileSlot::take()?;
    let (sender, receiver) = mpsc::channel();
    let begun = Instant::now();
    let thread = std::thread::Builder::new()
        .stack_size(COMPILE_STACK)
        .spawn(move || {
            let _slot = slot;
            // The caller may have left.
            let _ = sender.send(caught(work));
        })
        .map_err(|error| format!("no thread to compile a grammar: {error}"))?;
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(result) => {
                // It is over but for its end.
                let _ = thread.join();
                return result;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("compiling failed".to_string()),
        }
        let spent = processor_time(&thread).unwrap_or_else(|| begun.elapsed());
        if spent > MAX_COMPILE_TIME || begun.elapsed() > MAX_WAIT {
            return Err(format!(
                "got a grammar that takes over {} s to compile, expected a simpler one",
                MAX_COMPILE_TIME.as_secs()
            ));
        }
    }
}

/// What a thread that wasn't joined has used. A machine that others keep busy refuses no more
/// grammars than an idle one.
#[cfg(target_os = "linux")]
fn processor_time<T>(thread: &JoinHandle<T>) -> Option<Duration> {
    use std::os::unix::thread::JoinHandleExt;
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the thread's handle is valid until it is joined or dropped; both results are ours.
    let failed = unsafe {
        libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) != 0
            || libc::clock_gettime(clock, &mut time) != 0
    };
    let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
    let seconds = u64::try_from(time.tv_sec).ok()?;
    (!failed).then(|| Duration::new(seconds, nanoseconds))
}

#[cfg(not(target_os = "linux"))]
fn processor_time<T>(_thread: &JoinHandle<T>) -> Option<Duration> {
    None
}

/// Counts the threads that compile.
struct CompileSlot;

impl CompileSlot {
    fn take() -> Result<Self, String> {
        if COMPILING.fetch_add(1, Ordering::Relaxed) >= MAX_COMPILING {
            COMPILING.fetch_sub(1, Ordering::Relaxed);
            return Err("too many grammars are compiled at once; try again later".to_string());
        }
        Ok(Self)
    }
}

impl Drop for CompileSlot {
    fn drop(&mut self) {
        COMPILING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One sentence of an error: llguidance puts states and backtraces behind it, in lines of their own,
/// and speaks of options that a user doesn't have.
fn one_line(error: impl std::fmt::Display) -> String {
    const OURS: [(&str, &str); 4] = [
        ("NoExtensionBias", "got a schema that no text can keep"),
        ("panic:", "got a grammar that is too large or too complex"),
        ("oneOf constraints", "got a oneOf whose options may overlap, expected anyOf"),
        ("Unable to determine", "got patterns that are too complex together"),
    ];
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    if let Some((_, ours)) = OURS.iter().find(|(theirs, _)| first.starts_with(theirs)) {
        return (*ours).to_string();
    }
    if let Some(keys) = first.strip_prefix("Unimplemented keys: ") {
        return format!("got the keywords {keys}, which a grammar can't keep");
    }
    let reason = text.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or_default();
    format!("{first} {reason}").trim_end().chars().take(MAX_ERROR_CHARS).collect()
}

#[cfg(test)]
mod tests;
