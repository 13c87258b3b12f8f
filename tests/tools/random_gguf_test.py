"""bench/peers/random_gguf.py: files of the right sizes, with numbers of a trained model's spread."""
import importlib.util
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))
HAS_GGUF = importlib.util.find_spec("gguf") is not None
REASON = "needs the Python package gguf (bench/peers/requirements.txt)"


@unittest.skipUnless(HAS_GGUF, REASON)
class RandomGguf(unittest.TestCase):
    def setUp(self):
        import random_gguf

        self.module = random_gguf
        folder = tempfile.TemporaryDirectory(prefix="whimbrel-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "model.gguf"

    def config(self, model: str) -> dict:
        config = self.module.hub_config(model)
        sizes = {"num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 512}
        heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 640}
        self.module.text_config(config).update(sizes | heads)
        return config

    def write(self, model: str, weights: str):
        import gguf

        self.module.write_random_gguf(
            self.file, self.config(model), self.module.WEIGHTS[weights]
        )
        return gguf.GGUFReader(self.file)

    def test_tensors_have_the_models_shapes_and_bytes(self):
        tensors = {tensor.name: tensor for tensor in self.write("qwen2.5-vl-3b", "4bit").tensors}
        self.assertEqual(len(tensors), 2 + 2 * 12)
        gate = tensors["blk.1.ffn_gate.weight"]
        self.assertEqual((list(gate.shape), gate.n_bytes), ([256, 512], 256 * 512 // 32 * 18))
        self.assertEqual(list(tensors["blk.0.attn_k.bias"].shape), [128])
        self.assertEqual(list(tensors["token_embd.weight"].shape), [256, 640])
        self.assertNotIn("output.weight", tensors)  # tied

    def test_head_norms_stand_in_place_of_biases(self):
        reader = self.write("qwen3-vl-4b", "4bit")
        names = [tensor.name for tensor in reader.tensors]
        self.assertEqual(list(reader.fields["qwen3vl.rope.dimension_sections"].contents()), [24, 20, 20, 0])
        self.assertIn("blk.0.attn_q_norm.weight", names)
        self.assertFalse([name for name in names if name.endswith(".bias")])

    def test_numbers_have_the_spread_of_trained_ones(self):
        import gguf
        import numpy as np

        for weights in self.module.WEIGHTS:
            for tensor in self.write("qwen2-vl-2b", weights).tensors:
                values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
                self.assertTrue(np.isfinite(values).all(), tensor.name)
                if tensor.name == "blk.0.attn_output.weight":
                    self.assertAlmostEqual(float(values.std()) * 16, 1, delta=0.3, msg=weights)

    def test_a_model_with_a_head_of_its_own_is_refused(self):
        config = self.config("qwen2-vl-2b") | {"tie_word_embeddings": False}
        with self.assertRaisesRegex(ValueError, "tied"):
            self.module.write_random_gguf(self.file, config, self.module.WEIGHTS["4bit"])


if __name__ == "__main__":
    unittest.main()
