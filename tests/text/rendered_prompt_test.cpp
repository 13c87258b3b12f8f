#include "text/rendered_prompt.h"

#include <gtest/gtest.h>

namespace whimbrel {
namespace {

TEST(RenderedPrompt, text_has_no_markers) {
  const RenderedPrompt prompt{
      .marked = "\uFDD3<\uFDD3|a|>é\uFDD3\uFDD3\uFDD4", .marker = U'\uFDD3'
  };
  EXPECT_EQ(prompt.text(), "<|a|>é\uFDD4");
}

TEST(RenderedPrompt, nothing_is_taken_out_without_a_marker) {
  const RenderedPrompt prompt{.marked = "a\uFDD0b"};
  EXPECT_EQ(prompt.text(), "a\uFDD0b");
}

}  // namespace
}  // namespace whimbrel
