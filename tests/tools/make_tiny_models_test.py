"""tools/make_tiny_models.py: equal bytes from equal arguments, config.json as published, and one
model's weights in every form."""
import collections
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REFERENCES = ROOT / "tests/golden/reference-text"
PYTHON = os.environ.get("WHIMBREL_PYTHON", sys.executable)
TEXT = ("qwen2", "qwen3", "qwen3_moe", "llama")
VISION = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe")

# Keys of the published config.json files (Qwen2-0.5B, Qwen2-VL-2B, Qwen2.5-VL-3B, Qwen3-0.6B,
# Qwen3-30B-A3B, Qwen3-VL-4B, Qwen3-VL-30B-A3B, SmolLM2-135M, each -Instruct where there is one).
COMMON = set(
    "architectures attention_dropout bos_token_id eos_token_id hidden_act hidden_size "
    "initializer_range intermediate_size max_position_embeddings model_type num_attention_heads "
    "num_hidden_layers num_key_value_heads rms_norm_eps rope_theta tie_word_embeddings torch_dtype "
    "transformers_version use_cache vocab_size".split()
)
WINDOW = set("max_window_layers sliding_window use_sliding_window".split())
QWEN3 = set("attention_bias head_dim rope_scaling".split())
MIXTURE = set(
    "decoder_sparse_step mlp_only_layers moe_intermediate_size norm_topk_prob num_experts "
    "num_experts_per_tok router_aux_loss_coef".split()
)
MEDIA = set("image_token_id video_token_id vision_end_token_id vision_start_token_id".split())
PUBLISHED = {
    "qwen2": COMMON | WINDOW,
    "qwen3": COMMON | WINDOW | QWEN3,
    "qwen3_moe": COMMON | WINDOW | QWEN3 | MIXTURE | {"output_router_logits"},
    "llama": COMMON
    | set(
        "attention_bias is_llama_config mlp_bias pad_token_id pretraining_tp rope_interleaved "
        "rope_scaling transformers.js_config".split()
    ),
    "qwen2_vl": COMMON | WINDOW | MEDIA | {"rope_scaling", "vision_config", "vision_token_id"},
    "qwen2_5_vl": COMMON | WINDOW | MEDIA | {"rope_scaling", "vision_config", "vision_token_id"},
}
QWEN3_VL = MEDIA | set(
    "architectures model_type text_config tie_word_embeddings transformers_version "
    "vision_config".split()
)
PUBLISHED |= {"qwen3_vl": QWEN3_VL, "qwen3_vl_moe": QWEN3_VL}
NOT_NESTED = {"architectures", "torch_dtype", "transformers_version"}
QWEN3_VL_TEXT = COMMON - NOT_NESTED | QWEN3 | {"dtype"}
PUBLISHED_TEXT = {"qwen3_vl": QWEN3_VL_TEXT, "qwen3_vl_moe": QWEN3_VL_TEXT | MIXTURE}
TOWER = set("depth num_heads patch_size spatial_merge_size temporal_patch_size".split())
QWEN3_TOWER = TOWER | set(
    "deepstack_visual_indexes hidden_act hidden_size in_channels initializer_range "
    "intermediate_size model_type num_position_embeddings out_hidden_size".split()
)
PUBLISHED_VISION = {
    "qwen2_vl": TOWER | set("embed_dim hidden_size in_chans mlp_ratio spatial_patch_size".split()),
    "qwen2_5_vl": TOWER
    | set(
        "fullatt_block_indexes hidden_act hidden_size in_chans intermediate_size out_hidden_size "
        "spatial_patch_size tokens_per_second window_size".split()
    ),
    "qwen3_vl": QWEN3_TOWER,
    "qwen3_vl_moe": QWEN3_TOWER,
}

Tensor = collections.namedtuple("Tensor", "dtype shape data")


def read_safetensors(path: pathlib.Path) -> dict[str, Tensor]:
    file = path.read_bytes()
    (length,) = struct.unpack("<Q", file[:8])
    header, data = json.loads(file[8 : 8 + length]), file[8 + length :]
    header.pop("__metadata__")
    return {
        name: Tensor(entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }


class TinyModelsCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="whimbrel-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_script(self, *arguments) -> subprocess.CompletedProcess:
        command = [PYTHON, ROOT / "tools/make_tiny_models.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    def make(self, name: str, *arguments: str) -> pathlib.Path:
        result = self.run_script("--out", self.folder / name, *arguments)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        return self.folder / name

    def config(self, folder: pathlib.Path) -> dict:
        return json.loads((folder / "config.json").read_text())

    def tensors(self, folder: pathlib.Path) -> dict[str, Tensor]:
        return read_safetensors(folder / "model.safetensors")


class Files(TinyModelsCase):
    def test_two_runs_are_equal(self):
        first, second = self.make("a"), self.make("b")
        files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
        self.assertGreaterEqual(len(files), 6 * len(TEXT + VISION) - 4)
        again = sorted(path.relative_to(second) for path in second.rglob("*") if path.is_file())
        self.assertEqual(again, files)
        for file in files:
            # No assertEqual: it would spend minutes on describing how megabytes differ.
            self.assertTrue((first / file).read_bytes() == (second / file).read_bytes(), file)

    def test_every_family_is_small_and_whole(self):
        made = self.make("all")
        self.assertEqual({path.name for path in made.iterdir()}, set(TEXT + VISION))
        for family in TEXT + VISION:
            size = (made / family / "model.safetensors").stat().st_size
            self.assertLess(size, 1_500_000, family)
            files = {path.name for path in (made / family).iterdir()}
            wanted = {"config.json", "generation_config.json", "tokenizer.json"}
            self.assertLessEqual(wanted | {"tokenizer_config.json"}, files, family)
            self.assertEqual("preprocessor_config.json" in files, family in VISION, family)

    def test_another_seed_gives_other_weights(self):
        first = self.tensors(self.make("a", "--family", "qwen2") / "qwen2")
        second = self.tensors(self.make("b", "--family", "qwen2", "--seed", "2") / "qwen2")
        for name, tensor in first.items():
            self.assertTrue(second[name].data != tensor.data, name)


class References(TinyModelsCase):
    def test_references_are_of_these_weights(self):
        """Where it fails, run tools/make_text_references.py."""
        made = self.make("all")
        abouts = sorted(REFERENCES.glob("*/about.json"))
        self.assertEqual({path.parent.name for path in abouts}, set(TEXT))
        for path in abouts:
            weights = (made / path.parent.name / "model.safetensors").read_bytes()
            stored = json.loads(path.read_text())["weights_sha256"]
            self.assertEqual(hashlib.sha256(weights).hexdigest(), stored, path)


class Config(TinyModelsCase):
    def test_keys_are_those_of_published_files(self):
        made = self.make("all")
        for family in TEXT + VISION:
            config = self.config(made / family)
            self.assertEqual(config["model_type"], family)
            self.assertLessEqual(set(config), PUBLISHED[family], family)
            vision, text = config.get("vision_config", {}), config.get("text_config", {})
            self.assertLessEqual(set(vision), PUBLISHED_VISION.get(family, set()), family)
            self.assertLessEqual(set(text), PUBLISHED_TEXT.get(family, set()), family)

    def test_sizes_are_odd_on_purpose(self):
        made = self.make("all")
        for family in TEXT + VISION:
            root = self.config(made / family)
            text = root.get("text_config", root)
            group = text["num_attention_heads"] // text["num_key_value_heads"]
            self.assertIn(group, (2, 3, 4), family)
            head_dim = text["hidden_size"] // text["num_attention_heads"]
            if family.startswith("qwen3"):
                self.assertNotEqual(text["head_dim"], head_dim, family)
                head_dim = text["head_dim"]
            if family in VISION:
                section = text["rope_scaling"]["mrope_section"]
                self.assertEqual((len(section), sum(section)), (3, head_dim // 2), family)
                self.assertTrue(all(section), family)

    def test_dtype(self):
        made = self.make("f16", "--variant", "f16")
        for family in TEXT + VISION:
            config = self.config(made / family)
            stated = config.get("torch_dtype") or config["text_config"]["dtype"]
            self.assertEqual(stated, "float16", family)
            self.assertEqual({t.dtype for t in self.tensors(made / family).values()}, {"F16"})

    def test_nested(self):
        made = self.make("nested", "--variant", "nested")
        for family in TEXT + VISION:
            root = self.config(made / family)
            self.assertEqual("text_config" in root, family in VISION, family)
            text = root.get("text_config", root)
            self.assertNotIn("rope_theta", text, family)
            self.assertIn("rope_theta", text["rope_parameters"], family)

    def test_contradictions_are_refused(self):
        for arguments in (
            ("--family", "qwen2", "--variant", "text-only"),
            ("--family", "qwen2", "--variant", "experts-out-in"),
            ("--family", "qwen2_vl", "--variant", "mlx", "--variant", "nested"),
            ("--family", "qwen3_moe", "--variant", "mlx", "--variant", "experts-out-in"),
        ):
            result = self.run_script("--out", self.folder, *arguments)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertRegex(result.stderr, r"\Agot variant[^\n]+\n\Z")


class Weights(TinyModelsCase):
    def changed(self, family: str, variant: str) -> set[str]:
        """Tensors of the plain form whose bytes the variant holds under no name."""
        plain = self.tensors(self.make("plain", "--family", family) / family)
        other = self.tensors(self.make("other", "--family", family, "--variant", variant) / family)
        self.assertEqual(len(other), len(plain))
        kept = {tensor.data for tensor in other.values()}
        return {name for name, tensor in plain.items() if tensor.data not in kept}

    def test_names(self):
        made = self.make("all")
        for family in VISION:
            names = set(self.tensors(made / family))
            text = "model.language_model." if family.startswith("qwen3") else "model."
            vision = "model.visual." if family.startswith("qwen3") else "visual."
            self.assertIn(text + "norm.weight", names)
            self.assertIn(vision + "patch_embed.proj.weight", names)
        for family in TEXT + VISION:
            config, names = self.config(made / family), set(self.tensors(made / family))
            self.assertEqual("lm_head.weight" in names, not config["tie_word_embeddings"], family)

    def test_mlx_differs_in_names_and_the_patch_kernel(self):
        changed = self.changed("qwen2_vl", "mlx")
        self.assertEqual(changed, {"visual.patch_embed.proj.weight"})
        tensors = self.tensors(self.folder / "other/qwen2_vl")
        self.assertIn("language_model.model.norm.weight", tensors)
        kernel = tensors["vision_tower.patch_embed.proj.weight"]
        self.assertEqual(kernel.shape, [48, 2, 14, 14, 3])

    def test_nested_differs_in_names(self):
        self.assertEqual(self.changed("qwen2_5_vl", "nested"), set())
        names = self.tensors(self.folder / "other/qwen2_5_vl")
        self.assertIn("model.language_model.norm.weight", names)

    def test_text_only_is_the_mlx_form_without_the_tower(self):
        arguments = ("--family", "qwen3_vl", "--variant")
        whole = self.tensors(self.make("mlx", *arguments, "mlx") / "qwen3_vl")
        folder = self.make("text", *arguments, "text-only") / "qwen3_vl"
        text = {name: t for name, t in whole.items() if name.startswith("language_model.")}
        self.assertTrue(self.tensors(folder) == text)
        self.assertNotIn("vision_config", self.config(folder))

    def test_experts(self):
        def shape(name: str, *arguments: str) -> list[int]:
            made = self.make("experts" + "".join(arguments), "--family", "qwen3_vl_moe", *arguments)
            return self.tensors(made / "qwen3_vl_moe")[name].shape

        stack = "model.language_model.layers.0.mlp.experts.gate_up_proj"
        self.assertEqual(shape(stack), [8, 64, 48])
        self.assertEqual(shape(stack, "--variant", "experts-out-in"), [8, 48, 64])
        switched = "language_model.model.layers.0.mlp.switch_mlp.down_proj.weight"
        self.assertEqual(shape(switched, "--variant", "mlx"), [8, 64, 24])
        dense = "model.language_model.layers.1.mlp.gate_proj.weight"
        self.assertEqual(shape(dense), [152, 64])


if __name__ == "__main__":
    unittest.main()
