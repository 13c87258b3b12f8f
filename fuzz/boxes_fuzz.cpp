// Any bytes as an answer that may name boxes: what is found has the form that is promised, and a
// text that begins another line behind it takes nothing away.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "text/boxes.h"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void check(const std::string& answer, whimbrel::BoxNotation notation) {
  const std::vector<whimbrel::Box> boxes = whimbrel::find_boxes(answer, notation);
  for (const whimbrel::Box& box : boxes) {
    require(box.numbers.size() == (box.is_point() ? 2U : 4U));
    for (const double number : box.numbers) {
      require(std::abs(number) <= 1e6);
    }
  }
  require(whimbrel::find_boxes(answer + "\n.", notation).size() == boxes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string answer(reinterpret_cast<const char*>(data), size);
  check(answer, whimbrel::BoxNotation::json);
  check(answer, whimbrel::BoxNotation::pairs);
  return 0;
}
