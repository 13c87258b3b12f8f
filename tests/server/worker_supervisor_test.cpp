// A worker that dies, or does nothing, is replaced.

#include "server/worker_supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <mutex>

#include "tests/support/raw_http.h"

namespace whimbrel::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::eventually;

/// The bytes with which a worker says that it is ready.
const std::string kReady = R"(printf '\003\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >&3; )";

/// A worker that is a line of shell.
WorkerOptions shell(const std::string& line) {
  return {.program = "/bin/sh", .arguments = {"-c", line}};
}

TEST(WorkerSupervisor, waits_longer_the_more_workers_die) {
  for (const int deaths : {0, 1, 2, 3}) {
    EXPECT_EQ(restart_delay(deaths), seconds(0));
  }
  EXPECT_EQ(restart_delay(4), seconds(1));
  EXPECT_EQ(restart_delay(5), seconds(2));
  EXPECT_EQ(restart_delay(9), seconds(32));
  EXPECT_EQ(restart_delay(10), seconds(60));
  EXPECT_EQ(restart_delay(1'000'000), seconds(60));
}

TEST(WorkerSupervisor, a_first_worker_that_is_never_ready_is_not_replaced) {
  WorkerSupervisor worker(shell("exit 3"));
  worker.start();
  ASSERT_TRUE(eventually([&] { return worker.failed_start().has_value(); }));
  EXPECT_EQ(worker.failed_start()->code, 3);
  EXPECT_FALSE(worker.status().ready);
  EXPECT_EQ(worker.status().restarts, 0U);
}

TEST(WorkerSupervisor, a_signal_that_ends_it_is_told) {
  WorkerSupervisor worker(shell("kill -9 $$"));
  worker.start();
  ASSERT_TRUE(eventually([&] { return worker.failed_start().has_value(); }));
  EXPECT_EQ(worker.failed_start()->signal, 9);
  EXPECT_EQ(worker.failed_start()->text(), "signal 9");
}

TEST(WorkerSupervisor, a_worker_that_was_ready_is_replaced_and_the_death_told) {
  WorkerOptions options = shell(kReady + "exec 3>&-; exit 7");
  std::mutex mutex;
  std::vector<std::string> told;
  options.tell = [&](const std::string& sentence) {
    const std::lock_guard lock(mutex);
    told.push_back(sentence);
  };
  WorkerSupervisor worker(std::move(options));
  worker.start();
  EXPECT_TRUE(eventually([&] { return worker.status().restarts >= 2; }));
  EXPECT_FALSE(worker.failed_start());
  worker.stop();
  EXPECT_NE(told.at(0).find("exit code 7"), std::string::npos) << told.at(0);
}

TEST(WorkerSupervisor, a_worker_without_a_sign_is_killed_and_replaced) {
  WorkerOptions options = shell(kReady + "exec sleep 1000");
  options.stuck_time = milliseconds(300);
  WorkerSupervisor worker(std::move(options));
  worker.start();
  EXPECT_TRUE(eventually([&] { return worker.status().restarts >= 1; }));
}

TEST(WorkerSupervisor, a_worker_that_reports_and_finishes_no_step_is_replaced) {
  const std::string report = R"({"running":1,"steps":7,"metrics":""})";
  const std::string frame =
      R"(printf '\004\044\0\0\0\0\0\0\0\0\0\0\0\0\0\0%s' ')" + report + "' >&3; ";
  WorkerOptions options = shell(kReady + "while :; do " + frame + "sleep 0.05; done");
  options.stuck_time = milliseconds(500);
  std::atomic<int> told = 0;
  options.tell = [&](const std::string& sentence) {
    told += sentence.find("did nothing for too long") != std::string::npos ? 1 : 0;
  };
  WorkerSupervisor worker(std::move(options));
  worker.start();
  EXPECT_TRUE(eventually([&] { return told >= 1; }));
  worker.stop();
}

TEST(WorkerSupervisor, without_a_watchdog_a_silent_worker_stays) {
  WorkerOptions options = shell(kReady + "exec sleep 1000");
  options.stuck_time = milliseconds(0);
  WorkerSupervisor worker(std::move(options));
  worker.start();
  ASSERT_TRUE(eventually([&] { return worker.status().ready; }));
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_EQ(worker.status().restarts, 0U);
}

TEST(WorkerSupervisor, a_program_that_cannot_be_started_is_told_and_tried_again) {
  WorkerOptions options{.program = "/nowhere/at/all"};
  std::atomic<int> told = 0;
  options.tell = [&](const std::string&) { ++told; };
  WorkerSupervisor worker(std::move(options));
  worker.start();
  EXPECT_TRUE(eventually([&] { return told >= 2; }));
}

TEST(WorkerSupervisor, stops_whatever_its_worker_does) {
  for (const char* line :
       {"exec sleep 1000", "trap '' TERM; while :; do sleep 0.1; done", "exit 0"}) {
    WorkerSupervisor worker(shell(kReady + line));
    worker.start();
    ASSERT_TRUE(eventually([&] { return worker.status().ready || worker.status().restarts > 0; }));
    worker.stop();
    worker.stop();
    EXPECT_FALSE(worker.status().ready);
  }
}

#if defined(__linux__)
/// The one process that this thread has started.
pid_t only_child() {
  pid_t child = -1;
  std::ifstream("/proc/thread-self/children") >> child;
  return child;
}

/// Another process watches `watched`, so that its end is not seen by whoever started it.
pid_t start_watching(pid_t watched) {
  const pid_t watcher = fork();
  if (watcher == 0) {
    if (ptrace(PTRACE_SEIZE, watched, nullptr, nullptr) != 0) {
      _exit(1);
    }
    kill(getpid(), SIGSTOP);  // it watches now
    _exit(0);
  }
  int status = 0;
  waitpid(watcher, &status, WUNTRACED);
  return WIFSTOPPED(status) ? watcher : -1;
}

TEST(WorkerProcess, that_is_not_gone_when_it_was_killed_is_left_behind) {
  WorkerProcess process("/bin/sleep", {"1000"});
  const pid_t child = only_child();
  ASSERT_GT(child, 0);
  const pid_t watcher = start_watching(child);
  if (watcher < 0) {
    GTEST_SKIP() << "no process may watch another here";
  }
  EXPECT_EQ(process.wait(milliseconds(0), milliseconds(200)).text(), "killed, but not gone");
  kill(watcher, SIGKILL);
  waitpid(watcher, nullptr, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (kill(child, 0) == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_NE(kill(child, 0), 0) << "it went, and nothing is left of it";
}
#endif

TEST(WorkerProcess, has_nothing_open_but_its_socket) {
  WorkerProcess process("/bin/sh", {"-c", "ls /proc/self/fd | wc -l | grep -qx 5"});
  EXPECT_EQ(process.wait(seconds(30)).code, 0);
}

}  // namespace
}  // namespace whimbrel::http
