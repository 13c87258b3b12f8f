"""pull from a hub that misbehaves: what it sends wrongly, drops or holds back."""
import fcntl
import os
import resource
import shutil
import signal
import subprocess
import threading
import unittest

from hub import (
    COMMIT,
    NEEDED,
    REPO,
    SMALL,
    WEIGHT_BYTES,
    WEIGHTS,
    WEIGHTS_BLOB,
    HubCase,
)
from support import BINARY, environment, run
from terminal_test import Session

SIZE = len(WEIGHT_BYTES)


def replying(status: int, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.reply(status, named)


def dropping_after(count: int):
    return lambda handler, content: handler.drop_after(content, count)


def whole_file(handler, content):
    """200 to whatever was asked for."""
    handler.reply(200, {}, content)


class Gate:
    """Answers once the test opens it."""

    def __init__(self, sent_before: int = 0):
        self.reached, self.opened, self.sent = threading.Event(), threading.Event(), sent_before

    def __call__(self, handler, content):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: self.sent])
        handler.wfile.flush()
        self.reached.set()
        self.opened.wait(60)
        handler.wfile.write(content[self.sent :])


class Drops(HubCase):
    def test_at_each_tenth_in_one_pull(self):
        tenth = SIZE // 10
        self.hub.fault("GET", WEIGHTS, *[dropping_after(tenth)] * 9)
        result = self.pull()
        self.assert_pulled(result)
        ranges = [seen.range for seen in self.hub.requests("GET", WEIGHTS)]
        self.assertEqual(ranges, [None] + [f"bytes={tenth * i}-" for i in range(1, 10)])
        self.assertEqual(result.err.count("trying again from"), 9)

    def test_at_each_tenth_over_pulls(self):
        """What an ended pull left is where the next one goes on."""
        for tenth in range(1, 10):
            with self.subTest(tenth):
                shutil.rmtree(self.cache, ignore_errors=True)
                had = SIZE * tenth // 10
                gate = Gate(sent_before=had)
                self.hub.fault("GET", WEIGHTS, gate)
                broken = Session("pull", REPO, terminals=(), **self.env())
                broken.read_until("err", f"{tenth * 10 - 10}% of" if tenth > 1 else WEIGHTS)
                self.assertTrue(gate.reached.wait(30))
                self.wait_for_incomplete(had)
                broken.process.send_signal(signal.SIGINT)
                code, out, err = broken.finish()
                gate.opened.set()
                self.assertEqual((code, out), (130, ""))
                self.assertRegex(err, r"\nerror: \[pull\] interrupted[^\n]*\n\Z")
                self.assert_nothing_linked()
                self.assertEqual(self.incomplete().stat().st_size, had)
                del self.hub.seen[:]
                self.assert_pulled(self.pull())
                self.assertEqual(
                    [seen.range for seen in self.hub.requests("GET", WEIGHTS)], [f"bytes={had}-"]
                )

    def test_it_gives_up(self):
        self.hub.fault("GET", WEIGHTS, *[dropping_after(0)] * 20)
        result = self.pull()
        self.assert_failed(result, 7, REPO, "5 tries", "pull again")
        self.assertEqual(len(self.hub.requests("GET", WEIGHTS)), 5)

    def test_a_drop_of_the_listing(self):
        self.hub.fault("GET", "api", lambda handler, _: handler.hang_up())
        self.hub.fault("HEAD", WEIGHTS, lambda handler, _: handler.hang_up())
        self.assert_pulled(self.pull())

    def test_nobody_listens(self):
        self.hub.close()
        self.assert_failed(self.pull(), 7, "127.0.0.1", "network")


class WrongBytes(HubCase):
    def test_wrong_hash(self):
        wrong = bytes(SIZE)
        self.hub.fault("GET", WEIGHTS, lambda handler, _: handler.send_file(wrong))
        self.assert_failed(self.pull(), 7, WEIGHTS, WEIGHTS_BLOB)
        self.assertFalse((self.model / "blobs" / WEIGHTS_BLOB).exists())
        self.assertFalse(self.incomplete().exists())
        self.assert_pulled(self.pull())

    def test_wrong_hash_of_a_small_file(self):
        self.hub.fault("GET", "config.json", lambda h, content: h.send_file(content.upper()))
        self.assert_failed(self.pull(), 7, "config.json", "hash")

    def test_bytes_from_before_are_wrong(self):
        """The pull sees it at the end, and starts that file over."""
        self.put_incomplete(bytes(1000))
        self.assert_pulled(self.pull())
        ranges = [seen.range for seen in self.hub.requests("GET", WEIGHTS)]
        self.assertEqual(ranges, ["bytes=1000-", None])

    def test_more_from_before_than_there_is(self):
        self.put_incomplete(bytes(SIZE + 1))
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.requests("GET", WEIGHTS)[0].range, None)

    def test_all_from_before(self):
        self.put_incomplete(WEIGHT_BYTES)
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.requests("GET", WEIGHTS), [])

    def test_200_to_a_range(self):
        self.put_incomplete(bytes(SIZE // 2))
        self.hub.fault("GET", WEIGHTS, whole_file)
        self.assert_pulled(self.pull())
        self.assertEqual(len(self.hub.requests("GET", WEIGHTS)), 1)

    def test_416_to_a_range(self):
        self.put_incomplete(WEIGHT_BYTES[:5])
        self.hub.fault("GET", WEIGHTS, replying(416, Content_Range="bytes */5"))
        self.assert_pulled(self.pull())
        ranges = [seen.range for seen in self.hub.requests("GET", WEIGHTS)]
        self.assertEqual(ranges, ["bytes=5-", None])

    def test_416_again_and_again(self):
        """A hub that never lets a file be finished does not keep the pull busy for ever."""
        self.put_incomplete(WEIGHT_BYTES[:5])
        refused = replying(416, Content_Range="bytes */5")
        self.hub.fault("GET", WEIGHTS, *[refused, dropping_after(SIZE // 2)] * 20)
        self.assert_failed(self.pull(), 7, "416")
        self.assertEqual(len(self.hub.requests("GET", WEIGHTS)), 3)

    def test_another_range(self):
        self.put_incomplete(WEIGHT_BYTES[:5])
        for where in (f"bytes 4-{SIZE - 1}/{SIZE}", f"bytes 5-{SIZE - 1}/{SIZE + 1}", "", "bytes */9"):
            with self.subTest(where):
                self.hub.fault("GET", WEIGHTS, replying(206, Content_Range=where))
                self.assert_failed(self.pull(), 7, WEIGHTS, "range")
        self.assert_pulled(self.pull())

    def test_206_to_no_range(self):
        self.hub.fault("GET", WEIGHTS, replying(206, Content_Range=f"bytes 5-{SIZE - 1}/{SIZE}"))
        self.assert_failed(self.pull(), 7, WEIGHTS, "range")

    def test_wrong_length(self):
        for content in (WEIGHT_BYTES[:-1], WEIGHT_BYTES + b"x"):
            self.hub.fault("GET", WEIGHTS, lambda handler, _, body=content: handler.send_file(body))
            self.assert_failed(self.pull(), 7, WEIGHTS, str(len(content)), str(SIZE))

    def test_wrong_length_unannounced(self):
        def without_length(content):
            def answer(handler, _):
                handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + content)
                handler.hang_up()

            return answer

        self.hub.fault("GET", WEIGHTS, without_length(WEIGHT_BYTES + b"x"))
        self.assert_failed(self.pull(), 7, WEIGHTS, f"over {SIZE}")
        self.hub.fault("GET", WEIGHTS, without_length(WEIGHT_BYTES[:-1]))
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.requests("GET", WEIGHTS)[-1].range, f"bytes={SIZE - 1}-")

    def test_encoded(self):
        """Nothing is ever unpacked, so no answer grows."""
        self.hub.fault("GET", WEIGHTS, replying(200, Content_Encoding="gzip"))
        self.assert_failed(self.pull(), 7, WEIGHTS, "gzip")

    def test_descriptions(self):
        for headers, named in (
            ({"X-Linked-Etag": '"../../../../tmp/x"'}, "hex"),
            ({"X-Linked-Etag": f'"{WEIGHTS_BLOB}/x"'}, "hex"),
            ({"X-Linked-Etag": '"abc"'}, "hex"),
            ({"X-Linked-Etag": f'"{WEIGHTS_BLOB.upper()}"'}, "hex"),
            ({"X-Repo-Commit": "f" * 40}, "commit"),
            ({"X-Repo-Commit": ""}, "commit"),
            ({"X-Linked-Size": "-1"}, "size"),
            ({"X-Linked-Size": str(1 << 60)}, "size"),
        ):
            with self.subTest(headers):
                self.hub.headers[WEIGHTS] = headers
                self.assert_failed(self.pull(), 7, WEIGHTS, named)
        self.assertFalse(self.cache.exists())

    def test_endless_head(self):
        self.hub.headers["config.json"] = {f"X-{i}": "x" * 1000 for i in range(80)}
        self.assert_failed(self.pull(), 7, "head")


class Statuses(HubCase):
    def test_they_pass(self):
        for status in (429, 500, 502, 503, 504):
            with self.subTest(status):
                shutil.rmtree(self.cache, ignore_errors=True)
                for method, name in (("GET", "api"), ("HEAD", "config.json"), ("GET", WEIGHTS)):
                    self.hub.fault(method, name, replying(status))
                self.assert_pulled(self.pull())

    def test_they_stay(self):
        self.hub.fault("GET", "api", *[replying(503)] * 20)
        self.assert_failed(self.pull(), 7, REPO, "503", "5 tries")
        self.assertEqual(len(self.hub.seen), 5)

    def test_retry_after(self):
        self.hub.fault("GET", "api", replying(429, Retry_After="1"))
        self.assert_pulled(self.pull())
        self.hub.fault("GET", "api", replying(429, Retry_After="9999"))
        result = self.pull()
        self.assertEqual(result.code, 7)
        self.assertIn("9999 s", result.err)
        self.assertEqual(len(self.hub.requests("GET", "api")), 3)

    def test_what_the_user_can_change(self):
        for method, name, status, code, named in (
            ("GET", "api", 401, "RepoNotFound", ("spelling", "HF_TOKEN")),
            ("GET", "api", 404, "RepoNotFound", ("spelling",)),
            ("GET", "api", 404, "RevisionNotFound", ("no revision", "main")),
            ("HEAD", "config.json", 403, "GatedRepo", ("gated", f"{self.hub.url}/{REPO}", "HF_TOKEN")),
            ("HEAD", "config.json", 401, "GatedRepo", ("gated", "HF_TOKEN")),
            ("GET", "config.json", 403, "", ("403", "HF_TOKEN")),
            ("GET", "api", 400, "", ("400", "HF_ENDPOINT")),
        ):
            with self.subTest(status, code=code):
                shutil.rmtree(self.cache, ignore_errors=True)
                self.hub.fault(method, name, replying(status, X_Error_Code=code))
                self.assert_failed(self.pull(), 7, REPO, *named)

    def test_stall(self):
        gate = Gate(sent_before=1000)
        self.hub.fault("GET", WEIGHTS, gate)
        self.addCleanup(gate.opened.set)
        result = self.pull(HF_HUB_DOWNLOAD_TIMEOUT="1")
        self.assert_pulled(result)
        self.assertIn("trying again from", result.err)
        self.assertEqual(self.hub.requests("GET", WEIGHTS)[1].range, "bytes=1000-")

    def test_stall_before_an_answer(self):
        gate = Gate()
        self.addCleanup(gate.opened.set)
        for method, name in (("GET", "api"), ("HEAD", "config.json")):
            shutil.rmtree(self.cache, ignore_errors=True)
            self.hub.fault(method, name, lambda handler, _: gate.opened.wait(60))
            self.assert_pulled(self.pull(HF_HUB_ETAG_TIMEOUT="1"))

    def test_listings(self):
        for body in (b"", b"<html>", b"[]", b"{}", b'{"sha": "main", "siblings": []}',
                     b'{"sha": "%s"}' % COMMIT.encode(), b'{"sha": "../x", "siblings": []}',
                     b'{"sha": "%s", "siblings": [1]}' % COMMIT.encode(),
                     b'{"sha": "%s", "siblings": [{"rfilename": 1}]}' % COMMIT.encode(),
                     b"[" * 100000, b"\xff"):  # fmt: skip
            with self.subTest(body[:60]):
                self.hub.fault("GET", "api", lambda handler, _, body=body: handler.reply(200, {}, body))
                self.assert_failed(self.pull(), 7, REPO)
        self.assertFalse(self.cache.exists())

    def test_endless_listing(self):
        def endless(handler, _):
            handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
            while True:
                handler.wfile.write(b" " * 1_000_000)

        self.hub.fault("GET", "api", endless)
        self.assert_failed(self.pull(), 7, REPO, "bytes")


class Names(HubCase):
    def test_hostile_ones(self):
        for name in ("../config.json", "a/../../config.json", "/etc/passwd", "\\\\host\\config.json",
                     "..\\model.safetensors", "C:config.json", "config.json\0", "a\0/../b", "",
                     ".", "..", "a//model.safetensors", "./model.safetensors", "a\nb", "x" * 300,
                     "../model.safetensors", "/model.safetensors", "model\x1b[2J.safetensors"):  # fmt: skip
            with self.subTest(name):
                self.hub.names = [*NEEDED, name]
                self.assert_failed(self.pull(), 7, REPO, "unsafe file name")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), [])
        self.assertEqual(self.hub.requests("HEAD"), [])

    def test_links_in_the_cache(self):
        """Left there by somebody else: nothing is read or written through them."""
        outside = self.write("outside", b"kept")
        blobs = self.model / "blobs"
        blobs.mkdir(parents=True)
        for link in (blobs / WEIGHTS_BLOB, self.incomplete(), self.snapshot / WEIGHTS):
            with self.subTest(link):
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(outside)
                result = self.pull()
                self.assertEqual((result.code, result.out), (6, ""), result)
                self.assertIn("link", result.err)
                self.assertEqual(outside.read_bytes(), b"kept")
                self.assertFalse((self.model / "refs").exists())
                link.unlink()
        lock = self.cache / ".locks/models--owner--tiny" / f"{WEIGHTS_BLOB}.lock"
        lock.unlink(missing_ok=True)
        lock.symlink_to(self.folder / "made")
        self.assertEqual(self.pull().code, 6)
        self.assertFalse((self.folder / "made").exists())

    def test_hard_link_in_the_cache(self):
        outside = self.write("outside", b"kept")
        self.incomplete().parent.mkdir(parents=True)
        os.link(outside, self.incomplete())
        self.assertEqual(self.pull().code, 6)
        self.assertEqual(outside.read_bytes(), b"kept")


class Processes(HubCase):
    def start(self) -> Session:
        return Session("pull", REPO, terminals=(), **self.env())

    def test_two_at_once(self):
        gate = Gate(sent_before=1000)
        self.hub.fault("GET", WEIGHTS, gate)
        first = self.start()
        self.assertTrue(gate.reached.wait(60))
        second = self.start()
        second.read_until("err", f"{WEIGHTS}: another process is fetching it; waiting\n")
        gate.opened.set()
        for puller in (first, second):
            code, out, _ = puller.finish()
            self.assertEqual((code, out), (0, f"{self.snapshot}\n"))
        self.assertEqual(len(self.hub.requests("GET", WEIGHTS)), 1)
        self.assert_pulled(self.pull())

    def test_waiting_can_be_interrupted(self):
        lock = self.cache / ".locks/models--owner--tiny" / f"{WEIGHTS_BLOB}.lock"
        lock.parent.mkdir(parents=True)
        with lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            waiting = self.start()
            waiting.read_until("err", "waiting")
            waiting.process.send_signal(signal.SIGTERM)
            self.assertEqual(waiting.finish()[0], 130)

    def test_sigkill(self):
        gate = Gate(sent_before=SIZE // 2)
        self.hub.fault("GET", WEIGHTS, gate)
        killed = self.start()
        killed.read_until("err", "40% of")
        self.wait_for_incomplete(SIZE // 2)
        killed.process.kill()
        killed.finish()
        gate.opened.set()
        self.assert_nothing_linked()
        lock = self.cache / ".locks/models--owner--tiny" / f"{WEIGHTS_BLOB}.lock"
        with lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.requests("GET", WEIGHTS)[-1].range, f"bytes={SIZE // 2}-")


def run_with(before, *arguments, env):
    """The program, after `before` was called in its process."""
    return subprocess.run(
        [BINARY, *arguments],
        env=environment(**env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=before,
    )


def without_override():
    """Takes from root what lets it write where it may not."""
    import ctypes

    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


class Disk(HubCase):
    def failure(self, done):
        self.assertEqual(done.stdout, "")
        last = done.stderr.splitlines()[-1]
        self.assertRegex(last, r"\Aerror: \[[^\n]+\] [^\n]+\Z")
        self.assert_nothing_linked()
        return done.returncode, last

    def test_full_while_writing(self):
        limit = 300_000

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        code, text = self.failure(run_with(limited, "pull", REPO, env=self.env()))
        self.assertEqual(code, 6)
        self.assertIn("File too large", text)
        self.assertIn("free some space", text)
        self.assertEqual(self.incomplete().stat().st_size, limit)
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.requests("GET", WEIGHTS)[-1].range, f"bytes={limit}-")

    def test_seen_before_the_first_byte(self):
        promised = (1 << 49) - sum(len(SMALL[name]) for name in NEEDED if name != WEIGHTS)
        self.hub.headers[WEIGHTS] = {"X-Linked-Size": promised}
        self.assert_failed(self.pull(), 6, "free disk", f"{(1 << 49) // 1_000_000 + 1} MB")
        self.assertEqual(self.hub.requests("GET", "/resolve/"), [])

    def test_read_only(self):
        self.cache.mkdir(parents=True)
        self.cache.chmod(0o555)
        done = run_with(without_override, "pull", REPO, env=self.env())
        if done.returncode == 0:
            self.skipTest("this user may write anywhere")
        code, text = self.failure(done)
        self.assertEqual(code, 6)
        self.assertIn("Permission denied", text)
        self.assertIn("HF_HUB_CACHE", text)

    def test_a_whole_copy_in_a_read_only_folder(self):
        self.assert_pulled(self.pull())
        for folder in (self.cache, *(path for path in self.cache.rglob("*") if path.is_dir())):
            folder.chmod(0o555)
        done = run_with(without_override, "pull", REPO, env=self.env())
        for folder in (self.cache, *(path for path in self.cache.rglob("*") if path.is_dir())):
            folder.chmod(0o755)
        self.assertEqual((done.returncode, done.stdout), (0, f"{self.snapshot}\n"), done.stderr)

    def test_a_file_in_the_way(self):
        self.home.mkdir()
        self.cache.write_text("")
        result = self.pull()
        self.assertEqual(result.code, 6)
        self.assertIn(str(self.cache), result.err)


if __name__ == "__main__":
    unittest.main()
