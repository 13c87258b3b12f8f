"""--prefill-int8: prompts whose rows are rounded to 8 bits, asked for and never otherwise."""
import json
import unittest

from support import (
    BF16,
    BLUE,
    BUNDLED,
    COLOUR_QUESTION,
    GOLDEN,
    GREEN,
    SHAPES,
    CliTest,
    parse_json,
    png,
    run,
)
from trace_test import OWN_KERNELS, TraceCase

FLAG = "--prefill-int8"


@unittest.skipUnless(OWN_KERNELS, "these operations don't round so")
class Answers(CliTest):
    def test_the_picture_is_described_as_by_the_reference(self):
        expected = json.loads((GOLDEN / BUNDLED / "describe-odd.json").read_text())["text"]
        self.assertEqual(self.text(FLAG, "--image", SHAPES), expected)

    def test_the_answer_says_so(self):
        asked = ("generate", "-m", BUNDLED, "-p", "Hi", "-n", 1, "--json")
        self.assertNotIn("prefill_int8", parse_json(run(*asked).out))
        self.assertIs(parse_json(run(*asked, FLAG).out)["prefill_int8"], True)
        self.assertIn("prompts in 8 bits", run(*asked, FLAG, "--verbose").err)

    def test_pictures_drawn_here(self):
        for colour, name in ((BLUE, "Blue"), (GREEN, "Green")):
            picture = self.write(f"{name}.png", png(168, 168, colour))
            self.assertEqual(self.text(FLAG, "--image", picture, "-p", COLOUR_QUESTION), name)


@unittest.skipUnless(OWN_KERNELS, "these operations don't round so")
class Traces(TraceCase):
    def make(self, name: str, *arguments, model=BUNDLED):
        text = self.text_file(60)
        return self.trace(name, "--text", text, "--positions", 64, *arguments, model=model)

    def header(self, file) -> dict:
        return parse_json(file.read_text().partition("\n")[0])

    def test_rounding_is_seen_and_said(self):
        exact = self.make("exact.jsonl", "--width", 64)
        rounded = self.make("rounded.jsonl", "--width", 64, FLAG)
        self.assertNotIn("prefill_int8", self.header(exact))
        self.assertIs(self.header(rounded)["prefill_int8"], True)
        figures = self.compare(exact, rounded)
        self.assertGreater(figures["largest_difference"]["difference"], 1e-3)
        self.assertIs(figures["candidate"]["prefill_int8"], True)
        self.assertIs(figures["reference"]["prefill_int8"], False)
        self.assertIn("int8 prefill", run("compare", exact, rounded).out)
        self.assert_refused(rounded, rounded, "--self")

    def test_decoding_is_exact(self):
        exact = self.make("exact.jsonl")
        rounded = self.make("rounded.jsonl", FLAG)
        self.assertEqual(exact.read_text().split("\n")[1:], rounded.read_text().split("\n")[1:])

    def test_plain_weights_are_not_concerned(self):
        exact = self.make("exact.jsonl", "--width", 64, model=BF16)
        rounded = self.make("rounded.jsonl", "--width", 64, FLAG, model=BF16)
        self.assertEqual(exact.read_text().split("\n")[1:], rounded.read_text().split("\n")[1:])


class Refusals(CliTest):
    def test_reference_operations(self):
        env = {"WHIMBREL_OPS": "reference"}
        text = self.write("text.txt", "Name three rivers. " * 40)
        for arguments in (
            ("generate", "-m", BUNDLED, "-p", "Hi"),
            ("trace", "-m", BUNDLED, "--text", text, "--positions", 32, "-o", self.folder / "t"),
            ("bench", "-m", BUNDLED, "-p", "8", "-n", "0"),
        ):
            with self.subTest(arguments[0]):
                result = run(*arguments, FLAG, env=env)
                self.assert_error(result, 2, FLAG, '"reference"', '"cpu"')
        self.assertFalse((self.folder / "t").exists())


if __name__ == "__main__":
    unittest.main()
