"""Conversations in OpenAI's form, from a file or stdin."""
import base64
import json
import os
import unittest

from support import BLUE, COLOUR_QUESTION, GREEN, CliTest, png


def text(content: str) -> dict:
    return {"type": "text", "text": content}


def picture(url) -> dict:
    return {"type": "image_url", "image_url": url}


def user(*parts) -> dict:
    return {"role": "user", "content": list(parts)}


QUESTION = text(COLOUR_QUESTION)


class MessagesCase(CliTest):
    def setUp(self):
        super().setUp()
        self.blue = self.write("pictures/blue.png", png(168, 168, BLUE))
        self.green = self.write("pictures/green.png", png(168, 168, GREEN))

    def ask(self, messages, *flags, **settings) -> dict:
        file = self.write("conversation.json", json.dumps(messages))
        return self.answer("--messages", file, *flags, **settings)

    def assert_says(self, expected: str, url, source: str):
        answer = self.ask([user(picture(url), QUESTION)])
        self.assertEqual(answer["text"], expected)
        self.assertEqual([entry["source"] for entry in answer["media"]], [source])

    def assert_same(self, answer: dict, other: dict):
        for key in ("prompt_tokens", "ids", "media"):
            self.assertEqual(answer[key], other[key], key)


class Sources(MessagesCase):
    def test_path_from_the_file(self):
        for url in ("pictures/blue.png", {"url": "pictures/blue.png"}):
            self.assert_says("Blue", url, "pictures/blue.png")

    def test_path_from_the_file_not_the_working_folder(self):
        elsewhere = self.write("elsewhere/pictures/blue.png", png(168, 168, GREEN)).parents[1]
        messages = [user(picture("pictures/blue.png"), QUESTION)]
        self.assertEqual(self.ask(messages, cwd=elsewhere)["text"], "Blue")

    def test_file_given_by_a_relative_path(self):
        for file, url, expected in (
            ("talk/conversation.json", "../pictures/blue.png", "Blue"),
            ("conversation.json", "pictures/green.png", "Green"),
        ):
            self.write(file, json.dumps([user(picture(url), QUESTION)]))
            answer = self.answer("--messages", file, cwd=self.folder)
            self.assertEqual(answer["text"], expected)

    def test_absolute_path(self):
        self.assert_says("Green", str(self.green), str(self.green))

    def test_file_url(self):
        self.assert_says("Green", f"file://{self.green}", f"file://{self.green}")

    def test_data_url(self):
        coded = base64.b64encode(self.green.read_bytes()).decode()
        self.assert_says("Green", f"data:image/png;base64,{coded}", "data:")

    def test_stdin(self):
        """Paths are then relative to the working folder."""
        messages = json.dumps([user(picture("pictures/blue.png"), QUESTION)])
        answer = self.answer("--messages", "-", stdin=messages, cwd=self.folder)
        self.assertEqual(answer["text"], "Blue")
        self.assertEqual(answer["media"][0]["source"], "pictures/blue.png")

    def test_text_is_never_searched_for_pictures(self):
        answer = self.ask([user(text(f"![]({self.blue}) file://{self.blue}"))], "-n", 1)
        self.assertEqual(answer["media"], [])


class Forms(MessagesCase):
    def test_object_with_messages(self):
        messages = [user(picture("pictures/blue.png"), QUESTION)]
        listed = self.ask(messages)
        for extra in ({}, {"model": "any", "tools": None}):
            self.assert_same(self.ask({"messages": messages, **extra}), listed)

    def test_text_as_string_or_part(self):
        string = self.ask([{"role": "user", "content": "hello"}], "-n", 4)
        for kind in ("text", "input_text"):
            self.assert_same(self.ask([user({"type": kind, "text": "hello"})], "-n", 4), string)
        self.assert_same(self.answer("-p", "hello", "-n", 4), string)

    def test_input_image(self):
        part = {"type": "input_image", "image_url": "pictures/green.png"}
        self.assertEqual(self.ask([user(part, QUESTION)])["text"], "Green")

    def test_developer_is_system(self):
        answers = [
            self.ask([{"role": role, "content": "Be brief."}, user(text("hello"))], "-n", 6)
            for role in ("system", "developer", "user")
        ]
        self.assert_same(answers[0], answers[1])
        self.assertNotEqual(answers[0]["prompt_tokens"], answers[2]["prompt_tokens"])

    def test_tools_reach_the_template(self):
        flags = "--chat-template", self.write("own.jinja", "x{{ tools[0].function.name if tools }}")
        tools = [{"type": "function", "function": {"name": "look"}}]
        messages = [user(text("hello"))]
        without = self.ask(messages, *flags, "-n", 1)
        with_tools = self.ask({"messages": messages, "tools": tools}, *flags, "-n", 1)
        self.assertGreater(with_tools["prompt_tokens"], without["prompt_tokens"])


class Order(MessagesCase):
    """Texts and pictures reach the model in the order in which they stand."""

    BLUE, GREEN = picture("pictures/blue.png"), picture("pictures/green.png")

    def first_tokens(self, *parts) -> list[tuple[str, int]]:
        media = self.ask([user(*parts)], "-n", 1)["media"]
        return [(os.path.basename(entry["source"]), entry["first_token"]) for entry in media]

    def test_text_before_and_between(self):
        [(_, alone)] = self.first_tokens(self.BLUE)
        [(_, later)] = self.first_tokens(text("Look at this:"), self.BLUE)
        self.assertGreater(later, alone)
        self.assertEqual(self.first_tokens(self.BLUE, text("Look at that.")), [("blue.png", alone)])
        together = dict(self.first_tokens(self.BLUE, self.GREEN))
        apart = dict(self.first_tokens(self.BLUE, text(" and then "), self.GREEN))
        self.assertEqual(together["blue.png"], apart["blue.png"])
        self.assertGreater(apart["green.png"], together["green.png"])

    def test_pictures_are_not_swapped(self):
        for parts, expected in (
            ((self.BLUE, self.GREEN), ["blue.png", "green.png"]),
            ((self.GREEN, self.BLUE), ["green.png", "blue.png"]),
        ):
            found = self.first_tokens(*parts)
            self.assertEqual([name for name, _ in found], expected)
            self.assertLess(found[0][1], found[1][1])

    def test_the_last_turns_picture_is_answered(self):
        turns = [user(self.BLUE, QUESTION), {"role": "assistant", "content": "Blue"}]
        answer = self.ask([*turns, user(self.GREEN, QUESTION)])
        self.assertEqual(answer["text"], "Green")
        self.assertEqual(len(answer["media"]), 2)
        swapped = [user(self.GREEN, QUESTION), {"role": "assistant", "content": "Green"}]
        self.assertEqual(self.ask([*swapped, user(self.BLUE, QUESTION)])["text"], "Blue")

    def test_the_same_picture_twice(self):
        media = self.ask([user(self.BLUE, self.BLUE, QUESTION)], "-n", 1)["media"]
        self.assertEqual([entry["tokens"] for entry in media], [36, 36])

    def test_special_tokens_stay_text(self):
        plain = self.ask([user(self.BLUE, text("ab"))], "-n", 1)
        typed = self.ask([user(self.BLUE, text("a<|im_end|>b<|image_pad|>"))], "-n", 1)
        self.assertEqual(len(typed["media"]), 1)
        self.assertGreater(typed["prompt_tokens"], plain["prompt_tokens"] + 6)


if __name__ == "__main__":
    unittest.main()
