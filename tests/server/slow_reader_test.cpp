// A client that doesn't read its answer holds nobody up, and not for long.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/server/serve.h"

namespace whimbrel::http::test {
namespace {

constexpr int kSmallBuffer = 4096;
const HttpLimits kQuick = {
    .stream_buffer_bytes = 16384,
    .slow_reader_time = milliseconds(200),
    .ping_time = milliseconds(0)
};

/// Writes until the stream is closed, and never waits in a write.
void write_for_ever(const ExchangePtr& exchange, int pieces_at_once) {
  while (!exchange->closed()) {
    for (int i = 0; i < pieces_at_once; ++i) {
      exchange->write("data: 0123456789012345678901234567890123456789\n\n");
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST(SlowReader, of_a_stream_is_given_up_when_the_buffer_stays_full) {
  Inbox inbox;
  TestServer server({public_route("GET", "/s", inbox.handler())}, {.limits = kQuick});
  RawClient client(server.port(), kSmallBuffer);
  client.send(ask("GET", "/s"));
  const ExchangePtr exchange = inbox.take();
  std::atomic<int> told = 0;
  exchange->on_close([&](CloseReason reason) {
    told += reason == CloseReason::slow_reader ? 1 : 100;
  });
  exchange->start_stream({});
  write_for_ever(exchange, 20);
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(server.counts(Outcome::slow_reader, 1));
}

TEST(SlowReader, that_reads_on_but_leaves_the_buffer_full_is_given_up) {
  Inbox inbox;
  TestServer server({public_route("GET", "/s", inbox.handler())}, {.limits = kQuick});
  RawClient client(server.port(), kSmallBuffer);
  client.send(ask("GET", "/s"));
  const ExchangePtr exchange = inbox.take();
  exchange->start_stream({});
  exchange->write(std::string(800'000, 'x'));
  while (client.drop_some(10'000) && !exchange->closed()) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(exchange->closed());
  EXPECT_TRUE(server.counts(Outcome::slow_reader, 1));
}

TEST(SlowReader, of_a_stream_far_beyond_its_buffer_is_given_up_at_once) {
  Inbox inbox;
  HttpLimits limits = kQuick;
  limits.slow_reader_time = std::chrono::hours(1);
  TestServer server({public_route("GET", "/s", inbox.handler())}, {.limits = limits});
  RawClient client(server.port(), kSmallBuffer);
  client.send(ask("GET", "/s"));
  const ExchangePtr exchange = inbox.take();
  exchange->start_stream({});
  write_for_ever(exchange, 2000);
  EXPECT_TRUE(server.counts(Outcome::slow_reader, 1));
}

TEST(SlowReader, of_the_rest_of_an_answer_is_given_up_too) {
  const std::string much(8 << 20, 'x');
  TestServer server(
      {public_route("GET", "/whole", answer(much)),
       public_route(
           "GET",
           "/stream",
           [&](const ExchangePtr& exchange) {
             exchange->start_stream({});
             exchange->write(much);
             exchange->finish();
           }
       )},
      {.limits = {.stream_buffer_bytes = 9 << 20, .slow_reader_time = milliseconds(200)}}
  );
  std::vector<RawClient> clients;
  for (const char* path : {"/whole", "/stream"}) {
    clients.emplace_back(server.port(), kSmallBuffer);
    clients.back().send(ask("GET", path));
  }
  EXPECT_TRUE(server.counts(Outcome::slow_reader, 2));
  EXPECT_TRUE(eventually([&] { return server->counters().connections_open == 0; }));
}

TEST(SlowReader, holds_up_nobody_else) {
  Inbox inbox;
  HttpLimits limits = kQuick;
  limits.slow_reader_time = std::chrono::hours(1);
  TestServer server(
      {public_route("GET", "/s", inbox.handler()), public_route("GET", "/health", answer("ok"))},
      {.limits = limits, .io_threads = 1}
  );
  RawClient slow(server.port(), kSmallBuffer);
  slow.send(ask("GET", "/s"));
  const ExchangePtr exchange = inbox.take();
  exchange->start_stream({});
  exchange->write(std::string(limits.stream_buffer_bytes * 60, 'x'));
  EXPECT_EQ(server.get("/health")->body, "ok");
  EXPECT_FALSE(exchange->closed());
}

TEST(SlowReader, that_catches_up_in_time_is_kept) {
  Inbox inbox;
  HttpLimits limits = kQuick;
  limits.slow_reader_time = seconds(20);
  TestServer server({public_route("GET", "/s", inbox.handler())}, {.limits = limits});
  RawClient client(server.port(), kSmallBuffer);
  client.send(ask("GET", "/s"));
  const ExchangePtr exchange = inbox.take();
  exchange->start_stream({});
  const std::string much(800'000, 'x');
  exchange->write(much);
  std::this_thread::sleep_for(milliseconds(50));
  exchange->finish();
  const auto got = client.receive();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->body, much);
}

}  // namespace
}  // namespace whimbrel::http::test
