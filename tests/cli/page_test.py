"""The page at /, in a headless Chromium: asks with pictures, streams, stops, folds thinking, draws
boxes; by keyboard alone, in the dark; makes no HTML of what the model says, and calls nobody else."""
import json
import unittest

from chromium import SHIFT, Page, find_chromium
from serve_test import Server, never_ending
from support import BUNDLED, SHAPES, CliTest

ANSWERED = "document.querySelectorAll('article.assistant:not([aria-busy])').length === {}"
LAST = "[...document.querySelectorAll('article.assistant')].at(-1)"


def chunk(**fields) -> str:
    return "data: " + json.dumps({"choices": [], **fields}) + "\n\n"


def delta(**fields) -> str:
    return chunk(choices=[{"index": 0, "delta": fields}])


class PageCase(CliTest):
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        if find_chromium() is None:
            raise unittest.SkipTest("no Chromium here; type tools/bootstrap test")
        cls.server = Server(*cls.FLAGS)
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        super().setUp()
        self.page = Page(find_chromium(), self.folder / "profile")
        self.addCleanup(self.page.close)
        self.page.open(self.server.url + "/")
        self.expected_complaints = 0

    def tearDown(self):
        self.page.settle(0.1)
        for url in self.page.urls:
            self.assertTrue(url.startswith((self.server.url + "/", "data:")), url)
        self.assertEqual(len(self.page.complaints), self.expected_complaints, self.page.complaints)

    def ask(self, text: str):
        # The tiny model may ramble.
        self.page.value("document.getElementById('max-tokens').value ||= 60")
        self.page.value("document.getElementById('text').focus()")
        self.page.type(text)
        self.page.press("Enter")

    def answer(self, number: int = 1) -> str:
        self.page.wait_for(ANSWERED.format(number))
        return self.page.value(f"{LAST}.querySelector('.text').textContent")

    def answered_with(self, *frames: str):
        """The model's next answers, made up."""

        def answer(request):
            self.page.answer(request, "text/event-stream", "".join(frames) + "data: [DONE]\n\n")

        self.page.intercept("*/v1/chat/completions", answer)


class Chat(PageCase):
    def test_it_names_the_model(self):
        self.page.wait_for(f"document.getElementById('model').textContent === '{BUNDLED}'")

    def test_a_picture_and_several_turns(self):
        self.page.value("document.getElementById('temperature').value = 0")
        self.page.choose_file("#files", SHAPES)
        self.page.wait_for("document.querySelectorAll('#pictures img').length === 1")
        self.ask("Describe this image.")
        self.assertEqual(self.answer(), self.text("--image", SHAPES, "-p", "Describe this image.", "--temperature", "0").strip())
        self.assertEqual(self.page.value("document.querySelectorAll('#pictures img').length"), 0)
        figures = self.page.value(f"{LAST}.querySelector('.timings').textContent")
        self.assertRegex(figures, r"tokens/s · prompt \d+ tokens in .* \(pictures .*\), \d+ from cache")
        self.ask("What is 53 minus 44?")
        self.assertTrue(self.answer(2))
        self.assertEqual(self.page.value("messages.map(({role}) => role).join()"), "user,assistant,user,assistant")
        self.page.value("document.getElementById('clear').click()")
        self.assertEqual(self.page.value("document.querySelectorAll('article').length + messages.length"), 0)

    def test_pictures_that_are_pasted_and_dropped(self):
        for kind, event in (("paste", "ClipboardEvent"), ("drop", "DragEvent")):
            member = "clipboardData" if kind == "paste" else "dataTransfer"
            self.page.value(
                f"""{{
                  const data = new DataTransfer();
                  data.items.add(new File([new Uint8Array([1])], "a.png", {{type: "image/png"}}));
                  document.getElementById("text").dispatchEvent(
                    new {event}("{kind}", {{{member}: data, bubbles: true, cancelable: true}}));
                }}"""
            )
        self.page.wait_for("document.querySelectorAll('#pictures img').length === 2")
        self.page.value("document.querySelector('#pictures button').click()")
        self.assertEqual(self.page.value("pictures.length"), 1)

    def test_a_file_that_is_no_picture(self):
        self.page.choose_file("#files", self.write("notes.txt", "text"))
        self.page.wait_for("document.getElementById('status').textContent.includes('notes.txt')")
        self.assertEqual(self.page.value("pictures.length"), 0)

    def test_what_the_server_refuses_is_said(self):
        self.page.choose_file("#files", self.write("broken.png", b"no picture"))
        self.page.wait_for("pictures.length === 1")
        self.ask("What is this?")
        self.answer()
        self.assertIn("picture", self.page.value(f"{LAST}.querySelector('.error').textContent"))
        self.expected_complaints = 1  # Chromium notes the status 400
        self.assertEqual(self.page.value("messages.length"), 0)

    def test_a_stream_is_stopped(self):
        def endless(request):
            asked = json.loads(request["request"]["postData"])
            self.page.go_on(request, {**asked, "logit_bias": never_ending(), "max_tokens": 1900})

        before = self.server.call("GET", "/slots")[1]["requests_cancelled"]
        self.page.intercept("*/v1/chat/completions", endless)
        self.ask("Count.")
        self.page.wait_for(f"{LAST}?.querySelector('.text').textContent.length > 20")
        self.assertFalse(self.page.value("document.getElementById('stop').hidden"))
        self.page.press("Escape")
        text = self.answer()
        self.assertIn("Stopped.", self.page.value(f"{LAST}.textContent"))
        self.assertTrue(self.page.value("document.getElementById('stop').hidden"))
        self.assertEqual(self.page.value("messages.at(-1).content"), text)
        while self.server.call("GET", "/slots")[1]["running"]:
            self.page.settle(0.01)
        self.assertEqual(self.server.call("GET", "/slots")[1]["requests_cancelled"] - before, 1)


class Answers(PageCase):
    def test_a_hostile_answer_is_text(self):
        hostile = "<img src=x onerror=alert(1)><script>alert(2)</script><a href='javascript:alert(3)'>x</a> &lt;b&gt;"
        box = json.dumps([{"bbox_2d": [1, 2, 3, 4], "label": hostile}])
        self.answered_with(delta(reasoning_content=hostile), delta(content=hostile + box))
        self.ask("Hello.")
        self.assertEqual(self.answer(), hostile + box)
        elements = self.page.value(f"{LAST}.querySelectorAll('img, script, a, b').length")
        self.assertEqual(elements, 0)
        self.assertEqual(self.page.value(f"{LAST}.querySelector('.thinking p').textContent"), hostile)

    def test_the_browser_itself_makes_no_html_of_text(self):
        refused = self.page.value(
            "(() => { try { document.body.innerHTML = 'x'; return false; } catch { return true; } })()"
        )
        self.assertTrue(refused)
        self.expected_complaints = len(self.page.complaints)
        self.page.settle(0.1)
        self.expected_complaints = len(self.page.complaints)

    def test_thinking_is_folded(self):
        self.answered_with(delta(reasoning_content="Let me "), delta(reasoning_content="see."), delta(content="Nine."))
        self.ask("What is 53 minus 44?")
        self.assertEqual(self.answer(), "Nine.")
        self.assertFalse(self.page.value(f"{LAST}.querySelector('details').open"))
        self.assertEqual(self.page.value(f"{LAST}.querySelector('.thinking p').textContent"), "Let me see.")

    def test_an_answer_that_breaks_off_is_told(self):
        self.answered_with(delta(content="Well"), 'data: {"error":{"message":"the server stops"}}\n\n')
        self.ask("Hello.")
        self.assertEqual(self.answer(), "Well")
        self.assertEqual(self.page.value(f"{LAST}.querySelector('.error').textContent"), "the server stops")

    def answered_with_boxes(self, *pixels: list[int] | None, pictures: int = 1):
        """An answer with these boxes and points over pictures of 400 x 300."""
        boxes = [{"kind": "box" if place is None or len(place) == 4 else "point", "label": "", "pixels": place} for place in pixels]
        boxes[0]["label"] = "<b>bird</b>"
        medium = {"kind": "image", "size": [400, 300], "resized": [280, 210]}
        self.answered_with(delta(content="There."), chunk(whimbrel={"media": [medium] * pictures, "boxes": boxes}))
        for number in range(pictures):
            self.page.choose_file("#files", SHAPES)
            self.page.wait_for(f"pictures.length === {number + 1}")
        self.ask("Where?")
        self.answer()

    def test_boxes_and_points_are_drawn(self):
        self.answered_with_boxes([200, 150, 40, 30], [40, 60])
        self.assertEqual(self.page.value(f"{LAST}.querySelector('svg').getAttribute('viewBox')"), "0 0 400 300")
        sides = f"['x', 'y', 'width', 'height'].map((n) => +{LAST}.querySelector('rect').getAttribute(n))"
        self.assertEqual(self.page.value(sides), [40, 30, 160, 120])
        self.assertEqual(self.page.value(f"{LAST}.querySelector('path').getAttribute('d')"), "M 40 60 h 0")
        words = self.page.value(f"{LAST}.querySelector('figcaption').textContent")
        self.assertIn("<b>bird</b>: 200, 150, 40, 30", words)
        self.assertEqual(self.page.value(f"{LAST}.querySelectorAll('b').length"), 0)
        self.assertIn("point: 40, 60", words)

    def test_boxes_that_lie_on_no_certain_picture_are_counted(self):
        self.answered_with_boxes(None, None, pictures=2)
        self.assertEqual(self.page.value(f"{LAST}.querySelectorAll('svg').length"), 0)
        self.assertIn("2 boxes, not drawn: the conversation has several", self.page.value(f"{LAST}.textContent"))

    def test_the_server_finds_boxes(self):
        """A grammar makes the model write one, in pixels of the resized picture."""
        box = {"bbox_2d": [28, 21, 140, 105], "label": "bird"}
        schema = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"const": box}}}

        def with_grammar(request):
            self.page.go_on(request, {**json.loads(request["request"]["postData"]), "response_format": schema})

        self.page.intercept("*/v1/chat/completions", with_grammar)
        self.page.value("document.getElementById('temperature').value = 0")
        self.page.choose_file("#files", SHAPES)
        self.page.wait_for("pictures.length === 1")
        self.ask("Where?")
        self.assertEqual(json.loads(self.answer()), box)
        self.assertRegex(self.page.value(f"{LAST}.querySelector('figcaption').textContent"), r"bird: \d+, \d+, \d+, \d+")


class Keyboard(PageCase):
    def focused(self) -> str:
        return self.page.value("document.activeElement.id || document.activeElement.tagName")

    def test_everything_is_reached(self):
        self.assertEqual(self.focused(), "text")
        reached = set()
        for _ in range(12):
            self.page.press("Tab")
            reached.add(self.focused())
        self.assertLessEqual({"clear", "SUMMARY", "log", "text", "files", "send"}, reached)

    def test_a_chat_without_a_mouse(self):
        self.page.type("What is 53")
        self.page.press("Enter", SHIFT)
        self.page.type("minus 44?")
        self.page.value("document.getElementById('max-tokens').value = 20")
        self.page.press("Enter")
        self.assertTrue(self.answer())
        self.assertEqual(self.page.value("messages[0].content"), "What is 53\nminus 44?")
        self.assertEqual(self.focused(), "text")


class Looks(PageCase):
    def colours(self) -> list[str]:
        return self.page.value(
            "['body', '#send', '#settings'].map((s) => { const c = getComputedStyle(document.querySelector(s));"
            " return c.backgroundColor + c.color; })"
        )

    def brightness(self, property_name: str) -> int:
        return self.page.value(
            f"getComputedStyle(document.body).{property_name}.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
        )

    def test_light_and_dark(self):
        self.page.prefer("light")
        light = self.colours()
        self.assertGreater(self.brightness("backgroundColor"), self.brightness("color") + 400)
        self.page.prefer("dark")
        self.assertNotEqual(self.colours(), light)
        self.assertGreater(self.brightness("color"), self.brightness("backgroundColor") + 400)


class Keys(PageCase):
    FLAGS = ("--api-key", "secret")

    def test_the_key_is_asked_for_and_kept_nowhere(self):
        self.page.wait_for("document.activeElement.id === 'key'")
        self.expected_complaints = 1  # Chromium notes the status 401
        self.page.type("secret")
        self.page.press("Tab")
        self.page.wait_for(f"document.getElementById('model').textContent === '{BUNDLED}'")
        self.ask("Hello.")
        self.assertTrue(self.answer())
        kept = self.page.value("localStorage.length + sessionStorage.length + document.cookie.length")
        self.assertEqual(kept, 0)


if __name__ == "__main__":
    unittest.main()
