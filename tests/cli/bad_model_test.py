"""A checkpoint with one thing broken: exit code 3, and a sentence that names it."""
import unittest

from support import (
    BF16,
    BLUE,
    BUNDLED,
    COLOUR_QUESTION,
    SHAPES,
    CliTest,
    Safetensors,
    copy_model,
    edit_json,
    png,
    run,
)

NORM = "language_model.model.layers.0.input_layernorm.weight"
CANONICAL_NORM = "model.layers.0.input_layernorm.weight"


def edit_config(change):
    return lambda folder: edit_json(folder / "config.json", change)


def write(name, content: str):
    return lambda folder: (folder / name).write_text(content)


def remove(*names):
    def damage(folder):
        for name in names:
            (folder / name).unlink()

    return damage


def edit_tensors(change):
    def damage(folder):
        weights = Safetensors.read(folder / "model.safetensors")
        change(weights.tensors)
        weights.write(folder / "model.safetensors")
        (folder / "model.safetensors.index.json").unlink()

    return damage


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def set_quantization(block):
    def change(config):
        config.pop("quantization")
        config["quantization_config"] = block

    return edit_config(change)


def set_bits(bits):
    def change(config):
        config["quantization"]["bits"] = config["quantization_config"]["bits"] = bits

    return edit_config(change)


def reshape(tensors):
    dtype, shape, data = tensors[NORM]
    tensors[NORM] = (dtype, [shape[0] // 2], data[: len(data) // 2])


def widen_dtype(tensors):
    _, shape, _ = tensors[NORM]
    tensors[NORM] = ("I32", shape, b"\0" * 4 * shape[0])


def add_tensor(tensors):
    tensors["model.layers.9.extra.weight"] = ("F32", [2], b"\0" * 8)


def spoil_numbers(tensors):
    name = "language_model.model.norm.weight"
    dtype, shape, data = tensors[name]
    tensors[name] = (dtype, shape, b"\xff\x7f" * (len(data) // 2))  # NaN in bfloat16


def place_elsewhere(file):
    def change(index):
        index["weight_map"][NORM] = file

    return lambda folder: edit_json(folder / "model.safetensors.index.json", change)


def misplace_picture_patches(config):
    config["patch_size"] = 16


def negative_temperature(generation):
    generation.update(do_sample=True, temperature=-1)


# What is done to a copy of the bundled model, and what the sentence has to name.
CONFIG = {
    "no config.json": (remove("config.json"), ["without config.json"]),
    "no JSON": (write("config.json", '{"model_type": '), ["config.json", "invalid JSON"]),
    "no object": (write("config.json", "[]"), ["config.json", "expected an object"]),
    "key twice": (write("config.json", '{"a": 1, "a": 2}'), ["config.json", '"a" twice']),
    "no model_type": (edit_config(lambda c: c.pop("model_type")), ['no "model_type"']),
    "number as model_type": (edit_config(lambda c: c.update(model_type=3)), ['"model_type": 3']),
    "unknown family": (
        edit_config(lambda c: c.update(model_type="gpt9")),
        ['"gpt9"', "expected one of: ", "qwen2_5_vl"],
    ),
    "awq": (set_quantization({"quant_method": "awq", "bits": 4}), ['"awq"', "MLX"]),
    "gptq": (set_quantization({"quant_method": "gptq", "bits": 4}), ['"gptq"', "MLX"]),
    "other mode": (set_quantization({"mode": "mxfp4", "bits": 4}), ['"mxfp4"', '"affine"']),
    "no such bits": (set_bits(7), ['"bits": 7', "2, 3, 4, 5, 6, 8"]),
    "heads as text": (
        edit_config(lambda c: c.update(num_attention_heads="4")),
        ['"num_attention_heads": "4"', "integer"],
    ),
    "heads that don't divide": (
        edit_config(lambda c: c.update(num_attention_heads=3)),
        ['"num_attention_heads": 3', "256"],
    ),
    "time that stands still": (
        edit_config(lambda c: c["vision_config"].update(tokens_per_second=0)),
        ['"tokens_per_second": 0', "over 0"],
    ),
    "time that flies": (
        edit_config(lambda c: c["vision_config"].update(tokens_per_second=1001)),
        ['"tokens_per_second": 1001', "at most 1000"],
    ),
    "no context": (
        edit_config(lambda c: c.update(max_position_embeddings=0)),
        ['"max_position_embeddings": 0'],
    ),
    "scaled frequencies": (
        edit_config(lambda c: c["rope_scaling"].update(type="yarn")),
        ['"yarn"', "not supported"],
    ),
    "end token beyond the vocabulary": (
        edit_config(lambda c: c.update(eos_token_id=99999)),
        ["99999", "2048"],
    ),
    "bad sampling default": (
        lambda folder: edit_json(folder / "generation_config.json", negative_temperature),
        ["generation_config.json", "temperature", "-1"],
    ),
}

WEIGHTS = {
    "truncated shard": (cut, ["model.safetensors", "cut off"]),
    "empty file": (write("model.safetensors", ""), ["model.safetensors", "0 bytes"]),
    "web page": (write("model.safetensors", "<!DOCTYPE html>" * 9), ["no safetensors file"]),
    "no weights": (
        remove("model.safetensors", "model.safetensors.index.json"),
        ["without weights", "model.safetensors"],
    ),
    "no such shard": (
        remove("model.safetensors"),
        ["no such file", "model.safetensors.index.json"],
    ),
    "index leaves the folder": (place_elsewhere("../x.safetensors"), ['"../x.safetensors"', NORM]),
    "index of other files": (place_elsewhere("other.safetensors"), [NORM]),
    "missing tensor": (edit_tensors(lambda t: t.pop(NORM)), [CANONICAL_NORM, "got no tensor"]),
    "wrong shape": (edit_tensors(reshape), [NORM, "got shape [128], expected [256]"]),
    "wrong dtype": (edit_tensors(widen_dtype), [NORM, "I32"]),
    "unused tensor": (edit_tensors(add_tensor), ["model.layers.9.extra.weight", "doesn't use"]),
    "a layer too many": (
        edit_config(lambda c: c.update(num_hidden_layers=4)),
        ["model.layers.4.", "doesn't use"],
    ),
    "a layer missing": (
        edit_config(lambda c: c.update(num_hidden_layers=6)),
        ["model.layers.5.", "got no tensor"],
    ),
    "other bits than stated": (set_bits(8), ["got 4 bits", "expected 8 bits"]),
    "packed though nothing says so": (
        edit_config(lambda c: (c.pop("quantization"), c.pop("quantization_config"))),
        ["got 4 bits", "expected no quantisation"],
    ),
    "not finite": (edit_tensors(spoil_numbers), ["not finite", "whimbrel verify -m"]),
}

TEXT = {
    "no tokenizer": (remove("tokenizer.json"), ["without tokenizer.json", "copy it from"]),
    "tokenizer that is no JSON": (write("tokenizer.json", "{"), ["tokenizer.json"]),
    "tokenizer without a model": (
        write("tokenizer.json", '{"version": "1.0"}'),
        ["tokenizer.json"],
    ),
    "broken settings": (write("tokenizer_config.json", "["), ["tokenizer_config.json"]),
    "no template": (remove("chat_template.jinja"), ["no chat template", "chat_template.jinja"]),
    "broken template": (
        write("chat_template.jinja", "{% if %}"),
        ["chat_template.jinja", "syntax"],
    ),
}


class BadModel(CliTest):
    def test_no_such_folder(self):
        missing = self.folder / "not here"
        self.assert_error(run("generate", "-m", missing, "-p", "Hi"), 3, str(missing), "no such")
        self.assert_error(run("inspect", "-m", missing), 3, str(missing), "no such")

    def test_no_such_name(self):
        self.assert_error(run("generate", "-m", "no-such-model", "-p", "Hi"), 3, "no-such-model")
        self.assert_error(run("generate", "-m", "n" * 5000, "-p", "Hi"), 3, "no such folder")

    def test_no_bundled_model(self):
        result = run("generate", "-p", "Hi", env={"WHIMBREL_MODELS": str(self.folder)})
        self.assert_error(result, 3, BUNDLED)

    def test_file_in_place_of_a_folder(self):
        file = self.write("model.safetensors", "")
        self.assert_error(run("generate", "-m", file, "-p", "Hi"), 3, str(file), "got a file")

    def test_empty_folder(self):
        self.assert_error(run("generate", "-m", self.folder, "-p", "Hi"), 3, "without config.json")


def check_table(test: CliTest, table: dict):
    for number, (name, (damage, named)) in enumerate(table.items()):
        with test.subTest(name):
            folder = copy_model(BUNDLED, test.folder / str(number))
            damage(folder)
            result = run("generate", "-m", folder, "-p", "Hi", "-n", "1")
            test.assert_error(result, 3, *named)


class BadConfig(CliTest):
    def test_table(self):
        check_table(self, CONFIG)

    def test_inspect_refuses_them_too(self):
        for number, name in enumerate(("no config.json", "unknown family", "awq")):
            with self.subTest(name):
                damage, named = CONFIG[name]
                folder = copy_model(BUNDLED, self.folder / str(number))
                damage(folder)
                self.assert_error(run("inspect", "-m", folder), 3, *named)

    def test_layers_that_no_model_has(self):
        for number, (layers, named) in enumerate(
            ((2_000_000_000, "1 to 1000"), (900, "got num_hidden_layers 900"), (1, "model.layers.N"))
        ):
            with self.subTest(layers):
                folder = copy_model(BUNDLED, self.folder / str(number))

                def change(config, layers=layers):
                    config.get("text_config", config)["num_hidden_layers"] = layers
                    config.get("text_config", config).pop("layer_types", None)

                edit_json(folder / "config.json", change)
                self.assert_error(run("inspect", "-m", folder), 3, "num_hidden_layers", named)

    def test_depth_that_no_tower_has(self):
        folder = copy_model(BUNDLED, self.folder / "model")
        edit_json(
            folder / "config.json",
            lambda config: config["vision_config"].update(depth=2_000_000_000),
        )
        self.assert_error(run("inspect", "-m", folder), 3, "depth", "1 to 1000")

    def test_picture_settings(self):
        for damage, named in (
            (remove("preprocessor_config.json"), "preprocessor_config.json"),
            (write("preprocessor_config.json", "{"), "invalid JSON"),
            (
                lambda f: edit_json(f / "preprocessor_config.json", misplace_picture_patches),
                "patch_size 16, expected 14",
            ),
        ):
            with self.subTest(named):
                folder = copy_model(BF16, self.folder / named)
                damage(folder)
                self.assert_error(run("generate", "-m", folder, "--image", SHAPES), 3, named)


class BadWeights(CliTest):
    def test_table(self):
        check_table(self, WEIGHTS)

    def test_inspect_checks_headers(self):
        folder = copy_model(BUNDLED, self.folder / "model")
        cut(folder)
        self.assert_error(run("inspect", "-m", folder, "--json"), 3, "model.safetensors", "cut off")

    def test_the_editor_damages_nothing_by_itself(self):
        folder = copy_model(BUNDLED, self.folder / "model")
        edit_tensors(lambda tensors: None)(folder)
        question = ("-p", "Hi", "-n", 8)
        self.assertEqual(self.answer(*question, model=folder)["ids"], self.answer(*question)["ids"])


class BadTextFiles(CliTest):
    def test_table(self):
        check_table(self, TEXT)


class TooLittleMemory(CliTest):
    """An answer that no machine has room for: found before weights are read."""

    LENGTH = 1_999_990_000

    def setUp(self):
        super().setUp()
        self.model = copy_model(BUNDLED, self.folder / "model")
        edit_json(self.model / "config.json", lambda c: c.update(max_position_embeddings=2 * 10**9))

    def test_refused_with_figures(self):
        result = run("generate", "-m", self.model, "-p", "Hi", "-n", self.LENGTH)
        self.assert_error(result, 5, "available", "cache 2384.2 GiB", "--force")

    def test_force(self):
        blue = self.write("blue.png", png(168, 168, BLUE))
        question = ("--image", blue, "-p", COLOUR_QUESTION, "-n", self.LENGTH)
        self.assertEqual(self.text(*question, "--force", model=self.model), "Blue")


if __name__ == "__main__":
    unittest.main()
