#include "server/worker_frame.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace whimbrel::http {
namespace {

TEST(WorkerFrame, head_comes_back) {
  const Frame frame{FrameKind::piece, 0x0123456789abcdef, std::string(70'000, 'x')};
  const FrameHead head = decode_head(encode_head(frame));
  EXPECT_EQ(head.kind, FrameKind::piece);
  EXPECT_EQ(head.id, frame.id);
  EXPECT_EQ(head.payload_bytes, 70'000U);
}

TEST(WorkerFrame, what_is_no_head_is_refused) {
  const std::string good = encode_head({FrameKind::whole, 1, "x"});
  EXPECT_THROW(decode_head(good.substr(1)), std::runtime_error);
  for (const char kind : {'\0', '\x0a', '\xff'}) {
    std::string bad = good;
    bad[0] = kind;
    EXPECT_THROW(decode_head(bad), std::runtime_error) << int(kind);
  }
  std::string longest = good;
  longest.replace(1, 7, std::string(7, '\x7f'));
  EXPECT_THROW(decode_head(longest), std::runtime_error);
}

TEST(WorkerFrame, request_comes_back_but_for_its_fields) {
  const std::string body("{\0\xff}", 4);
  Request request{"POST", "/v1/x", "a=b", {{"authorization", "secret"}}, body, "req_1", "::1", "t"};
  const Request back = decode_request(encode_request(request));
  EXPECT_EQ(back.method, "POST");
  EXPECT_EQ(back.path, "/v1/x");
  EXPECT_EQ(back.query, "a=b");
  EXPECT_TRUE(back.fields.empty());
  EXPECT_EQ(back.body, body);
  EXPECT_EQ(back.request_id, "req_1");
  EXPECT_EQ(back.client, "::1");
  EXPECT_EQ(back.tenant, "t");
}

TEST(WorkerFrame, response_comes_back) {
  Response response{429, "text/plain", "later", {{"Retry-After", "1"}}, "why", {"a", "\xff"}};
  const Response back = decode_response(encode_response(response));
  EXPECT_EQ(back.status, 429);
  EXPECT_EQ(back.content_type, "text/plain");
  EXPECT_EQ(back.body, "later");
  ASSERT_EQ(back.fields.size(), 1U);
  EXPECT_EQ(back.fields[0].value, "1");
  EXPECT_EQ(back.failure, "why");
  EXPECT_EQ(back.ignored, (std::vector<std::string>{"a", "\uFFFD"}));
}

TEST(WorkerFrame, stream_head_and_report_come_back) {
  const StreamHead head =
      decode_stream_head(encode_stream_head({"text/x", {{"A", "b"}}, {"c\xff"}}));
  EXPECT_EQ(head.content_type, "text/x");
  EXPECT_EQ(head.fields.at(0).name, "A");
  EXPECT_EQ(head.ignored, std::vector<std::string>{"c\uFFFD"});
  const WorkerReport report = decode_report(encode_report({3, 7, "metrics\n"}));
  EXPECT_EQ(report.running, 3);
  EXPECT_EQ(report.steps, 7U);
  EXPECT_EQ(report.metrics, "metrics\n");
}

TEST(WorkerFrame, what_is_no_payload_is_refused_in_our_words) {
  const std::string good = encode_response({.body = "x"});
  for (const std::string& bad :
       {std::string(),
        std::string("short"),
        std::string(8, '\xff'),
        good.substr(0, good.size() - 1),
        std::string("{}") + std::string("\x02\0\0\0\0\0\0\0", 8)}) {
    try {
      decode_response(bad);
      FAIL() << bad;
    } catch (const std::runtime_error& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with("[worker]")) << error.what();
    }
  }
  EXPECT_THROW(decode_report("[]"), std::runtime_error);
  EXPECT_THROW(decode_stream_head("nonsense"), std::runtime_error);
}

}  // namespace
}  // namespace whimbrel::http
