"""The stored answers of transformers, through the command line.

An answer has to be the reference's up to its first undecided step: one where the best two logits
are less than GAP apart. Checkpoints that the project doesn't hold are tested where
WHIMBREL_REFERENCE_DIR holds checkpoints/<name>, reference/<name> and reference/media.
"""
import array
import json
import os
import pathlib
import sys
import unittest

from support import BF16, BUNDLED, GOLDEN, MODELS, CliTest, Safetensors

GAP = 2.0


class Case:
    """One reference: what was asked, and what came."""

    def __init__(self, json_file: pathlib.Path, media: pathlib.Path):
        self.name = json_file.stem
        self.stored = json.loads(json_file.read_text())
        self.media = media
        tensors = Safetensors.read(json_file.with_suffix(".safetensors")).tensors
        self.greedy = array.array("i", tensors["greedy_ids"][2]).tolist()
        gaps = array.array("f", tensors["gap"][2])
        self.decided = next((i for i, gap in enumerate(gaps) if gap < GAP), len(gaps))

    def messages(self) -> list:
        def part(stored: dict) -> dict:
            if stored["type"] == "image":
                file = self.media / f"{stored['image']}.png"
                return {"type": "image_url", "image_url": {"url": f"file://{file}"}}
            if stored["type"] == "video":
                frames = [str(self.media / f"{frame}.png") for frame in stored["video"]]
                return {**stored, "video": frames}
            return stored

        return [
            message
            if isinstance(message["content"], str)
            else {**message, "content": [part(stored) for stored in message["content"]]}
            for message in self.stored["messages"]
        ]


def cases_of(folder: pathlib.Path) -> list[Case]:
    return [Case(file, folder.parent / "media") for file in sorted(folder.glob("*.json"))]


class ReferenceCase(CliTest):
    def check_case(self, case: Case, model: pathlib.Path):
        file = self.write("messages.json", json.dumps(case.messages()))
        steps = max(case.decided, 1)
        answer = self.answer(
            "--messages", file, "--temperature", 0, "--max-tokens", steps, model=model
        )
        self.assertEqual(answer["prompt_tokens"], case.stored["prompt_tokens"])
        self.assertEqual(answer["rope_delta"], case.stored["rope_delta"])
        if case.decided == len(case.greedy):
            self.assertEqual(answer["ids"], case.greedy[:-1])  # all but the end token
            self.assertEqual(answer["finish_reason"], "stop")
            self.assertEqual(answer["text"], case.stored["text"])
        else:
            self.assertEqual(answer["ids"][: case.decided], case.greedy[: case.decided])

    def check_model(self, references: pathlib.Path, model: pathlib.Path) -> int:
        cases = cases_of(references)
        for case in cases:
            with self.subTest(f"{model.name}/{case.name}"):
                self.check_case(case, model)
        self.assertGreater(sum(case.decided for case in cases), 4 * len(cases), "too few steps")
        return len(cases)

    def check_stored(self, name: str):
        self.assertEqual(self.check_model(GOLDEN / name, MODELS / name), 25)


class Bf16(ReferenceCase):
    def test_cases(self):
        self.check_stored(BF16)


class Quantised(ReferenceCase):
    def test_cases(self):
        self.check_stored(BUNDLED)


class OutsideTheProject(ReferenceCase):
    def test_checkpoints(self):
        if "WHIMBREL_REFERENCE_DIR" not in os.environ:
            self.skipTest("WHIMBREL_REFERENCE_DIR isn't set")
        root = pathlib.Path(os.environ["WHIMBREL_REFERENCE_DIR"])
        tried = 0
        for model in sorted((root / "checkpoints").iterdir()):
            tried += 1
            if (GOLDEN / model.name).exists():
                continue  # tested above
            count = self.check_model(root / "reference" / model.name, model)
            print(f"tested: {model.name}, {count} cases", file=sys.stderr)
        self.assertGreater(tried, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
