// F32: one reading of an address, or none.
#include "server/remote_url.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace whimbrel::http {
namespace {

/// "scheme host port", or "" where it is refused.
std::string reading(const std::string& text) {
  try {
    const RemoteUrl url = parse_remote_url(text, "image_url");
    return url.scheme + " " + url.host + " " + url.port;
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    return "";
  }
}

TEST(F32RemoteUrl, plain_addresses_are_read) {
  EXPECT_EQ(reading("https://example.org/a.png?b=c#d"), "https example.org 443");
  EXPECT_EQ(reading("HTTP://Example.ORG:8080"), "http example.org 8080");
  EXPECT_EQ(reading("http://192.0.2.7/a"), "http 192.0.2.7 80");
  EXPECT_EQ(reading("http://[2001:db8::1]:81/a"), "http [2001:db8::1] 81");
  EXPECT_EQ(reading("https://xn--mnchen-3ya.example/"), "https xn--mnchen-3ya.example 443");
  EXPECT_EQ(reading("https://example.org/a@b:c//d"), "https example.org 443");
}

TEST(F32RemoteUrl, what_two_readers_could_read_differently_is_refused) {
  for (const char* text : {
           "http://good\\@127.0.0.1/",
           "http://good.example\\.evil.example/",
           "http://user@example.org/",
           "http://user:password@example.org/",
           "http://@example.org/",
           "http://example.org:80@evil.example/",
           "http://exam\tple.org/",
           "http://example.org/a b",
           "http://example.org/\n",
           " http://example.org/",
           "http://m\xc3\xbcnchen.example/",
           "http://example.org./",
           "http://ex%61mple.org/",
           "http://127.0.0.1%2f@example.org/",
           "http://2130706433/",
           "http://0177.1/",
           "http://0x7f.0.0.1/",
           "http://0x7f000001/",
           "http://127.1/",
           "http://127.0.0.01/",
           "http://1.2.3.4.5/",
           "http://[::1%25lo]/",
           "http://[::ffff:7f00:0001]/",
           "http://[0:0:0:0:0:0:0:1]/",
           "http://example.org:080/",
           "http://example.org:/",
           "http://example.org:99999/",
           "http:/example.org/",
           "http:///example.org/",
           "http:example.org",
           "//example.org/",
           "example.org/a.png",
           "file:///etc/passwd",
           "ftp://example.org/",
           "gopher://example.org/",
           "dict://example.org/",
           "http://",
           "",
       }) {
    EXPECT_EQ(reading(text), "") << text;
  }
  EXPECT_EQ(reading(std::string("http://example.org\0.evil.example/", 33)), "");
}

std::string redirected(const std::string& from, const std::string& location) {
  try {
    const RemoteUrl to = follow_redirect(parse_remote_url(from, "x"), location, "x");
    return to.scheme + " " + to.host + " " + to.port;
  } catch (const Error&) {
    return "";
  }
}

TEST(F32RemoteUrl, redirects_are_read_by_the_same_rules) {
  EXPECT_EQ(redirected("http://example.org/a", "/b"), "http example.org 80");
  EXPECT_EQ(redirected("http://example.org:81/a", "b?c"), "http example.org 81");
  EXPECT_EQ(redirected("http://example.org/", "https://other.example/"), "https other.example 443");
  EXPECT_EQ(redirected("https://example.org/", "//other.example/"), "https other.example 443");
  for (const char* location :
       {"http://example.org/",
        "https://user@example.org/",
        "//2130706433/",
        "\\\\evil.example/",
        "https:evil.example",
        "file:///etc/passwd",
        ""}) {
    EXPECT_EQ(redirected("https://example.org/", location), "") << location;
  }
}

bool is_allowed(const std::string& url, const std::vector<std::string>& hosts) {
  try {
    require_allowed(parse_remote_url(url, "x"), hosts, "x");
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(RemoteHosts, are_compared_whole) {
  EXPECT_TRUE(is_allowed("https://Example.org/a", {"other.example", "example.org"}));
  EXPECT_TRUE(is_allowed("http://example.org:8080/a", {"example.org:8080"}));
  EXPECT_TRUE(is_allowed("https://any.example/", {"any-public"}));
  EXPECT_FALSE(is_allowed("https://example.org/", {}));
  EXPECT_FALSE(is_allowed("https://sub.example.org/", {"example.org"}));
  EXPECT_FALSE(is_allowed("https://example.org.evil.example/", {"example.org"}));
  EXPECT_FALSE(is_allowed("https://example.org:8443/", {"example.org", "any-public"}));
  EXPECT_FALSE(is_allowed("https://example.org/", {"example.org:80"}));
}

TEST(RemoteHosts, are_checked_as_flags) {
  EXPECT_EQ(remote_host("Example.org", "--x"), "example.org");
  EXPECT_EQ(remote_host("example.org:80", "--x"), "example.org:80");
  EXPECT_EQ(remote_host("[2001:db8::1]", "--x"), "[2001:db8::1]");
  EXPECT_EQ(remote_host("any-public", "--x"), "any-public");
  for (const char* text :
       {"", "https://example.org", "example.org/a", "*.example.org", "a b", "127.1", "a?b"}) {
    EXPECT_THROW(remote_host(text, "--x"), Error) << text;
  }
}

}  // namespace
}  // namespace whimbrel::http
