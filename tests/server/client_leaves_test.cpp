// A client that leaves is noticed wherever its request stands, by FIN and by RST.

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/server/serve.h"

namespace whimbrel::http::test {
namespace {

enum class Leave { fin, rst };

void leave(RawClient& client, Leave how) {
  how == Leave::fin ? client.close() : client.reset();
}

class ClientLeaves : public testing::TestWithParam<Leave> {};

TEST_P(ClientLeaves, before_its_handler_begins_and_it_never_does) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> started = 0;
  std::atomic<bool> is_busy = false;
  TestServer server(
      {public_route(
           "GET",
           "/busy",
           [&](const ExchangePtr& exchange) {
             is_busy = true;
             gone.wait();
             exchange->respond({});
           }
       ),
       public_route(
           "POST",
           "/work",
           [&](const ExchangePtr& exchange) {
             ++started;
             exchange->respond({});
           }
       )},
      {.handler_threads = 1}
  );
  RawClient busy(server.port());
  busy.send(ask("GET", "/busy"));
  ASSERT_TRUE(eventually([&] { return is_busy.load(); }));
  RawClient client(server.port());
  client.send(post("/work", "{}"));
  ASSERT_TRUE(eventually([&] { return server->counters().requests_open == 2; }));
  leave(client, GetParam());
  EXPECT_TRUE(server.counts(Outcome::client_left_waiting, 1));
  go.set_value();
  EXPECT_EQ(busy.receive()->status, 200);
  EXPECT_EQ(request_once(server.port(), post("/work", "{}"))->status, 200);
  EXPECT_EQ(started, 1);
}

TEST_P(ClientLeaves, while_its_answer_is_awaited_and_the_handler_is_told) {
  Inbox inbox;
  TestServer server({public_route("POST", "/work", inbox.handler())});
  RawClient client(server.port());
  client.send(post("/work", "{}"));
  const ExchangePtr exchange = inbox.take();
  std::atomic<int> told = 0;
  exchange->on_close([&](CloseReason reason) {
    told += reason == CloseReason::client_left ? 1 : 100;
  });
  EXPECT_FALSE(exchange->closed());
  leave(client, GetParam());
  EXPECT_TRUE(eventually([&] { return told == 1; }));
  EXPECT_TRUE(exchange->closed());
  exchange->respond({.body = "nobody reads this"});
  EXPECT_TRUE(server.counts(Outcome::client_left, 1));
  std::atomic<int> told_late = 0;
  exchange->on_close([&](CloseReason) { ++told_late; });
  EXPECT_EQ(told_late, 1);
  EXPECT_EQ(told, 1);
}

TEST_P(ClientLeaves, inside_a_stream_and_the_handler_is_told) {
  Inbox inbox;
  TestServer server({public_route("POST", "/work", inbox.handler())});
  RawClient client(server.port());
  client.send(post("/work", "{}"));
  const ExchangePtr exchange = inbox.take();
  std::atomic<int> told = 0;
  exchange->on_close([&](CloseReason reason) {
    told += reason == CloseReason::client_left ? 1 : 100;
  });
  exchange->start_stream({});
  exchange->write("data: 1\n\n");
  EXPECT_TRUE(client.receive_until("data: 1\n\n"));
  leave(client, GetParam());
  EXPECT_TRUE(eventually([&] { return told == 1; }));
  exchange->write("data: 2\n\n");
  exchange->finish();
  EXPECT_TRUE(server.counts(Outcome::client_left, 1));
  EXPECT_TRUE(server.all_ended());
}

TEST_P(ClientLeaves, inside_its_header_or_its_body_and_nothing_is_left_behind) {
  TestServer server({public_route("POST", "/work", answer("{}"))});
  RawClient in_header(server.port());
  in_header.send("POST /work HTTP/1.1\r\nHost:");
  RawClient in_body(server.port());
  in_body.send(
      ask("POST", "/work", "Content-Type: application/json\r\nContent-Length: 9\r\n") + "{"
  );
  ASSERT_TRUE(eventually([&] { return server->counters().requests_open == 1; }));
  leave(in_header, GetParam());
  leave(in_body, GetParam());
  EXPECT_TRUE(server.counts(Outcome::client_left_waiting, 1));
  EXPECT_TRUE(eventually([&] { return server->counters().connections_open == 0; }));
}

INSTANTIATE_TEST_SUITE_P(
    By, ClientLeaves, testing::Values(Leave::fin, Leave::rst), [](const auto& how) {
      return how.param == Leave::fin ? "fin" : "rst";
    }
);

TEST(ClientLeavesNot, when_its_answer_has_left_as_a_whole) {
  Inbox inbox;
  TestServer server({public_route("GET", "/", inbox.handler())});
  RawClient client(server.port());
  client.send(ask("GET", "/"));
  const ExchangePtr exchange = inbox.take();
  std::atomic<int> told = 0;
  exchange->on_close([&](CloseReason) { ++told; });
  exchange->respond({});
  EXPECT_EQ(client.receive()->status, 200);
  client.close();
  EXPECT_TRUE(eventually([&] { return server->counters().connections_open == 0; }));
  EXPECT_EQ(told, 0);
  EXPECT_TRUE(exchange->closed());
}

TEST(ClientSendsAheadOfAnAnswer, up_to_a_bound) {
  Inbox inbox;
  TestServer server({public_route("GET", "/", inbox.handler())});
  RawClient client(server.port());
  client.send(ask("GET", "/"));
  const ExchangePtr exchange = inbox.take();
  client.send(std::string(1 << 20, 'x'));
  EXPECT_TRUE(eventually([&] { return exchange->closed(); }));
}

}  // namespace
}  // namespace whimbrel::http::test
