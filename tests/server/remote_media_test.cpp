// F31, F32, F34: what is fetched for a request, and from where. Origins are on the loopback, which
// a test alone can allow.
#include "server/remote_media.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "server/media_sources.h"
#include "tests/support/origin.h"
#include "tests/support/source_dir.h"

namespace whimbrel::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::http_answer;
using test::Origin;

bool any_address(const sockaddr&) {
  return true;
}

FetchLimits limits_of(milliseconds time = seconds(60), uint64_t max_bytes = kMostRemoteBytes) {
  return {.deadline = std::chrono::steady_clock::now() + time, .max_bytes = max_bytes};
}

/// The refusal's text; "" where something was fetched.
std::string refusal(
    const std::string& url,
    const std::vector<std::string>& hosts,
    const FetchLimits& limits = limits_of(),
    AddressCheck may_connect = any_address
) {
  try {
    fetch_remote(url, hosts, limits, "image_url", may_connect);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_TRUE(std::string_view(error.what()).starts_with("[image_url] got ")) << error.what();
    return error.what();
  }
  return "";
}

Origin::Answer says(std::string bytes) {
  return [bytes = std::move(bytes)](const std::string&, const Origin::Send& send) { send(bytes); };
}

const std::string kFound = http_answer("200 OK", "Content-Length: 5\r\n", "bytes");

TEST(RemoteMedia, are_fetched_from_a_host_on_the_list) {
  std::string head;
  const Origin origin([&head](const std::string& asked, const Origin::Send& send) {
    head = asked;
    send(kFound);
  });
  EXPECT_EQ(
      fetch_remote(origin.url("/a.png?b"), {origin.host()}, limits_of(), "x", any_address), "bytes"
  );
  EXPECT_TRUE(head.starts_with("GET /a.png?b HTTP/1.1\r\n")) << head;
  EXPECT_EQ(head.find("Cookie"), std::string::npos);
  EXPECT_EQ(head.find("Authorization"), std::string::npos);
  EXPECT_EQ(head.find("Accept-Encoding"), std::string::npos);
}

TEST(RemoteMedia, never_pass_a_proxy_of_the_environment) {
  const Origin proxy(says(kFound));
  const Origin origin(says(kFound));
  setenv("http_proxy", proxy.url("").c_str(), 1);
  setenv("all_proxy", proxy.url("").c_str(), 1);
  EXPECT_EQ(refusal(origin.url("/"), {origin.host()}), "");
  unsetenv("http_proxy");
  unsetenv("all_proxy");
  EXPECT_EQ(proxy.connections(), 0);
}

TEST(F31ServerSideRequests, reach_no_host_that_is_not_on_the_list) {
  const Origin origin(says(kFound));
  for (const std::vector<std::string>& hosts :
       {std::vector<std::string>{}, {"example.org"}, {"127.0.0.1"}, {"any-public"}}) {
    EXPECT_NE(refusal(origin.url("/"), hosts).find("doesn't fetch from"), std::string::npos);
  }
  EXPECT_EQ(origin.connections(), 0);
}

TEST(F31ServerSideRequests, reach_no_address_that_is_not_public) {
  const Origin origin(says(kFound));
  const std::string missing =
      refusal("http://127.0.0.1:1/", {"127.0.0.1:1"}, limits_of(), is_public_address);
  EXPECT_NE(missing.find("can't be fetched"), std::string::npos) << missing;
  // A name counts by what it resolves to when the socket is made: whatever DNS said before.
  for (const char* name : {"127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]"}) {
    const std::vector<std::string> hosts = {origin.host(name)};
    const std::string text = refusal(origin.url("/", name), hosts, limits_of(), is_public_address);
    EXPECT_TRUE(text == missing || text.find("isn't plain") != std::string::npos) << text;
  }
  EXPECT_EQ(origin.connections(), 0);
}

TEST(F31ServerSideRequests, follow_no_redirect_to_what_may_not_be_asked) {
  const Origin target(says(kFound));
  std::string location;
  const Origin origin([&location](const std::string&, const Origin::Send& send) {
    send(http_answer("302 Found", "Location: " + location + "\r\nContent-Length: 0\r\n", ""));
  });
  for (const std::string& to :
       {target.url("/"),
        target.url("/", "localhost"),
        "//" + target.host() + "/",
        "http://user@" + target.host() + "/",
        std::string("http://2130706433/"),
        std::string("file:///etc/passwd")}) {
    location = to;
    EXPECT_NE(refusal(origin.url("/"), {origin.host()}), "") << to;
  }
  EXPECT_EQ(target.connections(), 0);
  EXPECT_EQ(origin.connections(), 6);
}

TEST(F31ServerSideRequests, follow_at_most_three_redirects) {
  const Origin origin([](const std::string& head, const Origin::Send& send) {
    const int left = head[5] - '0';  // "GET /N"
    send(
        left == 0 ? kFound
                  : http_answer("307 Temporary", fmt::format("Location: /{}\r\n", left - 1), "")
    );
  });
  EXPECT_EQ(refusal(origin.url("/3"), {origin.host()}), "");
  EXPECT_NE(refusal(origin.url("/4"), {origin.host()}).find("redirects"), std::string::npos);
  EXPECT_EQ(origin.connections(), 4 + 4);
}

TEST(F34Origins, that_are_slow_are_left_at_the_deadline) {
  const Origin origin([](const std::string&, const Origin::Send& send) {
    bool open = send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    while (open) {
      std::this_thread::sleep_for(milliseconds(20));
      open = send("x");
    }
  });
  const std::string text = refusal(origin.url("/"), {origin.host()}, limits_of(milliseconds(300)));
  EXPECT_NE(text.find("no whole file in the time"), std::string::npos) << text;
  // Nothing is asked once the time is up.
  EXPECT_NE(refusal(origin.url("/"), {origin.host()}, limits_of(milliseconds(0))), "");
}

TEST(F34Origins, that_are_silent_are_left_with_the_client) {
  std::atomic<bool> is_left = false;
  const Origin origin([&is_left](const std::string&, const Origin::Send&) {
    while (!is_left) {
      std::this_thread::sleep_for(milliseconds(10));
    }
  });
  int questions = 0;
  FetchLimits limits = limits_of(seconds(20));
  limits.cancelled = [&questions] { return ++questions > 4; };
  try {
    fetch_remote(origin.url("/"), {origin.host()}, limits, "image_url", any_address);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::interrupted) << error.what();
  }
  is_left = true;
}

TEST(F34Origins, without_end_are_left_at_the_bound) {
  const auto endless = [](const std::string& headers) {
    return [headers](const std::string&, const Origin::Send& send) {
      const std::string piece(1 << 16, 'x');
      bool open = send("HTTP/1.1 200 OK\r\n" + headers + "\r\n");
      while (open) {
        open = send(piece);
      }
    };
  };
  for (const char* headers : {"", "Content-Length: 1099511627776\r\n"}) {
    const Origin origin(endless(headers));
    const std::string text =
        refusal(origin.url("/"), {origin.host()}, limits_of(seconds(60), 1 << 20));
    EXPECT_NE(text.find("at most 1048576 bytes"), std::string::npos) << text;
  }
  const Origin origin([](const std::string&, const Origin::Send& send) {
    bool open = send("HTTP/1.1 200 OK\r\n");
    while (open) {
      open = send("X-Filler: " + std::string(1000, 'x') + "\r\n");
    }
  });
  EXPECT_NE(refusal(origin.url("/"), {origin.host()}), "");
}

TEST(F34Origins, that_compress_are_refused) {
  const Origin origin(
      says(http_answer("200 OK", "Content-Encoding: gzip\r\nContent-Length: 5\r\n", "bytes"))
  );
  EXPECT_NE(refusal(origin.url("/"), {origin.host()}).find("compressed"), std::string::npos);
}

TEST(F34Origins, that_break_off_or_have_no_file_are_refused) {
  const Origin cut(says(http_answer("200 OK", "Content-Length: 9\r\n", "bytes")));
  EXPECT_NE(refusal(cut.url("/"), {cut.host()}).find("broke off"), std::string::npos);
  const Origin missing(says(http_answer("404 Not Found", "Content-Length: 5\r\n", "bytes")));
  EXPECT_NE(refusal(missing.url("/"), {missing.host()}).find("status 404"), std::string::npos);
  const Origin nowhere(says(http_answer("302 Found", "Content-Length: 0\r\n", "")));
  EXPECT_NE(refusal(nowhere.url("/"), {nowhere.host()}).find("status 302"), std::string::npos);
  const Origin old(says("bytes without a head"));
  EXPECT_NE(refusal(old.url("/"), {old.host()}), "");
}

TEST(F31ServerSideRequests, are_off_unless_hosts_were_given) {
  const Origin origin(says(kFound));
  const MediaSources none;
  EXPECT_THROW(media_reader(none)(origin.url("/"), MediaKind::image), Error);
  const MediaSources listed{.remote_hosts = {origin.host()}};  // listed, but not public
  EXPECT_THROW(media_reader(listed)(origin.url("/"), MediaKind::video), Error);
  EXPECT_EQ(origin.connections(), 0);
}

// The hub's client fetches models for the command line; nothing of a server includes it.
TEST(F31ServerSideRequests, have_one_function) {
  std::vector<std::string> fetching;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_dir() / "src")) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".cpp" && extension != ".h") {
      continue;
    }
    const std::string text = read_file(entry.path(), Fault::io);
    const std::string name = entry.path().lexically_relative(test::source_dir() / "src").string();
    for (const char* call : {"curl_easy_perform", "curl_multi_", "async_connect", "::connect("}) {
      if (text.find(call) != std::string::npos) {
        fetching.push_back(name);
      }
    }
    if (name.starts_with("server/") || name.starts_with("engine/") || name.starts_with("media/")) {
      EXPECT_EQ(text.find("weights/hub_"), std::string::npos) << name;
    }
  }
  std::ranges::sort(fetching);
  EXPECT_EQ(
      fetching, (std::vector<std::string>{"server/remote_media.cpp", "weights/hub_http.cpp"})
  );
}

}  // namespace
}  // namespace whimbrel::http
