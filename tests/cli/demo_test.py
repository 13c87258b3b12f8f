"""What `make demo` shows, and that the answer comes from the picture."""
import json
import os
import shutil
import unittest

from support import (
    BINARY,
    BLUE,
    BUNDLED,
    BUNDLED_LINE,
    COLOUR_QUESTION,
    GOLDEN,
    GREEN,
    MODELS,
    SHAPES,
    SOURCE,
    CliTest,
    png,
    run,
)

QUESTION = "Describe this image."


class Demo(CliTest):
    def setUp(self):
        super().setUp()
        reference = GOLDEN / BUNDLED / "describe-odd.json"
        self.expected = json.loads(reference.read_text())["text"]

    def test_answer_of_the_reference(self):
        result = run("generate", "--image", "examples/shapes.png", "-p", QUESTION, cwd=SOURCE)
        self.assertEqual((result.code, result.err), (0, BUNDLED_LINE))
        self.assertEqual(result.out, self.expected)

    def test_picture_is_the_references(self):
        self.assertEqual(SHAPES.read_bytes(), (GOLDEN / "media/odd.png").read_bytes())

    def test_question_may_be_left_out(self):
        self.assertEqual(self.text("--image", SHAPES), self.expected)
        # What is piped in is no question where there is a picture.
        self.assertEqual(self.text("--image", SHAPES, stdin="Hi"), self.expected)

    def test_json_says_the_same(self):
        result = run("generate", "--image", SHAPES, "-p", QUESTION, "--json")
        self.assertEqual((result.code, result.err), (0, BUNDLED_LINE))
        self.assertEqual(json.loads(result.out)["text"], self.expected)

    def test_inspect_uses_it_too(self):
        result = run("inspect", "--image", SHAPES)
        self.assertEqual((result.code, result.err), (0, BUNDLED_LINE))


class OtherPictures(CliTest):
    def test_pictures_drawn_here(self):
        for colour, name in ((BLUE, "Blue"), (GREEN, "Green")):
            with self.subTest(name):
                picture = self.write(f"{name}.png", png(168, 168, colour))
                self.assertEqual(self.text("--image", picture, "-p", COLOUR_QUESTION), name)

    def test_another_description(self):
        descriptions = {
            self.text("--image", picture, "-p", QUESTION)
            for picture in (
                SHAPES,
                self.write("blue.png", png(333, 201, BLUE)),
                self.write("green.png", png(333, 201, GREEN)),
            )
        }
        self.assertEqual(len(descriptions), 3, descriptions)

    def test_one_pixel_is_a_picture(self):
        pixel = self.write("pixel.png", png(1, 1, BLUE))
        answer = self.answer("--image", pixel, "-p", COLOUR_QUESTION)
        self.assertEqual(answer["text"], "Blue")
        self.assertEqual(answer["media"][0]["size"], [1, 1])
        self.assertEqual(answer["media"][0]["resized"], [112, 112])


class BesideTheProgram(CliTest):
    """Where WHIMBREL_MODELS isn't set, models lie where a build or an installation has them."""

    def test_layouts(self):
        picture = self.write("blue.png", png(168, 168, BLUE))
        for number, (program, models) in enumerate(
            (("build/whimbrel", "models"), ("bin/whimbrel", "share/whimbrel/models"))
        ):
            with self.subTest(program):
                root = self.folder / str(number)
                (root / program).parent.mkdir(parents=True)
                shutil.copy(BINARY, root / program)
                (root / models).parent.mkdir(parents=True, exist_ok=True)
                os.symlink(MODELS, root / models)
                result = run(
                    *("generate", "--image", picture, "-p", COLOUR_QUESTION),
                    program=root / program,
                    env={"WHIMBREL_MODELS": ""},
                )
                self.assertEqual((result.code, result.out, result.err), (0, "Blue", BUNDLED_LINE))

    def test_link_to_the_program(self):
        """It is found from a link too: what counts is where the program itself lies."""
        (self.folder / "build").mkdir()
        shutil.copy(BINARY, self.folder / "build/whimbrel")
        os.symlink(MODELS, self.folder / "models")
        (self.folder / "elsewhere").mkdir()
        link = self.folder / "elsewhere/w"
        os.symlink("../build/whimbrel", link)
        result = run("inspect", program=link, env={"WHIMBREL_MODELS": ""})
        self.assertEqual((result.code, result.err), (0, BUNDLED_LINE))


if __name__ == "__main__":
    unittest.main()
