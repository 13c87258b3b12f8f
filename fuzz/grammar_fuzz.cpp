// Any JSON as a schema: it is refused, or becomes a grammar whose allowed tokens are accepted.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/grammar.h"

namespace {

constexpr size_t kVocabulary = 4096;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

const whimbrel::GrammarCompiler& compiler() {
  static const whimbrel::GrammarCompiler made = [] {
    const auto folder = std::filesystem::path(WHIMBREL_SOURCE_DIR) / "models/tiny-qwen3-vl-4bit";
    const whimbrel::Tokenizer tokenizer = whimbrel::Tokenizer::load(folder);
    return whimbrel::GrammarCompiler(
        tokenizer, kVocabulary, std::vector<int32_t>{tokenizer.eos().value()}
    );
  }();
  return made;
}

/// The first allowed id from `start` on, around the vocabulary; -1 where none is.
int32_t allowed_from(std::span<const uint32_t> mask, size_t start) {
  for (size_t step = 0; step < kVocabulary; ++step) {
    const size_t id = (start + step) % kVocabulary;
    if (((mask[id / 32] >> (id % 32)) & 1U) != 0) {
      return static_cast<int32_t>(id);
    }
  }
  return -1;
}

void walk(const whimbrel::Grammar& grammar, std::string_view bytes) {
  whimbrel::GrammarState state(grammar);
  size_t start = 0;
  for (const char byte : bytes.substr(0, 48)) {
    std::span<const uint32_t> mask;
    try {
      mask = state.allowed();
    } catch (const whimbrel::Error&) {
      return;  // too complex a step
    }
    start = (start * 31 + static_cast<unsigned char>(byte)) % kVocabulary;
    const int32_t id = allowed_from(mask, start);
    require(id >= 0);
    if (state.finished()) {
      return;
    }
    state.accept(id);  // throws where an allowed id isn't accepted
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::optional<whimbrel::Grammar> grammar;
  try {
    const whimbrel::Json schema = whimbrel::parse_json(input, "schema", whimbrel::Fault::input);
    grammar = compiler().json_schema(schema);
  } catch (const whimbrel::Error&) {
    return 0;
  }
  walk(*grammar, input);
  return 0;
}
