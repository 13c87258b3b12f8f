"""examples/nginx.conf with Debian's nginx before whimbrel serve, as the page of clients says."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

import served

served.needs("openai")
import openai  # noqa: E402

from support import SOURCE  # noqa: E402

# Where tools/bootstrap unpacks it: the package would start a server.
NGINX = shutil.which("nginx", path=f"{sys.prefix}/nginx/usr/sbin") or shutil.which("nginx")
if NGINX is None:
    served.skip("nginx")

CORPUS = SOURCE / "tests/golden/smuggling.json"
START_SECONDS = 60
WAIT_SECONDS = 30
# What stands around a file of conf.d, and a log of what was passed on. A master lets its worker end
# what it began; a single process leaves at once, and the log without its last lines.
MAIN = """
daemon off;
worker_processes 1;
{user}
pid {folder}/nginx.pid;
events {{}}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    log_format passed '$request_id $upstream_status';
    access_log {folder}/access.log passed;
    include {folder}/whimbrel.conf;
}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_certificate(folder: pathlib.Path) -> None:
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", folder / "key.pem", "-out", folder / "certificate.pem"]
    subprocess.run(["openssl", "req", *kind, *names, *files], check=True, capture_output=True)


class Nginx:
    """nginx before a server, with the configuration that examples/ shows."""

    def __init__(self, folder: pathlib.Path, server_port: int):
        self.folder, self.port = folder, free_port()
        make_certificate(folder)
        shown = (SOURCE / "examples/nginx.conf").read_text()
        for there, here in (
            ("listen 443 ssl;", f"listen 127.0.0.1:{self.port} ssl;"),
            ("/etc/ssl/certs/models.example.org.pem", f"{folder}/certificate.pem"),
            ("/etc/ssl/private/models.example.org.key", f"{folder}/key.pem"),
            ("http://127.0.0.1:8080", f"http://127.0.0.1:{server_port}"),
        ):
            if there not in shown:
                raise AssertionError(f"examples/nginx.conf has no {there}")
            shown = shown.replace(there, here)
        (folder / "whimbrel.conf").write_text(shown)
        user = "user root;" if os.geteuid() == 0 else ""  # for the folder is this user's alone
        (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user))
        (folder / "access.log").touch()
        arguments = ["-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"]
        self.process = subprocess.Popen([NGINX, *arguments])
        self.wait_until_it_listens()

    def wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.01)
        self.stop()
        raise AssertionError((self.folder / "error.log").read_text())

    def stop(self) -> None:
        """Once all that it began is in its log."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(WAIT_SECONDS)

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.folder / "certificate.pem")

    def passed_on(self) -> list[str]:
        """The ids of requests that went to the server."""
        lines = [line.split() for line in (self.folder / "access.log").read_text().splitlines()]
        return [request for request, status in lines if status != "-"]


class BehindNginx(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="whimbrel-")
        self.addCleanup(folder.cleanup)
        self.server = served.KeyServer("--log-requests", "--ctx", str(served.CONTEXT))
        self.addCleanup(self.stop_server)
        self.nginx = Nginx(pathlib.Path(folder.name), self.server.port)
        self.addCleanup(self.nginx.stop)

    def stop_server(self) -> None:
        if self.server.process.poll() is None:
            self.server.stop()

    def client(self) -> openai.OpenAI:
        client = openai.OpenAI(
            base_url=f"https://127.0.0.1:{self.nginx.port}/v1",
            api_key=served.KEY,
            max_retries=0,
            http_client=openai.DefaultHttpxClient(verify=self.nginx.trust()),
        )
        self.addCleanup(client.close)
        return client

    def test_a_stream_comes_as_it_is_made_and_its_end_by_the_client_is_seen(self):
        stream = self.client().chat.completions.create(
            model=served.MODEL,
            messages=served.asking("Count."),
            max_tokens=served.LONG_ANSWER,
            logit_bias=served.never_ending(served.MODEL),
            stream=True,
        )
        with stream:
            self.assertTrue(next(iter(stream)).id)
            self.server.wait_for(lambda slots: slots["running"] == 1)
        slots = self.server.wait_for(lambda slots: slots["running"] == 0)
        self.assertEqual(slots["requests_cancelled"], 1)

    def test_a_body_of_megabytes_and_an_error_go_through(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client().chat.completions.create(
                model=served.MODEL, messages=served.asking("word " * 600_000)
            )
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        self.nginx.stop()
        self.assertEqual([caught.exception.request_id], self.nginx.passed_on())

    def test_both_count_the_same_requests_whatever_is_sent(self):
        corpus = [entry for kind in json.loads(CORPUS.read_text()).values() for entry in kind]
        for entry in corpus:
            self.send(entry["bytes"].encode("latin-1"))
        self.send(b"")  # good requests alone
        self.nginx.stop()
        self.stop_server()
        passed_on = self.nginx.passed_on()
        lines = [json.loads(line) for line in self.server.said if line.startswith("{")]
        self.assertEqual(len(lines), len(passed_on), (lines, passed_on))
        # What the server refused unread has an id of its own, and no path. The rest is nginx's:
        # it passes on what it could make good, and what stands behind that.
        read = [line for line in lines if line["path"]]
        ids = [line["request_id"] for line in read]
        self.assertEqual(len(set(ids)), len(ids))
        self.assertLessEqual(set(ids), set(passed_on))
        self.assertEqual({line["path"] for line in read}, {"/work", "/second"})

    def send(self, data: bytes) -> None:
        """Sends that with two requests behind it, and reads until nginx closes."""
        second = b"GET /second HTTP/1.1\r\nHost: localhost\r\n"
        data += second + b"\r\n" + second + b"Connection: close\r\n\r\n"
        context = self.nginx.trust()
        with socket.create_connection(("127.0.0.1", self.nginx.port), WAIT_SECONDS) as plain:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    connection.sendall(data)
                    while connection.recv(65536):
                        pass


if __name__ == "__main__":
    unittest.main()
