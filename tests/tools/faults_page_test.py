"""docs/faults.md has a line for each fault, and the tests that it and the mutants name exist."""
import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAULTS = 45
MOST_GUARANTEES = 8

loader = importlib.machinery.SourceFileLoader("run_mutants", str(ROOT / "tools/run_mutants"))
run_mutants = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("run_mutants", loader)
)
loader.exec_module(run_mutants)


def google_tests(rung: str = "*") -> set[str]:
    """Suite.test of all sources in tests/`rung`."""
    found = set()
    for source in ROOT.glob(f"tests/{rung}/*_test.cpp"):
        tests = re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", source.read_text(), re.MULTILINE)
        found |= {f"{suite}.{test}" for suite, test in tests}
    return found


def has_scripted_test(name: str) -> bool:
    """tests/cli/file.py::Class.test, or a function of a script or of the crate."""
    file, _, test = name.partition("::")
    owner, _, method = test.rpartition(".")
    source = ROOT / file
    if not source.exists():
        return False
    text = source.read_text()
    if owner:
        text = re.split(rf"^class {owner}\b", text, flags=re.MULTILINE)[-1]
        text = re.split(r"^class ", text, flags=re.MULTILINE)[0]
    return re.search(rf"^ *(def|fn) {method}\(", text, re.MULTILINE) is not None


def missing_tests(caught_by: str) -> list[str]:
    """Names of tests in a line's last cell that there are none of."""
    tests = google_tests()
    names = re.findall(r"`([^`]+)`", caught_by)
    return [name for name in names if not (has_scripted_test(name) if "::" in name else name in tests)]


class FaultsPage(unittest.TestCase):
    def setUp(self):
        page = (ROOT / "docs/faults.md").read_text()
        self.rows = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \|$", page, re.MULTILINE)

    def test_each_fault_has_one_line(self):
        self.assertEqual([int(row[0]) for row in self.rows], list(range(1, FAULTS + 1)))

    def test_each_line_names_reports(self):
        for number, reports, _, _ in self.rows:
            self.assertRegex(reports, r"\w#\d+", number)

    def test_named_tests_exist(self):
        for number, _, _, caught_by in self.rows:
            self.assertEqual(missing_tests(caught_by), [], f"fault {number}")

    def test_few_lines_rest_on_a_guarantee(self):
        untested = [row[0] for row in self.rows if "`" not in row[3]]
        self.assertLessEqual(len(untested), MOST_GUARANTEES)
        for row in self.rows:
            self.assertTrue("`" in row[3] or row[3].startswith("Guarantee: "), row[0])


class FaultsOfSurroundings(unittest.TestCase):
    def test_each_has_a_line_with_tests_that_exist(self):
        page = (ROOT / "docs/faults.md").read_text()
        rows = re.findall(r"^\| F(\d+) \| .+? \| (`.+?) \|$", page, re.MULTILINE)
        numbers = [int(number) for number, _ in rows]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertGreater(len(numbers), 35)
        for number, caught_by in rows:
            self.assertEqual(missing_tests(caught_by), [], f"F{number}")


class Mutants(unittest.TestCase):
    def setUp(self):
        self.mutants = run_mutants.choose([])

    def test_there_are_some(self):
        self.assertGreaterEqual(len(self.mutants), 25)

    def test_each_still_applies(self):
        for mutant in self.mutants:
            check = ["git", "-c", "safe.directory=*", "apply", "--check", mutant.path]
            done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"{mutant.name}: {done.stderr}")

    def test_each_breaks_the_library_alone(self):
        for mutant in self.mutants:
            files = re.findall(r"^\+\+\+ b/(.+)$", mutant.path.read_text(), re.MULTILINE)
            self.assertTrue(files and all(file.startswith("src/") for file in files), mutant.name)

    def test_rows_and_tests_exist(self):
        for mutant in self.mutants:
            self.assertTrue(all(1 <= row <= FAULTS for row in mutant.rows), mutant.name)
            if mutant.name[0].isdigit():  # else it breaks what no report is about
                self.assertIn(int(mutant.name[:2]), mutant.rows, mutant.name)
            for program, test_filter in mutant.tests:
                tests = google_tests(program.removeprefix("test_"))
                for pattern in test_filter.split(":"):
                    self.assertTrue(self.matches(pattern, tests), f"{mutant.name}: {pattern}")

    def matches(self, pattern: str, tests: set[str]) -> bool:
        """[prefix/]Suite.test[/parameter] with stars: without both ends, one of the tests."""
        suite, _, test = pattern.partition(".")
        suite, test = suite.split("/")[-1].strip("*"), test.split("/")[0].strip("*")
        return any(name.startswith(f"{suite}.{test}") for name in tests)


if __name__ == "__main__":
    unittest.main()
