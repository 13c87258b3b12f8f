"""tools/plot_bench.py: one curve a model, form, build and number of rows."""
import json
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

TOOL = pathlib.Path(__file__).parents[2] / "tools/plot_bench.py"
SVG = "{http://www.w3.org/2000/svg}"


def row(depth: int, **changes) -> dict:
    return {
        "build": {"build_id": "0123456789", "ops": "cpu"},
        "model": "m<1>",
        "weights": "4bit",
        "test": "tg128",
        "depth": depth,
        "rows": 1,
        "behind_image": False,
        "tok_s": 20.0 - depth / 1000,
        "bytes_per_token": 1e9,
        "bandwidth_fraction": 0.9,
        **changes,
    }


class PlotBench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def plot(self, rows: list[dict]) -> subprocess.CompletedProcess:
        path = self.folder / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        command = ["python3", str(TOOL), str(path), "-o", str(self.folder / "out.svg")]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def drawn(self, rows: list[dict]) -> xml.etree.ElementTree.Element:
        done = self.plot(rows)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return xml.etree.ElementTree.parse(self.folder / "out.svg").getroot()

    def test_curves(self):
        rows = [row(2048), row(64), row(64, rows=8), row(2048, rows=8)]
        root = self.drawn([*rows, row(0, test="pp512", bytes_per_token=None)])
        lines = root.findall(f"{SVG}polyline")
        self.assertEqual(len(lines), 2 * 2)  # curves in both panels
        first = [tuple(map(float, p.split(","))) for p in lines[0].get("points").split()]
        self.assertLess(first[0][0], first[1][0])  # depth grows to the right
        self.assertLess(first[0][1], first[1][1])  # and speed falls
        texts = [element.text for element in root.findall(f"{SVG}text")]
        self.assertIn("m<1> 4bit cpu", texts)
        self.assertIn("m<1> 4bit cpu, 8 rows", texts)

    def test_decodes_behind_a_picture_are_dots(self):
        root = self.drawn([row(64), row(300), row(300, behind_image=True)])
        self.assertEqual(len(root.findall(f"{SVG}circle")), 2)

    def test_one_depth(self):
        self.assertEqual(len(self.drawn([row(64)]).findall(f"{SVG}polyline")), 2)

    def test_nothing_to_draw(self):
        done = self.plot([row(0, bytes_per_token=None)])
        self.assertEqual(done.returncode, 1)
        self.assertIn("no decodes", done.stderr)


if __name__ == "__main__":
    unittest.main()
