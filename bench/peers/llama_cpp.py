"""llama.cpp: built from source for this machine, run by its own llama-bench."""

import json
import os
import pathlib
import re
import sys
from typing import Any, NamedTuple

from arms import Configuration, Measurement
from programs import HERE, Failure, run, say
from subjects import Cell

LLAMA_CPP_REVISION = "0c1e57098"
SOURCES = "llama_cpp_python-0.3.36"
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "GGML_NATIVE": "ON",  # -march=native; OpenMP is the default
    "BUILD_SHARED_LIBS": "OFF",
    "LLAMA_OPENSSL": "OFF",  # no downloads
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_SERVER": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_COMMIT": LLAMA_CPP_REVISION,  # else that of a checkout around the cache folder
    "LLAMA_BUILD_NUMBER": "0",
}
# With AMX compiled in, quantised weights go to its buffers. Only a build without it uses the
# repacked AVX-512 kernels, which may be faster.
WITHOUT_AMX = {
    f"CMAKE_{language}_FLAGS": "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
    for language in ("C", "CXX")
}
BUFFER = re.compile(r"(\w+) model buffer size = +([\d.]+) MiB")


# ---- build


def fetch_sources(cache: pathlib.Path) -> pathlib.Path:
    """The folder of llama.cpp's sources."""
    folder = cache / SOURCES / "vendor/llama.cpp"
    if not (cache / SOURCES / "whole").exists():
        say("fetching the sources of llama.cpp (77 MB)")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        run([*pip, "-d", cache, "-r", HERE / "requirements-llama-cpp.txt"])
        run(["tar", "-xf", cache / f"{SOURCES}.tar.gz", "-C", cache])
        (cache / SOURCES / "whole").touch()
    return folder


def has_amx() -> bool:
    information = pathlib.Path("/proc/cpuinfo")
    return information.exists() and "amx_int8" in information.read_text().split()


def build(cache: pathlib.Path, name: str, options: dict[str, str]) -> pathlib.Path:
    """The llama-bench of the build `name`, made where it isn't there yet."""
    folder = cache / f"llama.cpp-{LLAMA_CPP_REVISION}-{name}"
    program = folder / "bin/llama-bench"
    if not program.exists():
        say(f"building llama.cpp ({name}); with one job this takes a quarter of an hour")
        settings = [f"-D{key}={value}" for key, value in (OPTIONS | options).items()]
        run(["nice", "-n", "10", "cmake", "-S", fetch_sources(cache), "-B", folder, *settings])
        jobs = ["--target", "llama-bench", "--parallel", "1"]
        run(["nice", "-n", "10", "cmake", "--build", folder, *jobs])
    return program


def build_all(cache: pathlib.Path) -> dict[str, pathlib.Path]:
    programs = {"native": build(cache, "native", {})}
    if has_amx():
        programs["without-amx"] = build(cache, "without-amx", WITHOUT_AMX)
    return programs


# ---- run


class Settings(NamedTuple):
    """One choice of build and flags."""

    build: str
    repack: bool
    flash_attention: bool

    def flags(self) -> list[str]:
        return ["--repack", str(int(self.repack)), "-fa", "on" if self.flash_attention else "off"]


def settings_of(builds: list[str]) -> list[Settings]:
    """Every choice that differs: what isn't repacked is the same in both builds."""
    layouts = [(build, True) for build in builds] + [(builds[0], False)]
    return [Settings(*layout, flash) for layout in layouts for flash in (False, True)]


def cell_of(row: dict[str, Any]) -> Cell:
    """The cell of one row of llama-bench. Throws ValueError on a mixed test."""
    if row["n_prompt"] and row["n_gen"]:
        raise ValueError("got a test of prompt and generation, expected one of them")
    kind, tokens = ("pp", row["n_prompt"]) if row["n_prompt"] else ("tg", row["n_gen"])
    return Cell(kind, tokens, row["n_depth"])


def parse_rows(jsonl: str) -> list[Measurement]:
    measurements = []
    for line in jsonl.splitlines():
        row = json.loads(line)
        build = {key: row[key] for key in ("build_commit", "build_number", "backends")}
        measurements.append(Measurement(cell_of(row), row["avg_ts"], build, row))
    return measurements


def parse_buffers(log: str) -> dict[str, float]:
    """MiB of weights by kind of buffer: what the kernels in use are told by."""
    return {name: float(size) for name, size in BUFFER.findall(log)}


def test_flags(cells: tuple[Cell, ...]) -> list[str]:
    """Flags for cells of one kind that are a whole product of tokens and depths."""
    tokens = sorted({cell.tokens for cell in cells})
    depths = sorted({cell.depth for cell in cells})
    kinds = {cell.kind for cell in cells}
    if len(kinds) != 1 or len(cells) != len(tokens) * len(depths):
        raise ValueError(f"got cells that no one run measures: {', '.join(map(str, cells))}")
    counts = {"pp": "0", "tg": "0"} | {kinds.pop(): ",".join(map(str, tokens))}
    depth_list = ",".join(map(str, depths))
    return ["-p", counts["pp"], "-n", counts["tg"], "-d", depth_list]


class LlamaCpp:
    name = "llama.cpp"

    def __init__(self, cache: pathlib.Path, files: dict[str, pathlib.Path], threads: int):
        """`files`: GGUF files by model."""
        self.files = files
        self.threads = threads
        self.programs = build_all(cache)
        self.buffers: dict[tuple[str, Settings], dict[str, float]] = {}

    def configurations(self) -> list[Configuration]:
        return [settings._asdict() for settings in settings_of(list(self.programs))]

    def measure(
        self, model: str, cells: tuple[Cell, ...], configuration: Configuration
    ) -> list[Measurement]:
        settings = Settings(**configuration)
        command = self.command(model, settings)
        result = run([*command, "-r", "1", "-o", "jsonl", *test_flags(cells)])
        identity = self.identity(model, settings)
        return [
            measurement._replace(build=measurement.build | identity)
            for measurement in parse_rows(result.stdout)
        ]

    def command(self, model: str, settings: Settings) -> list[str | os.PathLike]:
        program, file = self.programs[settings.build], self.files[model]
        return [program, "-m", file, "-t", str(self.threads), *settings.flags()]

    def identity(self, model: str, settings: Settings) -> dict[str, Any]:
        """What the build is, and which buffers it really took: one short run, kept."""
        key = (model, settings)
        if key not in self.buffers:
            short = ["-p", "1", "-n", "0", "-r", "1", "--no-warmup", "-v", "-o", "jsonl"]
            self.buffers[key] = parse_buffers(run([*self.command(model, settings), *short]).stderr)
        if not self.buffers[key]:
            raise Failure(f"got no line of {self.programs[settings.build]} that names its buffers")
        return {"build": settings.build, "weight_buffers_mib": self.buffers[key]}
