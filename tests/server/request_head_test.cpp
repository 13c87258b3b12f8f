#include "server/request_head.h"

#include <gtest/gtest.h>

namespace whimbrel::http {
namespace {

RequestHead parse(const std::string& bytes) {
  HeadScanner scanner({});
  EXPECT_EQ(scanner.scan(bytes), bytes.size());
  return parse_request_head(bytes, {});
}

TEST(RequestHead, is_read_into_its_parts) {
  const RequestHead head = parse(
      "POST /v1/x?a=1?b HTTP/1.1\r\nHost: localhost:8080\r\nX-Empty:\r\nX-SPACES: \t a  b \t\r\n"
      "Content-Length: 12\r\nExpect: 100-Continue\r\n\r\n"
  );
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/v1/x");
  EXPECT_EQ(head.query, "a=1?b");
  ASSERT_EQ(head.fields.size(), 5U);
  EXPECT_EQ(head.fields[1].value, "");
  EXPECT_EQ(head.fields[2].name, "x-spaces");
  EXPECT_EQ(head.fields[2].value, "a  b");
  EXPECT_EQ(head.content_length, 12U);
  EXPECT_FALSE(head.chunked);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_TRUE(head.expects_continue);
}

TEST(RequestHead, says_whether_the_connection_goes_on) {
  const auto goes_on = [](const std::string& version, const std::string& lines) {
    return parse("GET / HTTP/" + version + "\r\nHost: a\r\n" + lines + "\r\n").keep_alive;
  };
  EXPECT_TRUE(goes_on("1.1", ""));
  EXPECT_FALSE(goes_on("1.1", "Connection: close\r\n"));
  EXPECT_FALSE(goes_on("1.1", "Connection: keep-alive , Close\r\n"));
  EXPECT_FALSE(goes_on("1.1", "Connection: x\r\nConnection: close\r\n"));
  EXPECT_FALSE(goes_on("1.0", ""));
  EXPECT_TRUE(goes_on("1.0", "Connection: Keep-Alive\r\n"));
}

TEST(HeadScanner, finds_the_end_however_the_bytes_come) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string bytes = head + "GET / HTTP/1.1\n";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    HeadScanner scanner({});
    std::optional<size_t> size;
    for (size_t end = std::min(step, bytes.size()); !size;
         end = std::min(end + step, bytes.size())) {
      size = scanner.scan(std::string_view(bytes).substr(0, end));
    }
    EXPECT_EQ(size, head.size()) << step;
  }
}

TEST(HeadScanner, refuses_at_the_first_wrong_byte) {
  for (const char* bytes :
       {"GET / HTTP/1.1\n", "GET / HTTP/1.1\rH", "\x16\x03", "GET /\x7f", "\r\n"}) {
    HeadScanner scanner({});
    EXPECT_THROW(scanner.scan(bytes), ApiException) << bytes;
  }
}

}  // namespace
}  // namespace whimbrel::http
