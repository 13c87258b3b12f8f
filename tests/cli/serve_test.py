"""whimbrel serve: an OpenAI client's chats with text and pictures, over a socket."""
import base64
import concurrent.futures
import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import time
import unittest

from support import BINARY, BUNDLED, MODELS, SHAPES, CliTest, environment, parse_json, run

START_SECONDS = 120
ANSWER_SECONDS = 120


class Server:
    """A running server and a client of it."""

    def __init__(self, *arguments: str, model: str = BUNDLED, program=BINARY):
        self.process = subprocess.Popen(
            [program, "serve", "-m", model, "--port", "0", "--no-progress", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self.said = []
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith("listening on "):
                break
        else:
            raise AssertionError("".join(self.said))
        self.url = self.said[-1].split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def stop(self) -> int:
        """Asks it politely; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(START_SECONDS)
        self.said += self.process.stderr.readlines()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def wait_for(self, wanted, headers=None) -> dict:
        """What /slots says once that is as wanted."""
        for _ in range(1000):
            slots = self.call("GET", "/slots", headers=headers)[1]
            if wanted(slots):
                return slots
            time.sleep(0.01)
        raise AssertionError(slots)

    def wait_for_rest(self, headers=None) -> dict:
        """An answer is out before the step ends that drew it."""
        waits = ("running", "queued", "paused")
        return self.wait_for(lambda slots: not any(slots[name] for name in waits), headers)

    def end_tokens(self) -> list[int]:
        body = {"content": "<|im_end|><|endoftext|>", "parse_special": True}
        return self.call("POST", "/tokenize", body)[1]["tokens"]

    def request(self, method: str, path: str, body=None, headers=None) -> tuple[int, str, str]:
        """Status, content type and text of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        with contextlib.closing(connection):
            connection.request(
                method, path, data, {"Content-Type": "application/json", **(headers or {})}
            )
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type"), answer.read().decode()

    def call(self, method: str, path: str, body=None, headers=None) -> tuple[int, dict]:
        status, _, text = self.request(method, path, body, headers)
        return status, parse_json(text)

    def chat(self, messages, **fields) -> dict:
        request = {"messages": messages, "temperature": 0, "max_tokens": 60, **fields}
        status, answer = self.call("POST", "/v1/chat/completions", request)
        if status != 200:
            raise AssertionError(answer)
        return answer

    def stream(self, messages, **fields) -> list[dict]:
        request = {
            "messages": messages, "temperature": 0, "max_tokens": 60, "stream": True, **fields
        }
        _, content_type, text = self.request("POST", "/v1/chat/completions", request)
        if content_type != "text/event-stream":
            raise AssertionError(text)
        frames = [frame for frame in text.split("\n\n") if frame]
        data = [frame.removeprefix("data: ") for frame in frames if not frame.startswith(":")]
        if data[-1] != "[DONE]":
            raise AssertionError(data)
        return [parse_json(piece) for piece in data[:-1]]


def asking(text: str) -> list[dict]:
    return [{"role": "user", "content": text}]


def looking(text: str, picture=SHAPES) -> list[dict]:
    url = "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode()
    return [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": url}},
                {"type": "text", "text": text},
            ],
        }
    ]


def never_ending(model: str = BUNDLED) -> dict[str, int]:
    """A bias against the tokens that end an answer."""
    ends = json.loads((MODELS / model / "generation_config.json").read_text())["eos_token_id"]
    return {str(end): -100 for end in ends}


def content_of(answer: dict, choice: int = 0) -> str:
    return answer["choices"][choice]["message"]["content"]


def streamed(chunks: list[dict]) -> str:
    return "".join(
        chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"]
    )


class ServedCase(CliTest):
    """One server for all tests of a class."""

    FLAGS: tuple[str, ...] = ()
    MODEL = BUNDLED

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server(*cls.FLAGS, model=cls.MODEL)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        super().tearDownClass()
        if code != 0:
            raise AssertionError(f"got exit code {code}: {cls.server.said}")


class ChatsCase(ServedCase):
    def test_a_picture_is_described_as_by_generate(self):
        expected = self.text("--image", SHAPES, "-p", "Describe this image.", "-n", 60)
        answer = self.server.chat(looking("Describe this image."))
        self.assertEqual(content_of(answer), expected)
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        self.assertEqual(answer["object"], "chat.completion")
        usage = answer["usage"]
        self.assertEqual(
            usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"]
        )

    def test_a_stream_is_the_answer(self):
        for messages in (asking("What is 53 minus 44?"), looking("Describe this image.")):
            whole = self.server.chat(messages)
            chunks = self.server.stream(messages, stream_options={"include_usage": True})
            self.assertEqual(streamed(chunks), content_of(whole))
            self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
            self.assertEqual(chunks[-1]["choices"], [])
            self.assertEqual(
                chunks[-1]["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]
            )

    def test_a_second_turn_finds_the_first(self):
        first = looking("Describe this image, please.")
        answer = self.server.chat(first)
        before = self.server.call("GET", "/slots")[1]["pictures_encoded"]
        turn = [
            *first,
            {"role": "assistant", "content": content_of(answer)},
            {"role": "user", "content": "Which colours are there?"},
        ]
        usage = self.server.chat(turn)["usage"]
        self.assertGreater(usage["prompt_tokens_details"]["cached_tokens"], 30)
        self.assertEqual(self.server.call("GET", "/slots")[1]["pictures_encoded"], before)

    def test_many_at_once_answer_as_one(self):
        kinds = [asking("What is 53 minus 44?"), looking("Describe this image."), asking("Hello.")]
        expected = [content_of(self.server.chat(kind)) for kind in kinds]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            found = list(pool.map(lambda i: content_of(self.server.chat(kinds[i % 3])), range(36)))
        self.assertEqual(found, [expected[i % 3] for i in range(36)])

    def test_choices(self):
        answer = self.server.chat(asking("Tell me something."), n=3, temperature=1.2, seed=4)
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2])
        again = self.server.chat(asking("Tell me something."), n=3, temperature=1.2, seed=4)
        self.assertEqual(answer["choices"], again["choices"])

    def test_a_schema_is_kept(self):
        schema = {
            "type": "object",
            "properties": {"colour": {"enum": ["red", "blue"]}, "count": {"type": "integer"}},
            "required": ["colour", "count"],
            "additionalProperties": False,
        }
        answer = self.server.chat(
            looking("Describe this image."),
            response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": schema}},
            max_tokens=200,
        )
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        value = json.loads(content_of(answer))
        self.assertIn(value["colour"], ("red", "blue"))
        self.assertIsInstance(value["count"], int)

    def test_log_probabilities(self):
        answer = self.server.chat(asking("Hello."), logprobs=True, top_logprobs=2, max_tokens=5)
        items = answer["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(items), answer["usage"]["completion_tokens"])
        for item in items:
            self.assertEqual(item["top_logprobs"][0]["token"], item["token"])
            self.assertLessEqual(item["logprob"], 0)

    def test_what_pictures_became(self):
        answer = self.server.chat(
            looking("Describe this image."), whimbrel={"details": True, "min_pixels": 784, "max_pixels": 10000}
        )
        (medium,) = answer["whimbrel"]["media"]
        self.assertLessEqual(medium["resized"][0] * medium["resized"][1], 10000)
        self.assertGreater(medium["size"][0], medium["resized"][0])

    def test_what_of_a_picture_was_there_already(self):
        fields = {"whimbrel": {"details": True, "max_pixels": 20000}, "max_tokens": 4}
        looked = looking("What is to see?")
        behind_a_system = [{"role": "system", "content": "Be brief."}, *looked]
        for stream in (False, True):
            expected = [(looked, "prefix" if stream else "none"), (looked, "prefix")]
            expected.append((behind_a_system, "prefix" if stream else "features"))
            for messages, cache in expected:
                answer = (
                    self.server.stream(messages, **fields)[-1] if stream else self.server.chat(messages, **fields)
                )
                (medium,) = answer["whimbrel"]["media"]
                self.assertEqual(medium["cache"], cache)

    def test_boxes_in_pixels_of_the_picture(self):
        """A grammar makes the model write them; it takes pixels of the resized picture."""
        box = {"bbox_2d": [28, 21, 140, 105], "label": "bird"}
        fields = {
            "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"const": box}}},
            "whimbrel": {"details": True, "max_pixels": 50000},
            "max_tokens": 100,
        }
        answer = self.server.chat(looking("Where?"), **fields)
        self.assertEqual(json.loads(content_of(answer)), box)
        (medium,) = answer["whimbrel"]["media"]
        self.assertNotEqual(medium["size"], medium["resized"])
        scale = [size / resized for size, resized in zip(medium["size"], medium["resized"], strict=True)]
        pixels = [int(number * scale[i % 2] + 0.5) for i, number in enumerate(box["bbox_2d"])]
        told = {"choice": 0, "kind": "box", "label": "bird", "written": box["bbox_2d"], "pixels": pixels}
        self.assertEqual(answer["whimbrel"]["boxes"], [told])
        self.assertEqual(self.server.stream(looking("Where?"), **fields)[-1]["whimbrel"]["boxes"], [told])
        answer = self.server.chat(looking("Where?") + asking("There?") + looking("And here?"), **fields)
        self.assertEqual(len(answer["whimbrel"]["media"]), 2)
        self.assertEqual(answer["whimbrel"]["boxes"], [{**told, "pixels": None}])

    def test_the_length_ends_it(self):
        answer = self.server.chat(asking("Count from 1 to 90."), max_tokens=3)
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")
        self.assertEqual(answer["usage"]["completion_tokens"], 3)

    def test_who_leaves_is_cancelled(self):
        body = json.dumps(
            {"messages": asking("Count."), "stream": True, "logit_bias": never_ending(), "max_tokens": 1500}
        )
        before = self.server.call("GET", "/slots")[1]["requests_cancelled"]
        with socket.create_connection(("127.0.0.1", self.server.port)) as client:
            client.sendall(
                f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            self.assertTrue(client.recv(1))
            self.server.wait_for(lambda slots: slots["running"] == 1)
        slots = self.server.wait_for(lambda slots: slots["running"] + slots["queued"] == 0)
        self.assertEqual(slots["requests_cancelled"] - before, 1)

    def test_about_the_server(self):
        self.assertEqual(self.server.call("GET", "/health"), (200, {"status": "ok"}))
        self.assertEqual(self.server.call("GET", "/ready")[0], 200)
        models = self.server.call("GET", "/v1/models")[1]
        self.assertEqual([model["id"] for model in models["data"]], [BUNDLED])
        self.assertEqual(self.server.call("GET", "/props")[1]["model"], BUNDLED)


class Pairs(ServedCase):
    MODEL = "tiny-qwen2-vl-4bit"

    def test_boxes_in_thousandths(self):
        written = "bird(100,200),(500,1000)"
        schema = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"const": written}}}
        answer = self.server.chat(looking("Where?"), response_format=schema, whimbrel={"details": True})
        self.assertEqual(content_of(answer), f'"{written}"')
        width, height = answer["whimbrel"]["media"][0]["size"]
        (box,) = answer["whimbrel"]["boxes"]
        self.assertEqual((box["label"], box["written"]), ("bird", [100, 200, 500, 1000]))
        near = zip(box["pixels"], (width / 10, height / 5, width / 2, height), strict=True)
        self.assertLessEqual(max(abs(pixel - exact) for pixel, exact in near), 0.5)


class Chats(ChatsCase):
    pass


class GuessingChats(ChatsCase):
    """The same where answers are guessed ahead and requests may give way."""

    FLAGS = ("--prompt-lookup", "8", "--preempt")

    def test_guesses_are_counted(self):
        question = asking("Say seven seven seven seven seven seven.")
        bias = {str(token): -100 for token in self.server.end_tokens()}
        answer = self.server.chat(question, max_tokens=300, logit_bias=bias)
        timings = answer["timings"]
        self.assertGreater(timings["draft_n_accepted"], 0)
        self.assertGreaterEqual(timings["draft_n"], timings["draft_n_accepted"])
        self.assertEqual(answer["usage"]["completion_tokens"], 300)
        slots = self.server.call("GET", "/slots")[1]
        self.assertGreaterEqual(slots["guessed_right"], timings["draft_n_accepted"])
        self.assertEqual(slots["preempted"], 0)
        props = self.server.call("GET", "/props")[1]
        self.assertEqual((props["prompt_lookup"], props["answer_piece"]), (8, 256))


class OtherApis(ServedCase):
    def test_text_completions(self):
        prompt = "What is 53 minus 44?"
        request = {"prompt": [prompt, "Hello"], "temperature": 0, "max_tokens": 8, "echo": True}
        status, answer = self.server.call("POST", "/v1/completions", request)
        self.assertEqual(status, 200, answer)
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1])
        self.assertTrue(answer["choices"][0]["text"].startswith(prompt))
        ids = self.server.call("POST", "/tokenize", {"content": prompt})[1]["tokens"]
        by_ids = self.server.call("POST", "/v1/completions", {**request, "prompt": ids})[1]
        self.assertEqual(by_ids["choices"][0]["text"], answer["choices"][0]["text"])

    def test_messages(self):
        request = {
            "model": BUNDLED,
            "messages": asking("What is 53 minus 44?"),
            "max_tokens": 40,
            "temperature": 0,
        }
        expected = content_of(self.server.chat(request["messages"], max_tokens=40))
        status, answer = self.server.call("POST", "/v1/messages", request)
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["type"], "message")
        self.assertEqual(answer["content"], [{"type": "text", "text": expected}])
        self.assertEqual(answer["stop_reason"], "end_turn")
        counted = self.server.call("POST", "/v1/messages/count_tokens", request)[1]
        usage = answer["usage"]
        read = usage["input_tokens"] + usage["cache_read_input_tokens"]
        self.assertEqual(counted["input_tokens"], read)
        status, error = self.server.call("POST", "/v1/messages", {"messages": []})
        self.assertEqual((status, error["type"]), (400, "error"))

    def test_a_stream_of_messages(self):
        request = {"model": BUNDLED, "messages": asking("Hello."), "max_tokens": 20, "stream": True}
        _, content_type, text = self.server.request("POST", "/v1/messages", request)
        self.assertEqual(content_type, "text/event-stream")
        events = [line[7:] for line in text.splitlines() if line.startswith("event: ")]
        self.assertEqual(events[0], "message_start")
        self.assertEqual(events[-1], "message_stop")

    def test_responses(self):
        request = {"input": "What is 53 minus 44?", "temperature": 0, "max_output_tokens": 40}
        expected = content_of(self.server.chat(asking(request["input"]), max_tokens=40))
        status, answer = self.server.call("POST", "/v1/responses", request)
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["output"][0]["content"][0]["text"], expected)
        self.assertEqual(answer["status"], "completed")

    def test_tokens(self):
        text = "Grüße, <|im_end|> 123"
        for special in (False, True):
            asked = {"content": text, "parse_special": special}
            ids = self.server.call("POST", "/tokenize", asked)[1]["tokens"]
            back = self.server.call("POST", "/detokenize", {"tokens": ids})[1]
            self.assertEqual(back["content"], text)
        prompt = self.server.call("POST", "/apply-template", {"messages": asking("Hi.")})[1]
        self.assertIn("Hi.<|im_end|>", prompt["prompt"])

    def test_an_estimate_computes_nothing(self):
        steps = self.server.call("GET", "/slots")[1]["steps"]
        request = {"messages": looking("What is this?"), "max_tokens": 10}
        status, answer = self.server.call("POST", "/v1/estimate", request)
        self.assertEqual(status, 200, answer)
        self.assertEqual(len(answer["media"]), 1)
        self.assertGreater(answer["prompt_tokens"], answer["media"][0]["tokens"])
        self.assertLess(answer["memory_bytes"], answer["memory_budget"])
        self.assertEqual(self.server.call("GET", "/slots")[1]["steps"], steps)

    def test_metrics(self):
        self.server.chat(asking("Hello."), max_tokens=2)
        told = re.compile(r'(?m)^whimbrel_requests_total\{end="finished"\} [1-9]')
        for _ in range(1000):  # the worker reports now and then
            status, content_type, text = self.server.request("GET", "/metrics")
            self.assertEqual((status, content_type.split(";")[0]), (200, "text/plain"))
            if told.search(text):
                break
            time.sleep(0.01)
        self.assertRegex(text, told)
        self.assertRegex(text, r"(?m)^whimbrel_answer_tokens_total [1-9]")


class Refusals(ServedCase):
    FLAGS = ("--ctx", "300", "--alias", "bird")

    def refused(self, status: int, body, path="/v1/chat/completions") -> dict:
        got, answer = self.server.call("POST", path, body)
        self.assertEqual(got, status, answer)
        error = answer["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertNotIn("/", error["message"].replace("://", ""))
        return error

    def test_another_model(self):
        error = self.refused(404, {"model": "other", "messages": asking("Hello.")})
        self.assertEqual((error["code"], error["param"]), ("model_not_found", "model"))
        self.assertEqual(self.server.chat(asking("Hello."), model="bird")["model"], "bird")

    def test_a_prompt_that_is_too_long(self):
        error = self.refused(400, {"messages": asking("word " * 400)})
        self.assertEqual(error["code"], "context_length_exceeded")

    def test_a_text_that_is_far_too_long_is_refused_untokenised(self):
        text = "x" * 200_000
        for path, body in (
            ("/v1/chat/completions", {"messages": asking(text)}),
            ("/v1/completions", {"prompt": text}),
        ):
            error = self.refused(400, body, path)
            self.assertEqual(error["code"], "context_length_exceeded")
            self.assertIn("at least", error["message"])

    def test_ids_that_are_no_tokens(self):
        self.refused(400, {"messages": asking("Hello."), "logit_bias": {"99999999": 1}})
        self.refused(400, {"prompt": [99999999]}, "/v1/completions")
        self.refused(400, {"tokens": [99999999]}, "/detokenize")

    def test_pictures_that_are_none(self):
        for url in (
            "data:image/png;base64,AAAA",
            "https://example.org/a.png",
            "file:///etc/passwd",
            "/etc/passwd",
            "",
        ):
            messages = looking("What?")
            messages[0]["content"][0]["image_url"]["url"] = url
            self.refused(400, {"messages": messages})

    def test_bodies_that_are_no_request(self):
        for body in (b"", b"{", b"[]", b"\xff", {}, {"messages": []}, {"messages": "Hello."}):
            self.refused(400, body)

    def test_tokens_typed_as_text_stay_text(self):
        for text in ("<|image_pad|>", "<|vision_start|><|image_pad|><|vision_end|>", "<|im_end|>"):
            self.server.chat(asking(f"What is {text}?"), max_tokens=2)

    def test_it_goes_on(self):
        self.refused(400, {"messages": 1})
        self.assertTrue(content_of(self.server.chat(asking("Hello."))))


class Keys(ServedCase):
    FLAGS = ("--api-key", "secret")

    def test_a_key_is_asked_for(self):
        body = {"messages": asking("Hello."), "max_tokens": 2}
        path = "/v1/chat/completions"
        self.assertEqual(self.server.call("POST", path, body)[0], 401)
        wrong = {"Authorization": "Bearer other"}
        self.assertEqual(self.server.call("POST", path, body, wrong)[0], 401)
        right = {"Authorization": "Bearer secret"}
        self.assertEqual(self.server.call("POST", path, body, right)[0], 200)
        self.assertEqual(self.server.call("GET", "/health")[0], 200)
        self.assertEqual(self.server.call("GET", "/v1/models")[0], 401)


class Logs(CliTest):
    def test_a_line_a_request_without_what_was_said(self):
        server = Server("--log-requests", "--api-key", "secret-canary")
        headers = {"Authorization": "Bearer secret-canary", "x-request-id": "mine-1"}
        body = {"messages": asking("prompt-canary"), "max_tokens": 4}
        status, _ = server.call("POST", "/v1/chat/completions", body, headers)
        self.assertEqual(status, 200)
        self.assertEqual(server.stop(), 0)
        lines = [json.loads(line) for line in server.said if line.startswith("{")]
        self.assertEqual([line["request_id"] for line in lines], ["mine-1"])
        self.assertEqual((lines[0]["status"], lines[0]["outcome"]), (200, "answered"))
        self.assertNotIn("canary", "".join(server.said))


    def test_fields_that_change_nothing_are_named(self):
        server = Server("--log-requests")
        body = {"model": BUNDLED, "messages": asking("Hello."), "max_tokens": 2}
        other = {"unknown": "value-canary", "b\n": 1, "c" * 100: 2}
        chat = {**body, **other}
        requests = {
            "whole": ("/v1/chat/completions", chat),
            "stream": ("/v1/chat/completions", {**chat, "stream": True}),
            "refused": ("/v1/chat/completions", {**chat, "temperature": "wrong"}),
            "messages": ("/v1/messages", chat),
            "count": ("/v1/messages/count_tokens", chat),
            "text": ("/v1/completions", {"prompt": "a", "max_tokens": 1, **other}),
            "responses": ("/v1/responses", {"input": "a", "max_output_tokens": 1, **other}),
            "plain": ("/v1/chat/completions", body),
        }
        for name, (path, request) in requests.items():
            server.request("POST", path, request, {"X-Request-Id": name})
        self.assertEqual(server.stop(), 0)
        lines = [json.loads(line) for line in server.said if line.startswith("{")]
        ignored = {line["request_id"]: line.get("ignored") for line in lines}
        names = ["unknown", "b\\x0a", "c" * 64 + "..."]
        expected = {name: None if name in ("refused", "plain") else names for name in requests}
        self.assertEqual(ignored, expected)
        self.assertNotIn("canary", "".join(server.said))


class Stops(CliTest):
    def test_an_open_stream_is_told(self):
        server = Server("--drain", "0")
        body = json.dumps(
            {
                "messages": asking("Count."),
                "stream": True,
                "max_tokens": 1900,
                "logit_bias": never_ending(),
            }
        )
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=ANSWER_SECONDS)
        with contextlib.closing(connection):
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/v1/chat/completions", body, headers)
            answer = connection.getresponse()
            self.assertTrue(answer.read(1))
            self.assertEqual(server.stop(), 0)
            text = answer.read().decode()
        frames = [frame for frame in text.split("\n\n") if frame.startswith("data: ")]
        self.assertIn("error", json.loads(frames[-1].removeprefix("data: ")))


class Starts(CliTest):
    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            result = run("serve", "-m", BUNDLED, "--port", port, "--no-progress")
            self.assert_error(result, 7, str(port))

    def test_other_machines_need_a_key(self):
        result = run("serve", "-m", BUNDLED, "--host", "0.0.0.0", "--port", 0, "--no-progress")
        self.assert_error(result, 2, "--api-key")

    def test_wrong_flags(self):
        self.assert_error(run("serve", "-m", BUNDLED, "--ctx", 10**7), 2, "--ctx")
        self.assert_error(run("serve", "-m", BUNDLED, "--parallel", 0), 2, "--parallel")
        result = run("serve", "-m", BUNDLED, "--prompt-lookup", 16)
        self.assert_error(result, 2, "--prompt-lookup")
        self.assert_error(run("serve", "-m", "no-such-model"), 3, "no-such-model")


if __name__ == "__main__":
    unittest.main()
