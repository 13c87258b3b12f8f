// Runs grammars for a test in Python: grammar_probe FOLDER, a JSON object a line on stdin:
// {"schema": S, "texts": […], "walks": N, "seed": N}. Answers a line with {"refused": reason}, or
// {"taken": [bool|null, …], "walks": [text, …]}: whether a text is taken token by token and may
// end, and texts of random tokens that the grammar allows. A walk that came to no end is left out.

#include <iostream>
#include <random>
#include <string>

#include "base/json.h"
#include "text/grammar.h"

namespace {

using whimbrel::GrammarState;
using whimbrel::Json;

constexpr size_t kVocabulary = 4096;
constexpr int kSteps = 400;

bool is_allowed(std::span<const uint32_t> mask, int32_t id) {
  const auto bit = static_cast<uint32_t>(id);
  return ((mask[bit / 32] >> (bit % 32)) & 1U) != 0;
}

bool takes(const whimbrel::Grammar& grammar, const std::vector<int32_t>& ids) {
  GrammarState state(grammar);
  for (const int32_t id : ids) {
    if (!is_allowed(state.allowed(), id)) {
      return false;
    }
    state.accept(id);
  }
  return state.can_end();
}

/// Null where the tokenizer writes the text another way (it normalizes).
Json taken_or_null(
    const whimbrel::Grammar& grammar, const whimbrel::Tokenizer& tokenizer, const std::string& text
) {
  const std::vector<int32_t> ids = tokenizer.encode_text(text);
  const bool is_same = tokenizer.decode(ids, whimbrel::SpecialTokens::keep) == text;
  return is_same ? Json(takes(grammar, ids)) : Json(nullptr);
}

class Walk {
 public:
  Walk(const whimbrel::Tokenizer& tokenizer, int32_t end, uint64_t seed)
      : tokenizer_(tokenizer), end_(end), random_(seed) {}

  /// Empty where no end came.
  std::string text(const whimbrel::Grammar& grammar) {
    GrammarState state(grammar);
    std::vector<int32_t> ids;
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<int32_t> choices = choices_of(state);
      const bool may_end = choices.back() == end_;
      if (may_end && (choices.size() == 1 || random_() % 2 == 0)) {
        return tokenizer_.decode(ids, whimbrel::SpecialTokens::keep);
      }
      ids.push_back(choices[random_() % (choices.size() - (may_end ? 1 : 0))]);
      state.accept(ids.back());
    }
    return "";
  }

 private:
  /// The end last. Now and then only tokens that close something, so that walks come to an end.
  std::vector<int32_t> choices_of(GrammarState& state) {
    const std::span<const uint32_t> mask = state.allowed();
    std::vector<int32_t> all;
    std::vector<int32_t> closing;
    for (int32_t id = 0; id < tokenizer_.size(); ++id) {
      if (id != end_ && is_allowed(mask, id)) {
        all.push_back(id);
        const std::string token = tokenizer_.id_to_token(id).value();
        if (token.find_first_of("\"}]0") != std::string::npos) {
          closing.push_back(id);
        }
      }
    }
    std::vector<int32_t>& choices = !closing.empty() && random_() % 3 > 0 ? closing : all;
    if (is_allowed(mask, end_)) {
      choices.push_back(end_);
    }
    return choices;
  }

  const whimbrel::Tokenizer& tokenizer_;
  int32_t end_;
  std::mt19937_64 random_;
};

Json answer(
    const Json& request,
    const whimbrel::Tokenizer& tokenizer,
    const whimbrel::GrammarCompiler& compiler,
    int32_t end
) {
  try {
    const whimbrel::Grammar grammar = compiler.json_schema(request.at("schema"));
    Json taken = Json::array();
    for (const Json& text : request.at("texts")) {
      taken.push_back(taken_or_null(grammar, tokenizer, text.get<std::string>()));
    }
    Walk walk(tokenizer, end, request.at("seed").get<uint64_t>());
    Json walks = Json::array();
    for (int count = 0; count < request.at("walks").get<int>(); ++count) {
      if (std::string text = walk.text(grammar); !text.empty()) {
        walks.push_back(std::move(text));
      }
    }
    return {{"taken", taken}, {"walks", walks}};
  } catch (const whimbrel::Error& error) {
    return {{"refused", error.what()}};
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: grammar_probe FOLDER\n";
    return 2;
  }
  const whimbrel::Tokenizer tokenizer = whimbrel::Tokenizer::load(argv[1]);
  const int32_t end = tokenizer.eos().value();
  const whimbrel::GrammarCompiler compiler(tokenizer, kVocabulary, std::vector<int32_t>{end});
  for (std::string line; std::getline(std::cin, line);) {
    const Json request = Json::parse(line);
    std::cout << answer(request, tokenizer, compiler, end).dump() << std::endl;
  }
  return 0;
}
