#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/tokenizer.h"
#include "text/tool.h"
#include "text/tool_format.h"

namespace whimbrel {

namespace textkit {
class GrammarCompilerHandle;  // text/textkit_handle.h
class GrammarHandle;
class GrammarStateHandle;
}  // namespace textkit

/// Calls of tools and nothing else.
struct ToolCallsSpec {
  ToolFormat format = ToolFormat::hermes;
  std::vector<Tool> tools = {};  // one of these; a choice by name leaves one
  bool parallel = true;          // several calls, or exactly one
};

/// A compiled grammar (llguidance). Never changes; copies share it; usable from several threads.
class Grammar {
 private:
  friend class GrammarCompiler;
  friend class GrammarState;

  explicit Grammar(std::shared_ptr<const textkit::GrammarHandle> handle);

  std::shared_ptr<const textkit::GrammarHandle> handle_;
};

/// Makes grammars over a tokenizer's tokens. Const; copies share it; usable from several threads.
///
/// All specs come from outside and are bounded: 256 KiB, schemas nested 32 levels deep, 32 patterns
/// (16 KiB; 8 where schemas are merged) and 16 patternProperties a schema, 2 s of processor time, 8
/// compilations at once, and sizes inside llguidance that keep a compilation below 64 MiB. What is
/// over a bound, what no text can keep, and keywords that the grammar could not hold an answer to
/// (`not`, `if`, `uniqueItems`, a `oneOf` of overlapping options, unknown formats, references to
/// other documents) are refused by Error(Fault::input) with the reason. Compiling runs on the
/// caller's time: never on a thread that others wait for.
class GrammarCompiler {
 public:
  /// `vocabulary`: number of logits, at least the tokenizer's size; ids without a token are never
  /// allowed. `ends`: the ids that end an answer. Takes about a second for 150,000 tokens. Throws
  /// Error(Fault::model).
  GrammarCompiler(const Tokenizer& tokenizer, size_t vocabulary, std::span<const int32_t> ends);

  /// Any JSON object.
  Grammar json_object() const;

  /// JSON that keeps a schema (drafts 4 to 2020-12). Properties come in the schema's order, and
  /// at most 64 characters of white space between two parts.
  Grammar json_schema(const Json& schema) const;

  /// The calls in their format, an empty line before them allowed. In XML, parameters come in the
  /// schema's order; patterns and formats of strings are refused, for their text isn't quoted.
  Grammar tool_calls(const ToolCallsSpec& spec) const;

 private:
  Grammar compile(std::string_view kind, std::string_view members) const;

  std::shared_ptr<const textkit::GrammarCompilerHandle> handle_;
};

/// One answer under a grammar. A copy is a fork: both go on apart. For one thread. A step takes
/// well under a millisecond, at most some 30, and all steps some 32 MiB; where they need more, they
/// throw Error(Fault::input), and the state is spent.
class GrammarState {
 public:
  explicit GrammarState(const Grammar& grammar);
  GrammarState(const GrammarState& other);
  GrammarState& operator=(const GrammarState& other);
  GrammarState(GrammarState&&) noexcept;
  GrammarState& operator=(GrammarState&&) noexcept;
  ~GrammarState();

  /// The ids that may come next: bit id % 32 of word id / 32, for each of the vocabulary. Ends
  /// are among them exactly where the answer may end. Valid until the next call.
  std::span<const uint32_t> allowed();

  /// Goes on by an allowed id. Throws Error(Fault::input) on another; the state is then spent.
  void accept(int32_t id);

  /// How many of `ids` may come one after the other; for drafts. Changes nothing.
  size_t acceptable(std::span<const int32_t> ids);

  /// Whether the answer may end here.
  bool can_end();

  /// Whether nothing but an end may follow, or an end was accepted.
  bool finished() const { return finished_; }

 private:
  std::unique_ptr<textkit::GrammarStateHandle> handle_;
  bool finished_ = false;
};

}  // namespace whimbrel
