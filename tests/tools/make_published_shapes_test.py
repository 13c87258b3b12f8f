"""tools/make_published_shapes.py: full-size files that take no space, made without numpy. What is
in them is for tests/models/published_shapes_test.cpp, which loads every model."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/make_published_shapes.py"
SHARDED = "Qwen3-VL-4B-Instruct"  # 8.9 GB, two files
SINGLE = "Qwen3-VL-4B-Instruct-4bit"  # 3.1 GB
WITHOUT_NUMPY = (
    "import runpy, sys; sys.modules['numpy'] = None; sys.argv = sys.argv[1:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


class PublishedShapes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="whimbrel-")
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def run_script(self, *models: str) -> subprocess.CompletedProcess:
        flags = [flag for model in models for flag in ("--model", model)]
        command = [sys.executable, "-c", WITHOUT_NUMPY, SCRIPT, "--out", self.out, *flags]
        return subprocess.run(command, capture_output=True, text=True)

    def make(self, model: str) -> pathlib.Path:
        result = self.run_script(model)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        return self.out / model

    def test_files_are_of_full_length_and_take_no_space(self):
        file = self.make(SINGLE) / "model.safetensors"
        self.assertGreater(file.stat().st_size, 3 * 10**9)
        self.assertLess(file.stat().st_blocks * 512, 2 * 10**6)

    def test_large_models_are_sharded_under_an_index(self):
        folder = self.make(SHARDED)
        shards = sorted(folder.glob("*.safetensors"))
        self.assertEqual([shard.name for shard in shards][-1], "model-00002-of-00002.safetensors")
        for shard in shards:
            self.assertLess(shard.stat().st_size, 5.001 * 10**9)
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        self.assertEqual(set(index["weight_map"].values()), {shard.name for shard in shards})
        self.assertEqual(index["metadata"]["total_size"], 8_875_631_616)

    def test_an_unknown_model_is_refused_with_the_known_ones(self):
        result = self.run_script("Qwen9-VL-1T")
        self.assertEqual(result.returncode, 2)
        self.assertIn("Qwen9-VL-1T", result.stderr)
        self.assertIn(SHARDED, result.stderr)


if __name__ == "__main__":
    unittest.main()
