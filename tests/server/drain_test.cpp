// A server that stops lets answers end, tells those that don't, and leaves its port free.

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/server/serve.h"

namespace whimbrel::http::test {
namespace {

bool refuses_connections(uint16_t port) {
  try {
    const RawClient client(port);
    return false;
  } catch (const std::runtime_error&) {
    return true;
  }
}

TEST(Drain, closes_idle_connections_at_once_and_frees_the_port) {
  TestServer server({public_route("GET", "/", answer("{}"))});
  const uint16_t port = server.port();
  RawClient used(port);
  used.send(ask("GET", "/"));
  EXPECT_EQ(used.receive()->status, 200);
  RawClient unused(port);
  EXPECT_TRUE(server->drain(seconds(30)));
  EXPECT_TRUE(used.is_closed_by_server());
  EXPECT_TRUE(unused.is_closed_by_server());
  EXPECT_TRUE(refuses_connections(port));
  HttpServer next({.port = port}, {public_route("GET", "/", answer("next"))});
  next.start();
  EXPECT_EQ(request_once(port, ask("GET", "/"))->body, "next");
  EXPECT_TRUE(server->drain(seconds(30)));
}

TEST(Drain, lets_open_answers_end) {
  Inbox inbox;
  TestServer server({public_route("POST", "/", inbox.handler())});
  RawClient streams(server.port());
  streams.send(post("/", "{}"));
  const ExchangePtr stream = inbox.take();
  stream->start_stream({});
  RawClient waits(server.port());
  waits.send(post("/", "{}"));
  const ExchangePtr whole = inbox.take();
  RawClient sends(server.port());
  const std::string late = post("/", "{}");
  sends.send(late.substr(0, late.size() - 1));
  ASSERT_TRUE(eventually([&] { return server->counters().requests_open == 3; }));
  std::future<bool> drained =
      std::async(std::launch::async, [&] { return server->drain(seconds(30)); });
  ASSERT_TRUE(eventually([&] { return refuses_connections(server.port()); }));
  EXPECT_FALSE(stream->closed());
  stream->write("data: 1\n\n");
  stream->finish();
  whole->respond({.body = "whole"});
  sends.send(late.substr(late.size() - 1));
  inbox.take()->respond({.body = "late"});
  EXPECT_TRUE(streams.receive_until("data: 1\n\n\r\n0\r\n\r\n"));
  EXPECT_EQ(waits.receive()->body, "whole");
  const auto last = sends.receive();
  EXPECT_EQ(last->body, "late");
  EXPECT_EQ(last->fields.at("connection"), "close");
  streams.close();
  waits.close();
  sends.close();
  EXPECT_TRUE(drained.get());
  EXPECT_EQ(server->counters().requests_by_outcome[Outcome::answered], 3U);
}

TEST(Drain, behind_its_deadline_gives_streams_their_last_words_and_others_503) {
  Inbox inbox;
  TestServer server({public_route("POST", "/", inbox.handler())});
  RawClient speaks(server.port());
  speaks.send(post("/", "{}"));
  const ExchangePtr speaking = inbox.take();
  speaking->start_stream({});
  speaking->on_close([&](CloseReason reason) {
    EXPECT_EQ(reason, CloseReason::server_stops);
    speaking->write("data: {\"error\":1}\n\n");
    speaking->finish();
  });
  RawClient silent(server.port());
  silent.send(post("/", "{}"));
  const ExchangePtr hushed = inbox.take();
  hushed->start_stream({});
  hushed->write("data: 1\n\n");
  RawClient waits(server.port());
  waits.send(post("/", "{}"));
  const ExchangePtr waiting = inbox.take();
  RawClient sends(server.port());
  sends.send(ask("POST", "/", "Content-Type: application/json\r\nContent-Length: 2\r\n"));
  ASSERT_TRUE(eventually([&] { return server->counters().requests_open == 4; }));
  EXPECT_FALSE(server->drain(milliseconds(50)));
  EXPECT_TRUE(speaks.receive_until("data: {\"error\":1}\n\n\r\n0\r\n\r\n"));
  EXPECT_TRUE(silent.receive_all()->ends_with("data: 1\n\n\r\n"));
  EXPECT_EQ(waits.receive()->status, 503);
  EXPECT_EQ(sends.receive_all(), "");
  EXPECT_TRUE(hushed->closed());
  waiting->respond({});
  EXPECT_EQ(server->counters().requests_open, 0U);
  EXPECT_EQ(server->counters().connections_open, 0U);
}

TEST(Drain, ends_with_many_streams_open) {
  Inbox inbox;
  TestServer server({public_route("GET", "/", inbox.handler())});
  std::vector<RawClient> clients;
  std::vector<ExchangePtr> exchanges;
  std::atomic<int> told = 0;
  for (int i = 0; i < 64; ++i) {
    clients.emplace_back(server.port());
    clients.back().send(ask("GET", "/"));
    exchanges.push_back(inbox.take());
    exchanges.back()->start_stream({});
    exchanges.back()->on_close([&](CloseReason) { ++told; });
  }
  EXPECT_FALSE(server->drain(milliseconds(0)));
  EXPECT_EQ(told, 64);
  for (RawClient& client : clients) {
    EXPECT_TRUE(client.is_closed_by_server());
  }
}

TEST(Drain, of_a_server_that_never_started_is_nothing) {
  HttpServer server({.port = 0}, {public_route("GET", "/", answer(""))});
  EXPECT_TRUE(server.drain(seconds(30)));
}

}  // namespace
}  // namespace whimbrel::http::test
