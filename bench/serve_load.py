#!/usr/bin/env python3
"""Many clients at once against a running `whimbrel serve`, and what became of them.

    bench/serve_load.py http://127.0.0.1:8080 --clients 64 --seconds 60 --image examples/shapes.png

Every client asks again and again until the time is over, every second one about the picture, half of
them in streams. Beside them one asks /health all the time. The report is JSON: how requests ended,
how long /health took, time to the first piece and gaps between pieces of streams.
"""
import argparse
import asyncio
import base64
import collections
import concurrent.futures
import http.client
import json
import pathlib
import random
import statistics
import sys
import time
import urllib.parse

MAX_TOKENS = 24


class Answer:
    """A response as it comes: status, body, and of one in chunks each with its arrival."""

    def __init__(self):
        self.status = 0
        self.body = bytearray()
        self.chunks = []
        self.arrivals = []


async def read_chunks(reader: asyncio.StreamReader, answer: Answer):
    while size := int(await reader.readline(), 16):
        answer.chunks.append(await reader.readexactly(size))
        answer.body += answer.chunks[-1]
        answer.arrivals.append(time.monotonic())
        await reader.readexactly(2)
    await reader.readline()


async def ask(server: urllib.parse.SplitResult, method: str, path: str, body: bytes, key: str) -> Answer:
    reader, writer = await asyncio.open_connection(server.hostname, server.port)
    head = f"{method} {path} HTTP/1.1\r\nHost: {server.netloc}\r\nConnection: close\r\n"
    head += f"Authorization: Bearer {key}\r\n" if key else ""
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    answer = Answer()
    try:
        writer.write(head.encode() + b"\r\n" + body)
        await writer.drain()
        answer.status = int((await reader.readline()).split()[1])
        fields = {}
        while line := (await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            fields[name.lower()] = value.strip()
        if fields.get("transfer-encoding") == "chunked":
            await read_chunks(reader, answer)
        else:
            answer.body += await reader.readexactly(int(fields["content-length"]))
    finally:
        writer.close()
    return answer


def end_of(answer: Answer, streamed: bool) -> str:
    """The state in which a request ended."""
    if answer.status != 200:
        code = json.loads(answer.body)["error"]["code"]
        return f"{answer.status} {code}"
    if not streamed:
        return json.loads(answer.body)["choices"][0]["finish_reason"]
    frames = [f[6:] for f in answer.body.split(b"\n\n") if f.startswith(b"data: ")]
    if frames[-1] != b"[DONE]":
        return "error in stream" if b'"error"' in frames[-1] else "broken stream"
    ends = [json.loads(f)["choices"] for f in frames[:-1]]
    return next(c[0]["finish_reason"] for c in reversed(ends) if c and c[0]["finish_reason"])


class Load:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.server = urllib.parse.urlsplit(options.url)
        self.picture = None
        if options.image:
            data = base64.b64encode(options.image.read_bytes()).decode()
            self.picture = f"data:image/{options.image.suffix[1:]};base64,{data}"
        self.ends = collections.Counter()
        self.first = []
        self.gaps = []
        self.deadline = time.monotonic() + options.seconds

    def request(self, rng: random.Random, with_picture: bool, stream: bool) -> bytes:
        content = [{"type": "text", "text": f"What is {rng.randrange(100)} minus {rng.randrange(100)}?"}]
        if with_picture:
            content.insert(0, {"type": "image_url", "image_url": {"url": self.picture}})
        body = {"messages": [{"role": "user", "content": content}], "max_tokens": MAX_TOKENS}
        return json.dumps({**body, "stream": stream, "seed": rng.randrange(1 << 30)}).encode()

    async def client(self, number: int):
        rng = random.Random(number)
        while time.monotonic() < self.deadline:
            stream = rng.random() < 0.5
            body = self.request(rng, bool(self.picture) and number % 2 == 1, stream)
            begin = time.monotonic()
            try:
                answer = await ask(self.server, "POST", "/v1/chat/completions", body, self.options.api_key)
            except (OSError, asyncio.IncompleteReadError, ValueError, IndexError) as error:
                self.ends[f"lost: {type(error).__name__}"] += 1
                continue
            self.ends[end_of(answer, stream)] += 1
            self.note(answer, begin)
            if answer.status == 429:
                await asyncio.sleep(0.1)

    def note(self, answer: Answer, begin: float):
        if answer.status == 200 and answer.arrivals:
            self.first.append(answer.arrivals[0] - begin)
            self.gaps += [b - a for a, b in zip(answer.arrivals, answer.arrivals[1:])]

    async def run(self) -> dict:
        clients = [self.client(number) for number in range(self.options.clients)]
        await asyncio.gather(*clients)
        return {
            "clients": self.options.clients,
            "seconds": self.options.seconds,
            "requests": sum(self.ends.values()),
            "ends": dict(sorted(self.ends.items())),
            "first_piece_ms": spread(self.first),
            "gap_ms": spread(self.gaps),
        }


def watch_health(url: str, seconds: float) -> list[float]:
    """How long /health took, again and again; in a process of its own, which the load can't hold up."""
    took = []
    server = urllib.parse.urlsplit(url)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection(server.hostname, server.port, timeout=60)
        begin = time.monotonic()
        connection.request("GET", "/health")
        if connection.getresponse().status != 200:
            raise RuntimeError("/health failed")
        took.append(time.monotonic() - begin)
        connection.close()
        time.sleep(0.02)
    return took


def spread(seconds: list[float]) -> dict | None:
    """Median, 99th percentile and largest, in milliseconds."""
    if not seconds:
        return None
    ordered = sorted(1000 * value for value in seconds)
    high = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return {
        "count": len(ordered),
        "median": round(statistics.median(ordered), 3),
        "p99": round(high, 3),
        "max": round(ordered[-1], 3),
    }


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--image", type=pathlib.Path)
    parser.add_argument("--api-key", default="")
    return parser.parse_args(arguments)


def measure(arguments: list[str]) -> dict:
    options = parse(arguments)
    with concurrent.futures.ProcessPoolExecutor(1) as other:
        health = other.submit(watch_health, options.url, options.seconds)
        report = asyncio.run(Load(options).run())
        return {**report, "health_ms": spread(health.result())}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1:]), indent=1))
