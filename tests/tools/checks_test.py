"""Each check tool passes a good tree and fails on one with a fault."""
import pathlib
import subprocess
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


class Checks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name: str, text: str):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_check(self, tool: str) -> subprocess.CompletedProcess:
        return subprocess.run([TOOLS / tool, self.root], capture_output=True, text=True)

    def assert_good(self, tool: str):
        result = self.run_check(tool)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def assert_bad(self, tool: str, expected: str):
        result = self.run_check(tool)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn(expected, result.stdout)


class Layers(Checks):
    def setUp(self):
        super().setUp()
        self.write("src/base/file.h", "#include <mutex>\n")
        self.write("src/nn/mlp.cpp", '#include "nn/mlp.h"\n#include "base/file.h"\n')
        self.write("src/weights/names.h", "#include <mlx/mlx.h>\n")
        self.write("src/models/qwen3.cpp", '#include "models/qwen3.h"\n#include "models/family.h"\n')
        self.write("src/models/qwen2.cpp", '#include "models/family.h"\n')

    def test_good_tree(self):
        self.assert_good("check_layers")

    def test_include_to_the_right(self):
        self.write("src/nn/mlp.cpp", '#include "models/family.h"\n')
        self.assert_bad("check_layers", "src/nn/mlp.cpp: includes models/family.h")

    def test_neighbour_on_one_level(self):
        self.write("src/text/tokenizer.cpp", '  #  include "media/image.h"\n')
        self.assert_bad("check_layers", "src/text/tokenizer.cpp")

    def test_mlx_below_weights(self):
        self.write("src/media/image.h", "#include <mlx/array.h>\n")
        self.assert_bad("check_layers", "knows no MLX")

    def test_family_of_another_family(self):
        self.write("src/models/qwen2.cpp", '#include "models/qwen3.h"\n')
        self.assert_bad("check_layers", "one family includes another")

    def test_include_beside_the_source(self):
        self.write("src/nn/mlp.cpp", '#include "mlp.h"\n')
        self.assert_bad("check_layers", "include from src/'s root")

    def test_empty_tree(self):
        self.root = self.root / "docs"
        self.assert_bad("check_layers", "0 files")


class Names(Checks):
    def setUp(self):
        super().setUp()
        self.write("src/models/qwen3_vl.cpp", '"qwen3_vl"\n')
        self.write("tests/models/a_test.cpp", '"qwen2_5_vl"\n')
        self.write("README.md", "| qwen2_vl | yes |\n")
        self.write("src/cli/main.cpp", '"tiny-qwen2-5-vl-4bit"; // Qwen2-VL paper\n')

    def test_good_tree(self):
        self.assert_good("check_names")

    def test_family_outside_its_places(self):
        self.write("src/nn/attention.cpp", 'if (type == "qwen3_moe") {\n')
        self.assert_bad("check_names", "src/nn/attention.cpp:1: names the family qwen3_moe")

    def test_family_in_prose_of_the_readme(self):
        self.write("README.md", "The type qwen2 runs.\n")
        self.assert_bad("check_names", "README.md:1")

    def test_path_of_a_machine(self):
        self.write("docs/a.md", "see /" + "home/somebody/notes\n")
        self.assert_bad("check_names", "docs/a.md:1: names a machine's path")


class TreeSize(Checks):
    def setUp(self):
        super().setUp()
        self.write("README.md", "small\n")
        self.write("build/large", "")
        with open(self.root / "build/large", "wb") as file:
            file.truncate(57_000_000)

    def test_build_products_do_not_count(self):
        self.assert_good("check_tree_size")

    def test_files_that_git_ignores_do_not_count(self):
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write(".gitignore", "/build/\n")
        self.assert_good("check_tree_size")

    def test_too_large(self):
        (self.root / "build").rename(self.root / "models")
        self.assert_bad("check_tree_size", "models/large")


if __name__ == "__main__":
    unittest.main()
