"""--help says what there is, with examples that run."""
import re
import shlex
import unittest

from support import BUNDLED, SHAPES, CliTest, run

COMMANDS = (
    "generate", "inspect", "pull", "list", "rm", "verify", "trace", "compare", "profile", "doctor",
    "run", "version",
)
# hub_test.py and trace_test.py run what needs a hub, or two traces.
NEEDS_MORE = ("pull", "rm", "trace", "compare")
GENERATE_FLAGS = (
    "-m --image -p --system --messages --json --max-tokens -n --temperature --top-k --top-p "
    "--min-p --repetition-penalty --presence-penalty --frequency-penalty --seed --stop --ctx "
    "--threads --prefill-int8 --chat-template --chat-template-kwargs --thinking --raw --no-progress --verbose "
    "--force"
).split()


def examples(text: str) -> list[str]:
    """The lines under `Examples:`, up to one that isn't indented."""
    section = re.search(r"^Examples?:\n((?:  .*\n)+)", text, re.MULTILINE)
    return section[1].splitlines() if section else []


class Help(CliTest):
    def help_of(self, *command: str) -> str:
        shown = {}
        for flag in ("--help", "-h"):
            result = run(*command, flag)
            self.assertEqual((result.code, result.err), (0, ""), command)
            shown[flag] = result.out
        self.assertEqual(shown["--help"], shown["-h"])
        return shown["--help"]

    def test_program(self):
        text = self.help_of()
        for command in COMMANDS:
            self.assertRegex(text, rf"(?m)^  {command} ")
        self.assertIn("130", text)

    def test_examples(self):
        for command in ((), *((name,) for name in COMMANDS)):
            with self.subTest(command):
                lines = examples(self.help_of(*command))
                self.assertNotEqual(lines, [])
                for line in lines:
                    self.assertIn("whimbrel " + " ".join(command), line)

    def test_every_flag_of_the_contract(self):
        text = self.help_of("generate")
        for flag in GENERATE_FLAGS:
            self.assertRegex(text, rf"(?m)(^  |,){flag}[ ,\n]", flag)

    def test_help_needs_nothing_else(self):
        result = run("generate", "--help", "--image", "missing.png", env={"WHIMBREL_OPS": "none"})
        self.assertEqual(result.code, 0)


class Examples(CliTest):
    def test_they_run(self):
        """With files in place of the names that stand for a user's own."""
        conversation = self.write("conversation.json", '[{"role": "user", "content": "Hi"}]')
        own = {"DIR": BUNDLED, "conversation.json": conversation}
        own |= {name: SHAPES for name in ("photo.jpg", "a.jpg", "b.png")}
        # One example writes it, a later one reads it.
        own["reference.safetensors"] = self.folder / "reference.safetensors"
        tried = 0
        for command in ((), *((name,) for name in COMMANDS if name not in NEEDS_MORE)):
            for line in examples(run(*command, "--help").out):
                words = [
                    own.get(word, BUNDLED if word.startswith("./") else word)
                    for word in shlex.split(line.rpartition("whimbrel ")[2])
                ]
                if words[0] == "generate":
                    words += ["--max-tokens", "1"]
                with self.subTest(line):
                    result = run(*words, stdin="Name three rivers.", env={"HF_HOME": str(self.folder)})
                    self.assertEqual(result.code, 0, result.err)
                    self.assertNotEqual(result.out, "")
                tried += 1
        self.assertGreater(tried, 8)


if __name__ == "__main__":
    unittest.main()
