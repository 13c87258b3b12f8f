#include "sandbox.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#if defined(__linux__)
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <array>
#include <csignal>
#endif

#include "end.h"

namespace sandbox {

namespace {

constexpr rlim_t kFileDescriptors = 3;  // stdin, stdout, stderr

void require(bool done) {
  if (!done) {
    end(Exit::no_sandbox);
  }
}

using Resource = decltype(RLIMIT_CPU);

// `wanted`, or the lower one that this process was started with: it may have no right to raise it.
rlim_t at_most(Resource resource, rlim_t wanted) {
  rlimit given{};
  require(getrlimit(resource, &given) == 0);
  return std::min(wanted, given.rlim_cur);
}

void limit(Resource resource, rlim_t wanted) {
  const rlim_t least = at_most(resource, wanted);
  const rlimit value{least, least};
  require(setrlimit(resource, &value) == 0);
}

// SIGXCPU, which says why, comes a second before SIGKILL.
void limit_time(rlim_t seconds) {
  const rlim_t hard = at_most(RLIMIT_CPU, seconds + 1);
  const rlimit value{std::max<rlim_t>(hard, 2) - 1, hard};
  require(setrlimit(RLIMIT_CPU, &value) == 0);
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

void enter_sandbox(const Limits& limits) {
  limit_time(limits.cpu_seconds);
  limit(RLIMIT_AS, limits.memory_bytes);
  limit(RLIMIT_NOFILE, kFileDescriptors);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  enter_kernel_sandbox();
}

}  // namespace sandbox
