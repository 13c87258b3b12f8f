"""whimbrel serve: requests that are made to hurt it are refused, or do what they say and no more."""
import concurrent.futures
import json
import random
import unittest
import zlib

from serve_test import ServedCase, Server, asking, content_of, looking, never_ending
from support import CliTest, png_chunk, png_header

CHAT = "/v1/chat/completions"


def chat(**fields) -> dict:
    return {"messages": asking("Hello."), "max_tokens": 4, "temperature": 0, **fields}


class JsonAbuse(ServedCase):
    """F13: JSON that is deep, large or broken is 400, and says where."""

    def refused(self, body: bytes) -> str:
        status, answer = self.server.call("POST", CHAT, body)
        self.assertEqual(status, 400, answer)
        self.assertEqual(self.server.call("GET", "/health")[0], 200)
        return answer["error"]["message"]

    def test_depth(self):
        for opens, closes in (("[", "]"), ('{"a":', "}")):
            for depth in (65, 100_000):
                text = opens * depth + "1" + closes * depth
                self.refused(b'{"messages":' + text.encode() + b"}")
                self.refused(b'{"messages":' + (opens * depth).encode())

    def test_size(self):
        self.refused(json.dumps(chat(metadata={str(i): i for i in range(5000)})).encode())
        self.refused(json.dumps(chat(metadata=[0] * 300_000)).encode())
        self.refused(json.dumps(chat(unknown=[[]] * 200_001)).encode())

    def test_texts_that_are_none(self):
        wrong_utf8 = (b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80")
        for text in (*wrong_utf8, b"\\ud800", b"\\udc00x", b"\x00", b"\x1f"):
            self.refused(b'{"messages":[{"role":"user","content":"' + text + b'"}]}')

    def test_numbers_that_are_none(self):
        for number in (b"NaN", b"Infinity", b"1e400", b"-1e999", b"01", b"+1", b"0x5", b"1.", b".5", b"--1"):
            self.refused(b'{"messages":[{"role":"user","content":"x"}],"temperature":' + number + b"}")

    def test_keys_that_stand_twice(self):
        message = self.refused(b'{"messages":[],"max_tokens":1,"messages":[{"role":"user","content":"x"}]}')
        self.assertIn("messages", message)

    def test_one_text_of_many_megabytes(self):
        body = json.dumps(chat(messages=asking("word " * 1_000_000))).encode()
        status, answer = self.server.call("POST", CHAT, body)
        self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))


class Endless(ServedCase):
    """F16: an answer without an end fills its context and no more; the others go on beside it."""

    FLAGS = ("--ctx", "400")

    def test_it_stops_at_the_context(self):
        endless = {"messages": asking("Count."), "logit_bias": never_ending(), "temperature": 0}
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            ends = [pool.submit(self.server.call, "POST", CHAT, endless) for _ in range(3)]
            self.assertTrue(content_of(self.server.chat(asking("Hello."), max_tokens=8)))
            for end in ends:
                status, answer = end.result()
                self.assertEqual((status, answer["choices"][0]["finish_reason"]), (200, "length"))
                self.assertEqual(answer["usage"]["total_tokens"], 400)


class StopTexts(ServedCase):
    """F18: stop texts that overlap end an answer where the first of them is complete."""

    def test_many_long_ones_that_overlap(self):
        stops = ["a" * length + "b" for length in range(240, 255)] + ["never"]
        whole = content_of(self.server.chat(asking("What is 53 minus 44?"), max_tokens=40))
        answer = self.server.chat(asking("What is 53 minus 44?"), max_tokens=40, stop=stops)
        self.assertEqual(content_of(answer), whole)
        cut = self.server.chat(asking("What is 53 minus 44?"), max_tokens=40, stop=[*stops[1:], whole[4:8]])
        self.assertEqual(content_of(cut), whole[: whole.index(whole[4:8])])

    def test_out_of_their_bounds(self):
        for stop in ("", [""], ["x"] * 17, ["x" * 257], ["é" * 129], [1], {}, [None]):
            self.assertEqual(self.server.call("POST", CHAT, chat(stop=stop))[0], 400, stop)


class Numbers(ServedCase):
    """F19: the largest reports are made; biases that are no numbers, or for no token, are refused."""

    FLAGS = ("--ctx", "200")

    def test_the_most_log_probabilities(self):
        answer = self.server.chat(asking("Hello."), max_tokens=8, logprobs=True, top_logprobs=20)
        for token in answer["choices"][0]["logprobs"]["content"]:
            self.assertEqual(len(token["top_logprobs"]), 20)
            self.assertLessEqual(token["logprob"], 0)
        self.assertEqual(self.server.call("POST", CHAT, chat(logprobs=True, top_logprobs=21))[0], 400)
        self.assertEqual(self.server.call("POST", CHAT, chat(top_logprobs=1))[0], 400)

    def test_biases(self):
        wrong_tokens = ({"-1": 1}, {"x": 1}, {"1e3": 1}, {"99999999": 1}, {"": 0})
        for bias in (*wrong_tokens, {"1": "x"}, {"1": 101}, {"1": -101}, [1]):
            self.assertEqual(self.server.call("POST", CHAT, chat(logit_bias=bias))[0], 400, bias)
        body = json.dumps(chat(logit_bias={"1": 7})).replace("7}", "1e400}").encode()
        self.assertEqual(self.server.call("POST", CHAT, body)[0], 400)

    def test_each_number_at_its_ends(self):
        huge = (-(2**63), 2**63, 10**400, -1, 1.5, "1", True, [], {})
        for name in ("max_tokens", "n", "top_k", "seed", "max_completion_tokens", "top_logprobs"):
            for value in huge:
                status = self.server.call("POST", CHAT, chat(**{name: value}))[0]
                self.assertIn(status, (200, 400), (name, value))


def picture_of(data: bytes, width: int) -> bytes:
    """A PNG of these red, green and blue bytes."""
    step = 3 * width
    rows = b"".join(b"\0" + data[at : at + step] for at in range(0, len(data), step))
    end = png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    return png_header(width, len(data) // 3 // width) + end


class CacheConfusion(CliTest):
    """F27: the same bytes in another shape, or of another key, are another picture."""

    def test_shapes(self):
        question = "Describe this image."
        data = random.Random(1).randbytes(3 * 64 * 64)
        server = Server()
        self.addCleanup(server.stop)
        for width in (16, 64, 256, 64, 16):
            picture = self.write(f"{width}.png", picture_of(data, width))
            greedy = ("--temperature", "0", "--max-tokens", "24")
            alone = self.text("--image", picture, "-p", question, *greedy)
            served = content_of(server.chat(looking(question, picture), max_tokens=24))
            self.assertEqual(served, alone.rstrip("\n"), width)
        self.assertEqual(server.call("GET", "/slots")[1]["pictures_encoded"], 3)

    def test_keys(self):
        server = Server("--api-key", "one", "--api-key", "two")
        self.addCleanup(server.stop)
        cached = []
        for key in ("one", "two", "one", "two"):
            headers = {"Authorization": f"Bearer {key}"}
            body = {"messages": looking("What?"), "max_tokens": 2, "temperature": 0}
            status, answer = server.call("POST", CHAT, body, headers)
            self.assertEqual(status, 200, answer)
            cached.append(answer["usage"]["prompt_tokens_details"]["cached_tokens"] > 0)
        self.assertEqual(cached, [False, False, True, True])
        headers = {"Authorization": "Bearer one"}
        self.assertEqual(server.call("GET", "/slots", headers=headers)[1]["pictures_encoded"], 2)


class SecondTurn(ServedCase):
    """A second question about a picture: the tower is not run, and what was read is not read again."""

    def test_it(self):
        messages = looking("What is this?")
        first = self.server.chat(messages, max_tokens=16)
        encoded = self.server.call("GET", "/slots")[1]["pictures_encoded"]
        messages += [{"role": "assistant", "content": content_of(first)}, *asking("Which colours?")]
        second = self.server.chat(messages, max_tokens=16)
        self.assertEqual(self.server.call("GET", "/slots")[1]["pictures_encoded"], encoded)
        read = first["usage"]["prompt_tokens"]
        cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertGreaterEqual(cached, read - 1)
        self.assertEqual(second["timings"]["tower_ms"], 0)


if __name__ == "__main__":
    unittest.main()
