"""profile: what a decode step costs, at two contexts side by side."""
import unittest

from support import BUNDLED, SHAPES, CliTest, parse_json, run

QUICK = ("--contexts", "64,300", "--steps", 2)


class Profile(CliTest):
    def profile(self, *arguments) -> dict:
        result = run("profile", "-m", BUNDLED, "--json", *arguments)
        self.assertEqual((result.code, result.err), (0, ""), result)
        self.assertEqual(result.out.count("\n"), 1)
        return parse_json(result.out)

    def cache_per_token(self) -> int:
        shown = parse_json(run("inspect", "-m", BUNDLED, "--json").out)
        return shown["memory"]["kv_cache_per_token"]

    def check(self, report: dict, contexts: list[int]):
        self.assertEqual(list(report), ["dtype", "contexts", "differences", "build"])
        near, far = report["contexts"]
        self.assertEqual([near["context"], far["context"]], contexts)
        for key in ("nodes", "own_launches"):
            self.assertEqual(near[key], far[key])
        for key in ("weights", "inputs"):
            self.assertEqual(near["bytes"][key], far["bytes"][key])
        grown = far["bytes"]["cache"] - near["bytes"]["cache"]
        self.assertEqual(grown, (contexts[1] - contexts[0]) * self.cache_per_token())
        for step in (near, far):
            self.assertEqual(step["nodes"], sum(op["count"] for op in step["ops"].values()))
            self.assertGreater(step["ms"]["host"], 0)
            self.assertGreater(step["ms"]["device"], 0)
            self.assertGreater(step["memory"]["active"], step["bytes"]["weights"])
        for pair in report["differences"].values():
            self.assertEqual(pair[0]["count"], pair[1]["count"])
            self.assertLess(pair[0]["bytes"], pair[1]["bytes"])

    def test_default(self):
        report = self.profile("--steps", 2)
        self.check(report, [64, 2048])
        # A copied cache would show: all layers together hold ten times this.
        far = report["contexts"][1]
        self.assertLess(far["memory"]["step"], far["bytes"]["cache"] / 10)

    def test_behind_a_picture(self):
        report = self.profile("--image", SHAPES, "--contexts", "100,600", "--steps", 2)
        self.check(report, [100, 600])
        text = self.profile("--contexts", "100,600", "--steps", 2)
        for with_picture, without in zip(report["contexts"], text["contexts"]):
            self.assertEqual(with_picture["ops"], without["ops"])
            self.assertEqual(with_picture["bytes"], without["bytes"])

    def test_text_says_the_same(self):
        report = self.profile(*QUICK)
        result = run("profile", "-m", BUNDLED, *QUICK)
        self.assertEqual((result.code, result.err), (0, ""))
        near, far = report["contexts"]
        for name, path in (("bytes of weights", "weights"), ("bytes of cache", "cache")):
            a, b = near["bytes"][path], far["bytes"][path]
            self.assertRegex(result.out, rf"(?m)^{name} +{a} +{b} +\+{b - a}$")
        self.assertRegex(result.out, rf"(?m)^graph nodes +{near['nodes']} +{far['nodes']} +\+0$")
        for name in report["differences"]:
            self.assertIn(f"{name} output bytes", result.out)

    def test_refusals(self):
        for arguments, code, named in (
            (["--contexts", "64"], 2, "--contexts"),
            (["--contexts", "64,64"], 2, "--contexts"),
            (["--contexts", "200,100"], 2, "--contexts"),
            (["--contexts", "0,100"], 2, "--contexts"),
            (["--contexts", "1,2,3"], 2, "--contexts"),
            (["--steps", "0"], 2, "steps"),
            (["--image", SHAPES, "--contexts", "20,100"], 4, "context of 20"),
            (["--contexts", "64,99999999"], 4, "99999999"),
            (["--image", self.folder / "none.png"], 4, "none.png"),
        ):
            with self.subTest(arguments):
                self.assert_error(run("profile", "-m", BUNDLED, *arguments), code, named)


if __name__ == "__main__":
    unittest.main()
