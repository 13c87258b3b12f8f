// Requests that two programs could read differently: a proxy in front sees one request, we would
// see two. Each is refused with one reply, and what stands behind it is never looked at.

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>

#include "base/json.h"
#include "tests/server/serve.h"
#include "tests/support/source_dir.h"

namespace whimbrel::http::test {
namespace {

struct Smuggled {
  std::string name = {};
  std::string bytes = {};
  int status = 400;
};

/// A text of characters up to U+00FF as one byte each.
std::string as_bytes(const std::string& utf8) {
  std::string bytes;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto first = static_cast<unsigned char>(utf8[i]);
    const bool is_pair = first >= 0x80;
    bytes += is_pair ? static_cast<char>(((first & 3) << 6) | (utf8.at(++i) & 0x3f)) : utf8[i];
  }
  return bytes;
}

/// What the tests of a set-up with a proxy send, too.
std::vector<Smuggled> smuggled(const char* kind) {
  std::ifstream file(whimbrel::test::source_dir() / "tests/golden/smuggling.json");
  const Json corpus = Json::parse(file);
  std::vector<Smuggled> all;
  for (const Json& one : corpus.at(kind)) {
    all.push_back({
        .name = one.at("name"),
        .bytes = as_bytes(one.at("bytes")),
        .status = one.at("status"),
    });
  }
  return all;
}

class Smuggling : public testing::TestWithParam<Smuggled> {};

TEST_P(Smuggling, gets_one_refusal_and_no_second_request) {
  std::atomic<int> handled = 0;
  const auto count = [&](const ExchangePtr& exchange) {
    ++handled;
    exchange->respond({});
  };
  TestServer server(
      {public_route("GET", "/work", count),
       public_route("POST", "/work", count),
       public_route("GET", "/second", count)}
  );
  RawClient client(server.port());
  client.send(GetParam().bytes + ask("GET", "/second") + ask("GET", "/second"));
  const auto got = client.receive();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, GetParam().status);
  EXPECT_EQ(got->fields.at("connection"), "close");
  EXPECT_EQ(client.receive_all(), "") << "a second reply";
  EXPECT_EQ(handled, 0);
  EXPECT_TRUE(server.counts(Outcome::refused, 1));
}

const auto kName = [](const auto& smuggled) { return smuggled.param.name; };
INSTANTIATE_TEST_SUITE_P(Framing, Smuggling, testing::ValuesIn(smuggled("framing")), kName);
INSTANTIATE_TEST_SUITE_P(Chunks, Smuggling, testing::ValuesIn(smuggled("chunks")), kName);
INSTANTIATE_TEST_SUITE_P(Lines, Smuggling, testing::ValuesIn(smuggled("lines")), kName);
INSTANTIATE_TEST_SUITE_P(
    RequestLines, Smuggling, testing::ValuesIn(smuggled("request_lines")), kName
);

TEST(SmugglingOneByteAtATime, gets_the_same_refusal) {
  TestServer server(
      {public_route("GET", "/work", answer("{}")), public_route("POST", "/work", answer("{}"))}
  );
  for (const char* kind : {"framing", "chunks", "lines", "request_lines"}) {
    const std::string bytes = smuggled(kind).front().bytes;
    RawClient client(server.port());
    for (const char c : bytes) {
      if (!client.send(std::string_view(&c, 1))) {
        break;  // it was refused before its end
      }
    }
    const auto got = client.receive();
    ASSERT_TRUE(got) << bytes;
    EXPECT_EQ(got->status, 400) << bytes;
  }
}

}  // namespace
}  // namespace whimbrel::http::test
