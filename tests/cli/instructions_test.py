"""Instructions of one decode step on the AVX2 path, counted by callgrind: no clock, so that more
work in a kernel is seen on any machine. Two answers are given, one a token longer than the other;
the difference is a step. Our own operations count; MLX, the allocator and the waiting do not.
instructions.json holds what was counted, by compiler and flags; where a change of it is meant, it
takes the number that the failed test prints.
"""
import json
import os
import pathlib
import shutil
import unittest

from support import BINARY, BUNDLED, MODELS, CliTest, run

EXPECTED = pathlib.Path(__file__).with_name("instructions.json")  # by compiler
OURS = "whimbrel::ops::cpu::"
PROMPT = "Count from 3 to 40."
SHARE = 0.01
SECONDS = 600  # a program runs about fifty times slower under valgrind


def own_instructions(profile: pathlib.Path) -> int:
    """Of a profile without compressed names or positions. A line behind `calls=` is the callee's."""
    total, ours, of_callee = 0, False, False
    with profile.open(errors="replace") as lines:
        for line in lines:
            if line.startswith("fn="):
                ours = OURS in line
            elif line.startswith("calls="):
                of_callee = True
            elif line[:1].isdigit():
                total += int(line.split()[1]) if ours and not of_callee else 0
                of_callee = False
    return total


def compiler() -> str:
    version = json.loads(run("version", "--json").out)
    return f"{version['compiler']} {version['flags']}"


class Instructions(CliTest):
    def setUp(self):
        super().setUp()
        if shutil.which("valgrind") is None:
            self.skipTest("valgrind isn't there; type tools/bootstrap test")
        stored = json.loads(EXPECTED.read_text())
        if compiler() not in stored:
            self.skipTest(f"no count is stored for {compiler()}")
        self.expected = stored[compiler()]

    def count(self, tokens: int) -> int:
        profile = self.folder / f"callgrind.{tokens}"
        core = min(os.sched_getaffinity(0))  # one core, one thread: nobody waits for another
        done = run(
            *["-c", core, "valgrind", "--tool=callgrind", "--quiet"],
            *["--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={profile}"],
            *[BINARY, "generate", "-m", MODELS / BUNDLED, "-p", PROMPT],
            *["--temperature", 0, "--max-tokens", tokens],
            program="taskset",
            env={"WHIMBREL_ISA": "avx2"},
            seconds=SECONDS,
        )
        self.assertEqual(done.code, 0, done.err)
        return own_instructions(profile)

    def test_a_decode_step_takes_what_it_took(self):
        found = self.count(5) - self.count(4)
        self.assertAlmostEqual(found / self.expected, 1, delta=SHARE, msg=f"{found} instructions")


if __name__ == "__main__":
    unittest.main()
