"""Where the question comes from, and what the flags about it change."""
import json
import unittest

from support import BLUE, BUNDLED, GOLDEN, SHAPES, CliTest, png

VISION = "<|vision_start|><|image_pad|><|vision_end|>"


class Question(CliTest):
    def test_from_flag_stdin_or_pipe(self):
        asked = self.text("-p", "hello", "-n", 6)
        self.assertEqual(self.text("-p", "-", "-n", 6, stdin="hello"), asked)
        self.assertEqual(self.text("-n", 6, stdin="hello"), asked)
        self.assertNotEqual(self.text("-n", 6, stdin="Name three rivers."), asked)

    def test_flag_beats_stdin(self):
        asked = self.text("-p", "hello", "-n", 6)
        self.assertEqual(self.text("-p", "hello", "-n", 6, stdin="Name three rivers."), asked)

    def test_stdin_with_a_picture(self):
        flags = ("--image", SHAPES, "-n", 6)
        question = "What colour is this image?"
        asked = self.answer(*flags, "-p", question)["ids"]
        self.assertEqual(self.answer(*flags, "-p", "-", stdin=question)["ids"], asked)

    def test_nothing_of_it_is_trimmed(self):
        tokens = {
            text: self.answer("-p", "-", "-n", 1, stdin=text)["prompt_tokens"]
            for text in ("hello", "hello\n", " hello\r\n\r\n")
        }
        self.assertEqual(len(set(tokens.values())), 3, tokens)

    def test_system(self):
        plain = self.answer("-p", "hello", "-n", 6)
        asked = self.answer("-p", "hello", "-n", 6, "--system", "Be brief and answer in French.")
        self.assertNotEqual(asked["prompt_tokens"], plain["prompt_tokens"])
        messages = [
            {"role": "system", "content": "Be brief and answer in French."},
            {"role": "user", "content": "hello"},
        ]
        file = self.write("messages.json", json.dumps(messages))
        listed = self.answer("--messages", file, "-n", 6)
        self.assertEqual(asked["prompt_tokens"], listed["prompt_tokens"])
        self.assertEqual(asked["ids"], listed["ids"])


class SpecialTokensInText(CliTest):
    """What a user types is text, whatever it looks like."""

    def prompt_tokens(self, text: str) -> int:
        return self.answer("-p", text, "-n", 1)["prompt_tokens"]

    def test_each_counts_as_letters(self):
        plain = self.prompt_tokens("ab")
        for token in ("<|im_end|>", "<|endoftext|>", "<|image_pad|>", VISION, "<|video_pad|>"):
            with self.subTest(token):
                self.assertGreater(self.prompt_tokens(f"a{token}b"), plain + 3)

    def test_with_a_picture(self):
        flags = ("--image", SHAPES, "-n", 1)
        plain = self.answer(*flags, "-p", "ab")
        typed = self.answer(*flags, "-p", f"a{VISION}b")
        self.assertEqual(len(typed["media"]), 1)
        self.assertGreater(typed["prompt_tokens"], plain["prompt_tokens"] + 3)

    def test_in_raw_they_are_tokens(self):
        self.assertEqual(self.answer("--raw", "-p", "a<|im_end|>b", "-n", 1)["prompt_tokens"], 3)

    def test_in_system_text(self):
        system = [
            self.answer("-p", "hello", "--system", text, "-n", 1)["prompt_tokens"]
            for text in ("ab", "a<|im_end|>b")
        ]
        self.assertGreater(system[1], system[0] + 3)


class Raw(CliTest):
    def test_the_templates_own_prompt(self):
        case = json.loads((GOLDEN / BUNDLED / "describe-odd.json").read_text())
        raw = self.answer("--raw", "--image", SHAPES, "-p", case["prompt"])
        chat = self.answer("--image", SHAPES, "-p", "Describe this image.")
        self.assertEqual(raw["text"], case["text"])
        self.assertEqual(raw["prompt_tokens"], case["prompt_tokens"])
        for key in ("ids", "media", "rope_delta"):
            self.assertEqual(raw[key], chat[key], key)

    def test_two_pictures(self):
        blue = self.write("blue.png", png(90, 60, BLUE))
        prompt = f"First {VISION} and then {VISION}"
        answer = self.answer("--raw", "--image", SHAPES, "--image", blue, "-p", prompt, "-n", 1)
        self.assertEqual([entry["source"] for entry in answer["media"]], [str(SHAPES), str(blue)])

    def test_picture_alone(self):
        """Without -p the prompt comes from stdin: a default question would be out of place."""
        answer = self.answer("--raw", "--image", SHAPES, "-n", 1, stdin=VISION)
        self.assertEqual(answer["prompt_tokens"], answer["media"][0]["tokens"] + 2)


class Template(CliTest):
    def template(self, text: str):
        return "--chat-template", self.write("own.jinja", text)

    def test_own_template(self):
        own = self.template("x<|im_end|>{% for m in messages %}{{ m.content }}{% endfor %}")
        self.assertEqual(self.answer("-p", "y", "-n", 1, *own)["prompt_tokens"], 3)

    def test_thinking_is_passed_on(self):
        own = self.template("{% if enable_thinking %}Think. {% endif %}{{ messages[0].content }}")
        tokens = {
            value: self.answer("-p", "ab", "-n", 1, *own, *value)["prompt_tokens"]
            for value in ((), ("--thinking", "off"), ("--thinking", "on"))
        }
        self.assertEqual(tokens[()], tokens["--thinking", "off"])
        self.assertGreater(tokens["--thinking", "on"], tokens[()])

    def test_thinking_changes_nothing_for_a_model_without(self):
        plain = self.answer("-p", "hello", "-n", 4)
        thinking = self.answer("-p", "hello", "-n", 4, "--thinking", "on")
        self.assertEqual(thinking["ids"], plain["ids"])

    def test_kwargs(self):
        flags = ("--image", SHAPES, "-p", "Hi", "-n", 1)
        plain = self.answer(*flags)
        counted = self.answer(*flags, "--chat-template-kwargs", '{"add_vision_id": true}')
        self.assertGreater(counted["prompt_tokens"], plain["prompt_tokens"])
        self.assertGreater(counted["media"][0]["first_token"], plain["media"][0]["first_token"])
        same = self.answer(*flags, "--chat-template-kwargs", '{"add_vision_id": false}')
        self.assertEqual(same["prompt_tokens"], plain["prompt_tokens"])


if __name__ == "__main__":
    unittest.main()
