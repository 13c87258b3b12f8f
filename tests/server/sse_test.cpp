#include "server/sse.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace whimbrel::http {
namespace {

TEST(Sse, a_frame_is_data_and_an_empty_line) {
  EXPECT_EQ(sse_data("{}"), "data: {}\n\n");
  EXPECT_EQ(sse_event("ping", "{}"), "event: ping\ndata: {}\n\n");
  EXPECT_EQ(sse_comment("ping"), ": ping\n\n");
  EXPECT_EQ(kSseDone, sse_data("[DONE]"));
}

TEST(Sse, a_line_end_in_data_begins_a_new_line_of_data) {
  EXPECT_EQ(sse_data("a\nb"), "data: a\ndata: b\n\n");
  EXPECT_EQ(sse_data("a\r\nb\rc"), "data: a\ndata: b\ndata: c\n\n");
  EXPECT_EQ(sse_data("a\n\ndata: x"), "data: a\ndata: \ndata: data: x\n\n");
  EXPECT_EQ(sse_data("\n"), "data: \ndata: \n\n");
}

TEST(Sse, names_and_comments_are_one_line) {
  EXPECT_THROW(sse_event("a\nb", "{}"), std::logic_error);
  EXPECT_THROW(sse_comment("a\rb"), std::logic_error);
}

}  // namespace
}  // namespace whimbrel::http
