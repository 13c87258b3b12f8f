// Requests that two programs could read differently: a proxy in front sees one request, we would
// see two. Each is refused with one reply, and what stands behind it is never looked at.

#include <gtest/gtest.h>

#include <atomic>

#include "tests/server/serve.h"

namespace whimbrel::http::test {
namespace {

struct Smuggled {
  const char* name = "";
  std::string bytes = {};
  int status = 400;
};

const std::string kJson = "Content-Type: application/json\r\n";
const std::string kChunked = "Transfer-Encoding: chunked\r\n";

/// A POST with these field lines, and bytes behind the head.
std::string head_with(const std::string& lines, const std::string& rest = "") {
  return "POST /work HTTP/1.1\r\nHost: localhost\r\n" + kJson + lines + "\r\n" + rest;
}

std::string chunked(const std::string& body) {
  return head_with(kChunked, body);
}

std::string line(const std::string& request_line) {
  return request_line + "\r\nHost: localhost\r\n\r\n";
}

std::string field(const std::string& field_line) {
  return "GET /work HTTP/1.1\r\nHost: localhost\r\n" + field_line + "\r\n\r\n";
}

const std::string kNul(1, '\0');

std::vector<Smuggled> of_framing() {
  return {
      {"length_and_chunked", head_with("Content-Length: 4\r\n" + kChunked, "0\r\n\r\n")},
      {"chunked_and_length", head_with(kChunked + "Content-Length: 4\r\n", "0\r\n\r\n")},
      {"two_lengths", head_with("Content-Length: 2\r\nContent-Length: 5\r\n", "{}")},
      {"the_same_length_twice", head_with("Content-Length: 2\r\nContent-Length: 2\r\n", "{}")},
      {"two_lengths_in_one", head_with("Content-Length: 2, 2\r\n", "{}")},
      {"length_with_plus", head_with("Content-Length: +2\r\n", "{}")},
      {"length_with_minus", head_with("Content-Length: -2\r\n", "{}")},
      {"length_in_hex", head_with("Content-Length: 0x2\r\n", "{}")},
      {"length_with_a_fraction", head_with("Content-Length: 2.0\r\n", "{}")},
      {"length_with_an_exponent", head_with("Content-Length: 2e0\r\n", "{}")},
      {"length_with_a_space", head_with("Content-Length: 1 2\r\n", "{}")},
      {"length_that_is_none", head_with("Content-Length:\r\n")},
      {"length_beyond_64_bits", head_with("Content-Length: 18446744073709551618\r\n", "{}")},
      {"length_in_other_digits", head_with("Content-Length: \xd9\xa2\r\n", "{}")},
      {"two_codings", head_with(kChunked + kChunked, "0\r\n\r\n")},
      {"two_codings_in_one", head_with("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n")},
      {"chunked_and_identity",
       head_with(kChunked + "Transfer-Encoding: identity\r\n", "0\r\n\r\n")},
      {"identity_then_chunked", head_with("Transfer-Encoding: identity, chunked\r\n", "0\r\n\r\n")},
      {"gzip_then_chunked", head_with("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")},
      {"chunked_then_gzip", head_with("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n")},
      {"coding_identity", head_with("Transfer-Encoding: identity\r\n")},
      {"coding_xchunked", head_with("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")},
      {"coding_chunked_in_quotes", head_with("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n")},
      {"coding_chunked_with_parameter",
       head_with("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n")},
      {"coding_chunked_with_comma", head_with("Transfer-Encoding: chunked,\r\n", "0\r\n\r\n")},
      {"coding_that_is_none", head_with("Transfer-Encoding:\r\n", "0\r\n\r\n")},
      {"coding_behind_a_vertical_tab",
       head_with(
           "Transfer-Encoding: \x0b"
           "chunked\r\n",
           "0\r\n\r\n"
       )},
      {"chunked_in_http_1_0",
       "POST /work HTTP/1.0\r\nHost: localhost\r\n" + kJson + kChunked + "\r\n0\r\n\r\n"},
  };
}

std::vector<Smuggled> of_chunks() {
  return {
      {"chunk_size_negative", chunked("-2\r\n{}\r\n0\r\n\r\n")},
      {"chunk_size_with_plus", chunked("+2\r\n{}\r\n0\r\n\r\n")},
      {"chunk_size_with_0x", chunked("0x2\r\n{}\r\n0\r\n\r\n")},
      {"chunk_size_beyond_64_bits", chunked("10000000000000002\r\n{}\r\n0\r\n\r\n")},
      {"chunk_size_that_is_none", chunked("\r\n{}\r\n0\r\n\r\n")},
      {"chunk_size_behind_a_space", chunked(" 2\r\n{}\r\n0\r\n\r\n")},
      {"chunk_size_with_a_bare_lf", chunked("2\n{}\r\n0\r\n\r\n")},
      {"chunk_longer_than_its_size", chunked("1\r\n{}\r\n0\r\n\r\n")},
      {"chunk_with_a_bare_lf_behind", chunked("2\r\n{}\n0\r\n\r\n")},
      {"chunk_extension_with_a_bare_lf", chunked("2;a\nb\r\n{}\r\n0\r\n\r\n")},
      {"chunk_extension_with_a_bare_cr", chunked("2;a\rb\r\n{}\r\n0\r\n\r\n")},
      {"trailer_with_a_space_before_its_colon", chunked("2\r\n{}\r\n0\r\nX : 1\r\n\r\n")},
      {"trailer_with_a_nul", chunked("2\r\n{}\r\n0\r\nX: " + kNul + "\r\n\r\n")},
  };
}

std::vector<Smuggled> of_lines() {
  return {
      {"bare_lf_everywhere", "GET /work HTTP/1.1\nHost: localhost\n\n"},
      {"bare_lf_behind_the_request_line", "GET /work HTTP/1.1\nHost: localhost\r\n\r\n"},
      {"bare_lf_behind_a_field", "GET /work HTTP/1.1\r\nHost: localhost\nX: 1\r\n\r\n"},
      {"bare_lf_for_the_empty_line", "GET /work HTTP/1.1\r\nHost: localhost\r\n\n"},
      {"bare_cr_in_a_field", field("X: a\rb")},
      {"bare_cr_for_a_line_end", "GET /work HTTP/1.1\rHost: localhost\r\r"},
      {"cr_cr_lf", "GET /work HTTP/1.1\r\r\nHost: localhost\r\n\r\n"},
      {"folded_field", field("X: 1\r\n 2")},
      {"folded_field_by_a_tab", field("X: 1\r\n\t2")},
      {"folded_first_field", "GET /work HTTP/1.1\r\n X: 1\r\nHost: localhost\r\n\r\n"},
      {"space_before_a_colon", field("X : 1")},
      {"tab_before_a_colon", field("Content-Length\t: 1")},
      {"field_without_colon", field("X")},
      {"field_without_name", field(": 1")},
      {"space_in_a_name", field("X Y: 1")},
      {"nul_in_a_name", field("X" + kNul + "Y: 1")},
      {"nul_in_a_value", field("X: a" + kNul + "b")},
      {"escape_in_a_value", field("X: \x1b[2J")},
      {"del_in_a_value", field("X: \x7f")},
      {"parenthesis_in_a_name", field("X(: 1")},
      {"letter_beyond_ascii_in_a_name", field("X\xc3\xa4: 1")},
      {"empty_line_before", "\r\nGET /work HTTP/1.1\r\nHost: localhost\r\n\r\n"},
      {"no_host", "GET /work HTTP/1.1\r\n\r\n"},
      {"empty_host", "GET /work HTTP/1.1\r\nHost:\r\n\r\n"},
      {"connection_that_is_no_list", field("Connection: keep-alive; close")},
      {"two_hosts", field("Host: localhost")},
      {"two_keys", field("Authorization: Bearer a\r\nAuthorization: Bearer b")},
  };
}

std::vector<Smuggled> of_request_lines() {
  return {
      {"no_version", line("GET /work")},
      {"http_0_9", "GET /work\r\n\r\n"},
      {"http_2", line("GET /work HTTP/2.0")},
      {"http_1_2", line("GET /work HTTP/1.2")},
      {"http_1_10", line("GET /work HTTP/1.10")},
      {"http_in_lower_case", line("GET /work http/1.1")},
      {"preface_of_http_2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {"two_spaces_before_the_target", line("GET  /work HTTP/1.1")},
      {"two_spaces_behind_the_target", line("GET /work  HTTP/1.1")},
      {"space_behind_the_version", line("GET /work HTTP/1.1 ")},
      {"tab_for_a_space", line("GET\t/work HTTP/1.1")},
      {"space_in_the_target", line("GET /wo rk HTTP/1.1")},
      {"space_before_the_method", line(" GET /work HTTP/1.1")},
      {"method_with_a_colon", line("GET: /work HTTP/1.1")},
      {"nul_in_the_target", line("GET /wo" + kNul + "rk HTTP/1.1")},
      {"letter_beyond_ascii_in_the_target", line("GET /w\xc3\xb6rk HTTP/1.1")},
      {"fragment_in_the_target", line("GET /work#a HTTP/1.1")},
      {"target_with_a_host", line("GET http://other/work HTTP/1.1")},
      {"target_without_slash", line("GET work HTTP/1.1")},
      {"target_asterisk", line("OPTIONS * HTTP/1.1")},
      {"connect", line("CONNECT localhost:80 HTTP/1.1")},
      {"tls_to_a_plain_port", "\x16\x03\x01\x02" + kNul + "\x01\r\n\r\n"},
      {"other_expectation", field("Expect: a-miracle"), 417},
      {"compressed", head_with("Content-Encoding: gzip\r\nContent-Length: 2\r\n", "{}"), 415},
  };
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

const auto kName = [](const auto& smuggled) { return std::string(smuggled.param.name); };
INSTANTIATE_TEST_SUITE_P(Framing, Smuggling, testing::ValuesIn(of_framing()), kName);
INSTANTIATE_TEST_SUITE_P(Chunks, Smuggling, testing::ValuesIn(of_chunks()), kName);
INSTANTIATE_TEST_SUITE_P(Lines, Smuggling, testing::ValuesIn(of_lines()), kName);
INSTANTIATE_TEST_SUITE_P(RequestLines, Smuggling, testing::ValuesIn(of_request_lines()), kName);

TEST(SmugglingOneByteAtATime, gets_the_same_refusal) {
  TestServer server(
      {public_route("GET", "/work", answer("{}")), public_route("POST", "/work", answer("{}"))}
  );
  for (const std::string& bytes :
       {of_framing()[0].bytes, of_chunks()[0].bytes, of_lines()[0].bytes, of_lines()[7].bytes}) {
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
