"""Where the pictures and videos of a served request come from: files, other hosts, how closely."""
import base64
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import tempfile
import threading
import time
import unittest

from serve_test import ServedCase, Server, asking, content_of, looking
from support import BINARY, BUNDLED, SHAPES, SOURCE, CliTest, copy_model, edit_json, png, run

CLIP = SOURCE / "tests/golden/media/video/h264.mp4"
QUESTION = "Describe this image."


class AskingCase(ServedCase):
    """One question about one address, by each of the APIs."""

    def chat_about(self, url: str, kind: str = "image_url") -> tuple[int, dict]:
        parts = [{"type": kind, kind: {"url": url}}, {"type": "text", "text": QUESTION}]
        return self.ask("/v1/chat/completions", {"messages": [{"role": "user", "content": parts}]})

    def respond_about(self, url: str) -> tuple[int, dict]:
        parts = [{"type": "input_image", "image_url": url}, {"type": "input_text", "text": QUESTION}]
        return self.ask("/v1/responses", {"input": [{"role": "user", "content": parts}]})

    def message_about(self, url: str) -> tuple[int, dict]:
        source = {"type": "url", "url": url}
        parts = [{"type": "image", "source": source}, {"type": "text", "text": QUESTION}]
        body = {"model": BUNDLED, "messages": [{"role": "user", "content": parts}]}
        return self.ask("/v1/messages", {**body, "max_tokens": 60})

    def ask(self, path: str, body: dict) -> tuple[int, dict]:
        length = {"/v1/responses": "max_output_tokens"}.get(path, "max_tokens")
        return self.server.call("POST", path, {"temperature": 0, length: 60, **body})

    def refused(self, url: str, kind: str = "image_url") -> str:
        """What all APIs say alike."""
        answers = [self.chat_about(url, kind)]
        if kind == "image_url":
            answers += [self.respond_about(url), self.message_about(url)]
        texts = set()
        for status, answer in answers:
            self.assertEqual(status, 400, answer)
            texts.add(answer["error"]["message"])
        self.assertEqual(len(texts), 1, texts)
        return texts.pop()


class Files(AskingCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="whimbrel-"))
        media = cls.root / "media"
        media.mkdir()
        shutil.copy(SHAPES, media / "shapes.png")
        shutil.copy(CLIP, media / "clip.mp4")
        shutil.copy(SHAPES, cls.root / "secret.png")
        (media / "link.png").symlink_to(cls.root / "secret.png")
        os.mkfifo(media / "fifo.png")
        cls.media = media
        cls.FLAGS = ("--media-path", str(media))
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.root)

    def test_a_picture_is_the_one_that_its_bytes_are(self):
        expected = content_of(self.server.chat(looking(QUESTION)))
        for url in ("file://shapes.png", (self.media / "shapes.png").as_uri()):
            status, answer = self.chat_about(url)
            self.assertEqual(status, 200, answer)
            self.assertEqual(content_of(answer), expected)
        status, answer = self.respond_about("file://shapes.png")
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["output"][0]["content"][0]["text"], expected)
        status, answer = self.message_about("file://shapes.png")
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["content"][0]["text"], expected)

    def test_a_video(self):
        status, answer = self.chat_about("file://clip.mp4", "video_url")
        self.assertEqual(status, 200, answer)
        data = "data:video/mp4;base64," + base64.b64encode(CLIP.read_bytes()).decode()
        self.assertEqual(answer["choices"], self.chat_about(data, "video_url")[1]["choices"])

    def test_f33_what_is_forbidden_is_as_what_is_missing(self):
        missing = self.refused("file://no-such.png")
        self.assertNotIn("no-such", missing)
        for url in (
            "file:///etc/passwd",
            "file:///proc/self/environ",
            "file://../secret.png",
            "file://%2e%2e/secret.png",
            (self.root / "secret.png").as_uri(),
            "file://link.png",
            "file://fifo.png",
            "file://.",
            "file://",
            self.media.as_uri(),
            "file:///dev/zero",
        ):
            self.assertEqual(self.refused(url), missing, url)
        self.assertEqual(
            self.refused("file://../clip.mp4", "video_url"),
            missing.replace("image_url", "video_url"),
        )

    def test_a_file_that_is_no_picture_says_nothing_of_itself(self):
        (self.media / "notes.txt").write_text("secret-canary")
        self.assertNotIn("canary", self.refused("file://notes.txt"))

    def test_f33_paths_alone_are_no_addresses(self):
        for url in ("shapes.png", str(self.media / "shapes.png"), "/etc/passwd"):
            self.refused(url)


@contextlib.contextmanager
def counting_listener():
    """A port on the loopback, and how many have connected to it."""
    connections = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connections.append(connection)
                    connection.close()

        thread = threading.Thread(target=accept)
        thread.start()
        yield listener.getsockname()[1], connections
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


class Hosts(AskingCase):
    @classmethod
    def setUpClass(cls):
        cls.listening = contextlib.ExitStack()
        cls.port, cls.connections = cls.listening.enter_context(counting_listener())
        names = ("127.0.0.1", "localhost", "[::1]", "0.0.0.0")
        hosts = [f"{name}:{cls.port}" for name in names]
        cls.FLAGS = tuple(
            part for host in (*hosts, "any-public") for part in ("--allow-remote-media", host)
        )
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.listening.close()

    def test_f31_nothing_is_asked_of_addresses_that_are_not_public(self):
        for url in (
            f"http://127.0.0.1:{self.port}/a.png",
            f"http://localhost:{self.port}/a.png",
            f"http://[::1]:{self.port}/a.png",
            f"http://0.0.0.0:{self.port}/a.png",
            f"http://2130706433:{self.port}/a.png",
            f"http://0177.1:{self.port}/a.png",
            f"http://[::ffff:127.0.0.1]:{self.port}/a.png",
            f"http://[64:ff9b::127.0.0.1]:{self.port}/a.png",
            f"http://user@127.0.0.1:{self.port}/a.png",
            f"http://good\\@127.0.0.1:{self.port}/a.png",
            "http://169.254.169.254/latest/meta-data/",
            "http://[fd00:ec2::254]/latest/meta-data/",
        ):
            self.refused(url)
        self.refused(f"http://127.0.0.1:{self.port}/a.mp4", "video_url")
        self.assertEqual(self.connections, [])

    def test_a_template_sees_no_picture_and_fetches_none(self):
        parts = [{"type": "image_url", "image_url": {"url": f"http://127.0.0.1:{self.port}/a.png"}}]
        body = {"messages": [{"role": "user", "content": parts}]}
        status, answer = self.server.call("POST", "/apply-template", body)
        self.assertEqual(status, 200, answer)
        self.assertEqual(self.connections, [])


class Nothing(AskingCase):
    def test_f31_f33_without_flags_nothing_is_fetched_or_opened(self):
        with counting_listener() as (port, connections):
            self.assertIn("--allow-remote-media", self.refused(f"http://127.0.0.1:{port}/a.png"))
            self.assertEqual(connections, [])
        self.assertIn("--media-path", self.refused(SHAPES.as_uri()))

    def test_f25_broken_pictures_leave_the_server_as_it_was(self):
        picture = SHAPES.read_bytes()
        for bytes_ in (b"", b"\x89PNG\r\n\x1a\n", picture[:200], picture[:-40], b"GIF89a" + b"\xff" * 99):
            url = "data:image/png;base64," + base64.b64encode(bytes_).decode()
            self.refused(url)
        self.refused("data:image/png;base64,@@@@")
        self.assertTrue(content_of(self.server.chat(looking(QUESTION))))

    def test_f29_a_video_of_5000_frames_is_refused_unread(self):
        frame = base64.b64encode(png(28, 28, (1, 2, 3))).decode()
        text = self.refused("data:video/jpeg;base64," + ",".join([frame] * 5000), "video_url")
        self.assertIn("5000 frames", text)


class Details(ServedCase):
    """A checkpoint that allows pictures of 2,000 tokens, and a context of 3,000."""

    UNIT = 28 * 28
    FLAGS = ("--ctx", "3000")

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="whimbrel-"))
        model = copy_model(BUNDLED, cls.root / "model")
        edit_json(
            model / "processor_config.json",
            lambda config: config["image_processor"].update(
                min_pixels=4 * cls.UNIT, max_pixels=2000 * cls.UNIT
            ),
        )
        cls.MODEL = str(model)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.root)

    def tokens(self, detail: str | None, **fields) -> int:
        messages = self.about_a_large_picture(detail)
        status, answer = self.server.call("POST", "/v1/estimate", {"messages": messages, **fields})
        self.assertEqual(status, 200, answer)
        return answer["media"][0]["tokens"]

    def about_a_large_picture(self, detail: str | None) -> list[dict]:
        messages = looking(QUESTION, self.large_picture())
        if detail:
            messages[0]["content"][0]["image_url"]["detail"] = detail
        return messages

    def large_picture(self) -> pathlib.Path:
        return self.write("large.png", png(1400, 1400, (40, 80, 200)))

    def test_a_detail_is_a_budget_of_tokens(self):
        self.assertEqual(self.tokens("low"), 16 * 16)
        self.assertEqual(self.tokens("auto"), 35 * 35)  # of 1,280, what a CPU can afford
        self.assertEqual(self.tokens(None), 35 * 35)
        self.assertEqual(self.tokens("high"), 38 * 38)  # of half the context

    def test_bounds_that_are_asked_for_count_for_more(self):
        self.assertEqual(self.tokens("high", whimbrel={"image_tokens": 100}), 100)
        self.assertEqual(self.tokens("low", whimbrel={"max_pixels": 400 * self.UNIT}), 400)
        self.assertEqual(self.tokens("low", whimbrel={"min_pixels": 400 * self.UNIT}), 400)

    def test_usage_shows_it(self):
        messages = self.about_a_large_picture("low")
        usage = self.server.chat(messages, max_tokens=1)["usage"]
        self.assertEqual(usage["prompt_tokens_details"]["image_tokens"], 256)
        url = messages[0]["content"][0]["image_url"]["url"]
        image = {"type": "input_image", "image_url": url, "detail": "low"}
        body = {"input": [{"role": "user", "content": [image]}], "max_output_tokens": 1}
        status, answer = self.server.call("POST", "/v1/responses", body)
        self.assertEqual(status, 200, answer)
        self.assertIn(answer["usage"]["input_tokens"] - 256, range(1, 60))

    def test_a_video_has_none(self):
        part = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA", "detail": "low"}}
        body = {"messages": [{"role": "user", "content": [part]}]}
        status, answer = self.server.call("POST", "/v1/chat/completions", body)
        self.assertEqual(status, 400)
        self.assertIn("video", answer["error"]["message"])


class Starts(CliTest):
    def test_wrong_flags(self):
        serve = ("serve", "-m", BUNDLED, "--port", 0, "--no-progress")
        missing = self.folder / "missing"
        self.assert_error(run(*serve, "--media-path", missing), 2, "--media-path")
        for host in ("https://example.org", "example.org/a", "*.example.org", "127.1"):
            result = run(*serve, "--allow-remote-media", host)
            self.assert_error(result, 2, "--allow-remote-media", host)

    def test_a_missing_decoder(self):
        program = shutil.copy(BINARY, self.folder)
        result = run("serve", "-m", BUNDLED, "--port", 0, "--no-progress", program=program)
        self.assert_error(result, 6, "whimbrel-picture")


class HangingDecoders(CliTest):
    """Decoders that never answer, and leave a file named by their process."""

    HANDLERS = 4

    def setUp(self):
        super().setUp()
        self.program = shutil.copy(BINARY, self.folder)
        for name in ("whimbrel-picture", "whimbrel-video"):
            script = '#!/bin/sh\n: > "$0.$$"\nexec /bin/sleep 600\n'
            self.write(name, script).chmod(0o755)

    def serve(self, *arguments: str) -> Server:
        server = Server(*arguments, program=self.program)
        self.addCleanup(server.stop)
        return server

    def processes(self) -> list[int]:
        return [int(path.suffix[1:]) for path in self.folder.glob("whimbrel-*.*")]

    def eventually(self, holds) -> None:
        end = time.monotonic() + 60
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_a_client_that_leaves_takes_its_decoder_along(self):
        server = self.serve("--limit", "media_ms=600000")
        body = json.dumps({"messages": about_the_clip()})
        clients = []
        for _ in range(self.HANDLERS):
            client = http.client.HTTPConnection("127.0.0.1", server.port)
            client.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            clients.append(client)
        self.eventually(lambda: len(self.processes()) == self.HANDLERS)
        for client in clients:
            client.close()
        server.chat(asking("Hello."), max_tokens=2)
        self.eventually(lambda: not any(map(is_alive, self.processes())))

    def test_a_video_has_the_time_of_its_request(self):
        server = self.serve("--limit", "media_ms=1000")
        status, answer = server.call("POST", "/v1/chat/completions", {"messages": about_the_clip()})
        self.assertEqual(status, 400, answer)
        self.assertIn("too long to decode", answer["error"]["message"])


def about_the_clip() -> list[dict]:
    data = "data:video/mp4;base64," + base64.b64encode(CLIP.read_bytes()).decode()
    return [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": data}}]}]


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        return True
    except ProcessLookupError:
        return False


class Decoders(CliTest):
    def test_f28_a_decoder_that_dies_takes_its_picture_with_it_alone(self):
        program = shutil.copy(BINARY, self.folder)
        for name in ("whimbrel-picture", "whimbrel-video"):
            self.write(name, "#!/bin/sh\nkill -SEGV $$\n").chmod(0o755)
        server = Server(program=program)
        try:
            body = {"messages": looking(QUESTION), "max_tokens": 2}
            status, answer = server.call("POST", "/v1/chat/completions", body)
            self.assertEqual(status, 400, answer)
            self.assertIn("its decoder gave up on", answer["error"]["message"])
            server.chat([{"role": "user", "content": "Hello."}], max_tokens=2)
        finally:
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
