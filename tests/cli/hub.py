"""A hub on this machine for tests of `pull`, as well-behaved or as hostile as a test asks."""
import dataclasses
import hashlib
import http.server
import json
import pathlib
import re
import ssl
import sys
import threading
import time
import urllib.parse

from support import MODELS, CliTest, run

REPO = "owner/tiny"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_secret"
WEIGHTS = "model.safetensors"
WEIGHT_BYTES = bytes(range(256)) * 4000

# As small as a repository can be that `pull` takes; it isn't a model that runs.
SMALL = {
    "config.json": b'{"model_type": "none"}',
    "tokenizer.json": b"{}",
    WEIGHTS: WEIGHT_BYTES,
    "README.md": b"not needed",
    "onnx/model.safetensors": b"not needed",
    "pytorch_model.bin": b"not needed",
}
NEEDED = ("config.json", "tokenizer.json", WEIGHTS)


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def blob_of(name: str, content: bytes) -> str:
    """A hub keeps large files by SHA-256 and the rest in git."""
    is_large = name.endswith(".safetensors")
    return hashlib.sha256(content).hexdigest() if is_large else git_sha1(content)


WEIGHTS_BLOB = blob_of(WEIGHTS, WEIGHT_BYTES)


def files_of_model(name: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (MODELS / name).iterdir()}


@dataclasses.dataclass
class Seen:
    method: str
    path: str
    range: str | None
    token: str | None
    host: str


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.server.hub.answer(self)

    def do_GET(self):
        self.server.hub.answer(self)

    def reply(self, status: int, headers: dict | None = None, body: bytes = b""):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, str(value))
        if "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
        self.wfile.flush()

    def hang_up(self):
        self.close_connection = True

    def first_byte(self) -> int:
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "bytes=0-")
        return int(match[1])

    def send_file(self, content: bytes, extra: dict | None = None):
        """As a good server does: what is asked for, from there on."""
        first = self.first_byte()
        headers = {"Accept-Ranges": "bytes", **(extra or {})}
        if "Range" not in self.headers:
            self.reply(200, headers, content)
        elif first >= len(content):
            self.reply(416, {"Content-Range": f"bytes */{len(content)}"})
        else:
            where = f"bytes {first}-{len(content) - 1}/{len(content)}"
            self.reply(206, {**headers, "Content-Range": where}, content[first:])

    def drop_after(self, content: bytes, count: int):
        """Promises all and sends `count` bytes of it."""
        first = self.first_byte()
        where = f"bytes {first}-{len(content) - 1}/{len(content)}"
        headers = {"Content-Length": len(content) - first, "Content-Range": where}
        self.reply(206 if "Range" in self.headers else 200, headers, content[first:][:count])
        self.hang_up()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that hung up is nothing to tell."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Hub:
    """Serves one repository. `faults[method, file]` is a list of functions (handler, content) that
    answer in place of the good server, one a request; the key may be "api" for the listing."""

    def __init__(self, files: dict[str, bytes], repo=REPO, commit=COMMIT, context=None):
        self.files, self.repo, self.commit = dict(files), repo, commit
        self.names = list(files)  # what the listing says
        self.headers: dict[str, dict] = {}  # in place of a file's good ones
        self.faults: dict = {}
        self.revisions = ["main", commit]
        self.seen: list[Seen] = []
        self.storage: str | None = None  # where large files are redirected to
        self.gate: str | None = None  # the token that opens it
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.hub = self
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "https" if context else "http"
        self.port = self.server.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def requests(self, method: str, name: str = "") -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method and name in seen.path]

    def fault(self, method: str, name: str, *functions):
        self.faults[method, name] = list(functions)

    def answer(self, handler: Handler):
        token = handler.headers.get("Authorization")
        path = urllib.parse.unquote(handler.path)
        seen = Seen(handler.command, path, handler.headers.get("Range"), token, handler.headers["Host"])
        self.seen.append(seen)
        self.route(handler, path)

    def route(self, handler: Handler, path: str):
        name = path.rpartition(f"/resolve/{self.commit}/")[2] if "/resolve/" in path else path
        name = name.removeprefix("/storage/") if path.startswith("/storage/") else name
        listing = path.startswith("/api/")
        content = self.files.get(name, b"")
        waiting = self.faults.get((handler.command, "api" if listing else name))
        if waiting:
            return waiting.pop(0)(handler, content)
        if self.gate and handler.headers.get("Authorization") != f"Bearer {self.gate}":
            code = "RepoNotFound" if listing else "GatedRepo"
            return handler.reply(401 if listing else 403, {"X-Error-Code": code})
        if listing:
            return self.list_files(handler, path)
        if name not in self.files:
            return handler.reply(404, {"X-Error-Code": "EntryNotFound"})
        return self.serve(handler, path, name, content)

    def list_files(self, handler: Handler, path: str):
        if path.startswith(f"/api/models/{self.repo}/tree/"):  # as the Python tools ask
            return self.list_tree(handler)
        match = re.fullmatch(f"/api/models/{self.repo}/revision/(.*)", path)
        if not match:
            return handler.reply(404, {"X-Error-Code": "RepoNotFound"})
        if match[1] not in self.revisions:
            return handler.reply(404, {"X-Error-Code": "RevisionNotFound"})
        siblings = [{"rfilename": name} for name in self.names]
        body = {"id": self.repo, "sha": self.commit, "siblings": siblings}
        return handler.reply(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    def list_tree(self, handler: Handler):
        entries = []
        for name, content in self.files.items():
            entry = {"type": "file", "path": name, "oid": git_sha1(content), "size": len(content)}
            if name.endswith(".safetensors"):
                entry["lfs"] = {"oid": blob_of(name, content), "size": len(content), "pointerSize": 130}
            entries.append(entry)
        return handler.reply(200, {"Content-Type": "application/json"}, json.dumps(entries).encode())

    def serve(self, handler: Handler, path: str, name: str, content: bytes):
        is_large = name.endswith(".safetensors")
        headers = {"X-Repo-Commit": self.commit, "ETag": f'"{blob_of(name, content)}"'}
        if is_large:
            headers["X-Linked-Etag"] = headers.pop("ETag")
            headers["X-Linked-Size"] = len(content)
        headers |= self.headers.get(name, {})
        if is_large and self.storage and "/resolve/" in path:
            return handler.reply(302, {**headers, "Location": f"{self.storage}/storage/{name}"})
        return handler.send_file(content, headers)


def tls_context(certificate: pathlib.Path, key: pathlib.Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


class HubCase(CliTest):
    """A test with a hub and a cache of its own."""

    FILES = SMALL

    def setUp(self):
        super().setUp()
        self.home = self.folder / "hf"
        self.cache = self.home / "hub"
        self.model = self.cache / "models--owner--tiny"
        self.snapshot = self.model / "snapshots" / COMMIT
        self.hub = self.start_hub(self.FILES)

    def start_hub(self, files: dict[str, bytes], **settings) -> Hub:
        hub = Hub(files, **settings)
        self.addCleanup(hub.close)
        return hub

    def env(self, **extra) -> dict[str, str]:
        """No variable of whoever runs the tests has a say."""
        off = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN",
               "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "SSL_CERT_FILE",
               "HF_HUB_DISABLE_IMPLICIT_TOKEN", "HF_HUB_DISABLE_SYMLINKS", "CURL_CA_BUNDLE",
               "HF_HUB_DISABLE_PROGRESS_BARS", "REQUESTS_CA_BUNDLE", "HF_HUB_ETAG_TIMEOUT",
               "HF_HUB_DOWNLOAD_TIMEOUT")  # fmt: skip
        return {
            **dict.fromkeys(off, ""),
            "HF_HOME": str(self.home),
            "HF_ENDPOINT": self.hub.url,
            "no_proxy": "*",
            **extra,
        }

    def pull(self, *arguments, name=REPO, cwd=None, **env):
        return run("pull", name, *arguments, env=self.env(**env), cwd=cwd or self.folder)

    def assert_pulled(self, result, names=NEEDED):
        """The snapshot's folder on stdout, and every file right."""
        self.assertEqual((result.code, result.out), (0, f"{self.snapshot}\n"), result)
        self.assertEqual(sorted(path.name for path in self.snapshot.iterdir()), sorted(names))
        for name in names:
            self.assertEqual((self.snapshot / name).read_bytes(), self.hub.files[name], name)
        self.assertEqual((self.model / "refs/main").read_text(), COMMIT)
        self.assertEqual(list(self.model.rglob("*.incomplete")), [])
        self.assertEqual(list(self.model.rglob("*.tmp")), [])

    def assert_nothing_linked(self):
        self.assertEqual(list(self.cache.glob("models--*/snapshots/*")), [])
        self.assertEqual(list(self.cache.glob("models--*/refs/*")), [])

    def last_line(self, result) -> str:
        return result.err.splitlines(keepends=True)[-1]

    def assert_failed(self, result, code: int, *named: str):
        """Like assert_error, behind lines that say how far it was."""
        self.assert_error(dataclasses.replace(result, err=self.last_line(result)), code, *named)
        self.assert_nothing_linked()

    def incomplete(self, name=WEIGHTS) -> pathlib.Path:
        return self.model / "blobs" / f"{blob_of(name, self.hub.files[name])}.incomplete"

    def wait_for_incomplete(self, size: int):
        while not self.incomplete().exists() or self.incomplete().stat().st_size < size:
            time.sleep(0.01)

    def put_incomplete(self, content: bytes) -> pathlib.Path:
        path = self.incomplete()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path
