"""What the command-line tests share: runs of the program, pictures drawn here, broken checkpoints.

WHIMBREL_BINARY is the program, WHIMBREL_MODELS the folder of its checkpoints, WHIMBREL_SOURCE_DIR
the project; tests/cli/CMakeLists.txt sets all three. By hand: python3 tests/cli/<script>.py [Class]
tests build/whimbrel.
"""
import dataclasses
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

SOURCE = pathlib.Path(os.environ.get("WHIMBREL_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BINARY = os.environ.get("WHIMBREL_BINARY", str(SOURCE / "build/whimbrel"))
MODELS = pathlib.Path(os.environ.get("WHIMBREL_MODELS", SOURCE / "models"))
GOLDEN = SOURCE / "tests/golden/reference"
SHAPES = SOURCE / "examples/shapes.png"

BUNDLED = "tiny-qwen2-5-vl-4bit"
BUNDLED_LINE = f"no model given (-m): using the bundled tiny model, {BUNDLED}\n"
BF16 = "tiny-qwen2-5-vl"

RUN_SECONDS = 120
# Words of a crash, or of an exception that nobody meant to show.
SIGNS_OF_A_CRASH = ("terminate", "what()", "backtrace", "unexpected failure", "panick")
# What a developer may have set for himself, and would change what these tests see.
PERSONAL = ("NO_COLOR", "WHIMBREL_OPS", "WHIMBREL_ISA")


def environment(**extra: str) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if key not in PERSONAL}
    return {**env, "WHIMBREL_MODELS": str(MODELS), **extra}


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str


def run(
    *arguments,
    stdin: str | bytes = b"",
    stdout=subprocess.PIPE,
    cwd=None,
    env: dict | None = None,
    program: str | pathlib.Path = BINARY,
    seconds: int = RUN_SECONDS,
) -> Result:
    """Runs the program to its end."""
    done = subprocess.run(
        [program, *map(str, arguments)],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=environment(**(env or {})),
        timeout=seconds,
        check=False,
    )
    out = (done.stdout or b"").decode()
    # A complaint may quote bytes that aren't UTF-8; an answer never holds any.
    return Result(done.returncode, out, done.stderr.decode(errors="replace"))


def parse_json(text: str):
    """Strict: a repeated key, NaN or Infinity is an error."""

    def object_of(pairs):
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError(f"a key stands twice: {keys}")
        return dict(pairs)

    def refuse(constant):
        raise ValueError(f"got {constant}, which is no JSON")

    return json.loads(text, object_pairs_hook=object_of, parse_constant=refuse)


# Pictures


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, colour: tuple[int, int, int]) -> bytes:
    """A picture of one colour."""
    rows = (b"\0" + bytes(colour) * width) * height
    data = png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    return png_header(width, height) + data


def png_header(width: int, height: int) -> bytes:
    """The start of a picture: what a reader learns its size from."""
    fields = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", fields)


BLUE = (40, 80, 200)
GREEN = (40, 160, 70)
COLOUR_QUESTION = "What colour is this image?"


# Checkpoints


def copy_model(name: str, folder: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(MODELS / name, folder))


def edit_json(path: pathlib.Path, change) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


@dataclasses.dataclass
class Safetensors:
    """A weight file taken apart: name -> (dtype, shape, bytes)."""

    tensors: dict[str, tuple[str, list[int], bytes]]

    @staticmethod
    def read(path: pathlib.Path) -> "Safetensors":
        file = path.read_bytes()
        (length,) = struct.unpack("<Q", file[:8])
        header, data = json.loads(file[8 : 8 + length]), file[8 + length :]
        header.pop("__metadata__", None)
        return Safetensors(
            {
                name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
                for name, entry in header.items()
            }
        )

    def write(self, path: pathlib.Path, **metadata: str) -> None:
        header, end = {"__metadata__": {"format": "pt", **metadata}}, 0
        for name, (dtype, shape, data) in self.tensors.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(data)]}
            end += len(data)
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        body = b"".join(data for _, _, data in self.tensors.values())
        path.write_bytes(struct.pack("<Q", len(head)) + head + body)


class CliTest(unittest.TestCase):
    """A test with a folder of its own."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="whimbrel-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name: str, content: bytes | str) -> pathlib.Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def answer(self, *arguments, model=BUNDLED, **settings) -> dict:
        """The object that `generate --json` prints, when all goes well."""
        result = run("generate", "-m", model, "--json", *arguments, **settings)
        self.assertEqual((result.code, result.err), (0, ""), arguments)
        self.assertTrue(result.out.endswith("\n"), result.out)
        self.assertEqual(result.out.count("\n"), 1, result.out)
        return parse_json(result.out)

    def text(self, *arguments, model=BUNDLED, **settings) -> str:
        """What `generate` prints, when all goes well."""
        result = run("generate", "-m", model, *arguments, **settings)
        self.assertEqual((result.code, result.err), (0, ""), arguments)
        return result.out

    def assert_error(self, result: Result, code: int, *named: str):
        """One sentence on stderr that says where and holds all of `named`; nothing on stdout."""
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.out, "")
        self.assertRegex(result.err, r"\Aerror: \[[^\n]+\] [^\n]+\n\Z")
        for part in named:
            self.assertIn(part, result.err)
        for word in SIGNS_OF_A_CRASH:
            self.assertNotIn(word, result.err)
