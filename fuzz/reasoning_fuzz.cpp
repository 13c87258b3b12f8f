// Any bytes as an answer with reasoning, whole and in pieces: the parts are the same, and but for
// tags and white space beside them nothing goes missing.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/reasoning.h"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

whimbrel::ReasoningPiece part(std::string_view answer, bool opened, size_t piece_size) {
  whimbrel::ReasoningStream stream(opened);
  whimbrel::ReasoningPiece all;
  const auto add = [&](const whimbrel::ReasoningPiece& piece) {
    all.reasoning += piece.reasoning;
    all.text += piece.text;
  };
  for (size_t begin = 0; begin < answer.size(); begin += piece_size) {
    add(stream.push(answer.substr(begin, piece_size)));
  }
  add(stream.finish());
  return all;
}

void check(std::string_view answer, bool opened) {
  const whimbrel::ReasoningPiece whole = part(answer, opened, answer.size());
  require(answer.ends_with(whole.text));
  require(answer.find(whole.reasoning) != std::string_view::npos);
  require(opened || whole.reasoning.empty() || answer.find("<think>") < answer.size());
  for (const size_t size : {size_t{1}, size_t{3}, size_t{7}}) {
    const whimbrel::ReasoningPiece pieces = part(answer, opened, size);
    require(pieces.reasoning == whole.reasoning && pieces.text == whole.text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view answer(reinterpret_cast<const char*>(data), size);
  check(answer, true);
  check(answer, false);
  return 0;
}
