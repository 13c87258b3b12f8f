"""tools/run_tests counts what ran, and never takes a run of nothing for a pass."""
import importlib.machinery
import importlib.util
import pathlib
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/run_tests"
loader = importlib.machinery.SourceFileLoader("run_tests", str(TOOL))
run_tests = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
loader.exec_module(run_tests)

PASSED = '<testcase name="A.Good" status="run"/>'
FAILED = '<testcase name="A.Bad" status="fail"><failure message=""/></testcase>'
SKIPPED = '<testcase name="A.Skip" status="notrun"><skipped message=""/></testcase>'


class CountCtest(unittest.TestCase):
    def count(self, cases: str | None, good: bool) -> run_tests.Tally:
        tally = run_tests.Tally()
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.xml"
            if cases is not None:
                report.write_text(f"<testsuite>{cases}</testsuite>")
            run_tests.count_ctest(tally, "tests", good, report)
        return tally

    def test_each_case_counts(self):
        tally = self.count(PASSED + FAILED + SKIPPED, good=False)
        self.assertEqual(tally.passed, 1)
        self.assertEqual(tally.failures, ["tests: A.Bad"])
        self.assertEqual(tally.skipped, ["tests: A.Skip"])

    def test_no_report_is_a_failure(self):
        self.assertEqual(self.count(None, good=True).failures, ["tests"])

    def test_nothing_but_skips_is_a_failure(self):
        self.assertEqual(self.count(SKIPPED, good=True).failures, ["tests"])

    def test_failed_run_without_a_failed_case_is_a_failure(self):
        self.assertEqual(self.count(PASSED, good=False).failures, ["tests"])


class CountCargo(unittest.TestCase):
    def count(self, output: str, good: bool) -> run_tests.Tally:
        tally = run_tests.Tally()
        run_tests.count_cargo(tally, "cargo test", good, output)
        return tally

    def test_each_test_counts(self):
        output = (
            "test a::bad ... FAILED\n"
            "test result: FAILED. 3 passed; 1 failed; 0 ignored\n"
            "test result: ok. 2 passed; 0 failed; 0 ignored\n"
        )
        tally = self.count(output, good=False)
        self.assertEqual((tally.passed, tally.failures), (5, ["a::bad"]))

    def test_build_error_is_a_failure(self):
        self.assertTrue(self.count("error: could not compile\n", good=False).failures)

    def test_crash_after_good_tests_is_a_failure(self):
        output = "test result: ok. 2 passed; 0 failed; 0 ignored\nerror: signal 11\n"
        self.assertEqual(self.count(output, good=False).failures, ["cargo test"])

    def test_no_test_is_a_failure(self):
        self.assertEqual(self.count("", good=True).failures, ["cargo test: no test ran"])


class Run(unittest.TestCase):
    def test_output_and_status_are_seen(self):
        self.assertEqual(run_tests.run("echo", ["echo", "seen"]), (True, "seen\n"))
        self.assertFalse(run_tests.run("false", ["false"])[0])


class Report(unittest.TestCase):
    def test_nothing_counted_is_no_pass(self):
        self.assertEqual(run_tests.report(run_tests.Tally()), 1)

    def test_a_failure_is_no_pass(self):
        tally = run_tests.Tally()
        tally.add("good", True)
        self.assertEqual(run_tests.report(tally), 0)
        tally.add("bad", False)
        self.assertEqual(run_tests.report(tally), 1)


if __name__ == "__main__":
    unittest.main()
