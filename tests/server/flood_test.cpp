// More than a request may hold: refused at its bound, without reading on.

#include <gtest/gtest.h>

#include <thread>

#include "tests/server/serve.h"

namespace whimbrel::http::test {
namespace {

const std::string kJsonBody = "Content-Type: application/json\r\n";
const std::string kChunks = kJsonBody + "Transfer-Encoding: chunked\r\n";

std::vector<Route> work() {
  return {
      public_route("GET", "/work", answer("{}")),
      public_route("POST", "/work", [](const ExchangePtr& exchange) {
        exchange->respond({.body = std::to_string(exchange->request().body.size())});
      })
  };
}

/// Sends until the server has had enough, and gives its answer.
std::optional<RawAnswer> flood(
    uint16_t port, const std::string& begin, const std::string& again, size_t most_bytes
) {
  RawClient client(port);
  bool takes = client.send(begin);
  for (size_t sent = 0; takes && sent < most_bytes; sent += again.size()) {
    takes = client.send(again);
  }
  return client.receive();
}

TEST(HeaderFlood, without_a_line_end_is_431_at_its_bound) {
  TestServer server(work());
  const std::string x(4096, 'x');
  EXPECT_EQ(flood(server.port(), "GET /work HTTP/1.1\r\nX: ", x, 64 << 20)->status, 431);
  EXPECT_EQ(flood(server.port(), "", x, 64 << 20)->status, 431);
  EXPECT_EQ(flood(server.port(), "GET /", x, 64 << 20)->status, 414);
  EXPECT_TRUE(server.all_ended());
}

TEST(HeaderFlood, of_many_fields_is_431) {
  TestServer server(work());
  std::string fields;
  for (int i = 0; i < 99; ++i) {
    fields += fmt::format("X{}: 1\r\n", i);
  }
  EXPECT_EQ(server.get("/work", fields)->status, 200);
  EXPECT_EQ(server.get("/work", fields + "Y: 1\r\n")->status, 431);
}

TEST(HeaderFlood, is_taken_to_the_byte_of_its_bounds) {
  TestServer server(work(), {.limits = {.header_bytes = 1000, .target_bytes = 100}});
  const std::string begin = "GET /work HTTP/1.1\r\nHost: localhost\r\nX: ";
  const auto of_size = [&](size_t size) {
    return begin + std::string(size - begin.size() - 4, 'x') + "\r\n\r\n";
  };
  EXPECT_EQ(request_once(server.port(), of_size(1000))->status, 200);
  EXPECT_EQ(request_once(server.port(), of_size(1001))->status, 431);
  EXPECT_EQ(server.get("/work?" + std::string(94, 'x'))->status, 200);
  EXPECT_EQ(server.get("/work?" + std::string(95, 'x'))->status, 414);
}

TEST(HeaderDrip, byte_by_byte_is_408_at_the_end_of_its_time) {
  TestServer server(work(), {.limits = {.header_time = milliseconds(150)}});
  RawClient client(server.port());
  const std::string head = "GET /work HTTP/1.1\r\nHost: localhost\r\nX: ";
  bool takes = client.send(head);
  while (takes && server->counters().requests_begun == 0) {
    takes = client.send("x");
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(client.receive()->status, 408);
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST(IdleConnection, is_closed_without_a_word) {
  TestServer server(
      work(), {.limits = {.header_time = milliseconds(100), .keep_alive_time = milliseconds(100)}}
  );
  RawClient unused(server.port());
  EXPECT_EQ(unused.receive_all(), "");
  RawClient used(server.port());
  used.send(ask("GET", "/work"));
  EXPECT_EQ(used.receive()->status, 200);
  EXPECT_EQ(used.receive_all(), "");
}

TEST(BodyFlood, by_its_length_is_413_before_it_is_read) {
  TestServer server(work());
  for (const char* length : {"67108865", "2147483648", "999999999999999999"}) {
    const auto got = request_once(
        server.port(),
        ask("POST", "/work", kJsonBody + fmt::format("Content-Length: {}\r\n", length))
    );
    EXPECT_EQ(got->status, 413);
    EXPECT_EQ(got->fields.at("connection"), "close");
  }
}

TEST(BodyFlood, in_chunks_is_413_at_its_bound) {
  TestServer server(work(), {.limits = {.body_bytes = 100'000}});
  const std::string chunk = "1000\r\n" + std::string(4096, 'x') + "\r\n";
  EXPECT_EQ(flood(server.port(), ask("POST", "/work", kChunks), chunk, 64 << 20)->status, 413);
  const std::string fits = "186a0\r\n" + std::string(100'000, 'x') + "\r\n0\r\n\r\n";
  EXPECT_EQ(request_once(server.port(), ask("POST", "/work", kChunks) + fits)->body, "100000");
  const std::string one_more = "186a0\r\n" + std::string(100'000, 'x') + "\r\n1\r\nx\r\n0\r\n\r\n";
  EXPECT_EQ(request_once(server.port(), ask("POST", "/work", kChunks) + one_more)->status, 413);
}

TEST(BodyFlood, of_one_byte_chunks_is_joined_in_its_own_size) {
  TestServer server(work());
  std::string body;
  for (int i = 0; i < 300'000; ++i) {
    body += "1\r\nx\r\n";
  }
  const auto got = request_once(server.port(), ask("POST", "/work", kChunks) + body + "0\r\n\r\n");
  EXPECT_EQ(got->body, "300000");
}

TEST(BodyFlood, in_a_chunk_extension_or_a_trailer_is_400) {
  TestServer server(work());
  const std::string x(4096, 'x');
  EXPECT_EQ(flood(server.port(), ask("POST", "/work", kChunks) + "1;", x, 64 << 20)->status, 400);
  EXPECT_EQ(
      flood(server.port(), ask("POST", "/work", kChunks) + "0\r\n", "X: 1\r\n", 64 << 20)->status,
      400
  );
}

TEST(BodyStall, is_408_when_nothing_comes) {
  TestServer server(work(), {.limits = {.body_idle_time = milliseconds(100)}});
  RawClient stalls(server.port());
  stalls.send(ask("POST", "/work", kJsonBody + "Content-Length: 10\r\n") + "{");
  EXPECT_EQ(stalls.receive()->status, 408);
  EXPECT_TRUE(stalls.is_closed_by_server());
}

TEST(BodyStall, is_408_when_it_takes_too_long_in_all) {
  TestServer server(work(), {.limits = {.body_time = milliseconds(300)}});
  RawClient drips(server.port());
  bool takes = drips.send(ask("POST", "/work", kJsonBody + "Content-Length: 100000\r\n"));
  while (takes && server.log().empty()) {
    takes = drips.send("x");
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(drips.receive()->status, 408);
  EXPECT_TRUE(server.all_ended());
}

TEST(BodiesTogether, beyond_their_bound_are_503_and_room_comes_back) {
  Inbox inbox;
  TestServer server(
      {public_route("POST", "/work", inbox.handler())}, {.limits = {.bodies_bytes = 1500}}
  );
  const std::string body(1000, 'x');
  RawClient first(server.port());
  first.send(post("/work", body));
  ExchangePtr exchange = inbox.take();
  const auto refused = request_once(server.port(), post("/work", body));
  EXPECT_EQ(refused->status, 503);
  EXPECT_EQ(refused->fields.at("retry-after"), "1");
  exchange->respond({});
  EXPECT_EQ(first.receive()->status, 200);
  exchange.reset();
  RawClient next(server.port());
  next.send(post("/work", body));
  inbox.take()->respond({});
  EXPECT_EQ(next.receive()->status, 200);
}

TEST(CompressedBody, is_415_unread) {
  TestServer server(work());
  for (const char* coding : {"gzip", "zstd", "br", "deflate", "identity", "gzip, gzip", ""}) {
    const auto got = request_once(
        server.port(),
        ask("POST",
            "/work",
            kJsonBody + fmt::format("Content-Encoding: {}\r\nContent-Length: 1000000\r\n", coding))
    );
    EXPECT_EQ(got->status, 415) << coding;
    EXPECT_EQ(got->fields.at("connection"), "close");
  }
}

TEST(OtherContent, than_json_is_415) {
  TestServer server(work());
  for (const char* type :
       {"text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "multipart/form-data; boundary=x",
        ""}) {
    const auto got = request_once(
        server.port(),
        ask("POST", "/work", fmt::format("Content-Type: {}\r\nContent-Length: 2\r\n", type)) + "{}"
    );
    EXPECT_EQ(got->status, 415) << type;
  }
  EXPECT_EQ(
      request_once(server.port(), ask("POST", "/work", "Content-Length: 2\r\n") + "{}")->status, 415
  );
  for (const char* type : {"application/json", "Application/JSON ; charset=utf-8"}) {
    const auto got = request_once(
        server.port(),
        ask("POST", "/work", fmt::format("Content-Type: {}\r\nContent-Length: 2\r\n", type)) + "{}"
    );
    EXPECT_EQ(got->status, 200) << type;
  }
}

}  // namespace
}  // namespace whimbrel::http::test
