// More connections than the server, or the system, has room for.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/server/serve.h"

namespace whimbrel::http::test {
namespace {

TEST(ConnectionFlood, beyond_the_bound_is_503_and_room_comes_back) {
  TestServer server({public_route("GET", "/", answer("{}"))}, {.limits = {.connections = 4}});
  std::vector<RawClient> idle;
  for (int i = 0; i < 4; ++i) {
    idle.emplace_back(server.port());
  }
  ASSERT_TRUE(eventually([&] { return server->counters().connections_open == 4; }));
  for (int i = 0; i < 3; ++i) {
    RawClient more(server.port());
    const auto got = more.receive();
    EXPECT_EQ(got->status, 503);
    EXPECT_EQ(got->fields.at("retry-after"), "1");
    EXPECT_TRUE(more.is_closed_by_server());
  }
  EXPECT_EQ(server->counters().connections_refused, 3U);
  idle.pop_back();
  EXPECT_TRUE(eventually([&] { return server->counters().connections_open == 3; }));
  EXPECT_EQ(server.get("/")->status, 200);
}

TEST(ConnectionFlood, far_beyond_the_bound_ends_without_an_answer) {
  TestServer server({public_route("GET", "/", answer("{}"))}, {.limits = {.connections = 1}});
  std::vector<RawClient> clients;
  for (int i = 0; i < 300; ++i) {
    clients.emplace_back(server.port());
  }
  EXPECT_TRUE(eventually([&] { return server->counters().connections_refused == 299; }));
  clients.clear();
  EXPECT_TRUE(eventually([&] { return server->counters().connections_open == 0; }));
  EXPECT_EQ(server.get("/")->status, 200);
}

/// Leaves the process without a descriptor to open.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &few);
    for (int file = open("/dev/null", O_RDONLY); file >= 0; file = open("/dev/null", O_RDONLY)) {
      files_.push_back(file);
    }
  }
  ~NoDescriptors() {
    while (!files_.empty()) {
      give_one();
    }
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

  void give_one() {
    close(files_.back());
    files_.pop_back();
  }

 private:
  rlimit before_ = {};
  std::vector<int> files_;
};

// UBSan finds out with a pipe whether an object's memory can be read: with no descriptor left every
// object looks broken to it.
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
constexpr bool kNeedsDescriptors = true;
#else
constexpr bool kNeedsDescriptors = false;
#endif
#else
constexpr bool kNeedsDescriptors = false;
#endif

TEST(NoDescriptorLeft, new_connections_wait_and_old_ones_are_served) {
  if (kNeedsDescriptors) {
    GTEST_SKIP() << "UBSan needs descriptors of its own";
  }
  TestServer server({public_route("GET", "/", answer("{}"))});
  RawClient old(server.port());
  old.send(ask("GET", "/"));
  EXPECT_EQ(old.receive()->status, 200);
  std::optional<RawClient> waits;
  {
    NoDescriptors none;
    none.give_one();
    waits.emplace(server.port());
    waits->send(ask("GET", "/"));
    EXPECT_TRUE(eventually([&] { return server->counters().accept_failures >= 3; }));
    old.send(ask("GET", "/"));
    EXPECT_EQ(old.receive()->status, 200);
  }
  EXPECT_EQ(waits->receive()->status, 200);
  EXPECT_EQ(server.get("/")->status, 200);
}

}  // namespace
}  // namespace whimbrel::http::test
