#include "sandbox.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>

#if defined(__linux__)
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <array>
#include <csignal>
#endif

namespace videokit {

namespace {

constexpr rlim_t kMemoryBytes = rlim_t{1536} << 20;
constexpr rlim_t kFileDescriptors = 3;  // stdin, stdout, stderr
constexpr int kNoSandbox = 3;

void require(bool done) {
  if (!done) {
    _exit(kNoSandbox);
  }
}

void limit(int resource, rlim_t soft, rlim_t hard) {
  const rlimit value{soft, hard};
  require(setrlimit(static_cast<decltype(RLIMIT_CPU)>(resource), &value) == 0);
}

#if defined(__linux__)

void allow_memory(scmp_filter_ctx filter) {
  // Memory that no file backs and that is never run.
  const scmp_arg_cmp anonymous{4, SCMP_CMP_MASKED_EQ, UINT32_MAX, UINT32_MAX};
  const scmp_arg_cmp not_executable{2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0};
  require(
      seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2, not_executable, anonymous) == 0
  );
  require(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, not_executable) == 0);
  constexpr std::array kCalls = {
      SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk)
  };
  for (const int call : kCalls) {
    require(seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) == 0);
  }
}

void allow_channel(scmp_filter_ctx filter) {
  const scmp_arg_cmp from{0, SCMP_CMP_EQ, STDIN_FILENO, 0};
  const scmp_arg_cmp to{0, SCMP_CMP_EQ, STDOUT_FILENO, 0};
  require(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(read), 1, from) == 0);
  require(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1, to) == 0);
}

void load_filter() {
  const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
  require(filter != nullptr);
  allow_channel(filter);
  allow_memory(filter);
  constexpr std::array kCalls = {
      SCMP_SYS(futex),
      SCMP_SYS(clock_gettime),
      SCMP_SYS(gettimeofday),
      SCMP_SYS(sched_getaffinity),
      SCMP_SYS(rt_sigreturn),
      SCMP_SYS(restart_syscall),
      SCMP_SYS(exit),
      SCMP_SYS(exit_group),
  };
  for (const int call : kCalls) {
    require(seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) == 0);
  }
  require(seccomp_load(filter) == 0);
  seccomp_release(filter);
}

void enter_kernel_sandbox() {
  require(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  require(prctl(PR_SET_DUMPABLE, 0) == 0);
  load_filter();
}

#else

void enter_kernel_sandbox() {}

#endif

}  // namespace

void enter_sandbox(unsigned cpu_seconds) {
  limit(RLIMIT_CPU, cpu_seconds, cpu_seconds + 1);  // at the first SIGXCPU, which says why
  limit(RLIMIT_AS, kMemoryBytes, kMemoryBytes);
  limit(RLIMIT_NOFILE, kFileDescriptors, kFileDescriptors);
  limit(RLIMIT_CORE, 0, 0);
  limit(RLIMIT_FSIZE, 0, 0);
  enter_kernel_sandbox();
}

}  // namespace videokit
