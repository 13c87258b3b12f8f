"""bench/peers: what the programs print is read right, arms take turns, and the table tells medians,
ranges and ratios. Nothing is fetched or built."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))
import llama_cpp  # noqa: E402
import mlx_lm_arm  # noqa: E402
import programs  # noqa: E402
import ratios  # noqa: E402
import rounds  # noqa: E402
import whimbrel  # noqa: E402
from arms import Measurement  # noqa: E402
from subjects import Cell  # noqa: E402

PROMPT, NEAR, FAR = Cell("pp", 512), Cell("tg", 128, 64), Cell("tg", 128, 2048)


def llama_row(**changes) -> dict:
    row = {
        "build_commit": "0c1e57098",
        "build_number": 0,
        "backends": "CPU",
        "n_prompt": 0,
        "n_gen": 128,
        "n_depth": 64,
        "avg_ts": 12.5,
    }
    return row | changes


class Rows(unittest.TestCase):
    def test_of_llama_bench(self):
        rows = [llama_row(), llama_row(n_prompt=512, n_gen=0, n_depth=0, avg_ts=80.0)]
        found = llama_cpp.parse_rows("\n".join(map(json.dumps, rows)))
        self.assertEqual([one.cell for one in found], [NEAR, PROMPT])
        self.assertEqual([one.tokens_per_second for one in found], [12.5, 80.0])
        self.assertEqual(found[0].build["build_commit"], "0c1e57098")
        self.assertEqual(found[0].raw, rows[0])

    def test_of_prompt_and_generation_at_once_are_refused(self):
        with self.assertRaises(ValueError):
            llama_cpp.parse_rows(json.dumps(llama_row(n_prompt=512)))

    def test_buffers_of_llama_cpp(self):
        log = (
            "load_tensors:   CPU_Mapped model buffer size =   284.27 MiB\n"
            "load_tensors:          AMX model buffer size =   787.50 MiB\n"
        )
        self.assertEqual(llama_cpp.parse_buffers(log), {"CPU_Mapped": 284.27, "AMX": 787.5})

    def test_of_whimbrel_with_the_build_ahead_or_in_each(self):
        build = {"commit": "abc", "dirty": False}
        row = {"test": "tg128", "depth": 64, "tok_s": 17.0}
        ahead = "\n".join(map(json.dumps, [{"build": build}, row]))
        for jsonl in (ahead, json.dumps(row | {"build": build})):
            (one,) = whimbrel.parse_rows(jsonl)
            self.assertEqual((one.cell, one.tokens_per_second, one.build), (NEAR, 17.0, build))

    def test_of_mlx_lm(self):
        row = {"steps": 4, "context": 64, "step_ms": [2000, 2000, 1000, 3000], "build": {"mlx": "1"}}
        one = mlx_lm_arm.parse_row(json.dumps(row))
        self.assertEqual((one.cell, one.tokens_per_second), (Cell("tg", 4, 64), 0.5))


class Runs(unittest.TestCase):
    def test_only_what_cannot_run_here_is_a_crash(self):
        for signal, kind in (("ILL", programs.Crash), ("KILL", programs.Failure)):
            with self.assertRaises(programs.Failure) as caught:
                programs.run(["sh", "-c", f"kill -{signal} $$"])
            self.assertIs(type(caught.exception), kind)

    def test_options_of_an_arm_reach_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program")
            row = '{"test": "pp512", "depth": 0, "tok_s": 1, "build": {}, "asked": "\'"$*"\'"}'
            program.write_text(f"#!/bin/sh\necho '{row}'\n")
            program.chmod(0o755)
            arm = whimbrel.Whimbrel(program, {}, 2, ("--prefill-int8",))
            (one,) = arm.measure("m", (PROMPT,), {})
        self.assertEqual(arm.name, "whimbrel --prefill-int8")
        self.assertIn("--prefill-int8", one.raw["asked"].split())


class LlamaCpp(unittest.TestCase):
    def test_flags_of_cells(self):
        self.assertEqual(
            llama_cpp.test_flags((NEAR, FAR)), ["-p", "0", "-n", "128", "-d", "64,2048"]
        )
        self.assertEqual(llama_cpp.test_flags((PROMPT,)), ["-p", "512", "-n", "0", "-d", "0"])

    def test_cells_that_one_run_would_cross_are_refused(self):
        for cells in ((NEAR, PROMPT), (NEAR, Cell("tg", 4, 2048))):
            with self.assertRaises(ValueError):
                llama_cpp.test_flags(cells)

    def test_each_choice_stands_once(self):
        both = llama_cpp.settings_of(["native", "without-amx"])
        self.assertEqual((len(both), len(set(both))), (6, 6))
        self.assertEqual(len(llama_cpp.settings_of(["native"])), 4)
        self.assertIn(llama_cpp.Settings("without-amx", True, True), both)


class FakeArm:
    """Gives what `speeds` says of a configuration and a cell, and notes its runs."""

    def __init__(self, name: str, speeds: dict, log: list):
        self.name, self.speeds, self.log = name, speeds, log

    def configurations(self) -> list[dict]:
        return [{"flag": flag} for flag in self.speeds]

    def measure(self, model, cells, configuration) -> list[Measurement]:
        self.log.append((self.name, configuration["flag"], cells))
        if not self.speeds[configuration["flag"]]:
            raise programs.Crash("got exit code -4 from a b")
        speeds = self.speeds[configuration["flag"]]
        return [Measurement(cell, speeds[cell], {"name": self.name}, {}) for cell in cells]


class Rounds(unittest.TestCase):
    def setUp(self):
        self.log = []
        ours = FakeArm("whimbrel", {"": {NEAR: 20.0, FAR: 18.0}}, self.log)
        speeds = {"a": {NEAR: 10.0, FAR: 5.0}, "b": {NEAR: 8.0, FAR: 6.0}}
        self.peer = FakeArm("peer", speeds, self.log)
        self.comparison = rounds.Comparison("model", (NEAR, FAR), ours, self.peer)

    def test_arms_take_turns_with_the_best_configuration_of_each_cell(self):
        rows = list(rounds.compare(self.comparison, 3, {}))
        choice, turns = self.log[:2], self.log[2:]
        self.assertEqual(choice, [("peer", "a", (NEAR, FAR)), ("peer", "b", (NEAR, FAR))])
        a, b = [("whimbrel", "", (NEAR, FAR))], [("peer", "a", (NEAR,)), ("peer", "b", (FAR,))]
        self.assertEqual(turns, [*a, *b, *b, *a, *a, *b])
        self.assertEqual([row["round"] for row in rows], [None] * 4 + [r for r in range(3) for _ in range(4)])

    def test_what_crashes_is_left_out_and_named(self):
        self.peer.speeds["a"] = {}
        rows = json.loads(json.dumps(list(rounds.compare(self.comparison, 1, {}))))
        self.assertEqual([line.configuration for line in ratios.lines(rows)], [{"flag": "b"}] * 2)
        self.assertIn('- peer, model, tg128 @ d64, tg128 @ d2048, flag: "a": got exit code -4\n', ratios.markdown(rows))

    def test_an_arm_that_only_crashes_is_an_error(self):
        self.peer.speeds = {"a": {}, "b": {}}
        with self.assertRaisesRegex(ValueError, "got no configuration that ran tg128 @ d64"):
            list(rounds.compare(self.comparison, 1, {}))

    def test_arms_of_ours_stand_apart(self):
        other = FakeArm("whimbrel --flag", {"": {NEAR: 40.0, FAR: 36.0}}, self.log)
        chosen: rounds.Choices = {}
        rows = list(rounds.compare(self.comparison, 1, chosen))
        tried = len([row for row in rows if row["round"] is None])
        rows += rounds.compare(self.comparison._replace(whimbrel=other), 1, chosen)
        self.assertEqual(len([row for row in rows if row["round"] is None]), tried)
        found = [(line.own, line.ratio.median) for line in ratios.lines(rows)]
        named = [("whimbrel", 2), ("whimbrel", 3), ("whimbrel --flag", 4), ("whimbrel --flag", 6)]
        self.assertEqual(found, named)

    def test_a_cell_that_was_not_measured_is_an_error(self):
        self.peer.measure = lambda *_: []
        with self.assertRaisesRegex(ValueError, "got nothing from peer, expected tg128 @ d64"):
            list(rounds.compare(self.comparison, 1, {}))

    def test_the_table_has_what_the_rounds_gave(self):
        rows = json.loads(json.dumps(list(rounds.compare(self.comparison, 3, {}))))
        near, far = ratios.lines(rows)
        self.assertEqual((near.test, near.ratio, near.verdict), ("tg128 @ d64", (2, 2, 2), "faster"))
        self.assertEqual((far.ratio, far.configuration), ((3, 3, 3), {"flag": "b"}))
        text = ratios.markdown(rows)
        self.assertIn('- peer: `{"name": "peer"}`', text)
        self.assertIn("| 3 (3 to 3) | faster | flag: \"b\" |", text)


class Ratios(unittest.TestCase):
    def rows(self, ours: list[float], theirs: list[float]) -> list[dict]:
        both = {"whimbrel": ours, "peer": theirs}
        base = {"model": "m", "whimbrel": "whimbrel", "against": "peer", "test": "pp512"}
        base |= {"depth": 0, "configuration": {}}
        return [
            base | {"arm": arm, "round": number, "tok_s": speed, "build": {}}
            for arm, speeds in both.items()
            for number, speed in enumerate(speeds)
        ]

    def test_are_taken_round_by_round(self):
        (line,) = ratios.lines(self.rows([10, 30, 20], [10, 10, 20]))
        self.assertEqual(line.ratio, (1, 1, 3))
        self.assertEqual((line.whimbrel, line.other), ((20, 10, 30), (10, 10, 20)))

    def test_only_ranges_that_part_have_a_verdict(self):
        verdicts = [
            ratios.lines(self.rows(ours, [10, 12]))[0].verdict
            for ours in ([13, 14], [12, 14], [8, 9])
        ]
        self.assertEqual(verdicts, ["faster", "no verdict", "slower"])

    def test_rounds_that_one_arm_lacks_do_not_count(self):
        (line,) = ratios.lines(self.rows([10, 50], [10]))
        self.assertEqual(line.ratio, (1, 1, 1))
        self.assertEqual(ratios.lines(self.rows([10], [])), [])


class Programs(unittest.TestCase):
    def test_a_failure_says_the_end_of_what_was_said(self):
        command = [sys.executable, "-c", "import sys; sys.exit('no such flag')"]
        with self.assertRaisesRegex(programs.Failure, "exit code 1 .*no such flag") as caught:
            programs.run(command)
        self.assertIn(sys.executable, str(caught.exception))

    def test_unknown_models_are_refused_with_the_known_ones(self):
        command = [sys.executable, ROOT / "bench/peers/run.py", "--whimbrel", "x", "-o", "y"]
        result = subprocess.run([*command, "--models", "qwen9"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("got qwen9, expected of qwen2-vl-2b, ", result.stderr)


if __name__ == "__main__":
    unittest.main()
