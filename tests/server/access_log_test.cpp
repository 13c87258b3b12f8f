#include "server/access_log.h"

#include <gtest/gtest.h>

#include "tests/server/serve.h"

namespace whimbrel::http::test {
namespace {

TEST(EscapeForLog, leaves_one_line_of_ascii) {
  EXPECT_EQ(escape_for_log("/v1/models"), "/v1/models");
  EXPECT_EQ(escape_for_log("a\r\nb\x1b[2J\\\x7f"), "a\\x0d\\x0ab\\x1b[2J\\x5c\\x7f");
  EXPECT_EQ(escape_for_log("\xc3\xa4" + std::string(1, '\0')), "\\xc3\\xa4\\x00");
  EXPECT_EQ(escape_for_log("abcdef", 3), "abc...");
}

std::string joined(const AccessLogEntry& entry) {
  return fmt::format(
      "{}|{}|{}|{}|{}|{}|{}",
      entry.request_id,
      entry.client,
      entry.method,
      entry.path,
      entry.tenant,
      name_of(entry.outcome),
      entry.failure
  );
}

TEST(LogInjection, by_a_client_stays_within_one_entry_without_its_secrets) {
  TestServer server(
      {{.method = "POST",
        .path = "/work",
        .handler = [](const ExchangePtr&) { throw std::runtime_error("first\r\nsecond \x1b[2J"); }},
       {.method = "GET", .path = "/work", .handler = answer("{}")}},
      {.access = {.api_keys = {"canary-key"}}}
  );
  const std::string key = "Authorization: Bearer canary-key\r\n";
  for (const std::string& request :
       {post("/work?canary-query", "\"canary-prompt\"", key),
        ask("GET", "/work?canary-query", key),
        ask("GET", "/missing%0d%0a\\" + std::string(5000, 'x'), key),
        ask("GET", "/work", "x-api-key: canary-wrong\r\n"),
        ask("BREW!~", "/work", key + "X-Request-Id: a\x1b[2J\r\n"),
        std::string("GET /canary\x1b HTTP/1.1\r\n\r\n")}) {
    request_once(server.port(), request);
  }
  ASSERT_TRUE(server.all_ended());
  ASSERT_TRUE(eventually([&] { return server.log().size() == 6; }));
  for (const AccessLogEntry& entry : server.log()) {
    const std::string text = joined(entry);
    EXPECT_EQ(text.find("canary"), std::string::npos) << text;
    EXPECT_EQ(text.find_first_of("\r\n\x1b"), std::string::npos) << text;
    EXPECT_LT(text.size(), 700U) << text;
    EXPECT_FALSE(entry.request_id.empty());
  }
  // An entry may come later than its client's next request.
  const std::vector<AccessLogEntry> log = server.log();
  const auto failed = std::ranges::find(log, Outcome::failed, &AccessLogEntry::outcome);
  ASSERT_NE(failed, log.end());
  EXPECT_EQ(failed->failure, "first\\x0d\\x0asecond \\x1b[2J");
  EXPECT_EQ(failed->status, 500);
  EXPECT_EQ(failed->body_bytes, 15U);
  EXPECT_EQ(failed->tenant.size(), 8U);
}

TEST(IgnoredFields, are_in_the_entry_a_few_of_them_cut_and_escaped) {
  std::vector<std::string> names(100, std::string(1000, 'x'));
  names[0] = "a\r\n\x1b";
  TestServer server({
      public_route(
          "GET",
          "/whole",
          [&names](const ExchangePtr& exchange) {
            exchange->note_ignored(names);
            exchange->respond({});
          }
      ),
      public_route(
          "GET",
          "/from",
          [&names](const ExchangePtr& exchange) {
            exchange->respond({.ignored = names});  // as it comes from another process
          }
      ),
      public_route(
          "GET",
          "/stream",
          [&names](const ExchangePtr& exchange) {
            exchange->start_stream({.ignored = names});
            exchange->finish();
          }
      ),
      public_route("GET", "/none", answer("{}")),
  });
  for (const char* path : {"/whole", "/from", "/stream", "/none"}) {
    server.get(path);
  }
  ASSERT_TRUE(eventually([&] { return server.log().size() == 4; }));
  for (const AccessLogEntry& entry : server.log()) {
    if (entry.path == "/none") {
      EXPECT_TRUE(entry.ignored.empty());
      continue;
    }
    ASSERT_EQ(entry.ignored.size(), 17U) << entry.path;
    EXPECT_EQ(entry.ignored[0], "a\\x0d\\x0a\\x1b");
    EXPECT_EQ(entry.ignored[1], std::string(64, 'x') + "...");
    EXPECT_EQ(entry.ignored[16], "...");
  }
}

TEST(Counters, add_up_by_route_and_status) {
  TestServer server({public_route("GET", "/a", answer("{}"))});
  server.get("/a?1");
  server.get("/a?2");
  server.get("/b");
  request_once(server.port(), ask("POST", "/a"));
  request_once(server.port(), "nonsense\r\n\r\n");
  ASSERT_TRUE(server.all_ended());
  const HttpCounters counters = server->counters();
  const std::map<std::pair<std::string, int>, uint64_t> expected = {
      {{"/a", 200}, 2}, {{"/a", 405}, 1}, {{"other", 404}, 1}, {{"other", 400}, 1}
  };
  EXPECT_EQ(counters.requests_by_route, expected);
  EXPECT_EQ(counters.requests_begun, 5U);
  EXPECT_EQ(counters.connections_accepted, 5U);
  EXPECT_GT(counters.sent_bytes, 500U);
}

}  // namespace
}  // namespace whimbrel::http::test
