#!/usr/bin/env python3
"""What a server makes of a model that `whimbrel bench` measures alone: figures, as JSON.

    bench/serve_figures.py build/whimbrel -m DIR decode          # clients at once against bench --rows
    bench/serve_figures.py build/whimbrel -m DIR lookup          # where all guesses are right
    bench/serve_figures.py build/whimbrel -m DIR second_turn     # about the same picture
    bench/serve_figures.py build/whimbrel -m DIR gap             # of a stream, while a large picture is read

It starts the server itself. Server and bench take turns, and every row says what binary it was.
"""
import argparse
import asyncio
import base64
import contextlib
import json
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import zlib

import serve_load

PROMPT = "Write down what comes to your mind. "


def noise_png(side: int, seed: int) -> str:
    """A data URL of a square picture that no other seed gives."""
    rng = random.Random(seed)
    colours = [rng.randbytes(3 * side) for _ in range(8)]
    rows = b"".join(b"\0" + rng.choice(colours) for _ in range(side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


@contextlib.contextmanager
def serving(options: argparse.Namespace, *flags: str):
    """A running server's address."""
    command = [options.binary, "serve", "-m", options.model, "--port", "0", "--no-progress", "--request-time", "0"]
    process = subprocess.Popen([*command, *flags], stderr=subprocess.PIPE, text=True)
    try:
        line = next(line for line in process.stderr if line.startswith("listening on "))
        yield urllib.parse.urlsplit(line.split()[-1])
    finally:
        process.terminate()
        process.wait(60)


class Stream:
    """A streamed answer: when its pieces came, in seconds behind the question, and what it took."""

    def __init__(self, answer: serve_load.Answer, begin: float):
        if answer.status != 200:
            raise RuntimeError(answer.body.decode())
        self.begin = begin
        self.text = ""
        self.pieces = []  # with text
        for chunk, arrival in zip(answer.chunks, answer.arrivals, strict=True):
            for frame in chunk.split(b"\n\n"):
                self.take(frame, arrival)

    def take(self, frame: bytes, arrival: float):
        if not frame.startswith(b"data: {"):
            return  # the end, or a comment that keeps the connection
        event = json.loads(frame[6:])
        self.timings = event.get("timings")
        if event["choices"] and (text := event["choices"][0]["delta"].get("content")):
            self.text += text
            self.pieces.append(arrival)

    def first(self) -> float:
        return self.pieces[0] - self.begin

    def longest_gap(self, after: float, before: float) -> float:
        """Between two pieces, the span's own ends included where none came there."""
        inside = [after, *(p for p in self.pieces if after < p < before), before]
        return max(b - a for a, b in zip(inside, inside[1:]))


def call(server: urllib.parse.SplitResult, path: str, body: dict | None = None) -> dict:
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(server.geturl() + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def identity(server: urllib.parse.SplitResult) -> dict:
    """What runs there."""
    props = call(server, "/props")
    return {name: props[name] for name in ("build", "ops", "model")}


def end_tokens(server: urllib.parse.SplitResult) -> list[int]:
    return call(server, "/tokenize", {"content": "<|im_end|><|endoftext|>", "parse_special": True})["tokens"]


async def chat(
    server: urllib.parse.SplitResult, messages: list, max_tokens: int, pixels: int | None = None
) -> Stream:
    """`pixels`: of each picture, whatever the checkpoint would take."""
    body = {"messages": messages, "max_tokens": max_tokens, "temperature": 0, "stream": True}
    if pixels:
        body["whimbrel"] = {"min_pixels": pixels * 9 // 10, "max_pixels": pixels}
    body["logit_bias"] = {str(token): -100 for token in end_tokens(server)}  # as long as was asked for
    begin = time.monotonic()
    data = json.dumps(body).encode()
    return Stream(await serve_load.ask(server, "POST", "/v1/chat/completions", data, ""), begin)


def user(text: str, picture: str | None = None) -> dict:
    content = [{"type": "text", "text": text}]
    if picture:
        content.insert(0, {"type": "image_url", "image_url": {"url": picture}})
    return {"role": "user", "content": content}


async def ask_together(server: urllib.parse.SplitResult, clients: int, tokens: int) -> float:
    """Tokens a second while all answers go on."""
    questions = [chat(server, [user(PROMPT + f"{n} " * 30)], tokens) for n in range(clients)]
    streams = await asyncio.gather(*questions)
    begin = max(s.pieces[0] for s in streams)
    end = min(s.pieces[-1] for s in streams)
    # A piece is a token where each token has text, as those of a model of zeros have.
    return sum(sum(begin < p <= end for p in s.pieces) for s in streams) / (end - begin)


def bench_rows(options: argparse.Namespace) -> dict:
    command = [options.binary, "bench", "-m", options.model, "-p", "0", "-n", str(options.tokens // 2)]
    command += ["-d", "128", "--rows", str(options.clients), "-r", "1", "-o", "jsonl"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def spread(values: list[float]) -> dict:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def lookup(options: argparse.Namespace) -> dict:
    """One client, and all of them. A model of zeros says one token for ever: every guess is right."""
    rows = []
    for guesses in (0, 2, 4, 8, 15):
        with serving(options, "--prompt-lookup", str(guesses)) as server:
            asyncio.run(ask_together(server, 1, 8))  # warm
            one = [asyncio.run(ask_together(server, 1, options.tokens)) for _ in range(options.rounds)]
            all_of_them = asyncio.run(ask_together(server, options.clients, options.tokens))
            what = identity(server)
        rows.append({"guesses": guesses, "one_tok_s": spread(one), "clients_tok_s": all_of_them})
    return {**what, "clients": options.clients, "rows": rows}


def decode(options: argparse.Namespace) -> dict:
    served, alone, fractions = [], [], []
    for _ in range(options.rounds):
        with serving(options) as server:
            asyncio.run(ask_together(server, options.clients, 8))  # warm
            served.append(asyncio.run(ask_together(server, options.clients, options.tokens)))
            what = identity(server)
        row = bench_rows(options)
        alone.append(row["tok_s"])
        fractions.append(served[-1] / alone[-1])
    what |= {"build": row["build"], "isa": row["isa"], "threads": row["threads"], "clients": options.clients}
    return {**what, "served_tok_s": spread(served), "bench_tok_s": spread(alone), "fraction": spread(fractions)}


async def two_turns(server: urllib.parse.SplitResult, side: int, seed: int) -> dict:
    question = user("Describe this image.", noise_png(side, seed))
    first = await chat(server, [question], 16, side**2)
    answer = {"role": "assistant", "content": first.text}
    more = [question, answer, user("And what else is there?")]
    second = await chat(server, more, 16, side**2)
    return {
        "first_s": first.first(),
        "second_s": second.first(),
        "fraction": second.first() / first.first(),
        "prompt_tokens": first.timings["prompt_n"],
        "cached_tokens": second.timings["cache_n"],
        "tower_ms": [first.timings["tower_ms"], second.timings["tower_ms"]],
    }


def second_turn(options: argparse.Namespace) -> dict:
    with serving(options) as server:
        turns = [asyncio.run(two_turns(server, options.side, seed)) for seed in range(options.rounds)]
        what = identity(server)
    names = ("first_s", "second_s", "fraction")
    return {**what, "turns": turns, **{name: spread([turn[name] for turn in turns]) for name in names}}


async def one_beside_another(server: urllib.parse.SplitResult, side: int, tokens: int, seed: int) -> dict:
    question = user("Describe this image.", noise_png(side, seed))  # now: nothing is heard meanwhile
    running = asyncio.create_task(chat(server, [user(PROMPT)], tokens))
    await asyncio.sleep(2)
    begin = time.monotonic()
    looking = await chat(server, [question], 4, side**2)
    end = begin + looking.first()
    stream = await running
    if stream.pieces[-1] < end:
        raise RuntimeError("the stream ended before the picture was read: ask for more --tokens")
    took = looking.timings
    chunks = -(-took["prompt_n"] // 512)
    return {
        "prompt_tokens": took["prompt_n"],
        "tower_s": took["tower_ms"] / 1000,
        "chunk_s": (took["prompt_ms"] - took["tower_ms"]) / 1000 / chunks,
        "longest_gap_s": stream.longest_gap(begin, end),
        "pieces_meanwhile": sum(begin <= p <= end for p in stream.pieces),
    }


def gap(options: argparse.Namespace) -> dict:
    with serving(options, "--max-pixels", str(options.side**2)) as server:
        rounds = [
            asyncio.run(one_beside_another(server, options.side, options.tokens, seed))
            for seed in range(options.rounds)
        ]
        what = identity(server)
    return {**what, "rounds": rounds}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("figure", choices=[f.__name__ for f in (decode, lookup, second_turn, gap)])
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128, help="of an answer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", type=int, default=1008, help="of the picture, in pixels")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    chosen = parse(sys.argv[1:])
    print(json.dumps(globals()[chosen.figure](chosen), indent=1))
