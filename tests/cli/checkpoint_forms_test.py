"""One model in every form in which it is published gives one answer."""
import json
import unittest

from support import BF16, MODELS, SHAPES, CliTest, Safetensors, copy_model, parse_json, run

QUESTION = ("--image", SHAPES, "-p", "Describe this image.")


class FormCase(CliTest):
    def setUp(self):
        super().setUp()
        self.model = copy_model(BF16, self.folder / "model")
        self.weights = self.model / "model.safetensors"

    def assert_same_answer(self):
        plain, answer = self.answer(*QUESTION, model=BF16), self.answer(*QUESTION, model=self.model)
        for key in ("ids", "text", "prompt_tokens", "rope_delta", "media"):
            self.assertEqual(answer[key], plain[key], key)
        self.assertGreater(answer["generated_tokens"], 10)


class Config(FormCase):
    def test_nested(self):
        """As transformers 5 writes it: text_config and rope_parameters."""
        nested = self.model / "config.nested.json"
        self.assertIn("text_config", json.loads(nested.read_text()))
        nested.replace(self.model / "config.json")
        self.assert_same_answer()
        flat, shown = (
            parse_json(run("inspect", "-m", model, "--json").out) for model in (BF16, self.model)
        )
        for key in ("sizes", "context", "weights", "memory", "stop_ids"):
            self.assertEqual(shown[key], flat[key], key)

    def test_template_file_in_place_of_json(self):
        file = self.model / "chat_template.json"
        template = json.loads(file.read_text())["chat_template"]
        file.unlink()
        (self.model / "chat_template.jinja").write_text(template)
        self.assert_same_answer()


class Shards(FormCase):
    def split(self, count: int) -> dict:
        """Spreads the tensors over `count` files in turn; returns the index's weight_map."""
        tensors = Safetensors.read(self.weights).tensors
        self.weights.unlink()
        weight_map = {}
        for shard in range(count):
            file = f"model-{shard + 1:05}-of-{count:05}.safetensors"
            names = list(tensors)[shard::count]
            Safetensors({name: tensors[name] for name in names}).write(self.model / file)
            weight_map |= dict.fromkeys(names, file)
        return weight_map

    def write_index(self, weight_map: dict):
        index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
        (self.model / "model.safetensors.index.json").write_text(json.dumps(index))

    def test_two_shards(self):
        self.write_index(self.split(2))
        self.assert_same_answer()
        shown = parse_json(run("inspect", "-m", self.model, "--json").out)
        self.assertEqual(shown["weights"]["files"], 2)

    def test_missing_shard(self):
        weight_map = self.split(3)
        self.write_index(weight_map)
        (self.model / "model-00002-of-00003.safetensors").unlink()
        result = run("generate", "-m", self.model, *QUESTION)
        self.assert_error(result, 3, "model-00002-of-00003.safetensors", "no such file")

    def test_tensor_that_is_in_another_shard(self):
        weight_map = self.split(2)
        name = next(iter(weight_map))
        other = {"1": "2", "2": "1"}[weight_map[name][10]]
        self.write_index({**weight_map, name: f"model-0000{other}-of-00002.safetensors"})
        self.assert_error(run("generate", "-m", self.model, *QUESTION), 3, name)


class Names(FormCase):
    def rename(self, change):
        weights = Safetensors.read(self.weights)
        renamed = {change(name): tensor for name, tensor in weights.tensors.items()}
        self.assertNotEqual(list(renamed), list(weights.tensors))
        self.assertEqual(len(renamed), len(weights.tensors))
        Safetensors(renamed).write(self.weights)

    def test_hub_names_of_today(self):
        """model.language_model.… and model.visual.…, as transformers 5 saves them."""

        def change(name):
            if name.startswith("visual."):
                return "model." + name
            return name.replace("model.", "model.language_model.", 1)

        self.rename(change)
        self.assert_same_answer()

    def test_mlx_names(self):
        def change(name):
            if name.startswith("visual."):
                return name.replace("visual.", "vision_tower.", 1)
            return "language_model." + name

        self.rename(change)
        self.assert_same_answer()


class Dtypes(FormCase):
    def test_float32(self):
        weights = Safetensors.read(self.weights)
        for name, (dtype, shape, data) in weights.tensors.items():
            self.assertEqual(dtype, "BF16")
            # A bfloat16 is the upper half of a float32.
            wide = b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2))
            weights.tensors[name] = ("F32", shape, wide)
        weights.write(self.weights)
        self.assert_same_answer()


class Folder(CliTest):
    def test_every_way_to_name_it(self):
        expected = self.answer("-p", "Hi", "-n", 4, model=BF16)["ids"]
        for model, cwd in (
            (MODELS / BF16, None),
            (f"{MODELS / BF16}/", None),
            (BF16, MODELS),
            (".", MODELS / BF16),
        ):
            with self.subTest(model, cwd=cwd):
                answer = self.answer("-p", "Hi", "-n", 4, model=model, cwd=cwd)
                self.assertEqual(answer["ids"], expected)

    def test_a_folder_beats_a_name(self):
        """A folder here is meant before one of the same name among the models."""
        self.write(f"{BF16}/config.json", "{}")
        result = run("generate", "-m", BF16, "-p", "Hi", cwd=self.folder)
        self.assert_error(result, 3, "model_type")


if __name__ == "__main__":
    unittest.main()
