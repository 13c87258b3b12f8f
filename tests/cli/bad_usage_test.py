"""Wrong flags and values: exit code 2. Output that can't be written: 6."""
import os
import subprocess
import unittest

from support import BINARY, BUNDLED, CliTest, environment, run

USAGE = {
    "no subcommand": ([], ["subcommand"]),
    "unknown subcommand": (["describe"], ["describe", "subcommand"]),
    "unknown flag": (["generate", "--nonsense", "-p", "Hi"], ["--nonsense"]),
    "unknown flag of inspect": (["inspect", "--max-tokens", "3"], ["--max-tokens"]),
    "stray argument": (["generate", "-p", "Hi", "stray"], ["stray"]),
    "flag without value": (["generate", "-p"], ["--prompt"]),
    "prompt twice": (["generate", "-p", "one", "-p", "two"], ["--prompt"]),
    "messages and prompt": (["generate", "-p", "Hi", "--messages", "m.json"], ["--messages"]),
    "messages, image": (["generate", "--image", "a.png", "--messages", "m.json"], ["--messages"]),
    "messages and system": (["generate", "--system", "x", "--messages", "m.json"], ["--messages"]),
    "messages and raw": (["generate", "--raw", "--messages", "m.json"], ["--messages"]),
    "raw and system": (["generate", "--raw", "-p", "Hi", "--system", "x"], ["--raw"]),
    "raw and template": (["generate", "--raw", "-p", "Hi", "--chat-template", "x"], ["--raw"]),
    "raw and thinking": (["generate", "--raw", "-p", "Hi", "--thinking", "on"], ["--raw"]),
}

# Flag, value, and what else the sentence names.
VALUES = [
    ("--max-tokens", "0", "1 to 2147483647"),
    ("--max-tokens", "-1", ""),
    ("--max-tokens", "1.5", ""),
    ("--max-tokens", "99999999999", ""),
    ("--max-tokens", "many", ""),
    ("--ctx", "0", "1 to"),
    ("--ctx", "40000", "32768"),
    ("--threads", "0", "1 to"),
    ("--temperature", "-1", "0 to"),
    ("--temperature", "nan", "0 to"),
    ("--temperature", "hot", ""),
    ("--top-k", "-1", "0 to"),
    ("--top-p", "2", "to 1"),
    ("--top-p", "0", "to 1"),
    ("--min-p", "1.5", "0 to 1"),
    ("--repetition-penalty", "0", ""),
    ("--presence-penalty", "3", "-2 to 2"),
    ("--frequency-penalty", "-2.5", "-2 to 2"),
    ("--seed", "-1", "0 to"),
    ("--seed", "99999999999999999999", "0 to"),
    ("--stop", "", "empty"),
    ("--thinking", "maybe", "on"),
    ("--chat-template-kwargs", "{", "JSON"),
    ("--chat-template-kwargs", "[1]", "object"),
    ("--chat-template-kwargs", "true", "object"),
]


class BadUsage(CliTest):
    def test_table(self):
        for name, (arguments, named) in USAGE.items():
            with self.subTest(name):
                self.assert_error(run(*arguments), 2, *named, "--help")

    def test_values(self):
        for flag, value, named in VALUES:
            with self.subTest(flag, value=value):
                result = run("generate", "-m", BUNDLED, "-p", "Hi", flag, value)
                name = flag.removeprefix("--").replace("-", "[-_]")
                self.assert_error(result, 2, named)
                self.assertRegex(result.err, name)
                self.assertLess(len(result.err), 300)

    def test_operations(self):
        for ops in ("cuda", "nonsense"):
            for arguments in (
                ("generate", "-m", BUNDLED, "-p", "Hi"),
                ("inspect", "-m", BUNDLED),
                ("version",),
            ):
                with self.subTest(ops, command=arguments[0]):
                    result = run(*arguments, env={"WHIMBREL_OPS": ops})
                    self.assert_error(result, 2, "WHIMBREL_OPS", f'"{ops}"', '"reference"')


    def test_instruction_set(self):
        for arguments in (
            ("generate", "-m", BUNDLED, "-p", "Hi"),
            ("inspect", "-m", BUNDLED),
            ("doctor",),
            ("version",),
        ):
            with self.subTest(command=arguments[0]):
                result = run(*arguments, env={"WHIMBREL_ISA": "avx9"})
                self.assert_error(result, 2, "WHIMBREL_ISA", '"avx9"', "scalar")


@unittest.skipUnless(os.path.exists("/dev/full"), "this system has no /dev/full")
class FullDisk(CliTest):
    def test_table(self):
        for arguments in (
            ("generate", "-m", BUNDLED, "-p", "Hi", "-n", "4"),
            ("generate", "-m", BUNDLED, "-p", "Hi", "-n", "4", "--json"),
            ("inspect", "-m", BUNDLED),
            ("inspect", "-m", BUNDLED, "--json"),
            ("version",),
            ("version", "--json"),
            ("--version",),
            ("--help",),
            ("generate", "--help"),
        ):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                self.assert_error(run(*arguments, stdout=full), 6, "stdout", "No space left")

    def test_a_lost_complaint_keeps_its_exit_code(self):
        for arguments, code in ((("-p", "Hi", "-n", "2"), 0), (("--image", "nope.png"), 4)):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                done = subprocess.run(
                    [BINARY, "generate", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=full,
                    env=environment(),
                    timeout=60,
                    check=False,
                )
                self.assertEqual(done.returncode, code)

    def test_it_ends_at_once(self):
        """Nobody reads the words: the rest of a long answer isn't made."""
        with open("/dev/full", "wb") as full:
            result = run("generate", "-m", BUNDLED, "-p", "Hi", "-n", "20000", stdout=full)
        self.assert_error(result, 6, "stdout")


if __name__ == "__main__":
    unittest.main()
