#!/usr/bin/env python3
"""Makes tests/golden/reference-text: what transformers answers in float32 for the tiny random text
models of tools/make_tiny_models.py.

Needs torch==2.15.0 and transformers==5.17.0, which no test needs. Run it from the project's root
after a change of those models, and commit what it writes; tests/golden/reference-text/README.md
says what is in each file.
"""

import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import save_file

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from tiny_models.configs import TEXT_FAMILIES  # noqa: E402

OUT = pathlib.Path("tests/golden/reference-text")
TOP = 8
GREEDY_TOKENS = 16
COUNTING = "".join(f"Row {i}: {i * i} birds, {97 - i} nests. " for i in range(1, 18))
PROMPTS = {
    "short": "The capital of France is the city of",
    "sentence": "A red circle stands on a blue field, left of a small green square; how many shapes?",
    "symbols": "x = 3.14159 * (a[7] - 'b'); # naïve café, 東京, 🙂\n\n\tend",
    "long": COUNTING,
}


def greedy(model, prompt: torch.Tensor) -> tuple[list[int], list[float]]:
    """Best ids and how far each leads, every step a whole forward without cache."""
    ids, gaps = prompt, []
    for _ in range(GREEDY_TOKENS):
        best = model(input_ids=ids[None], use_cache=False).logits[0, -1].topk(2)
        ids = torch.cat([ids, best.indices[:1]])
        gaps.append((best.values[0] - best.values[1]).item())
    return ids[len(prompt) :].tolist(), gaps


def reference(model, ids: list[int], with_last: bool) -> dict[str, torch.Tensor]:
    prompt = torch.tensor(ids)
    logits = model(input_ids=prompt[None], use_cache=False).logits[0]
    top = logits.topk(TOP)
    answer, gaps = greedy(model, prompt)
    tensors = {
        "input_ids": prompt.int(),
        "top_ids": top.indices.int(),
        "top_logits": top.values,
        "greedy_ids": torch.tensor(answer, dtype=torch.int32),
        "gap": torch.tensor(gaps),
    }
    if with_last:
        tensors["last_logits"] = logits[-1].clone()
    return tensors


def write_family(family: str, folder: pathlib.Path):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    out = OUT / family
    out.mkdir(parents=True)
    about = {
        "made_with": f"transformers {transformers.__version__}, torch {torch.__version__}",
        "weights_sha256": hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        "prompts": PROMPTS,
    }
    (out / "about.json").write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n")
    for name, text in PROMPTS.items():
        tensors = reference(model, tokenizer(text)["input_ids"], with_last=name == "long")
        save_file(tensors, out / f"{name}.safetensors")
        gaps = ", ".join(f"{gap:.1f}" for gap in tensors["gap"].tolist())
        print(f"{family}/{name}: {len(tensors['input_ids'])} tokens, gaps {gaps}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        families = [argument for name in TEXT_FAMILIES for argument in ("--family", name)]
        script = pathlib.Path(__file__).parent / "make_tiny_models.py"
        subprocess.run([sys.executable, script, "--out", folder, *families], check=True)
        for family in TEXT_FAMILIES:
            shutil.rmtree(OUT / family, ignore_errors=True)
            with torch.inference_mode():
                write_family(family, pathlib.Path(folder) / family)


if __name__ == "__main__":
    main()
