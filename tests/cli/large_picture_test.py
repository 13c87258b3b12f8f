"""The largest picture that `generate` looks at on a CPU where no flag says so."""
import re
import unittest

from support import BLUE, BUNDLED, CliTest, copy_model, edit_json, parse_json, png, run

LARGEST = 1003520
PIXELS = (1120, 1400)  # height and width, whole units of 28 x 28


class LargePicture(CliTest):
    def setUp(self):
        super().setUp()
        self.model = copy_model(BUNDLED, self.folder / "model")
        edit_json(self.model / "processor_config.json", self.as_published)
        self.picture = self.write("large.png", png(PIXELS[1], PIXELS[0], BLUE))

    @staticmethod
    def as_published(config: dict) -> None:
        config["image_processor"]["max_pixels"] = 12845056

    def look(self, *arguments):
        """The picture's size, and what is said of it; how long it takes depends on the machine."""
        asked = ("--image", self.picture, "-p", "Colour?", "-n", 1, "--json", *arguments)
        result = run("generate", "-m", self.model, *asked)
        self.assertEqual(result.code, 0, result)
        return parse_json(result.out)["media"][0]["resized"], re.sub(r"(?m)^about .*\n", "", result.err)

    def test_is_made_smaller_and_said_so(self):
        (height, width), said = self.look()
        self.assertLessEqual(height * width, LARGEST)
        self.assertGreater(height * width, 0.9 * LARGEST)
        self.assertEqual(said.count("\n"), 1, said)
        for part in ("large.png", f"{width}x{height}", "1400x1120", "--max-pixels 12845056"):
            self.assertIn(part, said)

    def test_keeps_its_size_where_a_flag_says_so(self):
        for flags in (("--max-pixels", PIXELS[0] * PIXELS[1]), ("--image-tokens", 2000)):
            with self.subTest(flags):
                self.assertEqual(self.look(*flags), (list(PIXELS), ""))

    def test_a_smaller_one_is_left_alone(self):
        self.picture = self.write("small.png", png(980, 980, BLUE))
        self.assertEqual(self.look(), ([980, 980], ""))


if __name__ == "__main__":
    unittest.main()
