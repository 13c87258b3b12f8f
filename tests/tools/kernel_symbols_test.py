"""What is compiled for one instruction set stays apart from the rest of the program.

A function that several files may define is kept once, from whatever file the linker picks: one of
the standard library's out of a unit with AVX-512 would end the program on a machine without. So such
symbols of these units stand in the namespace of their own instruction set, or carry its types.
WHIMBREL_KERNEL_OBJECTS names the object files, one behind the other with semicolons.
"""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

OBJECTS = [pathlib.Path(name) for name in os.environ.get("WHIMBREL_KERNEL_OBJECTS", "").split(";")]
UNIT = re.compile(r"(kernels|functions|probe)_([a-z0-9]+)\.cpp\.o$")
SHARED = "WVu"  # weak functions, weak data, unique data
OF_THE_COMPILER = ("DW.ref.",)  # pointers, no code


def shared_symbols(unit: pathlib.Path) -> list[str]:
    listed = subprocess.run(
        ["nm", "--demangle", "--defined-only", unit], capture_output=True, text=True, check=True
    ).stdout
    fields = (line.split(maxsplit=2) for line in listed.splitlines())
    return [name for _, kind, name in fields if kind in SHARED]


def strays(unit: pathlib.Path, isa: str) -> list[str]:
    own = re.compile(rf"\b(cpu|simd)::{isa}::")
    return [
        name
        for name in shared_symbols(unit)
        if not own.search(name) and not name.startswith(OF_THE_COMPILER)
    ]


class KernelSymbols(unittest.TestCase):
    def test_nothing_shared_leaves_a_unit(self):
        units = [(path, found[2]) for path in OBJECTS if (found := UNIT.search(path.name))]
        self.assertGreater(len(units), 3)
        for path, isa in units:
            with self.subTest(path.name):
                self.assertEqual(strays(path, isa), [])

    def test_a_stray_function_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "kernels_avx2.cpp"
            source.write_text(
                "namespace whimbrel::ops::cpu::avx2 { inline int* own(int* x) { return x; } }\n"
                "inline int* stray(int* x) { return whimbrel::ops::cpu::avx2::own(x); }\n"
                "int* (*leaves)(int*) = stray;\n"
            )
            unit = source.with_suffix(".cpp.o")
            subprocess.run(["c++", "-c", source, "-o", unit], check=True)
            self.assertEqual(strays(unit, "avx2"), ["stray(int*)"])


if __name__ == "__main__":
    unittest.main()
