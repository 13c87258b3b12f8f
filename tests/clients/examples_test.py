"""examples/ and the README's quick start, as a user runs them; and the page of clients."""

import io
import json
import os
import re
import subprocess
import sys
import unittest

import served
from run_javascript import needs_package, run_node

served.needs("openai")
served.needs("anthropic")
served.needs("PIL")
needs_package("openai")
import PIL.Image  # noqa: E402

from support import SHAPES, SOURCE, CliTest  # noqa: E402

RUN_SECONDS = 120
EXAMPLES = SOURCE / "examples"


class Examples(served.ClientCase):
    def setUp(self):
        before = self.prompt_tokens()
        # A picture makes most of a prompt; what its question needs alone is less.
        self.addCleanup(lambda: self.assertGreater(self.prompt_tokens(), before + 50))
        self.environment = {
            "OPENAI_BASE_URL": self.server.v1,
            "OPENAI_API_KEY": served.KEY,
            "ANTHROPIC_BASE_URL": self.server.url,
            "ANTHROPIC_API_KEY": served.KEY,
        }

    def prompt_tokens(self) -> int:
        return json.loads(self.server.get("/slots"))["prompt_tokens"]

    def run_program(self, *command) -> str:
        """What it prints."""
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=RUN_SECONDS
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def test_openai_in_python(self):
        self.assertTrue(
            self.run_program(sys.executable, EXAMPLES / "openai_chat.py", SHAPES).strip()
        )

    def test_anthropic_in_python(self):
        script = EXAMPLES / "anthropic_messages.py"
        self.assertTrue(self.run_program(sys.executable, script, SHAPES).strip())

    def test_openai_in_javascript(self):
        scripts = [EXAMPLES / "openai_chat.mjs"]
        done = run_node(scripts, str(SHAPES), env=self.environment, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.strip())

    def test_curl(self):
        answer = json.loads(self.run_program(EXAMPLES / "curl_chat.sh", SHAPES))
        self.assertTrue(answer["choices"][0]["message"]["content"])


def section(page: str, title: str) -> str:
    return (SOURCE / page).read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]


class QuickStart(CliTest):
    def test_the_readme_s_program(self):
        (program,) = re.findall(r"```python\n(.*?)```", section("README.md", "Serve"), re.DOTALL)
        self.assertIn("http://127.0.0.1:8080/v1", program)
        server = served.Server(model=served.MODEL)
        self.addCleanup(server.stop)
        jpeg = io.BytesIO()
        PIL.Image.open(SHAPES).convert("RGB").save(jpeg, "JPEG")
        self.write("photo.jpg", jpeg.getvalue())
        script = self.write("quick_start.py", program.replace("http://127.0.0.1:8080", server.url))
        done = subprocess.run(
            [sys.executable, script],
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=RUN_SECONDS,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len([line for line in done.stdout.splitlines() if line]), 2, done.stdout)
        self.assertEqual(server.call("GET", "/slots")[1]["pictures_encoded"], 1)


class Page(unittest.TestCase):
    """docs/clients.md names what is pinned."""

    def test_versions(self):
        page = (SOURCE / "docs/clients.md").read_text()
        named = set(re.findall(r"`([@a-z][a-z0-9/_-]*)` ([0-9][0-9.]*[0-9])", page))
        wheels = re.findall(
            r"(?m)^([a-z-]+)==(\S+)$", (SOURCE / "tools/requirements-server-tests.txt").read_text()
        )
        packages = json.loads((SOURCE / "tests/clients/package.json").read_text())["dependencies"]
        pinned = {*wheels, *packages.items()}
        self.assertEqual(named - pinned, set())
        for package in ("openai", "anthropic", "langchain-openai", "@ai-sdk/openai-compatible"):
            self.assertIn(package, {name for name, _ in named})


if __name__ == "__main__":
    unittest.main()
