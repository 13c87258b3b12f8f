#!/usr/bin/env python3
"""Makes tiny random models that tests load: tools/make_tiny_models.py --out DIR [--family NAME]...

Writes DIR/NAME for each family, in the form of its published checkpoints: config.json,
model.safetensors in bfloat16, generation_config.json, tokenizer, chat template and, where the
family sees, preprocessor_config.json. Tokenizer, template and preprocessor come from the trained
tiny models in models/. Equal arguments give equal bytes on every machine. Needs numpy.

--variant, which may stand several times, gives the same model in another published form:
  f16             float16 weights
  nested          as transformers 5 saves it again
  experts-out-in  a layer's experts as two stacks [experts, out, in]
  mlx             names and layouts of an MLX conversion
  text-only       an MLX conversion of the text decoder alone
"""

import argparse
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from safetensors_file import bfloat16, float16, write_safetensors  # noqa: E402
from tiny_models import layouts  # noqa: E402
from tiny_models.configs import CONFIGS, TEXT_FAMILIES  # noqa: E402
from tiny_models.tensors import Tensors, make_tensors  # noqa: E402

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"
VARIANTS = ("f16", "nested", "experts-out-in", "mlx", "text-only")
TOKENIZER = ("generation_config.json", "tokenizer.json", "tokenizer_config.json")
# Which trained tiny model lends its files, and which ones.
LENDERS = {
    "qwen2_vl": ("tiny-qwen2-vl-4bit", ("chat_template.jinja", "preprocessor_config.json")),
    "qwen2_5_vl": ("tiny-qwen2-5-vl", ("chat_template.json", "preprocessor_config.json")),
    "qwen3_vl": ("tiny-qwen3-vl-4bit", ("chat_template.jinja", "preprocessor_config.json")),
    "qwen3_vl_moe": ("tiny-qwen3-vl-moe-4bit", ("chat_template.jinja", "preprocessor_config.json")),
}
TEXT_LENDER = "tiny-qwen3-vl-4bit"
VIDEO = "video_preprocessor_config.json"


def write_json(path: pathlib.Path, value: dict):
    path.write_text(json.dumps(value, indent=2) + "\n")


def lend_files(family: str, folder: pathlib.Path):
    lender, extra = LENDERS.get(family, (TEXT_LENDER, ()))
    for name in (*TOKENIZER, *extra):
        shutil.copyfile(MODELS / lender / name, folder / name)
    if family in LENDERS and (MODELS / lender / VIDEO).exists():
        shutil.copyfile(MODELS / lender / VIDEO, folder / VIDEO)
    if family in TEXT_FAMILIES:
        put_template_inside(MODELS / lender / "chat_template.jinja", folder)


def put_template_inside(template: pathlib.Path, folder: pathlib.Path):
    """Text checkpoints keep the chat template in tokenizer_config.json."""
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config.pop("processor_class", None)
    write_json(path, config | {"chat_template": template.read_text()})


def lay_out(config: dict, tensors: Tensors, variants: set[str]) -> tuple[dict, Tensors]:
    if "text-only" in variants:
        tensors = layouts.without_vision(layouts.mlx_tensors(tensors))
        return layouts.text_only_config(config), tensors
    if "mlx" in variants:
        return layouts.mlx_config(config), layouts.mlx_tensors(tensors)
    nested = "nested" in variants
    tensors = layouts.hub_tensors(config, tensors, "experts-out-in" in variants, nested)
    return layouts.nested_config(config) if nested else config, tensors


def refuse_contradictions(family: str, variants: set[str]):
    forms = variants & {"mlx", "text-only", "nested"}
    if len(forms) > 1 or ("experts-out-in" in variants and forms - {"nested"}):
        sys.exit(f"got variants {sorted(variants)}, expected at most one form of a checkpoint")
    if "text-only" in variants and family in TEXT_FAMILIES:
        sys.exit(f"got variant text-only, expected none: {family} is text only")
    if "experts-out-in" in variants and not family.endswith("moe"):
        sys.exit(f"got variant experts-out-in, expected none: {family} has no experts")


def make_model(family: str, folder: pathlib.Path, variants: set[str], seed: int):
    """Writes one model into `folder`."""
    refuse_contradictions(family, variants)
    config = CONFIGS[family]()
    if "f16" in variants:
        config = layouts.set_dtype(config, "float16")
    config, tensors = lay_out(config, make_tensors(config, seed), variants)
    store = float16 if "f16" in variants else bfloat16
    made_by = "mlx" if variants & {"mlx", "text-only"} else "pt"
    folder.mkdir(parents=True, exist_ok=True)
    lend_files(family, folder)
    write_json(folder / "config.json", config)
    stored = {name: store(values) for name, values in tensors.items()}
    write_safetensors(folder / "model.safetensors", stored, made_by)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--family", action="append", choices=list(CONFIGS), default=[])
    parser.add_argument("--variant", action="append", choices=VARIANTS, default=[])
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for family in arguments.family or CONFIGS:
        make_model(family, arguments.out / family, set(arguments.variant), arguments.seed)


if __name__ == "__main__":
    main()
