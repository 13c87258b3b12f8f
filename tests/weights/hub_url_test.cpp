#include "weights/hub_url.h"

#include <gtest/gtest.h>

namespace whimbrel {

namespace {

HttpUrl url(const std::string& text) {
  const std::optional<HttpUrl> parsed = parse_http_url(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(HttpUrl{});
}

}  // namespace

TEST(HubUrl, TakesAnAddressApart) {
  const HttpUrl hub = url("https://Hub.Example/a/b?c=d");
  EXPECT_EQ(hub.scheme, "https");
  EXPECT_EQ(hub.host, "hub.example");
  EXPECT_EQ(hub.port, "443");
  EXPECT_EQ(url("http://127.0.0.1:8080").port, "8080");
  EXPECT_EQ(url("http://[::1]/x").host, "[::1]");
}

TEST(HubUrl, RefusesWhatIsNoHttpAddress) {
  for (const std::string& text :
       {std::string(),
        std::string("hub.example"),
        std::string("//hub.example"),
        std::string("/x"),
        std::string("file:///etc/passwd"),
        std::string("ftp://hub.example"),
        std::string("http://"),
        std::string("https://user@hub.example"),
        std::string("https://user:word@hub.example"),
        std::string("https://hub.example /x"),
        std::string("https://hub\n.example"),
        std::string("https://hub.example\0.evil", 25),
        std::string("https://hub.example:99999/"),
        std::string("javascript:x")}) {
    EXPECT_FALSE(parse_http_url(text)) << text;
  }
}

TEST(HubUrl, SameOrigin) {
  const HttpUrl hub = url("https://hub.example/x");
  EXPECT_TRUE(same_origin(hub, url("https://HUB.example:443/y?z")));
  for (const char* other :
       {"http://hub.example/x",
        "https://hub.example:444/x",
        "https://hub.example.evil/x",
        "https://evil.example/x",
        "https://sub.hub.example/x",
        "http://hub.example:443/x"}) {
    EXPECT_FALSE(same_origin(hub, url(other))) << other;
  }
  EXPECT_FALSE(same_origin(url("http://localhost:80"), url("http://127.0.0.1:80")));
}

TEST(HubUrl, RedirectsAreRelativeToWhatWasAsked) {
  const HttpUrl hub = url("https://hub.example/a/b?c=d");
  EXPECT_EQ(resolve_location(hub, "/x")->text, "https://hub.example/x");
  EXPECT_EQ(resolve_location(hub, "x")->text, "https://hub.example/a/x");
  EXPECT_EQ(resolve_location(hub, "//other.example/x")->host, "other.example");
  EXPECT_EQ(
      resolve_location(hub, "http://other.example/x?s=1")->text, "http://other.example/x?s=1"
  );
  EXPECT_EQ(resolve_location(hub, "\\\\other.example/x").value_or(hub).scheme, "https");
  for (const char* location :
       {"", "file:///etc/passwd", "ftp://other.example", "https://user@hub.example/", "/x y"}) {
    EXPECT_FALSE(resolve_location(hub, location)) << location;
  }
}

TEST(HubUrl, Downgrade) {
  EXPECT_TRUE(is_downgrade(url("https://a.example"), url("http://a.example")));
  EXPECT_FALSE(is_downgrade(url("http://a.example"), url("http://b.example")));
  EXPECT_FALSE(is_downgrade(url("http://a.example"), url("https://a.example")));
  EXPECT_FALSE(is_downgrade(url("https://a.example"), url("https://b.example")));
}

TEST(HubUrl, PercentEncodesOnePartOfAPath) {
  EXPECT_EQ(percent_encode("refs/pr/1"), "refs%2Fpr%2F1");
  EXPECT_EQ(percent_encode("a b?c#d%\xc3\xa9"), "a%20b%3Fc%23d%25%C3%A9");
  EXPECT_EQ(percent_encode("aZ09-._~"), "aZ09-._~");
}

}  // namespace whimbrel
