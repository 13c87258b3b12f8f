"""trace and compare: teacher-forced logits at a depth, and a verdict that can't be had for nothing."""
import json
import os
import pathlib
import random
import sys
import unittest

from support import (
    BUNDLED,
    MODELS,
    SHAPES,
    CliTest,
    Safetensors,
    copy_model,
    parse_json,
    run,
)

HEADER_KEYS = [
    "whimbrel_trace", "build", "model", "input", "ops", "dtype", "depth", "width", "positions",
]
ROW_KEYS = ["pos", "id", "target", "nll", "top_ids", "top_logits"]
DEPTH = 2048
OWN_KERNELS = parse_json(run("version", "--json").out)["ops"] == "cpu"
TRACE_SECONDS = 600  # at that depth, without vectors
WORDS = (
    "tiger umbrella orange valley teapot ladder pepper ocean button garden forest dragon pocket "
    "feather engine camera wagon helmet guitar mirror paper needle silver violin lemon jacket"
).split()


def long_text(sentences: int) -> str:
    """Sentences of the kind that the tiny models were trained on."""
    draw = random.Random(7)
    return " ".join(
        f"The code of the {draw.choice(WORDS)} is {draw.randrange(100, 1000)}."
        for _ in range(sentences)
    )


class TraceCase(CliTest):
    def text_file(self, sentences: int = 320) -> pathlib.Path:
        return self.write("long.txt", long_text(sentences))

    def messages_file(self, sentences: int = 0, picture_first: bool = True) -> pathlib.Path:
        parts = [{"type": "image_url", "image_url": {"url": str(SHAPES)}}]
        parts.append({"type": "text", "text": long_text(sentences) or "Describe this image."})
        if not picture_first:
            parts.reverse()
        messages = [{"role": "user", "content": parts}]
        return self.write(f"messages{sentences}.json", json.dumps(messages))

    def trace(self, name: str, *arguments, model=BUNDLED, env=None) -> pathlib.Path:
        output = self.folder / name
        result = run("trace", "-m", model, *arguments, "-o", output, env=env, seconds=TRACE_SECONDS)
        self.assertEqual((result.code, result.out, result.err), (0, "", ""), arguments)
        return output

    def compare(self, reference, candidate, *flags, code: int = 0) -> dict:
        """The figures of a comparison that ends with `code`."""
        result = run("compare", reference, candidate, "--json", *flags)
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.err == "", code == 0, result)
        self.assertEqual(result.out.count("\n"), 1, result)
        return parse_json(result.out)

    def assert_refused(self, reference, candidate, *named: str, flags=()):
        self.assert_error(run("compare", reference, candidate, *flags), 2, *named)


class Format(TraceCase):
    def read(self, file: pathlib.Path) -> tuple[dict, list[dict]]:
        header, *rows = map(parse_json, file.read_text().splitlines())
        return header, rows

    def check(self, file: pathlib.Path, depth: int, width: int, positions: int, top: int = 8):
        header, rows = self.read(file)
        self.assertEqual(list(header), HEADER_KEYS)
        self.assertEqual(header["whimbrel_trace"], 1)
        self.assertEqual(header["build"], parse_json(run("version", "--json").out))
        self.assertEqual(header["ops"], header["build"]["ops"])
        self.assertIn(header["dtype"], ["float32", "bfloat16", "float16"])
        self.assertEqual(
            [header["depth"], header["width"], header["positions"]], [depth, width, positions]
        )
        self.assertEqual([row["pos"] for row in rows], list(range(depth, depth + positions)))
        for row, following in zip(rows, [*rows[1:], None]):
            self.assertEqual(list(row), ROW_KEYS)
            self.assertEqual(len(row["top_ids"]), top)
            self.assertEqual(row["top_logits"], sorted(row["top_logits"], reverse=True))
            self.assertGreaterEqual(row["nll"], 0)
            if following:
                self.assertEqual(row["target"], following["id"])
        return header, rows

    def test_text(self):
        text = self.text_file(60)
        file = self.trace("t.jsonl", "--text", text, "--depth", 30, "--positions", 50, "--width", 3)
        header, rows = self.check(file, 30, 3, 50)
        # The best token's probability can't be lower than the target's.
        surest = [row for row in rows if row["target"] == row["top_ids"][0]]
        self.assertGreater(len(surest), 15)
        self.assertTrue(all(row["nll"] < 3 for row in surest))
        other = self.trace("u.jsonl", "--text", text, "--positions", 20, "--top", 2)
        other_header, _ = self.check(other, 0, 1, 20, top=2)
        for key in ("model", "input"):
            self.assertEqual(header[key], other_header[key])
            self.assertRegex(header[key], r"\A[0-9a-f]{64}\Z")

    def test_default_is_256_positions_one_by_one(self):
        self.check(self.trace("t.jsonl", "--text", self.text_file(40)), 0, 1, 256)

    def test_picture(self):
        """The first rows stand in front of the picture, the others inside and behind it."""
        file = self.trace("p.jsonl", "--messages", self.messages_file(), "--positions", 80)
        header, rows = self.check(file, 0, 1, 80)
        ids = [row["id"] for row in rows]
        pad = max(set(ids), key=ids.count)
        self.assertEqual(ids.count(pad), 60)  # 168 x 280 pixels
        self.assertNotEqual(ids[0], pad)
        self.assertNotEqual(ids[-1], pad)
        text = self.trace("t.jsonl", "--text", self.text_file(40), "--positions", 80)
        self.assertNotEqual(self.read(text)[0]["input"], header["input"])
        self.assertEqual(self.read(text)[0]["model"], header["model"])

    def test_another_picture_is_another_input(self):
        sums = []
        for colour in (b"a", b"b"):
            picture = self.write("picture.png", SHAPES.read_bytes() + colour)
            parts = [{"type": "image_url", "image_url": str(picture)}]
            parts.append({"type": "text", "text": "Describe this image."})
            file = self.write("m.json", json.dumps([{"role": "user", "content": parts}]))
            trace = self.trace("p.jsonl", "--messages", file, "--positions", 4)
            sums.append(self.read(trace)[0]["input"])
        self.assertNotEqual(*sums)


class Refusals(TraceCase):
    def refuse(self, code: int, *named: str, arguments):
        output = self.folder / "none.jsonl"
        result = run("trace", "-m", BUNDLED, *arguments, "-o", output)
        self.assert_error(result, code, *named)
        self.assertEqual(list(self.folder.glob("none*")), [])

    def test_too_few_tokens(self):
        text = self.write("short.txt", "One two three.")
        file = self.trace("t.jsonl", "--text", text, "--positions", 2)
        self.assertEqual(file.read_text().count("\n"), 3)
        self.refuse(
            4, "expected at least 257", "depth 0", arguments=["--text", text]
        )
        self.refuse(
            4,
            "expected at least 2305",
            "depth 2048",
            "positions 256",
            arguments=["--text", self.text_file(100), "--depth", DEPTH],
        )

    def test_one_token_too_few(self):
        text = self.text_file(20)
        needed = run("trace", "-m", BUNDLED, "--text", text, "-o", self.folder / "x").err
        tokens = int(needed.split("input of ")[1].split()[0])
        self.trace("t.jsonl", "--text", text, "--positions", tokens - 1)
        self.refuse(4, f"got an input of {tokens} tokens, expected at least {tokens + 1}",
                    arguments=["--text", text, "--positions", tokens])

    def test_wrong_flags(self):
        text = self.text_file(20)
        for flags, named in (
            (["--text", text, "--width", 0], "--width"),
            (["--text", text, "--width", 65, "--positions", 64], "--width"),
            (["--text", text, "--depth", -1], "--depth"),
            (["--text", text, "--positions", 0], "--positions"),
            (["--text", text, "--top", 1], "--top"),
            (["--text", text, "--top", 99999], "--top"),
            (["--text", text, "--messages", self.messages_file()], "both"),
            ([], "--text"),
        ):
            with self.subTest(flags):
                self.refuse(2, named, arguments=flags)

    def test_bad_inputs(self):
        self.refuse(4, "missing.txt", arguments=["--text", self.folder / "missing.txt"])
        self.refuse(4, "empty", arguments=["--text", self.write("empty.txt", "")])
        self.refuse(4, "UTF-8", arguments=["--text", self.write("bytes.txt", b"\xff\xfe")])

    def test_outputs(self):
        text = self.text_file(20)
        short = ("--text", text, "--positions", 4)
        full = run("trace", "-m", BUNDLED, *short, "-o", "/dev/full")
        self.assert_error(full, 6, "/dev/full")
        self.assertTrue(pathlib.Path("/dev/full").is_char_device())
        for output in (self.folder / "missing/t.jsonl", self.folder):
            self.assert_error(run("trace", "-m", BUNDLED, *short, "-o", output), 6, str(output))
        self.assert_error(run("trace", "-m", BUNDLED, *short), 2, "--output")

    def test_a_failure_leaves_the_old_trace(self):
        old = self.write("t.jsonl", "old")
        model = copy_model(BUNDLED, self.folder / "model")
        weights = Safetensors.read(model / "model.safetensors")
        name = next(name for name in weights.tensors if name.endswith("model.norm.weight"))
        dtype, shape, data = weights.tensors[name]
        weights.tensors[name] = (dtype, shape, b"\xc0\x7f" * (len(data) // 2))  # NaN in bfloat16
        weights.write(model / "model.safetensors")
        (model / "model.safetensors.index.json").unlink()
        self.assertEqual(dtype, "BF16")
        result = run("trace", "-m", model, "--text", self.text_file(40), "-o", old)
        self.assert_error(result, 3, "not finite", "position 0", "whimbrel verify -m")
        self.assertEqual(old.read_text(), "old")
        self.assertEqual(list(self.folder.glob("*.partial")), [])


class Verdict(TraceCase):
    def setUp(self):
        super().setUp()
        self.text = self.text_file(40)
        self.one = self.trace("one.jsonl", "--text", self.text)
        self.four = self.trace("four.jsonl", "--text", self.text, "--width", 4)

    def edited(self, change, name: str = "edited.jsonl") -> pathlib.Path:
        lines = [json.loads(line) for line in self.four.read_text().splitlines()]
        change(lines)
        return self.write(name, "".join(json.dumps(line) + "\n" for line in lines))

    def test_figures(self):
        figures = self.compare(self.one, self.four)
        self.assertEqual(figures["decided_disagreements"], 0)
        self.assertEqual(figures["positions"], 256)
        self.assertGreaterEqual(figures["decided"], 32)
        self.assertEqual([bucket["gap"] for bucket in figures["buckets"]], [0, 0.5, 1, 2, 5, 10])
        counts = [bucket["positions"] for bucket in figures["buckets"]]
        self.assertEqual(sum(counts), 256)
        self.assertEqual(sum(counts[3:]), figures["decided"])
        # Steps of several tokens are a prompt's, which may be rounded where an answer's are not.
        self.assertLess(figures["largest_difference"]["difference"], 0.5)
        perplexity = figures["perplexity"]
        self.assertAlmostEqual(perplexity["reference"] / perplexity["candidate"], 1, 2)

    @unittest.skipUnless(OWN_KERNELS, "MLX's products depend on the number of rows")
    def test_the_size_of_a_step_changes_nothing(self):
        many = self.trace("many.jsonl", "--text", self.text, "--width", 96)
        figures = self.compare(self.four, many)
        self.assertEqual(figures["largest_difference"]["difference"], 0)

    def test_text_says_the_same(self):
        result = run("compare", self.one, self.four)
        self.assertEqual((result.code, result.err), (0, ""))
        decided = self.compare(self.one, self.four)["decided"]
        for part in (f"{decided} of them decided", "10 and over", "largest logit", "perplexity"):
            self.assertIn(part, result.out)

    def test_a_decided_disagreement_fails(self):
        def change(lines):
            row = next(line for line in lines[1:] if line["top_logits"][0] - line["top_logits"][1] > 5)
            row["top_ids"][:2] = row["top_ids"][1::-1]

        figures = self.compare(self.one, self.edited(change), code=1)
        self.assertEqual(figures["decided_disagreements"], 1)
        self.assertEqual(len(figures["decided_disagreements_at"]), 1)
        self.assertGreater(figures["largest_difference"]["difference"], 5)

    def test_an_undecided_one_does_not(self):
        def change(lines):
            row = next(line for line in lines[1:] if line["top_logits"][0] - line["top_logits"][1] < 1)
            row["top_ids"][:2] = row["top_ids"][1::-1]

        edited = self.edited(change)
        self.assertEqual(self.compare(self.one, edited)["disagreements"], 1)
        self.compare(self.one, edited, "--decided", 0, code=1)

    def test_nothing_to_say(self):
        self.assertEqual(self.compare(self.one, self.four, "--decided", 90, code=2)["decided"], 0)
        short = [
            self.trace(f"s{width}.jsonl", "--text", self.text, "--positions", 31, "--width", width)
            for width in (1, 2)
        ]
        self.compare(*short, "--decided", 0, code=2)

    def test_self(self):
        self.assert_refused(self.one, self.one, "same file")
        link = self.folder / "link.jsonl"
        link.symlink_to(self.one)
        self.assert_refused(self.one, link, "same file")
        copy = self.write("copy.jsonl", self.one.read_bytes())
        self.assert_refused(self.one, copy, "same build")
        for other in (self.one, link, copy):
            figures = self.compare(self.one, other, "--self")
            self.assertEqual(figures["largest_difference"]["difference"], 0)

    def test_what_cannot_be_compared(self):
        other_text = self.write("other.txt", long_text(41))
        deeper = self.trace("d.jsonl", "--text", self.text, "--depth", 8, "--width", 4)
        self.assert_refused(self.one, deeper, "depth")
        fewer = self.trace("f.jsonl", "--text", self.text, "--positions", 200, "--width", 4)
        self.assert_refused(self.one, fewer, "positions")
        other = self.trace("o.jsonl", "--text", other_text, "--width", 4)
        self.assert_refused(self.one, other, "input")

    def test_broken_traces(self):
        whole = self.four.read_text()
        lines = whole.splitlines(keepends=True)
        for name, content in (
            ("empty", ""),
            ("header only", lines[0]),
            ("a row short", "".join(lines[:-1])),
            ("cut off", whole[:-40]),
            ("a row more", whole + lines[-1]),
            ("no header", "".join(lines[1:])),
            ("NaN", whole.replace('"top_logits":[', '"top_logits":[NaN,', 1)),
            ("no trace", "hello"),
        ):
            with self.subTest(name):
                broken = self.write("broken.jsonl", content)
                for flags in ((), ("--self",)):
                    self.assert_refused(self.one, broken, "broken.jsonl", flags=flags)
                    self.assert_refused(broken, self.one, "broken.jsonl", flags=flags)

        def without_top_ids(lines):
            del lines[7]["top_ids"]

        self.assert_refused(self.one, self.edited(without_top_ids), "line 8", "top_ids")
        self.assert_refused(self.one, self.folder / "missing.jsonl", "missing.jsonl")

    def test_wrong_flags(self):
        for value in ("-1", "nan", "inf", "x"):
            self.assert_error(run("compare", self.one, self.four, "--decided", value), 2, "decided")
        self.assert_error(run("compare", self.one), 2, "candidate")


def damage(model: pathlib.Path, swap) -> None:
    """Swaps the two halves of one layer's query rows: the heads answer each other's questions."""
    for file in sorted(model.glob("*.safetensors")):
        weights = Safetensors.read(file)
        names = [name for name in weights.tensors if swap(name)]
        for name in names:
            dtype, shape, data = weights.tensors[name]
            half = len(data) // 2
            weights.tensors[name] = (dtype, shape, data[half:] + data[:half])
        if names:
            weights.write(file)
            return
    raise AssertionError("nothing to damage")


def is_first_query(name: str) -> bool:
    return "layers.0.self_attn.q_proj." in name


def exact_environment() -> dict:
    """In which activations of many rows are not rounded to bfloat16; empty where they never are."""
    isa = parse_json(run("version", "--json").out)["isa"]
    return {"WHIMBREL_ISA": "avx512"} if isa in ("avx512bf16", "amx") else {}


class DepthCase(TraceCase):
    """At 2048 tokens every width says the same, and a model with one error does not."""

    def at_depth(self, name: str, width: int, *arguments, model, env=None) -> pathlib.Path:
        # One thread: the machine may be busy, and threads of a busy machine wait for each other.
        flags = ("--depth", DEPTH, "--width", width, "--threads", 1)
        return self.trace(name, *arguments, *flags, model=model, env=env)

    def check_widths(self, model, *arguments) -> pathlib.Path:
        """The trace of width 1 on this machine's own instruction set."""
        exact = exact_environment()
        for env in [exact] if not exact else [exact, {}]:
            reference = self.at_depth("w1.jsonl", 1, *arguments, model=model, env=env)
            for width in (4, 64):
                name = f"w{width}.jsonl"
                candidate = self.at_depth(name, width, *arguments, model=model, env=env)
                figures = self.compare(reference, candidate)
                self.assertEqual(figures["decided_disagreements"], 0)
                self.assertGreaterEqual(figures["decided"], 32)
                if env == exact:
                    self.assertLess(figures["largest_difference"]["difference"], 0.05)
        return reference

    def check_model(self, model: pathlib.Path):
        if "vision_config" in json.loads((model / "config.json").read_text()):
            self.check_widths(model, "--messages", self.messages_file(320))
        reference = self.check_widths(model, "--text", self.text_file())
        wrong = copy_model(model, self.folder / f"wrong-{model.name}")
        damage(wrong, is_first_query)
        planted = self.at_depth("p.jsonl", 64, "--text", self.text_file(), model=wrong)
        figures = self.compare(reference, planted, code=1)
        self.assertGreater(figures["decided_disagreements"], 10)


class DepthQwen25Vl(DepthCase):
    def test_model(self):
        self.check_model(MODELS / "tiny-qwen2-5-vl")


class DepthQwen25Vl4bit(DepthCase):
    def test_model(self):
        self.check_model(MODELS / "tiny-qwen2-5-vl-4bit")


class DepthQwen2Vl4bit(DepthCase):
    def test_model(self):
        self.check_model(MODELS / "tiny-qwen2-vl-4bit")


class DepthQwen3Vl4bit(DepthCase):
    def test_model(self):
        self.check_model(MODELS / "tiny-qwen3-vl-4bit")


class DepthQwen3VlMoe4bit(DepthCase):
    def test_model(self):
        self.check_model(MODELS / "tiny-qwen3-vl-moe-4bit")


def instruction_sets() -> list[str]:
    """Those that this machine offers."""
    names = "scalar neon avx2 avxvnni avx512 avx512bf16 amx".split()
    return [name for name in names if run("version", env={"WHIMBREL_ISA": name}).code == 0]


class InstructionSetsCase(DepthCase):
    """The decode path at 2048 tokens, on every instruction set beside the reference operations."""

    def check_instruction_sets(self, model: pathlib.Path, names: list[str]):
        if parse_json(run("version", "--json").out)["ops"] != "cpu":
            self.skipTest("on a GPU")
        text = ("--text", self.text_file())
        reference = self.at_depth("r.jsonl", 64, *text, model=model, env={"WHIMBREL_OPS": "reference"})
        for name in names:
            env = {"WHIMBREL_OPS": "cpu", "WHIMBREL_ISA": name}
            figures = self.compare(
                reference, self.at_depth(f"{name}.jsonl", 1, *text, model=model, env=env)
            )
            with self.subTest(name):
                self.assertEqual(figures["decided_disagreements"], 0)
                self.assertGreaterEqual(figures["decided"], 32)


class InstructionSets(InstructionSetsCase):
    def test_model(self):
        without_vectors = {"scalar"}  # takes a minute
        names = [name for name in instruction_sets() if name not in without_vectors]
        self.check_instruction_sets(BUNDLED, names)


class SlowInstructionSets(InstructionSetsCase):
    def test_models(self):
        for model in sorted(MODELS.glob("tiny-*")):
            self.check_instruction_sets(model, instruction_sets())


class DepthOutsideTheProject(DepthCase):
    def test_checkpoints(self):
        if "WHIMBREL_REFERENCE_DIR" not in os.environ:
            self.skipTest("WHIMBREL_REFERENCE_DIR isn't set")
        folder = pathlib.Path(os.environ["WHIMBREL_REFERENCE_DIR"]) / "checkpoints"
        models = [path for path in sorted(folder.iterdir()) if not (MODELS / path.name).exists()]
        for model in models:
            with self.subTest(model.name):
                self.check_model(model)
        print(f"tested: {', '.join(model.name for model in models)}", file=sys.stderr)


class DepthInsideAPicture(DepthCase):
    def test_picture_behind_2048_tokens(self):
        """The picture's tokens are traced one by one, their features with them."""
        text_first = self.messages_file(300, picture_first=False)
        for depth in (DEPTH, 2100, 2130):
            traces = [
                self.trace(
                    f"{depth}-{width}.jsonl", "--messages", text_first,
                    "--depth", depth, "--positions", 64, "--width", width, "--threads", 1,
                    env=exact_environment(),
                )
                for width in (1, 16)
            ]
            figures = self.compare(*traces, "--decided", 1)
            self.assertLess(figures["largest_difference"]["difference"], 0.05)


if __name__ == "__main__":
    unittest.main(verbosity=2)
