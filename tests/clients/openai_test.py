"""The openai package, as a program uses it against whimbrel serve."""

import asyncio
import json
import unittest

import served
from served import KEY, LONG_ANSWER, MODEL, PICTURE_URL, SCHEMA, WRONG_KEY, ClientCase, occupied

served.needs("openai")
import openai  # noqa: E402
import pydantic  # noqa: E402

from served import TOO_LONG, asking, never_ending  # noqa: E402

QUESTION = asking("What is 53 minus 44?")
TOOLS = [
    {
        "type": "function",
        "function": {"name": "paint", "description": "Paints a wall", "parameters": SCHEMA},
    },
    {
        "type": "function",
        "function": {"name": "sing", "description": "Sings", "parameters": SCHEMA},
    },
]
SING = {"type": "function", "function": {"name": "sing"}}


class Wall(pydantic.BaseModel):
    """The members of SCHEMA."""

    model_config = pydantic.ConfigDict(extra="forbid")
    colour: str = pydantic.Field(pattern="^(red|blue)$")
    count: int = pydantic.Field(ge=0, le=9)


class OpenAiCase(ClientCase):
    def client(self, server=None, key=KEY, **settings) -> openai.OpenAI:
        base_url = (server or self.server).v1
        client = openai.OpenAI(base_url=base_url, api_key=key, **{"max_retries": 0, **settings})
        self.addCleanup(client.close)
        return client

    def chat(self, messages, **fields):
        request = {"model": MODEL, "temperature": 0, "max_tokens": 60, **fields}
        return self.client().chat.completions.create(messages=messages, **request)


def streamed(chunks, choice: int = 0) -> str:
    return "".join(
        piece.delta.content or ""
        for chunk in chunks
        for piece in chunk.choices
        if piece.index == choice
    )


class Chat(OpenAiCase):
    def test_an_answer_with_its_usage(self):
        answer = self.chat(QUESTION)
        self.assertTrue(answer.choices[0].message.content)
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertEqual((answer.model, answer.object), (MODEL, "chat.completion"))
        usage = answer.usage
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
        self.assertGreaterEqual(usage.prompt_tokens_details.cached_tokens, 0)
        self.assertTrue(answer._request_id)

    def test_a_stream_is_the_answer(self):
        whole = self.chat(QUESTION)
        chunks = list(self.chat(QUESTION, stream=True, stream_options={"include_usage": True}))
        self.assertEqual(streamed(chunks), whole.choices[0].message.content)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual(chunks[-2].choices[0].finish_reason, whole.choices[0].finish_reason)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual({chunk.id for chunk in chunks}, {chunks[0].id})

    def test_the_helper_for_streams(self):
        request = {"model": MODEL, "messages": QUESTION, "temperature": 0, "max_tokens": 60}
        with self.client().chat.completions.stream(**request) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_completion()
        self.assertLessEqual({"chunk", "content.delta", "content.done"}, kinds)
        self.assertEqual(
            final.choices[0].message.content, self.chat(QUESTION).choices[0].message.content
        )

    def test_a_picture_and_a_second_turn(self):
        first = [
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": PICTURE_URL, "detail": "auto"}},
                    {"type": "text", "text": "Describe this image."},
                ],
            }
        ]
        answer = self.chat(first)
        self.assertTrue(answer.choices[0].message.content)
        text_alone = self.chat(asking("Describe this image."))
        self.assertGreater(answer.usage.prompt_tokens, text_alone.usage.prompt_tokens)
        turns = [
            {"role": "system", "content": "You are brief."},
            *first,
            answer.choices[0].message,  # as it came
            {"role": "user", "content": "Which colours are there?"},
        ]
        again = self.chat(turns)
        self.assertGreater(again.usage.prompt_tokens, answer.usage.prompt_tokens)
        self.assertTrue(again.choices[0].message.content)

    def test_choices_with_a_seed(self):
        question = asking("Tell me something.")
        fields = {"n": 3, "seed": 4, "temperature": 1.5, "max_tokens": 20}
        first, second = (self.chat(question, **fields) for _ in range(2))
        self.assertEqual([choice.index for choice in first.choices], [0, 1, 2])
        texts = [choice.message.content for choice in first.choices]
        self.assertEqual(len(set(texts)), 3)
        self.assertEqual([choice.message.content for choice in second.choices], texts)
        chunks = list(self.chat(question, stream=True, **fields))
        self.assertEqual([streamed(chunks, i) for i in range(3)], texts)

    def test_log_probabilities(self):
        answer = self.chat(QUESTION, logprobs=True, top_logprobs=2, max_tokens=5)
        items = answer.choices[0].logprobs.content
        self.assertEqual(len(items), answer.usage.completion_tokens)
        for item in items:
            self.assertEqual(item.top_logprobs[0].token, item.token)
            self.assertEqual(bytes(item.bytes).decode(), item.token)
            self.assertLessEqual(item.logprob, 0)
        chunks = self.chat(QUESTION, logprobs=True, max_tokens=5, stream=True)
        found = [
            item.token
            for chunk in chunks
            for choice in chunk.choices
            if choice.logprobs
            for item in choice.logprobs.content
        ]
        self.assertEqual(found, [item.token for item in items])

    def test_stops_and_length(self):
        whole = self.chat(QUESTION).choices[0].message.content
        stop = whole[2:4]
        cut = self.chat(QUESTION, stop=[stop]).choices[0]
        self.assertEqual(
            (cut.message.content, cut.finish_reason), (whole[: whole.index(stop)], "stop")
        )
        short = self.chat(QUESTION, max_tokens=None, max_completion_tokens=2)
        self.assertEqual(short.choices[0].finish_reason, "length")
        self.assertEqual(short.usage.completion_tokens, 2)


class Forms(OpenAiCase):
    """Tools and schemas: what an answer must look like."""

    def test_a_tool_is_called_and_answered(self):
        for choice, names in (("required", ("paint", "sing")), (SING, ("sing",))):
            answer = self.chat(QUESTION, tools=TOOLS, tool_choice=choice, max_tokens=400)
            self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
            call = answer.choices[0].message.tool_calls[0]
            self.assertIn(call.function.name, names)
            self.assert_fits(json.loads(call.function.arguments))
        turns = [
            *QUESTION,
            answer.choices[0].message,
            {"role": "tool", "tool_call_id": call.id, "content": "Sung."},
        ]
        last = self.chat(turns, tools=TOOLS, tool_choice="none")
        self.assertGreater(last.usage.prompt_tokens, self.chat(QUESTION).usage.prompt_tokens)
        self.assertIsNone(last.choices[0].message.tool_calls)

    def test_a_call_in_a_stream(self):
        fields = {"tools": TOOLS, "tool_choice": SING, "max_tokens": 400}
        whole = self.chat(QUESTION, **fields).choices[0].message.tool_calls[0]
        request = {"model": MODEL, "messages": QUESTION, "temperature": 0, **fields}
        with self.client().chat.completions.stream(**request) as stream:
            kinds = {event.type for event in stream}
            message = stream.get_final_completion().choices[0].message
        self.assertIn("tool_calls.function.arguments.delta", kinds)
        self.assertFalse(message.content)
        self.assertEqual(message.tool_calls[0].function.name, "sing")
        self.assertEqual(message.tool_calls[0].function.arguments, whole.function.arguments)

    def test_one_call_where_no_two_are_wanted(self):
        # With the ends made unlikely an answer goes on with calls as long as it may.
        fields = {"tools": TOOLS, "tool_choice": "required", "logit_bias": never_ending(MODEL)}
        for parallel in (True, False):
            answer = self.chat(QUESTION, parallel_tool_calls=parallel, max_tokens=900, **fields)
            calls = len(answer.choices[0].message.tool_calls)
            (self.assertGreater if parallel else self.assertEqual)(calls, 1)

    def test_a_schema_by_hand_and_by_class(self):
        form = {
            "type": "json_schema",
            "json_schema": {"name": "wall", "schema": SCHEMA, "strict": True},
        }
        answer = self.chat(QUESTION, response_format=form, max_tokens=400)
        self.assert_fits(json.loads(answer.choices[0].message.content))
        request = {"model": MODEL, "messages": QUESTION, "temperature": 0, "max_tokens": 400}
        parsed = self.client().chat.completions.parse(response_format=Wall, **request)
        self.assertIsInstance(parsed.choices[0].message.parsed, Wall)


class OtherRoutes(OpenAiCase):
    def test_text_completions(self):
        request = {"model": MODEL, "temperature": 0, "max_tokens": 12, "logprobs": 2}
        create = self.client().completions.create
        answer = create(prompt=["One, two,", "Red and"], **request)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1])
        self.assertEqual(answer.object, "text_completion")
        logprobs = answer.choices[0].logprobs
        self.assertEqual(len(logprobs.tokens), len(logprobs.token_logprobs))
        chunks = list(
            create(
                prompt="One, two,", stream=True, stream_options={"include_usage": True}, **request
            )
        )
        text = "".join(choice.text for chunk in chunks for choice in chunk.choices)
        self.assertEqual(text, answer.choices[0].text)
        self.assertGreater(chunks[-1].usage.completion_tokens, 0)

    def test_models(self):
        client = self.client()
        self.assertEqual([model.id for model in client.models.list()], [MODEL])
        self.assertEqual(client.models.retrieve(MODEL).id, MODEL)
        with self.assertRaises(openai.NotFoundError):
            client.models.retrieve("another")

    def test_responses(self):
        request = {"model": MODEL, "temperature": 0, "max_output_tokens": 40}
        create = self.client().responses.create
        answer = create(input=QUESTION[0]["content"], **request)
        self.assertEqual(
            answer.output_text, self.chat(QUESTION, max_tokens=40).choices[0].message.content
        )
        self.assertEqual(answer.status, "completed")
        self.assertEqual(
            answer.usage.total_tokens, answer.usage.input_tokens + answer.usage.output_tokens
        )
        turns = [
            {"role": "user", "content": QUESTION[0]["content"]},
            *answer.output,  # as it came
            {"role": "user", "content": [{"type": "input_text", "text": "And twice that?"}]},
        ]
        again = create(input=turns, instructions="Be brief.", **request)
        self.assertGreater(again.usage.input_tokens, answer.usage.input_tokens)

    def test_a_stream_of_a_response(self):
        request = {"model": MODEL, "temperature": 0, "max_output_tokens": 40}
        client = self.client()
        whole = client.responses.create(input="Count to three.", **request)
        events = list(client.responses.create(input="Count to three.", stream=True, **request))
        self.assertEqual(
            (events[0].type, events[-1].type), ("response.created", "response.completed")
        )
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        deltas = (event.delta for event in events if event.type == "response.output_text.delta")
        self.assertEqual("".join(deltas), whole.output_text)
        with client.responses.stream(input="Count to three.", **request) as stream:
            for _ in stream:
                pass
            self.assertEqual(stream.get_final_response().output_text, whole.output_text)

    def test_a_response_about_a_picture(self):
        parts = [
            {"type": "input_image", "image_url": PICTURE_URL, "detail": "auto"},
            {"type": "input_text", "text": "Describe this image."},
        ]
        answer = self.client().responses.create(
            model=MODEL, input=[{"role": "user", "content": parts}], max_output_tokens=40
        )
        self.assertTrue(answer.output_text)
        self.assertGreater(answer.usage.input_tokens, 40)

    def test_a_response_that_calls_or_keeps_a_schema(self):
        client = self.client()
        request = {"model": MODEL, "input": "Paint.", "temperature": 0, "max_output_tokens": 400}
        tool = {"type": "function", "name": "paint", "parameters": SCHEMA, "strict": True}
        answer = client.responses.create(tools=[tool], tool_choice="required", **request)
        (call,) = answer.output
        self.assertEqual((call.type, call.name), ("function_call", "paint"))
        self.assert_fits(json.loads(call.arguments))
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "Painted."}
        turns = [{"role": "user", "content": "Paint."}, call, result]
        client.responses.create(tools=[tool], **{**request, "input": turns, "max_output_tokens": 9})
        parsed = client.responses.parse(text_format=Wall, **request)
        self.assertIsInstance(parsed.output_parsed, Wall)


class Errors(OpenAiCase):
    def create(self, client, messages=None, **fields):
        request = {"model": MODEL, "messages": messages or QUESTION, "max_tokens": 5, **fields}
        return client.chat.completions.create(**request)

    def test_a_bad_request(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create(self.client(), extra_body={"temperature": "hot"})
        error = caught.exception
        self.assertEqual((error.status_code, error.param), (400, "temperature"))
        self.assertEqual(error.type, "invalid_request_error")
        self.assertTrue(error.request_id)

    def test_a_wrong_key(self):
        with self.assertRaises(openai.AuthenticationError) as caught:
            self.create(self.client(key=WRONG_KEY))
        self.assertEqual(caught.exception.status_code, 401)

    def test_another_model(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.create(self.client(), model="another")
        self.assertEqual(
            (caught.exception.code, caught.exception.param), ("model_not_found", "model")
        )

    def test_a_prompt_that_is_too_long(self):
        for stream in (False, True):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.create(self.client(), asking(TOO_LONG), stream=stream)
            self.assertEqual(caught.exception.code, "context_length_exceeded")

    def test_no_room(self):
        with occupied(self.narrow), self.assertRaises(openai.RateLimitError) as caught:
            self.create(self.client(self.narrow))
        self.assertEqual(caught.exception.type, "rate_limit_error")

    def test_it_tries_again_by_itself(self):
        client = self.client(self.narrow, max_retries=5)
        answer = self.tried_again(lambda: self.create(client))
        self.assertTrue(answer.choices[0].message.content)


class Leaving(OpenAiCase):
    def test_a_stream_that_is_closed(self):
        fields = {"logit_bias": never_ending(MODEL), "max_tokens": LONG_ANSWER}
        with self.chat(QUESTION, stream=True, **fields) as stream:
            self.assertTrue(next(iter(stream)))
            self.assert_cancelled(stream.close)

    def test_a_response_that_is_closed(self):
        form = {
            "type": "json_schema",
            "name": "long",
            "schema": {"type": "string", "minLength": 9000},
        }
        stream = self.client().responses.create(
            model=MODEL,
            input="Count.",
            max_output_tokens=LONG_ANSWER,
            stream=True,
            text={"format": form},
        )
        with stream:
            self.assertTrue(next(iter(stream)))
            self.assert_cancelled(stream.close)


class Async(OpenAiCase):
    """The other half of the package."""

    def test_an_answer_and_a_stream(self):
        whole, chunks = asyncio.run(self.ask())
        self.assertEqual(streamed(chunks), whole.choices[0].message.content)

    async def ask(self):
        request = {"model": MODEL, "messages": QUESTION, "temperature": 0, "max_tokens": 60}
        async with openai.AsyncOpenAI(base_url=self.server.v1, api_key=KEY) as client:
            whole = await client.chat.completions.create(**request)
            stream = await client.chat.completions.create(stream=True, **request)
            return whole, [chunk async for chunk in stream]


if __name__ == "__main__":
    unittest.main()
