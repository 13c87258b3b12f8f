"""compat/llama-server.json says what became of each of llama-server's flags, routes and fields. It is
held against --help, the document at /openapi.json, and the routes themselves."""
import json
import re
import unittest

from serve_test import Server
from support import SOURCE, CliTest, run

MANIFEST = json.loads((SOURCE / "compat/llama-server.json").read_text())
STATES = set(MANIFEST["states"])
FLAG = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


class Compat(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.document = cls.server.call("GET", "/openapi.json")[1]

    def check(self, entry: dict, names: set[str], ours: set[str]):
        """One entry, where `ours` are all that we have and `names` those that it is about."""
        state, own = entry["state"], entry.get("ours")
        self.assertIn(state, STATES)
        if state == "supported":
            self.assertIn(own, names & ours)
        elif state == "aliased":
            self.assertIn(own, ours - names)
        else:
            self.assertNotIn("ours", entry)
            self.assertTrue(entry["why"])
        if state != "supported":
            self.assertEqual(names & ours, set())

    def assert_once(self, names: list):
        self.assertEqual(len(names), len(set(names)), [name for name in names if names.count(name) > 1])

    def test_flags(self):
        text = run("serve", "--help").out
        options = "\n".join(line for line in text.splitlines() if re.match(r"  -", line))
        ours = set(FLAG.findall(options))
        self.assertIn("--threads", ours)
        ours |= {f"whimbrel {name}" for name in re.findall(r"(?m)^  ([a-z]+) ", run("--help").out)}
        for entry in MANIFEST["flags"]:
            with self.subTest(entry["names"]):
                self.check(entry, set(entry["names"]), ours)
        self.assert_once([name for entry in MANIFEST["flags"] for name in entry["names"]])

    def test_routes(self):
        ours = {f"{method.upper()} {path}" for path, item in self.document["paths"].items() for method in item}
        for entry in MANIFEST["routes"]:
            method, path = entry["route"].split()
            with self.subTest(entry["route"]):
                self.check(entry, {entry["route"]}, ours)
                status, _, _ = self.server.request(method, path, {})
                self.assertEqual(status in (404, 405), entry["state"] != "supported", status)
        self.assert_once([entry["route"] for entry in MANIFEST["routes"]])

    def fields_of(self, path: str) -> set[str]:
        schema = self.document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        if "$ref" in schema:
            schema = self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return set(schema["properties"])

    def test_fields(self):
        for entry in MANIFEST["fields"]:
            with self.subTest(entry):
                self.check(entry, {entry["name"]}, self.fields_of(entry["path"]))
        self.assert_once([(entry["path"], entry["name"]) for entry in MANIFEST["fields"]])


if __name__ == "__main__":
    unittest.main()
