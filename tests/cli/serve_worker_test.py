"""whimbrel serve: the process that holds the model dies or hangs, and the server goes on."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from serve_test import ANSWER_SECONDS, START_SECONDS, Server, asking, content_of, never_ending
from support import BINARY, BUNDLED, CliTest, environment


def children_of(process: int) -> list[int]:
    children = []
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            children += map(int, (task / "children").read_text().split())
    return children


def eventually(condition) -> bool:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def is_alive(process: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return " Z" not in pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1][:3]
    return False


class WorkerCase(CliTest):
    FLAGS = ()

    def setUp(self):
        super().setUp()
        self.server = Server(*self.FLAGS)
        self.addCleanup(self.end)

    def end(self):
        if self.server.process.poll() is None:
            self.assertEqual(self.server.stop(), 0)

    def worker(self) -> int:
        found = []
        self.assertTrue(eventually(lambda: found.extend(children_of(self.server.process.pid)) or found))
        return found[0]

    def is_ready(self) -> bool:
        return self.server.call("GET", "/ready")[0] == 200

    def stream(self) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """An answer without an end, of which something has come."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=ANSWER_SECONDS)
        body = {"messages": asking("Count."), "stream": True, "max_tokens": 1900}
        body = json.dumps({**body, "logit_bias": never_ending()})
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/chat/completions", body, headers)
        answer = connection.getresponse()
        self.assertTrue(answer.read(1))
        return connection, answer

    def restarts(self) -> int:
        metrics = self.server.request("GET", "/metrics")[2]
        return int(re.search(r"(?m)^whimbrel_worker_restarts_total (\d+)$", metrics)[1])

    def assert_answers(self):
        self.assertTrue(eventually(self.is_ready))
        self.assertTrue(content_of(self.server.chat(asking("Hello."), max_tokens=4)))


class WorkerDies(WorkerCase):
    """F7: a worker that is killed, whatever it does, takes no more with it than its requests."""

    def test_while_it_is_idle(self):
        numbers = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)
        for deaths, number in enumerate(numbers, start=1):
            before = self.worker()
            os.kill(before, number)
            self.assertEqual(self.server.call("GET", "/health")[0], 200)
            self.assertTrue(eventually(lambda count=deaths: self.restarts() == count))
            self.assert_answers()
            self.assertNotEqual(self.worker(), before)

    def test_in_the_middle_of_a_stream(self):
        connection, answer = self.stream()
        with contextlib.closing(connection):
            os.kill(self.worker(), signal.SIGKILL)
            frames = [f for f in answer.read().decode().split("\n\n") if f.startswith("data: ")]
        error = json.loads(frames[-1].removeprefix("data: "))["error"]
        self.assertEqual(error["code"], "worker_died")
        self.assert_answers()

    def test_before_an_answer_is_whole(self):
        body = {"messages": asking("Count."), "max_tokens": 1900, "logit_bias": never_ending()}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=ANSWER_SECONDS)
        with contextlib.closing(connection):
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            self.assertTrue(eventually(lambda: self.server.call("GET", "/slots")[1]["running"] == 1))
            os.kill(self.worker(), signal.SIGKILL)
            answer = connection.getresponse()
            self.assertEqual(answer.status, 502)
            self.assertEqual(json.load(answer)["error"]["code"], "worker_died")
        self.assert_answers()

    def test_while_it_loads(self):
        first = self.worker()
        os.kill(first, signal.SIGKILL)
        self.assertTrue(eventually(lambda: self.worker() != first))
        os.kill(self.worker(), signal.SIGKILL)
        self.assertTrue(eventually(lambda: self.restarts() == 2))
        self.assert_answers()


class WorkerHangs(WorkerCase):
    """F51: a worker that gives no sign is ended, and another started."""

    FLAGS = ("--watchdog", "3")

    def test_while_it_streams(self):
        connection, answer = self.stream()
        stuck = self.worker()
        with contextlib.closing(connection):
            os.kill(stuck, signal.SIGSTOP)
            self.assertEqual(self.server.call("GET", "/health")[0], 200)
            self.assertIn(b"worker_died", answer.read())
        self.assertTrue(eventually(lambda: not is_alive(stuck)))
        self.assert_answers()


class FrontDies(WorkerCase):
    def test_its_worker_goes_with_it(self):
        worker = self.worker()
        connection, _ = self.stream()
        with contextlib.closing(connection):
            self.server.process.kill()
            self.server.process.wait(START_SECONDS)
        self.assertTrue(eventually(lambda: not is_alive(worker)))
        self.server.process.stdout.close()
        self.server.process.stderr.close()


class Secrets(WorkerCase):
    """F45: who reads what clients send holds no key, and hands its way to the front to no one."""

    FLAGS = ("--api-key", "canary-one", "--api-key=canary-two")

    def test_the_worker_has_none(self):
        process = pathlib.Path(f"/proc/{self.worker()}")
        for place in ("cmdline", "environ"):
            self.assertNotIn(b"canary", (process / place).read_bytes())
        self.assertIn(b"--port", (process / "cmdline").read_bytes())
        flags = re.search(r"(?m)^flags:\s+(\d+)$", (process / "fdinfo/3").read_text())[1]
        self.assertTrue(int(flags, 8) & os.O_CLOEXEC)


class Signals(WorkerCase):
    """F46: to whichever process of the group a signal comes, open answers end in order."""

    FLAGS = ("--drain", "0")

    def test_to_the_whole_group(self):
        connection, answer = self.stream()
        with contextlib.closing(connection):
            os.kill(self.worker(), signal.SIGTERM)
            os.kill(self.worker(), signal.SIGINT)
            self.assertEqual(self.server.stop(), 0)
            self.assertIn(b"the server stops", answer.read())

    def test_a_hang_up_is_one(self):
        self.server.process.send_signal(signal.SIGHUP)
        self.assertEqual(self.server.process.wait(START_SECONDS), 0)
        self.server.process.stdout.close()
        self.server.process.stderr.close()


class Limits(WorkerCase):
    FLAGS = ("--limit", "messages=1", "--limit", "body_bytes=1000", "--limit", "connections=50")

    def test_they_hold_and_are_shown(self):
        limits = self.server.call("GET", "/props")[1]["limits"]
        self.assertEqual((limits["messages"], limits["body_bytes"], limits["connections"]), (1, 1000, 50))
        two = asking("Hello.") * 2
        self.assertEqual(self.server.call("POST", "/v1/chat/completions", {"messages": two})[0], 400)
        long = {"messages": asking("x" * 1000)}
        self.assertEqual(self.server.call("POST", "/v1/chat/completions", long)[0], 413)

    def test_others_are_refused(self):
        for setting in ("nothing=1", "messages", "messages=", "messages=0", "messages=x", "images=-1"):
            with self.subTest(setting):
                result = subprocess.run(
                    [BINARY, "serve", "-m", BUNDLED, "--port", "0", "--limit", setting],
                    capture_output=True,
                    text=True,
                    env=environment(),
                    check=False,
                )
                self.assertEqual(result.returncode, 2)
                self.assertIn("--limit", result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)


class Loading(CliTest):
    """F46: a signal while the model is loaded ends everything, with code 0."""

    def test_a_signal(self):
        process = subprocess.Popen(
            [BINARY, "serve", "-m", BUNDLED, "--port", "0", "--no-progress"],
            stderr=subprocess.PIPE,
            env=environment(),
        )
        children = []
        self.assertTrue(eventually(lambda: children.extend(children_of(process.pid)) or children))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(START_SECONDS), 0)
        self.assertFalse(is_alive(children[0]))
        process.stderr.close()


if __name__ == "__main__":
    unittest.main()
