"""Pictures, prompts and messages that can't be used: exit code 4, and a sentence that says why."""
import json
import os
import unittest

from support import BLUE, BUNDLED, SHAPES, CliTest, png, png_header, run


class BadPictures(CliTest):
    def test_table(self):
        whole = png(100, 300, BLUE)
        table = {
            "text": (b"This is no picture.\n", ["got text", "PNG"]),
            "empty": (b"", ["an empty file"]),
            "other bytes": (bytes(range(256)), ["unknown format"]),
            "BMP": (b"BM" + bytes(60), ["BMP"]),
            "50,000 x 50,000": (png_header(50000, 50000), ["50000 x 50000", "16384"]),
            "no pixels": (png_header(0, 5), ["5 x 0", "at least 1 x 1"]),
            "side of 2^31": (png_header(2**31, 5), ["PNG"]),
            "aspect over 200": (png(1, 300, BLUE), ["300 x 1", "200 times"]),
            "aspect over 200, lying": (png(300, 1, BLUE), ["1 x 300", "200 times"]),
            "cut off": (whole[: len(whole) // 2], ["end early"]),
            "header alone": (png_header(100, 100), ["PNG"]),
        }
        for number, (name, (content, named)) in enumerate(table.items()):
            picture = self.write(f"{number}.png", content)
            for command in (("generate", "-p", "Hi", "-n", "1"), ("inspect",)):
                if command == ("inspect",) and name in ("cut off", "header alone"):
                    continue  # it reads no further than the size
                with self.subTest(name, command=command[0]):
                    result = run(*command, "-m", BUNDLED, "--image", picture)
                    self.assert_error(result, 4, str(picture), *named)

    def test_aspect_of_200_is_allowed(self):
        picture = self.write("thin.png", png(200, 1, BLUE))
        self.answer("--image", picture, "-p", "Hi", "-n", 1)

    def test_second_picture_is_named(self):
        bad = self.write("bad.png", "no picture")
        result = run("generate", "-m", BUNDLED, "--image", SHAPES, "--image", bad)
        self.assert_error(result, 4, str(bad))

    def test_no_such_file(self):
        missing = self.folder / "missing.png"
        for path in (missing, "p" * 5000):
            result = run("generate", "-m", BUNDLED, "--image", path, "-p", "Hi")
            self.assert_error(result, 4, str(path)[:100], "no such file")

    def test_folder(self):
        result = run("generate", "-m", BUNDLED, "--image", self.folder, "-p", "Hi")
        self.assert_error(result, 4, str(self.folder), "no regular file")

    def test_pipe_is_not_waited_for(self):
        pipe = self.folder / "pipe.png"
        os.mkfifo(pipe)
        result = run("generate", "-m", BUNDLED, "--image", pipe, "-p", "Hi")
        self.assert_error(result, 4, "no regular file")


class BadPrompts(CliTest):
    def generate(self, *arguments, **settings):
        return run("generate", "-m", BUNDLED, "-n", "1", *arguments, **settings)

    def test_empty(self):
        for arguments in (
            ("-p", ""),
            ("-p", " \n\t"),
            ("-p", "", "--system", ""),
            ("--raw", "-p", ""),
        ):
            with self.subTest(arguments):
                self.assert_error(self.generate(*arguments), 4, "prompt")

    def test_nothing_on_stdin(self):
        for arguments in ((), ("-p", "-"), ("--raw",)):
            with self.subTest(arguments):
                self.assert_error(self.generate(*arguments, stdin=""), 4, "prompt")

    def test_longer_than_the_context(self):
        long = "word " * 50
        tokens = self.answer("-p", long, "-n", 1)["prompt_tokens"]
        result = self.generate("-p", long, "--ctx", tokens)
        self.assert_error(result, 4, f"{tokens} tokens", f"context of {tokens} (--ctx);")
        self.assertEqual(self.generate("-p", long, "--ctx", tokens + 1).code, 0)

    def test_longer_than_the_models_context(self):
        result = self.generate("-p", "-", stdin="word " * 40000)
        self.assert_error(result, 4, "32768")

    def test_sentences_name_the_flag_that_helps(self):
        result = self.generate("-p", "word " * 100, "--ctx", 20)
        self.assert_error(result, 4, "--ctx", "shorten the text")
        self.assertNotIn("picture", result.err)
        self.assert_error(self.generate("-p", " "), 4, "-p", "--image")
        self.assert_error(self.generate("-p", "x", "--image", "http://h/a.png"), 4, "download it first")
        result = self.generate("-p", "x", "--image", SHAPES, "--image-tokens", 1)
        self.assert_error(result, 2, "--image-tokens", "got 1 as the most tokens", "--min-pixels")
        self.assertNotIn("--max-pixels", result.err)

    def test_not_utf8(self):
        for arguments in (("-p", "-"), ("-p", "-", "--raw")):
            with self.subTest(arguments):
                self.assert_error(self.generate(*arguments, stdin=b"caf\xe9"), 4, "UTF-8")

    def test_raw_placeholders_without_pictures(self):
        picture = "<|vision_start|><|image_pad|><|vision_end|>"
        self.assert_error(self.generate("--raw", "-p", picture), 4, "1 picture placeholder for 0 pictures", "--image")
        result = self.generate("--raw", "--image", SHAPES, "-p", picture * 2)
        self.assert_error(result, 4, "2 picture placeholders for 1 picture,", "--image")
        result = self.generate("--raw", "--image", SHAPES, "-p", "no placeholder")
        self.assert_error(result, 4, "0 picture placeholders for 1 picture,", "spell")
        self.assert_error(self.generate("--raw", "-p", "<|video_pad|>"), 4, "1 video placeholder for 0 videos", "--video")


class BadTemplates(CliTest):
    def generate(self, template: str):
        path = self.write("own.jinja", template)
        return run("generate", "-m", BUNDLED, "-p", "Hi", "-n", "1", "--chat-template", path)

    def test_syntax(self):
        result = self.generate("{% for m in messages %}{{ m.role")
        self.assert_error(result, 3, "own.jinja", "syntax")

    def test_missing_file(self):
        missing = self.folder / "missing.jinja"
        result = run("generate", "-m", BUNDLED, "-p", "Hi", "--chat-template", missing)
        self.assert_error(result, 3, str(missing), "no such file")

    def test_refusal(self):
        result = self.generate("{{ raise_exception('pictures only') }}")
        self.assert_error(result, 4, "template", "pictures only")

    def test_refusal_stays_one_line(self):
        result = self.generate(r"{{ raise_exception('two\nlines \u001b[31m red') }}")
        self.assert_error(result, 4, "two lines")
        self.assertNotIn("\x1b", result.err)

    def test_no_end(self):
        for template in (
            "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
            "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
            "{% for i in range(90000) %}{{ 'x' * 100000 }}{% endfor %}",
        ):
            with self.subTest(template):
                self.assert_error(self.generate(template), 4, "template")

    def test_pictures_dropped(self):
        path = self.write("own.jinja", "{{ messages[0].role }}")
        result = run("generate", "-m", BUNDLED, "--image", SHAPES, "--chat-template", path)
        self.assert_error(result, 4, "0 picture placeholders for 1 picture,")


def user(*parts) -> list:
    return [{"role": "user", "content": list(parts)}]


def picture(url) -> dict:
    return {"type": "image_url", "image_url": {"url": url}}


MESSAGES = {
    "bad JSON": ('[{"role": "user", ', ["invalid JSON"]),
    "not UTF-8": (b'[{"role": "user", "content": "caf\xe9"}]', ["UTF-8"]),
    "key twice": ('[{"role": "user", "role": "user", "content": "Hi"}]', ['"role" twice']),
    "deep": ("[" * 100_000, ["deep"]),
    "text": ('"Hi"', ["list of at least one message"]),
    "no messages": ("[]", ["list of at least one message"]),
    "object without messages": ({"prompt": "Hi"}, ["list of at least one message"]),
    "message that is text": (["Hi"], ["messages[0]", "role and content"]),
    "wrong role": ([{"role": "robot", "content": "Hi"}], ["messages[0]", '"robot"', "assistant"]),
    "no role": ([{"content": "Hi"}], ["messages[0]", "role"]),
    "no content": ([{"role": "user"}], ["messages[0].content"]),
    "number as content": ([{"role": "user", "content": 3}], ["messages[0].content", "3"]),
    "second message": (
        [{"role": "user", "content": "Hi"}, {"role": "user", "content": None}],
        ["messages[1].content"],
    ),
    "nothing said": (user(), ["neither text nor a picture"]),
    "unknown part": (user({"type": "audio"}), ["messages[0].content[0]", "audio"]),
    "part without type": (user({"text": "Hi"}), ["messages[0].content[0]"]),
    "text that is none": (user({"type": "text", "text": 3}), ["messages[0].content[0]"]),
    "picture without URL": (user({"type": "image_url"}), ["messages[0].content[0]", "url"]),
    "http": (user(picture("http://host/a.png")), ["http://host/a.png", "file://", "data:", "download it first"]),
    "HTTPS": (user(picture("HTTPS://host/a.png")), ["HTTPS://host/a.png", "file://"]),
    "missing picture": (user(picture("missing.png")), ["missing.png", "no such file"]),
    "bad base64": (user(picture("data:image/png;base64,!!!!")), ["data:", "base64"]),
    "data without base64": (user(picture("data:image/png,abc")), ["data:", "base64"]),
    "data that is no picture": (user(picture("data:image/png;base64,SGVsbG8=")), ["data:", "text"]),
    "video_url": (
        user({"type": "video_url", "video_url": {"url": "a.mp4"}}),
        ["a.mp4", "no such file"],
    ),
    "video of frames": (user({"type": "video", "video": ["a.png"], "fps": 2}), ["a.png", "no such file"]),
}


class BadMessages(CliTest):
    def test_table(self):
        for number, (name, (messages, named)) in enumerate(MESSAGES.items()):
            with self.subTest(name):
                content = messages if isinstance(messages, (str, bytes)) else json.dumps(messages)
                file = self.write(f"{number}.json", content)
                result = run("generate", "-m", BUNDLED, "-n", "1", "--messages", file)
                self.assert_error(result, 4, *named)

    def test_file_is_named(self):
        file = self.write("conversation.json", "{")
        self.assert_error(run("generate", "-m", BUNDLED, "--messages", file), 4, str(file))

    def test_no_such_file(self):
        missing = self.folder / "missing.json"
        result = run("generate", "-m", BUNDLED, "--messages", missing)
        self.assert_error(result, 4, str(missing), "no such file")

    def test_stdin_is_named(self):
        self.assert_error(run("generate", "-m", BUNDLED, "--messages", "-", stdin="{"), 4, "stdin")


if __name__ == "__main__":
    unittest.main()
