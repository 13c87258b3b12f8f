"""A page in a headless Chromium, by the DevTools protocol over two pipes: no port, no driver, no
package. https://chromedevtools.github.io/devtools-protocol/
"""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
WAIT_SECONDS = 120
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), " ": (32, " ")}
SHIFT = 8
# As root in a container there is no sandbox to be had; the page is our own.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)


def find_chromium() -> str | None:
    """The program; WHIMBREL_CHROMIUM names another one."""
    return os.environ.get("WHIMBREL_CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)


class Page:
    """One tab. Keeps what it asked of the network and what it complained of."""

    def __init__(self, program: str, folder):
        self.process, self.commands, self.answers = start(program, folder)
        self.rest = b""
        self.last_id = 0
        self.session = None
        self.urls = []
        self.complaints = []
        self.on_request = None  # called with the params of Fetch.requestPaused
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(f"{domain}.enable")

    def close(self):
        self.session = None
        self.call("Browser.close")
        self.process.wait(WAIT_SECONDS)
        os.close(self.commands)
        os.close(self.answers)

    # --- the protocol

    def send(self, method: str, params: dict) -> int:
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data) :]
        return self.last_id

    def receive(self, seconds: float) -> dict | None:
        """The next message, or None where none came in time."""
        while b"\0" not in self.rest:
            if not select.select([self.answers], [], [], seconds)[0]:
                return None
            data = os.read(self.answers, 1 << 16)
            if not data:
                raise AssertionError("Chromium went away")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method: str, **params) -> dict:
        wanted = self.send(method, params)
        while True:
            message = self.receive(WAIT_SECONDS)
            if message is None:
                raise AssertionError(f"no answer to {method}")
            if message.get("id") == wanted:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def note(self, message: dict):
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.urls.append(params["request"]["url"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("warning", "error", "assert"):
            self.complaints.append(str(params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Fetch.requestPaused":
            self.on_request(params)

    def settle(self, seconds: float):
        """Takes in what comes meanwhile."""
        message = self.receive(seconds)
        while message is not None:
            self.note(message)
            message = self.receive(0)

    # --- what a person does, and sees

    def open(self, url: str):
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def value(self, expression: str):
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def wait_for(self, expression: str):
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.value(expression):
            if time.monotonic() > deadline:
                shown = self.value("document.body.innerText.slice(0, 1000)")
                raise AssertionError(f"never came to be: {expression}\n{shown}")
            self.settle(0.05)

    def press(self, key: str, modifiers: int = 0):
        code, text = KEYS[key]
        shared = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        kind = "keyDown" if text else "rawKeyDown"
        self.call("Input.dispatchKeyEvent", type=kind, **shared, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def type(self, text: str):
        self.call("Input.insertText", text=text)

    def choose_file(self, selector: str, path):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def prefer(self, scheme: str):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    # --- in place of the server

    def intercept(self, pattern: str, handler):
        """`handler` gets each request of that URL, and has to continue or answer it."""
        self.on_request = handler
        self.call("Fetch.enable", patterns=[{"urlPattern": pattern}])

    def go_on(self, request: dict, body: dict):
        data = base64.b64encode(json.dumps(body).encode()).decode()
        self.send("Fetch.continueRequest", {"requestId": request["requestId"], "postData": data})

    def answer(self, request: dict, content_type: str, body: str):
        fields = [{"name": "Content-Type", "value": content_type}]
        data = base64.b64encode(body.encode()).decode()
        params = {"requestId": request["requestId"], "responseCode": 200, "responseHeaders": fields, "body": data}
        self.send("Fetch.fulfillRequest", params)


def start(program: str, folder):
    """Chromium reads commands from its descriptor 3 and writes answers to 4."""
    pipes = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for pair in (os.pipe(), os.pipe()) for end in close_later(pair)]
    their_read, our_write, our_read, their_write = pipes

    def place():
        os.dup2(their_read, 3)
        os.dup2(their_write, 4)

    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={folder}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=place,
        pass_fds=(3, 4),
    )
    os.close(their_read)
    os.close(their_write)
    return process, our_write, our_read


def close_later(pair):
    """Each end, closed once its copy was made."""
    for end in pair:
        yield end
        os.close(end)
