"""The header of the binary's identity: right commit, right dirty flag, written only on a change."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "cmake/write_build_identity.cmake"
AUTHOR = ["-c", "user.name=a", "-c", "user.email=a@example.org"]


class BuildIdentity(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = pathlib.Path(folder.name) / "out/build_identity.h"
        self.source = pathlib.Path(folder.name) / "source"
        self.source.mkdir()
        (self.source / "a.cpp").write_text("int a;\n")

    def git(self, *arguments: str) -> str:
        command = ["git", *AUTHOR, "-C", str(self.source), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")

    def identity(self, source: pathlib.Path | None = None) -> dict[str, str]:
        values = {"source_dir": source or self.source, "output": self.output, "version": "1.2.3"}
        values |= {"mlx": "0.1", "flags": '-O2 -DNAME="a"', "compiler": "GNU 12"}
        settings = [part for key, value in values.items() for part in ("-D", f"{key}={value}")]
        subprocess.run(["cmake", *settings, "-P", SCRIPT], check=True)
        return dict(re.findall(r"#define WHIMBREL_(\w+) (.*)", self.output.read_text()))

    def test_values_are_c_strings(self):
        found = self.identity()
        self.assertEqual(found["VERSION"], '"1.2.3"')
        self.assertEqual(found["FLAGS"], r'"-O2 -DNAME=\"a\""')

    def test_outside_a_checkout(self):
        found = self.identity()
        self.assertEqual((found["COMMIT"], found["DIRTY"]), ('"unknown"', "0"))

    def test_clean_checkout(self):
        self.commit()
        found = self.identity()
        self.assertEqual(found["COMMIT"], f'"{self.git("rev-parse", "HEAD")}"')
        self.assertEqual(found["DIRTY"], "0")

    def test_change_makes_it_dirty(self):
        self.commit()
        (self.source / "a.cpp").write_text("int b;\n")
        self.assertEqual(self.identity()["DIRTY"], "1")

    def test_new_file_makes_it_dirty(self):
        self.commit()
        (self.source / "b.cpp").write_text("int b;\n")
        self.assertEqual(self.identity()["DIRTY"], "1")

    def test_copy_inside_another_checkout_has_no_commit(self):
        self.commit()
        copy = self.source / "third_party"
        copy.mkdir()
        self.assertEqual(self.identity(copy)["COMMIT"], '"unknown"')

    def test_same_values_leave_the_file_alone(self):
        self.identity()
        os.utime(self.output, (1, 1))
        self.identity()
        self.assertEqual(self.output.stat().st_mtime, 1)
        self.commit()
        self.identity()
        self.assertNotEqual(self.output.stat().st_mtime, 1)


if __name__ == "__main__":
    unittest.main()
