"""The anthropic package, as a program uses it against whimbrel serve."""

import json
import unittest

import served
from served import (
    KEY,
    LONG_ANSWER,
    MODEL,
    PICTURE,
    SCHEMA,
    TOO_LONG,
    WRONG_KEY,
    ClientCase,
    occupied,
)

served.needs("anthropic")
import anthropic  # noqa: E402

from served import asking  # noqa: E402

QUESTION = asking("What is 53 minus 44?")
TOOLS = [
    {"name": "paint", "description": "Paints a wall", "input_schema": SCHEMA},
    {"name": "sing", "description": "Sings", "input_schema": SCHEMA},
]
SING = {"type": "tool", "name": "sing"}


class AnthropicCase(ClientCase):
    def client(self, server=None, key=KEY, **settings) -> anthropic.Anthropic:
        base_url = (server or self.server).url
        client = anthropic.Anthropic(
            base_url=base_url, api_key=key, **{"max_retries": 0, **settings}
        )
        self.addCleanup(client.close)
        return client

    def request(self, **fields) -> dict:
        # This package has no name for the temperature any more.
        greedy = {"extra_body": {"temperature": 0}}
        return {"model": MODEL, "messages": QUESTION, "max_tokens": 60, **greedy, **fields}

    def ask(self, **fields):
        return self.client().messages.create(**self.request(**fields))


def text_of(message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def prompt_tokens(usage) -> int:
    return usage.input_tokens + usage.cache_read_input_tokens


class Messages(AnthropicCase):
    def test_an_answer_with_its_usage(self):
        answer = self.ask()
        self.assertTrue(text_of(answer))
        self.assertEqual((answer.role, answer.type, answer.model), ("assistant", "message", MODEL))
        self.assertEqual((answer.stop_reason, answer.stop_sequence), ("end_turn", None))
        self.assertGreater(answer.usage.output_tokens, 0)
        counted = self.client().messages.count_tokens(model=MODEL, messages=QUESTION)
        self.assertEqual(counted.input_tokens, prompt_tokens(answer.usage))
        self.assertTrue(answer._request_id)

    def test_a_stream_is_the_answer(self):
        whole = self.ask()
        events = list(self.ask(stream=True))
        self.assertEqual((events[0].type, events[-1].type), ("message_start", "message_stop"))
        self.assertEqual(events[-2].delta.stop_reason, whole.stop_reason)
        self.assertEqual(events[-2].usage.output_tokens, whole.usage.output_tokens)
        with self.client().messages.stream(**self.request()) as stream:
            pieces = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual((pieces, text_of(final)), (text_of(whole), text_of(whole)))
        self.assertEqual(prompt_tokens(final.usage), prompt_tokens(whole.usage))

    def test_a_picture_and_a_second_turn(self):
        source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
        look = [
            {"type": "image", "source": source},
            {"type": "text", "text": "Describe this image."},
        ]
        first = [{"role": "user", "content": look}]
        answer = self.ask(messages=first)
        self.assertTrue(text_of(answer))
        self.assertGreater(prompt_tokens(answer.usage), prompt_tokens(self.ask().usage))
        turns = [
            *first,
            {"role": "assistant", "content": answer.content},  # as it came
            {"role": "user", "content": "Which colours are there?"},
        ]
        again = self.ask(messages=turns)
        self.assertGreater(again.usage.cache_read_input_tokens, answer.usage.input_tokens // 2)
        counted = self.client().messages.count_tokens(model=MODEL, messages=turns)
        self.assertEqual(counted.input_tokens, prompt_tokens(again.usage))

    def test_a_system_prompt(self):
        plain = prompt_tokens(self.ask().usage)
        as_text = prompt_tokens(self.ask(system="You are brief.").usage)
        blocks = [{"type": "text", "text": "You are brief."}]
        as_blocks = prompt_tokens(self.ask(system=blocks).usage)
        self.assertGreater(as_text, plain)
        self.assertEqual(as_blocks, as_text)

    def test_models(self):
        client = self.client()
        (model,) = client.models.list()
        self.assertEqual((model.id, model.display_name, model.type), (MODEL, MODEL, "model"))
        self.assertEqual(client.models.retrieve(MODEL), model)
        with self.assertRaises(anthropic.NotFoundError):
            client.models.retrieve("another")

    def test_the_half_that_is_called_beta(self):
        create = self.client().beta.messages.create
        answer = create(betas=["a-feature-2026-01-01"], **self.request())
        self.assertEqual(text_of(answer), text_of(self.ask()))

    def test_stops_and_length(self):
        whole = text_of(self.ask())
        stop = whole[2:4]
        cut = self.ask(stop_sequences=[stop])
        self.assertEqual((cut.stop_reason, cut.stop_sequence), ("stop_sequence", stop))
        self.assertEqual(text_of(cut), whole[: whole.index(stop)])
        short = self.ask(max_tokens=2)
        self.assertEqual((short.stop_reason, short.usage.output_tokens), ("max_tokens", 2))


class Forms(AnthropicCase):
    """Tools and schemas: what an answer must look like."""

    def test_a_tool_is_called_and_answered(self):
        for choice, names in (({"type": "any"}, ("paint", "sing")), (SING, ("sing",))):
            answer = self.ask(tools=TOOLS, tool_choice=choice, max_tokens=400)
            self.assertEqual(answer.stop_reason, "tool_use")
            (call,) = (block for block in answer.content if block.type == "tool_use")
            self.assertIn(call.name, names)
            self.assert_fits(call.input)
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "Sung."}
        turns = [
            *QUESTION,
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": [result]},
        ]
        last = self.ask(messages=turns, tools=TOOLS, tool_choice={"type": "none"})
        self.assertGreater(prompt_tokens(last.usage), prompt_tokens(self.ask().usage))
        self.assertEqual({block.type for block in last.content} - {"text"}, set())

    def test_a_call_in_a_stream(self):
        fields = {"tools": TOOLS, "tool_choice": SING, "max_tokens": 400}
        (whole,) = self.ask(**fields).content
        pieces = []
        with self.client().messages.stream(**self.request(**fields)) as stream:
            for event in stream:
                if event.type == "input_json":
                    pieces.append(event.partial_json)
            final = stream.get_final_message()
        self.assertGreater(len(pieces), 1)
        (call,) = final.content
        self.assertEqual((call.type, call.name, call.input), ("tool_use", "sing", whole.input))
        self.assertEqual(final.stop_reason, "tool_use")

    def test_a_schema(self):
        form = {"format": {"type": "json_schema", "schema": SCHEMA}}
        answer = self.ask(output_config=form, max_tokens=400)
        self.assert_fits(json.loads(text_of(answer)))


class Errors(AnthropicCase):
    def test_a_bad_request(self):
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask(extra_body={"temperature": "hot"})
        error = caught.exception
        self.assertEqual(error.status_code, 400)
        self.assertEqual(error.body["error"]["type"], "invalid_request_error")
        self.assertTrue(error.request_id)

    def test_a_wrong_key(self):
        with self.assertRaises(anthropic.AuthenticationError) as caught:
            self.client(key=WRONG_KEY).messages.create(**self.request())
        self.assertEqual(caught.exception.body["error"]["type"], "authentication_error")

    def test_the_key_as_a_token(self):
        client = anthropic.Anthropic(base_url=self.server.url, auth_token=KEY, max_retries=0)
        self.addCleanup(client.close)
        self.assertTrue(text_of(client.messages.create(**self.request())))

    def test_another_model(self):
        with self.assertRaises(anthropic.NotFoundError) as caught:
            self.ask(model="another")
        self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")

    def test_a_prompt_that_is_too_long(self):
        for stream in (False, True):
            with self.assertRaises(anthropic.BadRequestError):
                self.ask(messages=asking(TOO_LONG), stream=stream)

    def test_no_room(self):
        with occupied(self.narrow), self.assertRaises(anthropic.RateLimitError) as caught:
            self.client(self.narrow).messages.create(**self.request())
        self.assertEqual(caught.exception.body["error"]["type"], "rate_limit_error")

    def test_it_tries_again_by_itself(self):
        create = self.client(self.narrow, max_retries=5).messages.create
        answer = self.tried_again(lambda: create(**self.request()))
        self.assertTrue(text_of(answer))


class Leaving(AnthropicCase):
    def test_a_stream_that_is_closed(self):
        form = {"format": {"type": "json_schema", "schema": {"type": "string", "minLength": 9000}}}
        with self.ask(output_config=form, max_tokens=LONG_ANSWER, stream=True) as stream:
            self.assertEqual(next(iter(stream)).type, "message_start")
            self.assert_cancelled(stream.close)


if __name__ == "__main__":
    unittest.main()
