"""docs/contract.md word for word: what the programs that call whimbrel rely on."""
import re
import unittest

from support import (
    BF16,
    BLUE,
    BUNDLED,
    GREEN,
    SHAPES,
    SOURCE,
    CliTest,
    parse_json,
    png,
    run,
)

ANSWER_KEYS = [
    "text",
    "finish_reason",
    "prompt_tokens",
    "generated_tokens",
    "ids",
    "rope_delta",
    "media",
    "timings",
    "build",
]
MEDIA_KEYS = ["kind", "source", "size", "resized", "grid_thw", "tokens", "first_token"]
TIMING_KEYS = [
    "load",
    "media_decode",
    "preprocess",
    "tower",
    "prefill",
    "first_token",
    "decode",
    "per_token",
    "prompt_per_second",
    "decode_per_second",
]
BUILD_TEXT_KEYS = [
    "version",
    "commit",
    "build_id",
    "compiler",
    "flags",
    "mlx",
    "backend",
    "ops",
    "isa",
    "blas",
]


def is_int(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Build(CliTest):
    def version(self, **settings) -> dict:
        result = run("version", "--json", **settings)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual(result.out.count("\n"), 1)
        return parse_json(result.out)

    def test_keys(self):
        build = self.version()
        self.assertEqual(sorted(build), sorted([*BUILD_TEXT_KEYS, "dirty"]))
        for key in BUILD_TEXT_KEYS:
            self.assertIsInstance(build[key], str, key)
        for key in set(BUILD_TEXT_KEYS) - {"flags"}:
            self.assertNotEqual(build[key], "", key)
        self.assertIsInstance(build["dirty"], bool)
        self.assertRegex(build["commit"], r"\A([0-9a-f]{40}|unknown)\Z")
        self.assertRegex(build["build_id"], r"\A([0-9a-f]+|unknown)\Z")
        self.assertIn(build["ops"], ["reference", "cpu", "cuda"])

    def test_asked_for_ops(self):
        self.assertEqual(self.version(env={"WHIMBREL_OPS": "reference"})["ops"], "reference")

    def test_asked_for_isa(self):
        self.assertEqual(self.version(env={"WHIMBREL_ISA": "scalar"})["isa"], "scalar")
        widest = self.version()["isa"]
        self.assertNotEqual(widest, "")
        self.assertEqual(self.version(env={"WHIMBREL_ISA": widest})["isa"], widest)
        self.assertEqual(self.version(env={"WHIMBREL_ISA": ""})["isa"], widest)

    def test_text_says_the_same(self):
        shown = dict(
            re.match(r"(\S+) +(.*)", line).groups()
            for line in run("version").out.splitlines()
            if line.strip()
        )
        build = self.version()
        build["dirty"] = str(build["dirty"]).lower()
        self.assertEqual(shown, build)

    def test_version_flag(self):
        result = run("--version")
        self.assertEqual((result.code, result.out), (0, self.version()["version"] + "\n"))

    def test_answers_carry_it(self):
        build = self.version()
        self.assertEqual(self.answer("-p", "Hi", "-n", 1)["build"], build)
        self.assertEqual(parse_json(run("inspect", "-m", BUNDLED, "--json").out)["build"], build)


class Answer(CliTest):
    def setUp(self):
        super().setUp()
        self.blue = self.write("blue.png", png(168, 168, BLUE))
        self.green = self.write("green.png", png(90, 400, GREEN))

    def check_timings(self, answer: dict, ended: bool):
        timings = answer["timings"]
        self.assertEqual(sorted(timings), sorted(TIMING_KEYS))
        for key in set(TIMING_KEYS) - {"per_token"}:
            self.assertTrue(is_number(timings[key]) and timings[key] >= 0, key)
        steps = timings["per_token"]
        self.assertTrue(all(is_number(step) and step > 0 for step in steps))
        # A step for each token after the first, and for the end token.
        self.assertEqual(len(steps), answer["generated_tokens"] - (0 if ended else 1))
        self.assertLessEqual(sum(steps), timings["decode"])
        self.assertGreaterEqual(timings["first_token"], timings["prefill"])
        self.assertGreater(timings["load"], 0)
        self.assertAlmostEqual(
            timings["prompt_per_second"], 1000 * answer["prompt_tokens"] / timings["prefill"], 3
        )
        if steps:
            self.assertAlmostEqual(
                timings["decode_per_second"], 1000 * len(steps) / timings["decode"], 3
            )

    def check_media(self, answer: dict):
        end = 0
        for entry in answer["media"]:
            self.assertEqual(sorted(entry), sorted(MEDIA_KEYS))
            self.assertEqual(entry["kind"], "image")
            self.assertIsInstance(entry["source"], str)
            for key, length in (("size", 2), ("resized", 2), ("grid_thw", 3)):
                self.assertEqual(len(entry[key]), length, key)
                self.assertTrue(all(is_int(side) and side > 0 for side in entry[key]), key)
            self.assertEqual(entry["grid_thw"], [1, *(side // 14 for side in entry["resized"])])
            _, rows, columns = entry["grid_thw"]
            self.assertEqual(entry["tokens"], rows * columns // 4)
            self.assertGreaterEqual(entry["first_token"], end)
            end = entry["first_token"] + entry["tokens"]
        self.assertLess(end, answer["prompt_tokens"])

    def check(self, answer: dict, ended: bool):
        self.assertEqual(sorted(answer), sorted(ANSWER_KEYS))
        self.assertIsInstance(answer["text"], str)
        self.assertEqual(answer["finish_reason"], "stop" if ended else "length")
        for key in ("prompt_tokens", "generated_tokens", "rope_delta"):
            self.assertTrue(is_int(answer[key]), key)
        self.assertTrue(all(is_int(id) and 0 <= id < 2048 for id in answer["ids"]))
        self.assertEqual(answer["generated_tokens"], len(answer["ids"]))
        # After a picture, positions go on behind its longer side.
        sides = [max(entry["grid_thw"]) // 2 - entry["tokens"] for entry in answer["media"]]
        self.assertEqual(answer["rope_delta"], sum(sides))
        self.check_media(answer)
        self.check_timings(answer, ended)

    def test_one_picture(self):
        answer = self.answer("--image", SHAPES, "-p", "Describe this image.")
        self.check(answer, ended=True)
        self.assertTrue(set(answer["ids"]).isdisjoint({2000, 2002}), "the end token isn't left out")
        [entry] = answer["media"]
        self.assertEqual(entry["source"], str(SHAPES))
        self.assertEqual(entry["size"], [201, 333])
        self.assertEqual(entry["resized"], [168, 280])
        self.assertGreater(answer["timings"]["tower"], 0)
        self.assertGreater(answer["timings"]["media_decode"], 0)

    def test_text_alone(self):
        answer = self.answer("-p", "Hi", "--max-tokens", 5)
        self.check(answer, ended=False)
        self.assertEqual(answer["media"], [])
        self.assertEqual(answer["generated_tokens"], 5)

    def test_one_token(self):
        answer = self.answer("-p", "Hi", "--max-tokens", 1)
        self.check(answer, ended=False)
        self.assertEqual(answer["timings"]["per_token"], [])
        self.assertEqual(answer["timings"]["decode_per_second"], 0)

    def test_pictures_in_the_order_of_the_flags(self):
        for order in ([self.blue, self.green], [self.green, self.blue]):
            flags = [part for path in order for part in ("--image", path)]
            answer = self.answer(*flags, "-p", "Compare them.", "-n", 2, model=BF16)
            self.check(answer, ended=False)
            self.assertEqual([entry["source"] for entry in answer["media"]], list(map(str, order)))
            heights = [entry["size"][0] for entry in answer["media"]]
            self.assertEqual(heights, [168 if path == self.blue else 400 for path in order])

    def test_a_box_finds_its_way_back(self):
        """Some models answer in pixels of the resized picture; `media` holds both sizes."""
        turned = SOURCE / "tests/golden/media/decode/exif_6.jpg"
        for picture, size in ((self.green, [400, 90]), (turned, [16, 24]), (SHAPES, [201, 333])):
            [entry] = self.answer("--image", picture, "-p", "Where?", "-n", 1)["media"]
            self.assertEqual(entry["size"], size, "as the picture is seen")
            height, width = entry["resized"]
            self.assertLess(abs(height - width * size[0] / size[1]), 1.5 * 28)
            for side, resized in zip(size, entry["resized"], strict=True):
                for edge in (0, side // 3, side):
                    answered = round(edge * resized / side)
                    back = answered * side / resized
                    self.assertLessEqual(abs(back - edge), max(1, side / resized))


class Streams(CliTest):
    def test_stdout_is_the_text_alone(self):
        question = ("--image", SHAPES, "-p", "Describe this image.")
        answer = self.answer(*question)
        self.assertEqual(self.text(*question), answer["text"])
        self.assertGreater(len(answer["text"]), 20)

    def test_verbose_speaks_on_stderr(self):
        question = ("generate", "-m", BUNDLED, "-p", "Hi", "-n", "4")
        quiet, verbose = run(*question), run(*question, "--verbose")
        self.assertEqual((verbose.code, verbose.out), (0, quiet.out))
        self.assertIn("prompt of", verbose.err)
        self.assertEqual(quiet.err, "")

    def test_verbose_with_json(self):
        result = run("generate", "-m", BUNDLED, "-p", "Hi", "-n", "4", "--verbose", "--json")
        self.assertEqual(result.out.count("\n"), 1)
        self.assertEqual(parse_json(result.out)["generated_tokens"], 4)


class Inspect(CliTest):
    def inspect(self, *arguments) -> dict:
        result = run("inspect", "--json", *arguments)
        self.assertEqual((result.code, result.err), (0, ""), arguments)
        self.assertEqual(result.out.count("\n"), 1)
        return parse_json(result.out)

    def test_quantised_model(self):
        found = self.inspect("-m", BUNDLED)
        self.assertEqual(found["model_type"], "qwen2_5_vl")
        self.assertEqual(found["context"], 32768)
        self.assertEqual(found["quantization"]["bits"], 4)
        self.assertEqual(found["quantization"]["group_size"], 64)
        self.assertEqual(found["pictures"], [])
        self.assertEqual(found["sizes"]["layers"], 5)
        self.assertEqual(found["sizes"]["head_dim"], 64)

    def test_the_same_model_unquantised(self):
        packed, plain = self.inspect("-m", BUNDLED), self.inspect("-m", BF16)
        self.assertIsNone(plain["quantization"])
        self.assertEqual(list(plain["weights"]["bytes_by_dtype"]), ["BF16"])
        self.assertEqual(plain["sizes"], packed["sizes"])
        self.assertEqual(plain["weights"]["parameters"], packed["weights"]["parameters"])
        self.assertGreater(plain["weights"]["bytes"], 2 * packed["weights"]["bytes"])

    def test_memory(self):
        found = self.inspect("-m", BF16)
        self.assertEqual(found["memory"]["weights"], found["weights"]["bytes"])
        sizes = found["sizes"]
        cached = 2 * sizes["layers"] * sizes["kv_heads"] * sizes["head_dim"]
        self.assertEqual(found["memory"]["kv_cache_per_token"], 2 * cached)
        self.assertGreater(found["memory"]["peak"], found["memory"]["weights"])
        picture = self.write("picture.png", png(640, 480, BLUE))
        seen = self.inspect("-m", BF16, "--image", picture)
        self.assertGreater(seen["memory"]["peak"], found["memory"]["peak"])

    def test_pictures_are_what_generate_makes_of_them(self):
        for height, width in ((1, 1), (60, 61), (201, 333), (400, 90), (1000, 1500)):
            with self.subTest(height=height, width=width):
                picture = self.write("picture.png", png(width, height, BLUE))
                [found] = self.inspect("-m", BUNDLED, "--image", picture)["pictures"]
                [used] = self.answer("--image", picture, "-p", "Hi", "-n", 1)["media"]
                self.assertEqual(found.pop("format"), "PNG")
                self.assertEqual(found["size"], [height, width])
                del used["kind"], used["first_token"]
                self.assertEqual(found, used)

    def test_several_pictures(self):
        blue = self.write("blue.png", png(20, 30, BLUE))
        pictures = self.inspect("-m", BUNDLED, "--image", SHAPES, "--image", blue)["pictures"]
        self.assertEqual([entry["source"] for entry in pictures], [str(SHAPES), str(blue)])

    def test_text(self):
        result = run("inspect", "-m", BUNDLED, "--image", SHAPES)
        self.assertEqual((result.code, result.err), (0, ""))
        for part in (
            r"architecture +qwen2_5_vl",
            r"hidden_size +256",
            r"context +32768 tokens",
            r"quantisation +4 bit, groups of 64",
            r"weights +5700608 parameters, 5\.0 MiB",
            r"memory +5\.0 MiB for weights",
            r"computes with +\w+ operations on \w+, BLAS \S+",
            r"shapes\.png: PNG \[201,333\], resized \[168,280\], grid \[1,12,20\], 60 tokens",
        ):
            self.assertRegex(result.out, part)


if __name__ == "__main__":
    unittest.main()
