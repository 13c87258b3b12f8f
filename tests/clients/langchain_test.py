"""langchain-openai, as a program uses it against whimbrel serve."""

import unittest

import served
from served import (
    KEY,
    LONG_ANSWER,
    MODEL,
    PICTURE_URL,
    SCHEMA,
    TOO_LONG,
    WRONG_KEY,
    ClientCase,
    occupied,
)

served.needs("langchain_openai")
import openai  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage  # noqa: E402
from langchain_openai import ChatOpenAI, OpenAI  # noqa: E402

from served import never_ending  # noqa: E402

QUESTION = "What is 53 minus 44?"
WALL = {"title": "Wall", "description": "A painted wall", **SCHEMA}


def tool(name: str) -> dict:
    return {
        "type": "function",
        "function": {"name": name, "description": f"Can {name}", "parameters": SCHEMA},
    }


class LangChainCase(ClientCase):
    def model(self, server=None, key=KEY, **settings) -> ChatOpenAI:
        fields = {"model": MODEL, "temperature": 0, "max_tokens": 400, "max_retries": 0, **settings}
        return ChatOpenAI(base_url=(server or self.server).v1, api_key=key, **fields)


class Chat(LangChainCase):
    def test_an_answer_with_its_usage(self):
        answer = self.model().invoke(QUESTION)
        self.assertIsInstance(answer, AIMessage)
        self.assertTrue(answer.content)
        usage = answer.usage_metadata
        self.assertEqual(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"])
        self.assertEqual(answer.response_metadata["finish_reason"], "stop")

    def test_a_stream_is_the_answer(self):
        whole = self.model().invoke(QUESTION)
        chunks = list(self.model(stream_usage=True).stream(QUESTION))
        self.assertEqual("".join(chunk.content for chunk in chunks), whole.content)
        usage = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
        self.assertEqual(usage[-1]["output_tokens"], whole.usage_metadata["output_tokens"])

    def test_a_picture_and_a_second_turn(self):
        look = [
            {"type": "image_url", "image_url": {"url": PICTURE_URL}},
            {"type": "text", "text": "Describe this image."},
        ]
        first = [SystemMessage("You are brief."), HumanMessage(content=look)]
        answer = self.model().invoke(first)
        self.assertTrue(answer.content)
        again = self.model().invoke([*first, answer, HumanMessage("Which colours are there?")])
        tokens = again.usage_metadata["input_tokens"]
        self.assertGreater(tokens, answer.usage_metadata["input_tokens"])
        self.assertGreater(again.usage_metadata["input_token_details"]["cache_read"], 30)

    def test_many_at_once(self):
        answers = self.model().batch([QUESTION] * 6)
        self.assertEqual(len({answer.content for answer in answers}), 1)

    def test_text_completions(self):
        model = OpenAI(
            base_url=self.server.v1,
            api_key=KEY,
            model=MODEL,
            temperature=0,
            max_tokens=12,
            max_retries=0,
        )
        whole = model.invoke("One, two,")
        self.assertTrue(whole)
        self.assertEqual("".join(model.stream("One, two,")), whole)

    def test_a_response(self):
        answer = self.model(use_responses_api=True).invoke(QUESTION)
        self.assertEqual(answer.text, self.model().invoke(QUESTION).content)
        chunks = self.model(use_responses_api=True).stream(QUESTION)
        self.assertEqual("".join(chunk.text for chunk in chunks), answer.text)


class Forms(LangChainCase):
    """Tools and schemas: what an answer must look like."""

    def test_a_tool_is_called_and_answered(self):
        tools = [tool("paint"), tool("sing")]
        for choice, names in (("any", ("paint", "sing")), ("sing", ("sing",))):
            bound = self.model().bind_tools(tools, tool_choice=choice)
            answer = bound.invoke(QUESTION)
            (call,) = answer.tool_calls
            self.assertIn(call["name"], names)
            self.assert_fits(call["args"])
        result = ToolMessage("Sung.", tool_call_id=call["id"])
        last = self.model().invoke([HumanMessage(QUESTION), answer, result])
        alone = self.model().invoke(QUESTION).usage_metadata["input_tokens"]
        self.assertGreater(last.usage_metadata["input_tokens"], alone)

    def test_a_call_in_a_stream(self):
        bound = self.model().bind_tools([tool("sing")], tool_choice="sing")
        chunks = list(bound.stream(QUESTION))
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        (call,) = whole.tool_calls
        self.assertEqual(call["name"], "sing")
        self.assert_fits(call["args"])

    def test_a_schema(self):
        for method in ("json_schema", "function_calling"):
            value = self.model().with_structured_output(WALL, method=method).invoke(QUESTION)
            self.assert_fits(value)


class Errors(LangChainCase):
    def refusal_of(self, error, model, question=QUESTION):
        with self.assertRaises(error) as caught:
            model.invoke(question)
        return caught.exception

    def test_their_classes(self):
        bad = self.model(extra_body={"min_p": "low"})
        self.assertEqual(self.refusal_of(openai.BadRequestError, bad).param, "min_p")
        self.refusal_of(openai.AuthenticationError, self.model(key=WRONG_KEY))
        other = self.refusal_of(openai.NotFoundError, self.model(model="another"))
        self.assertEqual(other.code, "model_not_found")

    def test_a_prompt_that_is_too_long(self):
        error = self.refusal_of(openai.BadRequestError, self.model(), TOO_LONG)
        self.assertEqual(error.code, "context_length_exceeded")

    def test_no_room(self):
        with occupied(self.narrow):
            self.refusal_of(openai.RateLimitError, self.model(self.narrow))

    def test_it_tries_again_by_itself(self):
        model = self.model(self.narrow, max_retries=5)
        self.assertTrue(self.tried_again(lambda: model.invoke(QUESTION)).content)


class Leaving(LangChainCase):
    def test_a_stream_that_is_closed(self):
        model = self.model(logit_bias=never_ending(MODEL), max_tokens=LONG_ANSWER)
        stream = model.stream("Count.")
        next(stream)
        self.assert_cancelled(stream.close)


if __name__ == "__main__":
    unittest.main()
