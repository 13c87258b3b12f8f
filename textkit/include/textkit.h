// textkit as C: Hugging Face tokenizers, chat templates and grammars (Rust crate in textkit/).
//
// Every function that can fail returns NULL, or an error: a sentence in UTF-8 that ends with a zero
// byte and is freed by textkit_free_error; its results are then unset. No function throws or ends
// the process. Text comes in as UTF-8 with a size (NULL where the size is 0) and goes out as
// textkit_text, freed by textkit_free_text. A tokenizer and a template may be used from several
// threads at once, as a grammar compiler and a grammar may; a detokenizer and a grammar state from
// one at a time. Freeing NULL does nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct textkit_tokenizer textkit_tokenizer;
typedef struct textkit_template textkit_template;
typedef struct textkit_detokenizer textkit_detokenizer;
typedef struct textkit_grammar_compiler textkit_grammar_compiler;
typedef struct textkit_grammar textkit_grammar;
typedef struct textkit_grammar_state textkit_grammar_state;

// UTF-8, not ended by a zero byte. `data` is NULL where there is no text.
typedef struct textkit_text {
  char* data;
  size_t size;
} textkit_text;

typedef struct textkit_ids {
  int32_t* data;
  size_t size;
} textkit_ids;

// A bit for each id, 32 in a word, the lowest first. It belongs to a grammar state.
typedef struct textkit_mask {
  const uint32_t* words;
  size_t size;
} textkit_mask;

void textkit_free_error(char* error);
void textkit_free_text(textkit_text text);
void textkit_free_ids(textkit_ids ids);

// A byte-level BPE tokenizer from the bytes of tokenizer.json.
char* textkit_tokenizer_new(const char* json, size_t size, textkit_tokenizer** tokenizer);
void textkit_tokenizer_free(textkit_tokenizer* tokenizer);

// {"size": 1 + highest id, "most_bytes": of a text that become one token, or null where there is no
// bound, "added_tokens": [{"id", "content", "special"}, …] by ascending id}
char* textkit_tokenizer_describe(const textkit_tokenizer* tokenizer, textkit_text* json);

// Ids of a rendered prompt: added tokens are recognised, except where `marker` (0: none) stands
// inside them. Markers themselves leave no trace.
char* textkit_encode_prompt(
    const textkit_tokenizer* tokenizer,
    const char* text,
    size_t size,
    uint32_t marker,
    textkit_ids* ids
);

// Ids of plain text: no added token is recognised.
char* textkit_encode_text(
    const textkit_tokenizer* tokenizer, const char* text, size_t size, textkit_ids* ids
);

// Text of ids. `skip_special` leaves tokens out that are flagged special.
char* textkit_decode(
    const textkit_tokenizer* tokenizer,
    const int32_t* ids,
    size_t size,
    bool skip_special,
    textkit_text* text
);

// -1 where the tokenizer has no such token.
char* textkit_token_to_id(
    const textkit_tokenizer* tokenizer, const char* token, size_t size, int32_t* id
);

// A text whose data is NULL where the tokenizer has no such id.
char* textkit_id_to_token(const textkit_tokenizer* tokenizer, int32_t id, textkit_text* token);

// A chat template in Jinja. `special_tokens` is a JSON object of variables ("bos_token", …). The
// tokenizer's added tokens are those kept out of typed text; it may be freed before the template.
char* textkit_template_new(
    const char* source,
    size_t source_size,
    const char* special_tokens,
    size_t special_tokens_size,
    const textkit_tokenizer* tokenizer,
    textkit_template** chat_template
);
void textkit_template_free(textkit_template* chat_template);

// Renders {"messages": […], "tools": […]|null, "add_generation_prompt": bool, "kwargs": {…}}.
// `marker` is a Unicode noncharacter that breaks the typed tokens in `text`, or 0 where none is.
char* textkit_template_render(
    const textkit_template* chat_template,
    const char* request,
    size_t size,
    textkit_text* text,
    uint32_t* marker
);

// Ids to text as they come. It keeps the tokenizer alive.
char* textkit_detokenizer_new(
    const textkit_tokenizer* tokenizer, bool skip_special, textkit_detokenizer** detokenizer
);
void textkit_detokenizer_free(textkit_detokenizer* detokenizer);

// The text that is complete with this id.
char* textkit_detokenizer_push(textkit_detokenizer* detokenizer, int32_t id, textkit_text* text);

// The rest; the detokenizer is then as new.
char* textkit_detokenizer_finish(textkit_detokenizer* detokenizer, textkit_text* text);

// Compiles grammars for answers in this tokenizer's tokens. `vocabulary` is the number of logits,
// at least the tokenizer's size; `ends` are the ids that end an answer.
char* textkit_grammar_compiler_new(
    const textkit_tokenizer* tokenizer,
    size_t vocabulary,
    const int32_t* ends,
    size_t end_count,
    textkit_grammar_compiler** compiler
);
void textkit_grammar_compiler_free(textkit_grammar_compiler* compiler);

// `spec` is {"kind":"json_object"}, {"kind":"json_schema","schema":{…}} or {"kind":"tool_calls",
// "format":"hermes"|"xml","parallel":bool,"tools":[{"name":…,"parameters":{…}|null}, …]}. Takes at
// most 2 s of processor time. A grammar doesn't need its compiler.
char* textkit_grammar_compile(
    const textkit_grammar_compiler* compiler,
    const char* spec,
    size_t size,
    textkit_grammar** grammar
);
void textkit_grammar_free(textkit_grammar* grammar);

// The beginning of an answer; it doesn't need its grammar.
char* textkit_grammar_state_new(const textkit_grammar* grammar, textkit_grammar_state** state);
char* textkit_grammar_state_copy(const textkit_grammar_state* state, textkit_grammar_state** copy);
void textkit_grammar_state_free(textkit_grammar_state* state);

// The ids that may come next; ends among them exactly where the answer may end. The mask lives
// until the next call with this state.
char* textkit_grammar_allowed(textkit_grammar_state* state, textkit_mask* mask);

// Goes on by an allowed id. `finished`: nothing but an end may follow, or this was one.
char* textkit_grammar_accept(textkit_grammar_state* state, int32_t id, bool* finished);

// How many of the ids may come one after the other. The state stays what it is.
char* textkit_grammar_acceptable(
    textkit_grammar_state* state, const int32_t* ids, size_t size, size_t* count
);

// Whether the answer may end here.
char* textkit_grammar_can_end(textkit_grammar_state* state, bool* can_end);

#ifdef __cplusplus
}
#endif
