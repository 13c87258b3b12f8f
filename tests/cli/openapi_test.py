"""The document at /openapi.json is the truth: every route of it is there, each is as strict as it
says (fault F17, parameter extremes), and what schemathesis makes up is answered as documented."""
import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import unittest

from json_schema import Schemas
from serve_test import ANSWER_SECONDS, Server
from support import CliTest

KEY = "secret"
NAME = "tiny"
FLAGS = ("--ctx", "96", "--alias", NAME, "--api-key", KEY)
HEADERS = {"Authorization": f"Bearer {KEY}"}
PYTHON = os.environ.get("WHIMBREL_PYTHON", "python3")

HELLO = [{"role": "user", "content": "Hi"}]
# A request that each route answers with 200.
REQUESTS = {
    "/v1/chat/completions": {"messages": HELLO, "max_tokens": 1},
    "/v1/estimate": {"messages": HELLO, "max_tokens": 1},
    "/v1/completions": {"prompt": "Hi", "max_tokens": 1},
    "/v1/responses": {"input": "Hi", "max_output_tokens": 1},
    "/v1/messages": {"model": NAME, "messages": HELLO, "max_tokens": 1},
    "/v1/messages/count_tokens": {"model": NAME, "messages": HELLO},
    "/apply-template": {"messages": HELLO},
    "/tokenize": {"content": "Hi"},
    "/detokenize": {"tokens": [1]},
}
# What a field wants beside it to be taken.
BESIDE = {"top_logprobs": {"logprobs": True}, "n_predict": {"max_tokens": None}}
# Fields whose right value depends on another field, or on the model.
DEPENDENT = {"best_of", "model"}


class DocumentCase(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(*FLAGS)
        cls.addClassCleanup(cls.server.stop)
        status, cls.document = cls.server.call("GET", "/openapi.json", headers=HEADERS)
        assert status == 200, cls.document
        cls.schemas = Schemas(cls.document)

    def operations(self):
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                yield path, method.upper(), operation

    def schema_of(self, operation: dict) -> dict:
        return operation["requestBody"]["content"]["application/json"]["schema"]


class Document(DocumentCase):
    def test_each_route_answers(self):
        for path, method, operation in self.operations():
            with self.subTest(path):
                status, content_type, text = self.server.request(method, path, REQUESTS.get(path), HEADERS)
                self.assertEqual(status, 200, text)
                self.assertIn(content_type.split(";")[0], operation["responses"]["200"]["content"])

    def test_each_path_has_the_methods_that_it_says(self):
        for path, item in self.document["paths"].items():
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=ANSWER_SECONDS)
            with self.subTest(path), contextlib.closing(connection):
                connection.request("OPTIONS", path, headers=HEADERS)
                answer = connection.getresponse()
                self.assertEqual(answer.status, 204)
                said = {method.upper() for method in item} | {"OPTIONS"} | ({"HEAD"} if "get" in item else set())
                self.assertEqual(set(answer.getheader("Allow").split(", ")), said)
                other = "POST" if "get" in item else "GET"
                self.assertEqual(self.server.request(other, path, headers=HEADERS)[0], 405)

    def test_keys_are_asked_for_where_it_says(self):
        for path, method, operation in self.operations():
            with self.subTest(path):
                status, _, _ = self.server.request(method, path, REQUESTS.get(path))
                self.assertEqual(status, 200 if operation.get("security") == [] else 401)

    def test_requests_and_answers_have_the_fields_that_it_names(self):
        """A field that an answer has and the document doesn't name would be news to clients."""
        for path, method, operation in self.operations():
            content = operation["responses"]["200"]["content"].get("application/json")
            if content is None or path == "/openapi.json":
                continue
            request = REQUESTS.get(path)
            schema = self.schemas.resolve(content["schema"])
            with self.subTest(path):
                _, answer = self.server.call(method, path, request, HEADERS)
                if "additionalProperties" not in schema:
                    self.assertEqual(set(answer) - set(schema["properties"]), set())
                self.assertTrue(self.schemas.holds(content["schema"], answer), answer)
                if request is not None:
                    self.assertTrue(self.schemas.holds(self.schema_of(operation), request))

    def test_an_answers_details_are_as_it_says(self):
        """A grammar makes the model write a box."""
        box = {"bbox_2d": [1, 2, 3, 4], "label": "x"}
        request = {
            **REQUESTS["/v1/chat/completions"],
            "max_tokens": 60,
            "temperature": 0,
            "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"const": box}}},
            "whimbrel": {"details": True},
        }
        _, answer = self.server.call("POST", "/v1/chat/completions", request, HEADERS)
        operation = self.document["paths"]["/v1/chat/completions"]["post"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        self.assertTrue(self.schemas.holds(schema, answer), answer)
        details = self.schemas.resolve(schema)["properties"]["whimbrel"]["properties"]
        self.assertEqual(set(answer["whimbrel"]), set(details))
        (told,) = answer["whimbrel"]["boxes"]
        self.assertEqual(set(told), set(self.document["components"]["schemas"]["Box"]["properties"]))


class WithoutPage(CliTest):
    def test_neither_served_nor_documented(self):
        server = Server("--no-ui")
        self.addCleanup(server.stop)
        paths = server.call("GET", "/openapi.json")[1]["paths"]
        for path in ("/", "/app.js", "/app.css"):
            self.assertEqual(server.call("GET", path)[0], 404)
            self.assertNotIn(path, paths)


class ChangedLimits(CliTest):
    def test_the_document_tells_them(self):
        server = Server("--limit", "choices=3", "--limit", "body_bytes=4000")
        self.addCleanup(server.stop)
        document = server.call("GET", "/openapi.json")[1]
        self.assertEqual(document["x-limits"], server.call("GET", "/props")[1]["limits"])
        self.assertEqual(document["components"]["schemas"]["Choices"]["maximum"], 3)
        request = {**REQUESTS["/v1/chat/completions"], "n": 4}
        self.assertEqual(server.call("POST", "/v1/chat/completions", request)[0], 400)
        self.assertEqual(server.call("POST", "/tokenize", {"content": "x" * 4000})[0], 413)


class ExtremesCase(DocumentCase):
    """Each field with values at, beside and far beyond its bounds, of wrong types and null."""

    def sent(self, connection, path: str, body: dict) -> tuple[int, str]:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **HEADERS})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def check(self, path: str, operation: dict, body: dict, must_pass: bool, connection):
        status, text = self.sent(connection, path, body)
        shown = f"{path} {str(body)[:300]} -> {text[:300]}"
        self.assertIn(str(status), operation["responses"], shown)
        if not self.schemas.holds(self.schema_of(operation), body):
            self.assertEqual(status, 400, shown)
        elif must_pass:
            self.assertEqual(status, 200, shown)
        else:
            self.assertIn(status, (200, 400, 404), shown)

    def try_fields(self, depth: int) -> int:
        tried = 0
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=ANSWER_SECONDS)
        with contextlib.closing(connection):
            for path, request in REQUESTS.items():
                operation = self.document["paths"][path]["post"]
                for name, field in self.schemas.resolve(self.schema_of(operation))["properties"].items():
                    types = self.schemas.resolve(field).get("type", [])
                    is_plain = {"number", "integer", "boolean"} & set(types) and name not in DEPENDENT
                    for value in self.schemas.variants(field, depth):
                        body = {**request, **BESIDE.get(name, {}), name: value}
                        self.check(path, operation, body, bool(is_plain), connection)
                        tried += 1
        return tried

    def assert_alive(self):
        self.assertEqual(self.server.call("GET", "/health"), (200, {"status": "ok"}))
        self.server.wait_for_rest(HEADERS)


class ParameterExtremes(ExtremesCase):
    def test_each_field(self):
        self.assertGreater(self.try_fields(depth=0), 2000)
        self.assert_alive()


class SlowParameterExtremes(ExtremesCase):
    def test_each_field_of_each_object(self):
        self.assertGreater(self.try_fields(depth=6), 10000)
        self.assert_alive()


class SchemathesisCase(CliTest):
    # A body may be inside its schema and still no request that can be honoured (a picture that is
    # none, a tool that nobody offers), so `positive_data_acceptance` is left out.
    CHECKS = (
        "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
        "response_schema_conformance,negative_data_rejection,unsupported_method,allow_header_conformance,ignored_auth"
    )

    def explore(self, examples: int, seconds: int):
        found = subprocess.run([PYTHON, "-c", "import schemathesis"], capture_output=True, check=False)
        if found.returncode != 0:
            self.skipTest("schemathesis isn't there; type tools/bootstrap test")
        server = Server(*FLAGS)
        self.addCleanup(server.stop)
        command = [
            PYTHON, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json", "--url", server.url,
            "--header", f"Authorization: Bearer {KEY}", "--checks", self.CHECKS, "--phases", "examples,coverage,fuzzing",
            "--max-examples", str(examples), "--seed", "1", "--max-failures", "8", "--warnings", "off",
            "--suppress-health-check", "all", "--no-shrink",
        ]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=seconds, check=False, env={**os.environ, "NO_COLOR": "1"}
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(server.call("GET", "/health"), (200, {"status": "ok"}))


class Schemathesis(SchemathesisCase):
    def test_what_it_makes_up(self):
        self.explore(examples=5, seconds=600)


class SlowSchemathesis(SchemathesisCase):
    def test_what_it_makes_up(self):
        self.explore(examples=100, seconds=850)


if __name__ == "__main__":
    unittest.main()
