#include "text/rendered_prompt.h"

namespace whimbrel {

namespace {

/// UTF-8 of a noncharacter: three bytes.
std::string utf8_of_marker(char32_t marker) {
  return {
      static_cast<char>(0xE0 | (marker >> 12)),
      static_cast<char>(0x80 | ((marker >> 6) & 0x3F)),
      static_cast<char>(0x80 | (marker & 0x3F)),
  };
}

}  // namespace

std::string RenderedPrompt::text() const {
  if (marker == 0) {
    return marked;
  }
  const std::string mark = utf8_of_marker(marker);
  std::string text;
  size_t begin = 0;
  size_t found = marked.find(mark);
  while (found != std::string::npos) {
    text.append(marked, begin, found - begin);
    begin = found + mark.size();
    found = marked.find(mark, begin);
  }
  text.append(marked, begin);
  return text;
}

}  // namespace whimbrel
