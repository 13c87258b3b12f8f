"""bench: rows of exact work beside what the machine can do, and two builds against each other."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import statistics
import unittest

from support import BINARY, BUNDLED, CliTest, environment, parse_json, run

# Small enough for seconds; probes that say nothing about a machine, and all else as ever.
SHORT = ("-r", "2", "--warmup", "2", "--probe-mib", "16")
QUICK = ("-p", "8", "-n", "4", "-d", "16,40", *SHORT)
DECODE = ("-p", "0", "-n", "4", "-d", "16", *SHORT)
OWN_KERNELS = parse_json(run("version", "--json").out)["ops"] == "cpu"
ROW_KEYS = (
    "build ops isa threads model weights note parameters weight_bytes kv_bits prefill_int8 prefill_chunk "
    "warmup_steps read_gb_s peak_kind test depth rows behind_image ms ms_min ms_max ms_mean ms_stddev samples "
    "repetitions tok_s tok_s_mean tok_s_stddev bytes_per_token bandwidth_fraction peak_fraction "
    "delta_ms delta_floor_ms peak_memory_bytes"
).split()


class BenchCase(CliTest):
    def bench(self, *arguments, model=BUNDLED, **settings) -> str:
        result = run("bench", "-m", model, *arguments, **settings)
        self.assertEqual((result.code, result.err), (0, ""), result)
        return result.out

    def report(self, *arguments, **settings) -> dict:
        out = self.bench(*arguments, "-o", "json", **settings)
        self.assertEqual(out.count("\n"), 1)
        return parse_json(out)


class Bench(BenchCase):
    def test_rows(self):
        report = self.report(*QUICK)
        self.assertEqual(list(report), ["build", "machine", "probe", "rows"])
        self.assertEqual(report["build"], parse_json(run("version", "--json").out))
        self.assertEqual(list(report["machine"]), ["cpu", "isa", "threads", "memory"])
        reads = report["probe"]["read_gb_s"]
        self.assertEqual(len(reads), 3)  # before, and behind each repetition
        self.assertGreater(min(reads), 0)
        self.assertIn("plain", report["probe"]["peak_gmac_s"])
        tests = [(row["test"], row["depth"], row["rows"]) for row in report["rows"]]
        self.assertEqual(
            tests, [("pp8", 16, 1), ("pp8", 40, 1), ("tg4", 16, 1), ("tg4", 40, 1)]
        )
        for row in report["rows"]:
            self.assertEqual(list(row), ROW_KEYS)
            self.check_row(row, report)

    def check_row(self, row: dict, report: dict):
        self.assertEqual(row["build"], report["build"])
        self.assertEqual((row["model"], row["weights"]), (BUNDLED, "4bit"))
        self.assertEqual(row["read_gb_s"], statistics.median(report["probe"]["read_gb_s"]))
        decode = row["test"].startswith("tg")
        # Every token of a decode is timed: end tokens don't end it.
        self.assertEqual(len(row["samples"]), 2 * 4 if decode else 2)
        self.assertEqual(row["repetitions"], 2)
        self.assertAlmostEqual(row["ms"], statistics.median(row["samples"]))
        self.assertEqual(row["ms_min"], min(row["samples"]))
        self.assertEqual(row["ms_max"], max(row["samples"]))
        self.assertAlmostEqual(row["ms_mean"], statistics.mean(row["samples"]))
        self.assertAlmostEqual(row["ms_stddev"], statistics.stdev(row["samples"]))
        self.assertAlmostEqual(row["tok_s"] * row["ms"] / 1000, 1 if decode else 8)
        self.assertGreater(row["peak_fraction"], 0)
        self.assertGreater(row["peak_memory_bytes"], row["weight_bytes"])
        for key in ("bytes_per_token", "bandwidth_fraction", "delta_ms", "delta_floor_ms"):
            self.assertEqual(row[key] is not None, decode, key)
        if decode:
            fraction = row["bytes_per_token"] / row["ms"] / 1e6 / row["read_gb_s"]
            self.assertAlmostEqual(row["bandwidth_fraction"], fraction)

    def test_context_costs_the_bytes_of_its_cache(self):
        near, far = (row for row in self.report(*QUICK)["rows"] if row["test"] == "tg4")
        shown = parse_json(run("inspect", "-m", BUNDLED, "--json").out)
        grown = (40 - 16) * shown["memory"]["kv_cache_per_token"]
        self.assertEqual(far["bytes_per_token"] - near["bytes_per_token"], grown)
        self.assertEqual((near["delta_ms"], near["delta_floor_ms"]), (0, 0))
        self.assertAlmostEqual(far["delta_ms"], far["ms"] - near["ms"])
        self.assertAlmostEqual(far["delta_floor_ms"], grown / far["read_gb_s"] / 1e6)

    def test_rows_of_a_batch_share_the_weights(self):
        one, four = self.report(*DECODE, "--rows", "1,4")["rows"]
        self.assertEqual((one["rows"], four["rows"]), (1, 4))
        self.assertLess(four["bytes_per_token"], one["bytes_per_token"] / 2)
        self.assertAlmostEqual(four["tok_s"] * four["ms"] / 1000, 4)
        self.assertEqual(len(four["samples"]), 2 * 4)

    def test_prompts_in_8_bits_are_named(self):
        arguments = ("-p", "64", "-n", "0", *SHORT)
        exact, rounded = (
            self.report(*arguments, *flags)["rows"][0] for flags in ((), ("--prefill-int8",))
        )
        self.assertIs(exact["prefill_int8"], False)
        self.assertIs(rounded["prefill_int8"], True)
        self.assertIn(", int8 prefill |", self.bench(*arguments, "--prefill-int8"))
        self.assertNotIn("int8 prefill", self.bench(*arguments))

    def test_default_depths(self):
        report = self.report("-p", "0", "-n", "1", *SHORT)
        depths = [row["depth"] for row in report["rows"]]
        self.assertEqual(depths, [64, 128, 512, 2048, 8192])

    def test_picture(self):
        report = self.report(*DECODE, "--image", "96x64")
        by_test = {(row["test"], row["behind_image"]): row for row in report["rows"][1:]}
        self.assertEqual(
            list(by_test),
            [("tower96x64", False), ("ttft96x64", False), ("tg4", False), ("tg4", True)],
        )
        text, behind = by_test["tg4", False], by_test["tg4", True]
        self.assertEqual(text["depth"], behind["depth"])
        self.assertEqual(text["bytes_per_token"], behind["bytes_per_token"])
        self.assertIsNone(by_test["tower96x64", False]["tok_s"])
        self.assertIsNone(by_test["ttft96x64", False]["bytes_per_token"])

    def test_control_is_a_decode_with_doubled_work(self):
        once, twice = self.report(*DECODE, "--control")["rows"]
        self.assertEqual((once["test"], twice["test"]), ("tg4", "tg4x2"))
        self.assertEqual(twice["bytes_per_token"], 2 * once["bytes_per_token"])

    def test_needs_config_and_weights_only(self):
        folder = self.folder / "model"
        folder.mkdir()
        source = pathlib.Path(environment()["WHIMBREL_MODELS"]) / BUNDLED
        for name in ("config.json", "model.safetensors"):
            shutil.copy(source / name, folder)
        out = self.bench(*QUICK, "-o", "jsonl", model=folder)
        self.assertEqual(parse_json(out.splitlines()[0])["model"], "model")

    def test_every_family(self):
        for model in ("tiny-qwen2-vl-4bit", "tiny-qwen3-vl-4bit", "tiny-qwen3-vl-moe-4bit"):
            with self.subTest(model):
                report = self.report(*QUICK, "--image", "64x64", "--rows", "1,2", model=model)
                self.assertEqual(len(report["rows"]), 10)


class BenchFormats(BenchCase):
    def test_jsonl_is_a_row_a_line(self):
        lines = self.bench(*QUICK, "-o", "jsonl").splitlines()
        self.assertEqual([list(parse_json(line)) for line in lines], [ROW_KEYS] * 4)

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.bench(*QUICK, "-o", "csv"))))
        self.assertEqual([row["test"] for row in rows], ["pp8", "pp8", "tg4", "tg4"])
        build = parse_json(run("version", "--json").out)
        for row in rows:
            self.assertEqual(row["build.build_id"], build["build_id"])
            self.assertEqual(row["build.flags"], build["flags"])
            self.assertNotIn(None, row)  # no line longer than its header
            samples = [float(value) for value in row["samples"].split()]
            self.assertAlmostEqual(float(row["ms"]), statistics.median(samples))
        self.assertEqual(rows[0]["bytes_per_token"], "")

    def test_benchstat_has_a_line_a_repetition(self):
        lines = self.bench(*QUICK, "-o", "benchstat").splitlines()
        rows = [line for line in lines if line.startswith("Benchmark")]
        self.assertEqual(len(rows), 4 * 2)
        for line in rows:
            self.assertRegex(
                line, r"^Benchmark/model=\S+/weights=4bit/test=(pp8|tg4)/depth=\d+/rows=1/image=no/"
                r"kv_bits=0/prefill=default \d+ \d+ ns/op [\d.]+ tok/s$"
            )
        for line in lines[: -len(rows)]:
            self.assertRegex(line, r"^[a-z]+: \S")

    def test_table(self):
        out = self.bench(*QUICK)
        build = parse_json(run("version", "--json").out)
        self.assertIn(f"id {build['build_id']}", out)
        self.assertRegex(out, r"(?m)^read [\d., ]+ GB/s \(\w+, \d+ threads\)")
        self.assertIn("2 steps of warm-up", out)
        table = [line for line in out.splitlines() if line.startswith("|")]
        self.assertEqual({line.count("|") for line in table}, {14})
        self.assertEqual(len(table), 2 + 4)
        self.assertRegex(table[-1], r"\| tg4 @ d40 \| [\d.]+ ± [\d.]+ \| [\d.]+ \|")


class BenchRefusals(CliTest):
    def test_refusals(self):
        for arguments, code, named in (
            (["-p", "0", "-n", "0"], 2, "nothing to measure"),
            (["-p", "-1"], 2, "-p"),
            (["-r", "0"], 2, "-r"),
            (["--rows", "0"], 2, "--rows"),
            (["-o", "xml"], 2, "benchstat"),
            (["-n", "99999999"], 2, "-n"),
            (["-n", "1", "-d", "9999999"], 4, "context of 32768"),
            (["--image", "448"], 2, "448x336"),
            (["--image", "448x"], 2, "448x336"),
            (["--image", "0x5"], 2, "448x336"),
            (["--image", "99999x5"], 2, "16384"),
            (["--image", "16000x2"], 4, "--image"),
            (["--kv-bits", "3"], 2, "--kv-bits"),
            (["--rounds", "3"], 2, "--against"),
            (["--self"], 2, "--against"),
        ):
            with self.subTest(arguments):
                self.assert_error(run("bench", "-m", BUNDLED, *arguments), code, named)

    def test_model_and_dims(self):
        self.assert_error(run("bench", "--dims", "qwen9"), 2, "qwen2.5-vl-3b", "qwen9")
        self.assert_error(run("bench", "--dims", "qwen3-4b:2bit"), 2, ":4bit")
        self.assert_error(run("bench", "--dims", "qwen3-4b", "-m", BUNDLED), 2, "--dims")
        self.assert_error(run("bench", "--dims", "qwen3-4b", "--image", "64x64"), 2, "tower")
        self.assert_error(run("bench", "-m", self.folder), 3, "config.json")

    def test_too_little_memory(self):
        deep = ("-p", "0", "-n", "1", "-d", "260000", "--rows", "1024")
        result = run("bench", "--dims", "qwen3-vl-30b-a3b:bf16", *deep)
        self.assert_error(result, 5, "--force")


def shell_script(body: str) -> str:
    return f"#!/bin/sh\n{body}\n"


class Against(BenchCase):
    FLAGS = ("-p", "0", "-n", "8", "-d", "16", "-r", "2", "--probe-mib", "16", "--rounds", "1")

    def program(self, name: str, body: str) -> pathlib.Path:
        path = self.write(name, shell_script(body))
        path.chmod(0o755)
        return path

    def test_one_build_is_refused(self):
        result = run("bench", "-m", BUNDLED, *self.FLAGS, "--against", BINARY)
        self.assert_error(result, 2, "--self", parse_json(run("version", "--json").out)["build_id"])

    def test_a_copy_is_the_same_build(self):
        copy = shutil.copy(BINARY, self.folder / "copy")
        self.assert_error(run("bench", "-m", BUNDLED, "--against", copy), 2, "build_id")

    def test_self(self):
        result = run(
            "bench", "-m", BUNDLED, *self.FLAGS, "--against", BINARY, "--self", "-o", "json"
        )
        # The controls decide on a machine's rest, so either code is right; the table is there.
        self.assertIn(result.code, (0, 1), result)
        report = parse_json(result.out)
        self.assertEqual(list(report), ["a", "b", "rounds", "cells", "controls"])
        self.assertEqual(report["a"], report["b"])
        self.assertEqual([cell["cell"] for cell in report["cells"]], ["tg8 @ d16"])
        for cell in report["cells"] + report["controls"]:
            for arm in (cell["a"], cell["b"]):
                self.assertLessEqual(arm["min"], arm["median"])
                self.assertLessEqual(arm["median"], arm["max"])
            self.assertAlmostEqual(cell["ratio"], cell["b"]["median"] / cell["a"]["median"])
        still, doubled = report["controls"]
        self.assertEqual(still["must"], "not move")
        self.assertEqual(doubled["cell"], "tg8x2 @ d16 against tg8 @ d16")
        self.assertEqual(doubled["must"], "be slower")
        self.assertEqual(still["held"], still["verdict"] == "none shown")
        self.assertEqual(doubled["held"], doubled["verdict"] == "slower")
        self.assertEqual(result.code == 0, still["held"] and doubled["held"])

    def slower_build(self) -> pathlib.Path:
        """A program that answers as whimbrel of another build does, slower than any noise."""
        return self.program(
            "other",
            f'if [ "$1" = version ]; then "{BINARY}" "$@" | sed s/\'"build_id":"\'/\\&00/; '
            f'else "{BINARY}" "$@" | python3 -c "\n'
            "import json, sys\n"
            "bench = json.load(sys.stdin)\n"
            "for row in bench['rows']:\n"
            "    row['ms'] *= 1e6\n"
            'print(json.dumps(bench))\n"; fi',
        )

    def test_verdict_where_ranges_part(self):
        result = run(
            "bench", "-m", BUNDLED, *self.FLAGS, "--against", self.slower_build(), "-o", "json"
        )
        report = parse_json(result.out)
        self.assertNotEqual(report["a"]["build_id"], report["b"]["build_id"])
        self.assertEqual(report["cells"][0]["verdict"], "slower")
        self.assertGreater(report["cells"][0]["ratio"], 10)

    def test_table(self):
        result = run("bench", "-m", BUNDLED, *self.FLAGS, "--against", self.slower_build())
        self.assertRegex(result.out, r"(?m)^\| tg8 @ d16 \|.* slower \|$")
        self.assertRegex(result.out, r"(?m)^\| read bandwidth, GB/s \|.* not move \| (yes|NO) \|$")

    def test_both_get_the_same_options(self):
        other = self.program(
            "other",
            'test "$1" = version && echo \'{"build_id":"1"}\' && exit; echo "was asked: $*" >&2; exit 9',
        )
        options = ("--kv-bits", "8", *(["--prefill-int8"] if OWN_KERNELS else []))
        result = run("bench", "-m", BUNDLED, *self.FLAGS, *options, "--against", other)
        asked = result.err.partition("was asked: ")[2]
        for option in (*options, "-n"):
            self.assertIn(option, asked)

    def test_what_is_no_other_build(self):
        for body, named in (
            ("exit 7", "7"),
            ("echo no json", "other"),
            ("echo '{}'", "build_id"),
            ('test "$1" = version && echo \'{"build_id":"1"}\' || { echo "oh no" >&2; exit 9; }', "oh no"),
            ('echo \'{"build_id":"1"}\'', "other"),
        ):
            with self.subTest(body):
                other = self.program("other", body)
                result = run("bench", "-m", BUNDLED, *self.FLAGS, "--against", other)
                self.assert_error(result, 2, str(other) if named == "other" else named)
        result = run("bench", "-m", BUNDLED, "--against", self.folder / "none")
        self.assert_error(result, 6, "none")

    def test_formats_and_controls(self):
        for arguments in (["-o", "csv"], ["-n", "0", "-p", "4"]):
            result = run("bench", "-m", BUNDLED, *arguments, "--against", BINARY, "--self")
            self.assert_error(result, 2, "--against")


if __name__ == "__main__":
    unittest.main()
