"""`verify`: what passes, and a checkpoint with one thing wrong, which is named."""
import struct
import unittest

from support import (
    BF16,
    BUNDLED,
    MODELS,
    CliTest,
    Safetensors,
    copy_model,
    edit_json,
    parse_json,
    run,
)

PICTURE_CHECKS = (
    "cached_picture chunks_picture text_after_picture picture_order picture_rows"
).split()
CHECKS = (
    "tokenizer stop_ids template finite dtype reference cached_text chunks_text".split()
    + PICTURE_CHECKS
)
REFERENCE = "whimbrel-reference.safetensors"


class VerifyCase(CliTest):
    def setUp(self):
        super().setUp()
        self.reference = self.folder / "reference.safetensors"

    def verify(self, *arguments, model, code: int = 0) -> dict[str, dict]:
        """The checks of `verify --json` by name."""
        result = run("verify", "-m", model, "--json", *arguments)
        self.assertEqual(result.code, code, result)
        report = parse_json(result.out)
        self.assertEqual(report["passed"], code == 0)
        checks = {check["check"]: check for check in report["checks"]}
        self.assertEqual(sorted(checks), sorted(CHECKS))
        failed = [name for name, check in checks.items() if check["result"] == "failed"]
        if code == 0:
            self.assertEqual((failed, result.err), ([], ""))
        else:
            self.assertRegex(result.err, r"\Aerror: \[verify\] [^\n]+\n\Z")
            for name in failed:
                self.assertIn(name, result.err)
        return checks

    def record(self, model) -> None:
        self.verify("--record", self.reference, model=model)
        self.assertEqual([path.name for path in self.folder.glob("*.safetensors")], [self.reference.name])

    def results(self, checks, names) -> set[str]:
        return {checks[name]["result"] for name in names}


class Record(CliTest):
    def test_a_folder_that_is_missing_is_said_before_any_check(self):
        file = self.folder / "nowhere/x.safetensors"
        result = run("verify", "-m", BUNDLED, "--record", file)
        self.assertEqual(result.out, "")
        self.assert_error(result, 6, f"[{file}]", "check the folder")
        self.assertNotIn("partial", result.err)


def negate_row(tensors, name: str, row: int) -> None:
    """Turns the sign of one row of a 16-bit matrix, or of one number of a vector."""
    dtype, shape, data = tensors[name]
    assert dtype in ("BF16", "F16"), dtype
    width = shape[1] if len(shape) > 1 else 1
    values = list(struct.unpack(f"<{len(data) // 2}H", data))
    for i in range(row * width, (row + 1) * width):
        values[i] ^= 0x8000
    tensors[name] = (dtype, shape, struct.pack(f"<{len(values)}H", *values))


class Bundled(VerifyCase):
    def test_table(self):
        result = run("verify", "-m", BUNDLED)
        self.assertEqual((result.code, result.err), (0, ""))
        rows = [line.split(maxsplit=2) for line in result.out.splitlines()]
        self.assertEqual([row[0] for row in rows], CHECKS)
        for name, outcome, figures in rows:
            self.assertEqual(outcome, "not_applicable" if name == "reference" else "passed")
            self.assertNotEqual(figures, "")

    def test_json(self):
        result = run("verify", "-m", BUNDLED, "--json")
        report = parse_json(result.out)
        self.assertEqual(list(report), ["model_type", "passed", "checks", "build"])
        self.assertEqual(report["model_type"], "qwen2_5_vl")
        checks = {check["check"]: check for check in report["checks"]}
        self.assertEqual(list(checks), CHECKS)
        peaks = checks["finite"]["figures"]["peaks"]
        for stage in ("visual.patch_embed", "visual.blocks.3", "model.layers.4", "logits"):
            self.assertGreater(peaks[stage], 0)
        self.assertEqual(checks["finite"]["figures"]["largest"], max(peaks.values()))
        self.assertEqual(checks["cached_text"]["figures"]["changed"], [])


class OtherFamilies(VerifyCase):
    def test_all_pass(self):
        for path in sorted(MODELS.iterdir()):
            if path.name not in (BUNDLED, BF16):
                with self.subTest(path.name):
                    self.verify(model=path)


class Recorded(VerifyCase):
    """Against a reference of the good checkpoint."""

    def damaged(self, name: str, row: int):
        model = copy_model(BF16, self.folder / "model")
        weights = Safetensors.read(model / "model.safetensors")
        negate_row(weights.tensors, name, row)
        weights.write(model / "model.safetensors")
        return model

    def test_first_stage_of_a_wrong_weight(self):
        self.record(BF16)
        checks = self.verify("--reference", self.reference, model=BF16)
        self.assertEqual(checks["reference"]["result"], "passed")
        for weight, stage in (
            ("visual.patch_embed.proj.weight", "visual.patch_embed"),
            ("visual.blocks.2.attn.proj.weight", "visual.blocks.2"),
            ("visual.blocks.0.norm1.weight", "visual.blocks.0"),
            ("visual.merger.mlp.0.weight", "visual.merger"),
            ("model.layers.3.self_attn.k_proj.weight", "model.layers.3"),
            ("model.layers.1.mlp.down_proj.weight", "model.layers.1"),
            ("model.norm.weight", "logits"),
        ):
            with self.subTest(weight):
                self.check_named(weight, stage)

    def check_named(self, weight: str, stage: str):
        model = self.damaged(weight, 0)
        try:
            checks = self.verify("--reference", self.reference, model=model, code=1)
        finally:
            self.remove(model)
        self.assertEqual(checks["reference"]["figures"]["first"], stage)
        self.assertIn(f"{stage} (", checks["reference"]["detail"])
        others = [name for name in CHECKS if name != "reference"]
        self.assertEqual(self.results(checks, others), {"passed"})

    def remove(self, folder):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    def test_wrong_positions(self):
        """As a build would make them that lays out pictures otherwise."""
        self.record(BUNDLED)
        weights = Safetensors.read(self.reference)
        dtype, shape, data = weights.tensors["colours/positions"]
        weights.tensors["colours/positions"] = (dtype, shape, data[:-4] + b"\1\0\0\0")
        weights.write(self.reference, whimbrel_reference="1", model_type="qwen2_5_vl")
        checks = self.verify("--reference", self.reference, model=BUNDLED, code=1)
        self.assertEqual(checks["reference"]["figures"]["key"], "colours/positions")

    def test_wrong_rotation(self):
        """A config.json that cuts the rotary axes elsewhere."""
        self.record(BUNDLED)
        model = copy_model(BUNDLED, self.folder / "model")
        edit_json(
            model / "config.json",
            lambda config: config["rope_scaling"].update(mrope_section=[12, 12, 8]),
        )
        checks = self.verify("--reference", self.reference, model=model, code=1)
        self.assertEqual(checks["reference"]["figures"]["first"], "model.layers.0")

    def test_file_in_the_folder(self):
        """Is found without the flag, and is not taken for weights."""
        self.record(BUNDLED)
        model = copy_model(BUNDLED, self.folder / "model")
        (model / "model.safetensors.index.json").unlink()
        (model / "model.safetensors").rename(model / "weights.safetensors")
        self.reference.rename(model / REFERENCE)
        self.assertEqual(self.verify(model=model)["reference"]["result"], "passed")
        again = self.folder / "again.safetensors"
        checks = self.verify("--record", again, model=model)
        self.assertEqual(checks["reference"]["result"], "not_applicable")
        self.assertEqual(len(Safetensors.read(again).tensors), len(Safetensors.read(model / REFERENCE).tensors))


class NotComparable(VerifyCase):
    def refuse(self, *arguments, named, model=BUNDLED):
        result = run("verify", "-m", model, *arguments, "--json")
        self.assert_error(result, 2, *named)

    def test_other_inputs(self):
        """A template with another system prompt gives other ids."""
        self.record(BUNDLED)
        model = copy_model(BUNDLED, self.folder / "model")
        file = model / "chat_template.jinja"
        template = file.read_text()
        file.write_text(template.replace("You are a helpful assistant.", "You are terse."))
        self.assertNotEqual(template, file.read_text())
        self.refuse("--reference", self.reference, model=model, named=("/ids", "template"))

    def test_other_model_type(self):
        self.record(BUNDLED)
        self.refuse("--reference", self.reference, model="tiny-qwen3-vl-4bit", named=("qwen3_vl",))
        self.refuse("--reference", self.reference, model="tiny-qwen2-vl-4bit", named=("qwen2_5_vl", "qwen2_vl"))

    def test_no_reference(self):
        self.refuse("--reference", self.folder / "none.safetensors", named=("none.safetensors",))
        self.refuse(
            "--reference", MODELS / BUNDLED / "model.safetensors", named=("no reference", "--record")
        )

    def test_flags(self):
        self.refuse("--record", "a.safetensors", "--reference", "b.safetensors", named=("--record",))
        self.refuse("--record", "a.bin", named=("a.bin", ".safetensors"))


class Broken(VerifyCase):
    def test_nan(self):
        """Is named by the finite check, and nothing is recorded."""
        model = copy_model(BF16, self.folder / "model")
        weights = Safetensors.read(model / "model.safetensors")
        name = "model.layers.2.mlp.down_proj.weight"
        dtype, shape, data = weights.tensors[name]
        weights.tensors[name] = (dtype, shape, b"\xc0\x7f" + data[2:])
        weights.write(model / "model.safetensors")
        checks = self.verify("--record", self.reference, model=model, code=1)
        self.assertEqual(checks["finite"]["result"], "failed")
        self.assertIn("model.layers.2 (", checks["finite"]["detail"])
        peaks = checks["finite"]["figures"]["peaks"]
        self.assertIsNone(peaks["model.layers.2"])
        self.assertGreater(peaks["model.layers.1"], 0)
        self.assertFalse(self.reference.exists())

    def test_template(self):
        model = copy_model(BUNDLED, self.folder / "model")
        (model / "chat_template.jinja").write_text("{{ raise_exception('no users here') }}")
        result = run("verify", "-m", model)
        self.assertEqual(result.code, 1)
        self.assertRegex(result.out, r"(?m)^template +failed +.*no users here")
        self.assertIn("template", result.err)

    def test_stop_ids(self):
        """An end token that no tokenizer knows."""
        model = copy_model(BUNDLED, self.folder / "model")
        edit_json(model / "generation_config.json", lambda config: config.update(eos_token_id=2040))
        checks = self.verify(model=model, code=1)
        self.assertEqual(checks["stop_ids"]["result"], "failed")

    def test_model_that_is_not_there(self):
        self.assert_error(run("verify", "-m", self.folder / "none"), 3, "none")


class TextOnly(VerifyCase):
    def test_pictures_are_not_applicable(self):
        model = copy_model(BUNDLED, self.folder / "model")
        weights = Safetensors.read(model / "model.safetensors")
        text = {name: t for name, t in weights.tensors.items() if "vision" not in name and "visual" not in name}
        self.assertLess(len(text), len(weights.tensors))
        Safetensors(text).write(model / "model.safetensors")
        (model / "model.safetensors.index.json").unlink()
        checks = self.verify("--record", self.reference, model=model)
        self.assertEqual(self.results(checks, PICTURE_CHECKS), {"not_applicable"})
        for name in PICTURE_CHECKS:
            self.assertIn("no vision tower", checks[name]["detail"])
        self.assertEqual(checks["cached_text"]["result"], "passed")
        self.assertFalse(any("picture" in name for name in Safetensors.read(self.reference).tensors))
        self.assertEqual(
            self.verify("--reference", self.reference, model=model)["reference"]["result"], "passed"
        )


if __name__ == "__main__":
    unittest.main()
