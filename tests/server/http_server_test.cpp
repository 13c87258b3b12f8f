#include "server/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <iterator>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "tests/server/serve.h"

namespace whimbrel::http::test {
namespace {

Handler echo() {
  return [](const ExchangePtr& exchange) {
    const Request& request = exchange->request();
    exchange->respond(
        {.content_type = "text/plain",
         .body = request.method + " " + request.path + " " + request.query + " " + request.body,
         .fields = {{"X-Extra", "1"}}}
    );
  };
}

TEST(HttpServer, answers_what_was_asked) {
  TestServer server({public_route("GET", "/a", echo()), public_route("POST", "/a", echo())});
  const auto got = server.get("/a?x=1&y=%20?");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body, "GET /a x=1&y=%20? ");
  EXPECT_EQ(got->fields.at("content-type"), "text/plain");
  EXPECT_EQ(got->fields.at("x-extra"), "1");
  EXPECT_TRUE(got->fields.at("x-request-id").starts_with("req_"));
  EXPECT_EQ(got->fields.at("request-id"), got->fields.at("x-request-id"));
  EXPECT_EQ(request_once(server.port(), post("/a", "{}"))->body, "POST /a  {}");
}

TEST(HttpServer, a_request_id_of_the_client_is_kept_where_it_is_fit_for_a_log) {
  TestServer server({public_route("GET", "/", answer("{}"))});
  EXPECT_EQ(server.get("/", "X-Request-Id: a-1.B_\r\n")->fields.at("x-request-id"), "a-1.B_");
  for (const char* bad :
       {"X-Request-Id: a b\r\n", "X-Request-Id: \x1b[2J\r\n", "X-Request-Id:\r\n"}) {
    const auto got = server.get("/", bad);
    EXPECT_TRUE(got->fields.at("x-request-id").starts_with("req_"));
  }
}

TEST(HttpServer, a_connection_takes_one_request_after_the_other) {
  TestServer server({public_route("GET", "/a", echo()), public_route("POST", "/a", echo())});
  RawClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send(ask("GET", "/a"));
    EXPECT_EQ(client.receive()->body, "GET /a  ");
  }
  client.send(post("/a", "1") + post("/a", "2") + ask("GET", "/a?3"));
  EXPECT_EQ(client.receive()->body, "POST /a  1");
  EXPECT_EQ(client.receive()->body, "POST /a  2");
  EXPECT_EQ(client.receive()->body, "GET /a 3 ");
  client.send(ask("GET", "/a", "Connection: close\r\n"));
  EXPECT_EQ(client.receive()->fields.at("connection"), "close");
  EXPECT_TRUE(client.is_closed_by_server());
  EXPECT_TRUE(server.all_ended());
}

TEST(HttpServer, a_chunked_body_is_joined_and_its_trailer_dropped) {
  TestServer server({public_route("POST", "/a", echo())});
  const std::string head =
      ask("POST",
          "/a",
          "Content-Type: application/json\r\n"
          "Transfer-Encoding: Chunked\r\n");
  const std::string body = "3;x=y\r\n{\"a\r\n4\r\n\": 1\r\n1\r\n}\r\n0\r\nX-Trailer: 1\r\n\r\n";
  EXPECT_EQ(request_once(server.port(), head + body)->body, "POST /a  {\"a\": 1}");
  RawClient client(server.port());
  for (const char c : head + body) {
    client.send(std::string_view(&c, 1));
  }
  EXPECT_EQ(client.receive()->body, "POST /a  {\"a\": 1}");
}

TEST(HttpServer, head_is_get_without_a_body) {
  TestServer server({public_route("GET", "/a", answer("12345"))});
  RawClient client(server.port());
  client.send(ask("HEAD", "/a"));
  EXPECT_EQ(client.receive(true)->fields.at("content-length"), "5");
  client.send(ask("GET", "/a"));
  EXPECT_EQ(client.receive()->body, "12345");
  client.send(ask("HEAD", "/missing"));
  EXPECT_EQ(client.receive(true)->status, 404);
  EXPECT_EQ(client.receive_all(), "");
}

TEST(HttpServer, options_names_the_methods) {
  TestServer server({public_route("GET", "/a", echo()), public_route("POST", "/a", echo())});
  const auto got = request_once(server.port(), ask("OPTIONS", "/a", "Connection: close\r\n"));
  EXPECT_EQ(got->status, 204);
  EXPECT_EQ(got->fields.at("allow"), "GET, HEAD, POST, OPTIONS");
  EXPECT_FALSE(got->fields.contains("access-control-allow-origin"));
}

TEST(HttpServer, a_client_that_waits_for_leave_to_send_its_body_gets_it) {
  TestServer server({public_route("POST", "/a", echo())});
  RawClient client(server.port());
  client.send(
      ask("POST",
          "/a",
          "Content-Type: application/json\r\nContent-Length: 2\r\n"
          "Expect: 100-continue\r\n")
  );
  EXPECT_EQ(client.receive_head()->status, 100);
  client.send("{}");
  EXPECT_EQ(client.receive()->body, "POST /a  {}");
  client.send(
      ask("POST",
          "/missing",
          "Content-Type: application/json\r\nContent-Length: 2\r\n"
          "Expect: 100-continue\r\n")
  );
  EXPECT_EQ(client.receive()->status, 404);
}

TEST(HttpServer, a_client_of_http_1_0_gets_what_it_understands) {
  TestServer server(
      {public_route("GET", "/a", echo()), public_route("GET", "/s", [](const ExchangePtr& e) {
         e->start_stream({});
         e->write("data: 1\n\n");
         e->finish();
       })}
  );
  RawClient plain(server.port());
  plain.send("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_EQ(plain.receive()->body, "GET /a  ");
  EXPECT_TRUE(plain.is_closed_by_server());
  RawClient stream(server.port());
  stream.send("GET /s HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::optional<std::string> all = stream.receive_all();
  EXPECT_EQ(all->find("Transfer-Encoding"), std::string::npos);
  EXPECT_TRUE(all->ends_with("\r\n\r\ndata: 1\n\n"));
}

TEST(HttpServer, a_stream_begins_before_its_first_piece_and_each_piece_leaves_at_once) {
  Inbox inbox;
  TestServer server({public_route("GET", "/s", inbox.handler())});
  RawClient client(server.port());
  client.send(ask("GET", "/s"));
  const ExchangePtr exchange = inbox.take();
  exchange->start_stream({});
  const auto head = client.receive_head();
  EXPECT_EQ(head->fields.at("content-type"), "text/event-stream");
  EXPECT_EQ(head->fields.at("cache-control"), "no-cache");
  EXPECT_EQ(head->fields.at("x-accel-buffering"), "no");
  exchange->write("data: one\n\n");
  EXPECT_TRUE(client.receive_until("data: one\n\n"));
  exchange->write("data: two\n\n");
  exchange->finish();
  EXPECT_TRUE(client.receive_until("data: two\n\n\r\n0\r\n\r\n"));
  client.send(ask("GET", "/s"));
  inbox.take()->respond({.body = "again"});
  EXPECT_EQ(client.receive()->body, "again");
  EXPECT_TRUE(server.counts(Outcome::answered, 2));
}

TEST(HttpServer, a_long_stream_arrives_byte_for_byte) {
  TestServer server({public_route("GET", "/s", [](const ExchangePtr& exchange) {
    exchange->start_stream({.content_type = "text/plain"});
    for (int i = 0; i < 20000; ++i) {
      exchange->write(fmt::format("{} ", i));
    }
    exchange->finish();
  })});
  std::string expected;
  for (int i = 0; i < 20000; ++i) {
    expected += fmt::format("{} ", i);
  }
  EXPECT_EQ(server.get("/s")->body, expected);
}

TEST(HttpServer, an_idle_event_stream_gets_comments) {
  Inbox inbox;
  TestServer server(
      {public_route("GET", "/s", inbox.handler())}, {.limits = {.ping_time = milliseconds(20)}}
  );
  RawClient client(server.port());
  client.send(ask("GET", "/s"));
  const ExchangePtr exchange = inbox.take();
  exchange->start_stream({});
  EXPECT_TRUE(client.receive_until(": ping\n\n"));
  EXPECT_TRUE(client.receive_until(": ping\n\n"));
  exchange->finish();
  EXPECT_TRUE(client.receive_until("\r\n0\r\n\r\n"));
}

TEST(HttpServer, what_a_handler_throws_is_the_answer) {
  TestServer server({
      public_route(
          "GET",
          "/input",
          [](const ExchangePtr&) {
            throw Error(Fault::input, "messages", "got none, expected one");
          }
      ),
      public_route(
          "GET", "/bug", [](const ExchangePtr&) { throw std::runtime_error("/secret/path"); }
      ),
      public_route("GET", "/odd", [](const ExchangePtr&) { throw 1; }),
      public_route("GET", "/forgets", [](const ExchangePtr&) {}),
      public_route(
          "GET",
          "/own",
          [](const ExchangePtr&) {
            throw ApiException(
                {.kind = ErrorKind::too_many_requests, .message = "full", .retry_after = 7}
            );
          }
      ),
      public_route("GET", "/v1/messages", [](const ExchangePtr&) { throw 1; }),
  });
  const auto input = server.get("/input");
  EXPECT_EQ(input->status, 400);
  EXPECT_EQ(Json::parse(input->body)["error"]["message"], "[messages] got none, expected one");
  const auto bug = server.get("/bug");
  EXPECT_EQ(bug->status, 500);
  EXPECT_EQ(bug->body.find("secret"), std::string::npos);
  EXPECT_EQ(Json::parse(bug->body)["error"]["type"], "server_error");
  EXPECT_EQ(server.get("/odd")->status, 500);
  EXPECT_EQ(server.get("/forgets")->status, 500);
  EXPECT_EQ(server.get("/own")->status, 429);
  EXPECT_EQ(server.get("/own")->fields.at("retry-after"), "7");
  EXPECT_EQ(Json::parse(server.get("/v1/messages")->body)["error"]["type"], "api_error");
  EXPECT_TRUE(server.counts(Outcome::failed, 4));
  EXPECT_TRUE(server.logs_failure("/secret/path"));
}

#if defined(__linux__)
TEST(HttpServer, makes_no_thread_that_no_route_needs) {
  const auto threads = [] {
    const std::filesystem::directory_iterator found("/proc/self/task");
    return std::distance(begin(found), end(found));
  };
  std::thread([] {}).join();  // with the first one a sanitizer makes one of its own
  const auto before = threads();
  for (const bool immediate : {true, false}) {
    Route route = public_route("GET", "/", answer("{}"));
    route.immediate = immediate;
    const TestServer server({route}, {.io_threads = 2, .handler_threads = 5});
    const int expected = immediate ? 2 : 2 + 5;
    EXPECT_TRUE(eventually([&] { return threads() == before + expected; })) << immediate;
  }
}
#endif

TEST(HttpServer, a_stream_that_fails_breaks_off_without_its_end) {
  TestServer server({
      public_route(
          "GET",
          "/throws",
          [](const ExchangePtr& exchange) {
            exchange->start_stream({});
            exchange->write("data: 1\n\n");
            throw std::runtime_error("lost");
          }
      ),
      public_route("GET", "/forgets", [](const ExchangePtr& exchange) {
        exchange->start_stream({});
        exchange->write("data: 1\n\n");
      }),
  });
  for (const char* path : {"/throws", "/forgets"}) {
    RawClient client(server.port());
    client.send(ask("GET", path));
    const std::optional<std::string> all = client.receive_all();
    EXPECT_TRUE(all->ends_with("data: 1\n\n\r\n")) << *all;
  }
  EXPECT_TRUE(server.counts(Outcome::failed, 2));
}

TEST(HttpServer, a_field_that_would_end_its_line_is_a_failure_and_no_second_line) {
  TestServer server({
      public_route(
          "GET",
          "/whole",
          [](const ExchangePtr& exchange) {
            exchange->respond({.fields = {{"X-A", "1\r\nX-Injected: 1"}}});
          }
      ),
      public_route("GET", "/stream", [](const ExchangePtr& exchange) {
        exchange->start_stream({.fields = {{"X-A", "1\nX-Injected: 1"}}});
        exchange->finish();
      }),
  });
  for (const char* path : {"/whole", "/stream"}) {
    const auto got = server.get(path);
    EXPECT_EQ(got->status, 500);
    EXPECT_EQ(got->head.find("Injected"), std::string::npos);
  }
  EXPECT_TRUE(server.counts(Outcome::failed, 2));
}

TEST(HttpServer, a_second_answer_is_a_bug_of_the_handler) {
  Inbox inbox;
  TestServer server({public_route("GET", "/", inbox.handler())});
  RawClient client(server.port());
  client.send(ask("GET", "/"));
  const ExchangePtr exchange = inbox.take();
  EXPECT_THROW(exchange->write("x"), std::logic_error);
  EXPECT_THROW(exchange->finish(), std::logic_error);
  exchange->respond({.body = "1"});
  EXPECT_THROW(exchange->respond({.body = "2"}), std::logic_error);
  EXPECT_THROW(exchange->start_stream({}), std::logic_error);
  EXPECT_EQ(client.receive()->body, "1");
}

TEST(HttpServer, immediate_routes_answer_while_every_handler_is_busy_and_more_than_wait_get_429) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  Route health = public_route("GET", "/health", answer("ok"));
  health.immediate = true;
  TestServer server(
      {health,
       public_route(
           "GET",
           "/slow",
           [gone](const ExchangePtr& exchange) {
             gone.wait();
             exchange->respond({});
           }
       )},
      {.limits = {.waiting_handlers = 2}, .handler_threads = 1}
  );
  std::vector<RawClient> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back(server.port());
    busy.back().send(ask("GET", "/slow"));
    ASSERT_TRUE(eventually([&] { return server->counters().requests_open == busy.size(); }));
    std::this_thread::sleep_for(milliseconds(20));  // the first one has left the queue
  }
  const auto refused = server.get("/slow");
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(refused->fields.at("retry-after"), "1");
  EXPECT_EQ(server.get("/health")->body, "ok");
  EXPECT_EQ(server.get("/missing")->status, 404);
  go.set_value();
  for (RawClient& client : busy) {
    EXPECT_EQ(client.receive()->status, 200);
  }
}

TEST(HttpServer, answers_from_many_threads_reach_their_own_clients) {
  Inbox inbox;
  TestServer server({public_route("GET", "/s", inbox.handler())});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&server, i] {
      const auto got = request_once(server.port(), ask("GET", fmt::format("/s?{}", i)));
      std::string expected;
      for (int k = 0; k < 200; ++k) {
        expected += fmt::format("{}.{} ", i, k);
      }
      EXPECT_EQ(got->body, expected);
    });
  }
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([exchange = inbox.take()] {
      exchange->start_stream({});
      for (int k = 0; k < 200; ++k) {
        exchange->write(fmt::format("{}.{} ", exchange->request().query, k));
      }
      exchange->finish();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(HttpServer, an_exchange_outlives_its_server) {
  Inbox inbox;
  ExchangePtr exchange;
  std::atomic<int> closed = 0;
  {
    TestServer server({public_route("GET", "/", inbox.handler())});
    RawClient client(server.port());
    client.send(ask("GET", "/"));
    exchange = inbox.take();
    exchange->on_close([&](CloseReason) { ++closed; });
    EXPECT_TRUE(server.counts(Outcome::answered, 0));
  }
  EXPECT_EQ(closed, 1);
  EXPECT_TRUE(exchange->closed());
  EXPECT_EQ(exchange->request().path, "/");
  exchange->respond({});
}

TEST(HttpServer, a_port_in_use_and_a_foreign_host_are_said_in_one_sentence) {
  TestServer server({public_route("GET", "/", answer(""))});
  HttpServer second({.port = server.port()}, {});
  try {
    second.start();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::network);
    EXPECT_NE(std::string(error.what()).find(std::to_string(server.port())), std::string::npos);
  }
  EXPECT_THROW(HttpServer({.host = "no such host"}, {}), Error);
  EXPECT_THROW(HttpServer({.host = "0.0.0.0"}, {}), Error);
  EXPECT_THROW(HttpServer({.tls_cert = "/dev/null"}, {}), Error);
  EXPECT_THROW(HttpServer({.tls_cert = "/dev/null", .tls_key = "/dev/null"}, {}), Error);
}

}  // namespace
}  // namespace whimbrel::http::test
