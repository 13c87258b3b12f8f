"""What the tests of clients share: two servers that ask for a key, and what the clients ask them.

A client is the package that its users install, unmodified; tools/bootstrap puts all of them into
.venv. By hand: .venv/bin/python tests/clients/<script>.py tests build/whimbrel.
"""

import base64
import concurrent.futures
import contextlib
import importlib.util
import json
import pathlib
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "cli"))
from serve_test import Server, asking, never_ending  # noqa: E402
from support import SHAPES  # noqa: E402

MODEL = "tiny-qwen3-vl-4bit"  # its chat template knows tools
KEY = "the-key-of-these-tests"
WRONG_KEY = "another-key"
# As many tokens as no prompt here may have, and of them as many words.
CONTEXT = 4096
TOO_LONG = "word " * (2 * CONTEXT)
LONG_ANSWER = 3900
PICTURE = base64.b64encode(SHAPES.read_bytes()).decode()
PICTURE_URL = "data:image/png;base64," + PICTURE
# What an answer's form or a tool's arguments must have. No member has room for a long text, so that
# a tiny model comes to an end.
SCHEMA = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "count": {"type": "integer", "minimum": 0, "maximum": 9},
    },
    "required": ["colour", "count"],
    "additionalProperties": False,
}
POLLS, POLL_SECONDS = 2000, 0.01


def skip(package: str) -> None:
    """Ends a script whose client isn't installed, with the reason; CTest calls that skipped."""
    print(f"skipped: {package} isn't installed; type: tools/bootstrap test")
    sys.exit(0)


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        skip(package)


class KeyServer(Server):
    """A server that asks for a key, and what it says of itself."""

    def __init__(self, *arguments: str):
        super().__init__("--api-key", KEY, *arguments, model=MODEL)
        self.v1 = self.url + "/v1"

    def get(self, path: str) -> str:
        request = urllib.request.Request(self.url + path, headers={"x-api-key": KEY})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    def wait_for(self, wanted) -> dict:
        """What /slots says once that is as wanted."""
        for _ in range(POLLS):
            slots = json.loads(self.get("/slots"))
            if wanted(slots):
                return slots
            time.sleep(POLL_SECONDS)
        raise AssertionError(slots)

    def count_of(self, status: int) -> int:
        """How many answers had that status."""
        lines = self.get("/metrics").splitlines()
        answers = [line for line in lines if line.startswith("whimbrel_http_answers_total{")]
        return sum(int(line.split()[-1]) for line in answers if f'status="{status}"' in line)

    def open_stream(self):
        """A chat that goes on until it is closed, or for many seconds."""
        body = {
            "messages": asking("Count."),
            "stream": True,
            "max_tokens": 16000,
            "logit_bias": never_ending(MODEL),
        }
        headers = {"Content-Type": "application/json", "x-api-key": KEY}
        request = urllib.request.Request(
            self.v1 + "/chat/completions", json.dumps(body).encode(), headers
        )
        return urllib.request.urlopen(request, timeout=60)


def start_roomy() -> KeyServer:
    """For all that is answered at once."""
    return KeyServer("--ctx", str(CONTEXT))


def start_narrow() -> KeyServer:
    """Computes one request, lets one wait and refuses a third."""
    return KeyServer("--parallel", "1", "--queue", "1")


@contextlib.contextmanager
def occupied(server: KeyServer):
    """A narrow server with no room. Yields what makes room again."""
    with contextlib.ExitStack() as streams:
        streams.enter_context(contextlib.closing(server.open_stream()))
        server.wait_for(lambda slots: slots["running"] == 1)
        # Headers come before a request has its turn, so this doesn't wait.
        streams.enter_context(contextlib.closing(server.open_stream()))
        server.wait_for(lambda slots: slots["queued"] == 1)
        yield streams.close
    server.wait_for(lambda slots: slots["running"] + slots["queued"] == 0)


class ClientCase(unittest.TestCase):
    """Servers for all tests of a class."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = start_roomy()
        cls.addClassCleanup(cls.stop, cls.server)
        cls.narrow = start_narrow()
        cls.addClassCleanup(cls.stop, cls.narrow)

    @staticmethod
    def stop(server: KeyServer):
        code = server.stop()
        if code != 0:
            raise AssertionError(f"got exit code {code}: {server.said}")

    def assert_cancelled(self, leave):
        """Calls `leave` while one request is computed, and sees that request end by it."""
        before = self.server.wait_for(lambda slots: slots["running"] == 1)
        leave()
        after = self.server.wait_for(lambda slots: slots["running"] + slots["queued"] == 0)
        self.assertEqual(after["requests_cancelled"] - before["requests_cancelled"], 1)

    def tried_again(self, ask):
        """What `ask` gets of a server that has no room until it has refused it once."""
        refused = self.narrow.count_of(429)
        with concurrent.futures.ThreadPoolExecutor(1) as pool, occupied(self.narrow) as make_room:
            answer = pool.submit(ask)
            while self.narrow.count_of(429) == refused and not answer.done():
                time.sleep(POLL_SECONDS)
            make_room()
            value = answer.result()
        self.assertGreater(self.narrow.count_of(429), refused)
        return value

    def assert_fits(self, value):
        """Whether a value fits SCHEMA."""
        self.assertEqual(set(value), {"colour", "count"})
        self.assertIn(value["colour"], ("red", "blue"))
        self.assertIn(value["count"], range(10))
