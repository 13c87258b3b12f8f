"""Real trained weights, SmolLM2-135M-Instruct: only where WHIMBREL_SMOLLM2 names the folder that
tools/convert_smollm2.py wrote."""
import json
import math
import os
import unittest

from support import SOURCE, CliTest, Safetensors, run

SECONDS = 900  # a program built for debugging, on a busy machine
MODEL = os.environ.get("WHIMBREL_SMOLLM2")
GOLDEN = SOURCE / "tests/golden/perplexity"


class Smollm2Case(CliTest):
    def setUp(self):
        super().setUp()
        if not MODEL:
            self.skipTest("WHIMBREL_SMOLLM2 isn't set; docs/testing-models.md says how to make it")


class Answer(Smollm2Case):
    def test_it_knows_the_capital_of_france(self):
        question = "The capital of France is the city of"
        flags = ("--raw", "--temperature", 0, "-n", 2, "-p", question)
        answer = self.text(*flags, model=MODEL, seconds=SECONDS)
        self.assertEqual(answer.rstrip("\n"), " Paris.")


class Perplexity(Smollm2Case):
    def test_it_predicts_a_text_as_well_as_the_reference(self):
        stored = Safetensors.read(GOLDEN / "smollm2.safetensors").tensors
        ids = memoryview(stored["input_ids"][2]).cast("i").tolist()
        expected = memoryview(stored["nll"][2]).cast("f").tolist()
        trace = self.folder / "trace.jsonl"
        text = ("--text", GOLDEN / "text.txt", "--positions", len(expected), "--width", 128)
        result = run("trace", "-m", MODEL, *text, "-o", trace, seconds=SECONDS)
        self.assertEqual(result.code, 0, result)
        found = [json.loads(line) for line in trace.read_text().splitlines()[1:]]
        self.assertEqual([position["id"] for position in found], ids[:-1])
        self.assertEqual([position["target"] for position in found], ids[1:])
        mean = math.fsum(position["nll"] for position in found) / len(found)
        reference = math.fsum(expected) / len(expected)
        self.assertAlmostEqual(math.exp(mean) / math.exp(reference), 1, delta=0.001)


if __name__ == "__main__":
    unittest.main()
