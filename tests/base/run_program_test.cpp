#include "base/run_program.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace whimbrel {
namespace {

TEST(RunProgram, gives_both_outputs_and_the_exit_code) {
  const ProgramResult result = run_program("/bin/sh", {"-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
}

TEST(RunProgram, passes_arguments_as_they_are) {
  const ProgramResult result =
      run_program("/bin/sh", {"-c", "printf '%s|' \"$@\"", "sh", "a b", "$x", ""});
  EXPECT_EQ(result.out, "a b|$x||");
}

TEST(RunProgram, takes_more_than_a_pipe_holds_from_both) {
  const ProgramResult result =
      run_program("/bin/sh", {"-c", "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; cat"});
  EXPECT_EQ(result.out.size(), 300000U);
  EXPECT_EQ(result.err.size(), 300000U);
}

TEST(RunProgram, tells_a_signal) {
  EXPECT_EQ(run_program("/bin/sh", {"-c", "kill -9 $$"}).exit_code, 128 + 9);
}

TEST(RunProgram, refuses_what_is_no_program) {
  for (const char* path : {"/nowhere/program", "/dev/null", "/"}) {
    try {
      run_program(path, {});
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::io);
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace whimbrel
