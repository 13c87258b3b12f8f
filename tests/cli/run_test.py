"""whimbrel run: a chat at a terminal, and one question through a pipe."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import termios
import unittest

from support import (
    BINARY, BLUE, BUNDLED, COLOUR_QUESTION, GREEN, RUN_SECONDS, CliTest, copy_model, edit_json,
    environment, png, run,
)

PROMPT = ">>> "
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
STATS = re.compile(
    r"prompt (\d+) tokens, (\d+) of them cached; answer (\d+) tokens; context (\d+) of (\d+)\n"
    r"media \d+ ms, tower (not run|\d+ ms), prefill \d+ ms( \([\d.]+ tokens/s\))?, "
    r"decode \d+ ms( \([\d.]+ tokens/s\))?\n"
)


class Chat:
    """The program with a terminal of its own, which Ctrl-C reaches as it does a person's."""

    def __init__(self, *arguments, home: pathlib.Path, model=BUNDLED, stdout=None, **env):
        self.typing, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
        self.settings = termios.tcgetattr(terminal)
        personal = {"HOME": home, "XDG_STATE_HOME": home / "state", "TERM": "dumb",
                    "WHIMBREL_NO_HISTORY": "", **env}  # fmt: skip
        self.process = subprocess.Popen(
            [BINARY, "run", "-m", str(model), "--no-progress", "--temperature", "0",
             *map(str, arguments)],
            stdin=terminal,
            stdout=stdout or terminal,
            stderr=terminal,
            env=environment(**{name: str(value) for name, value in personal.items()}),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(terminal)
        self.seen = ""

    def read_more(self) -> bool:
        ready, _, _ = select.select([self.typing], [], [], RUN_SECONDS)
        if not ready:
            self.process.kill()
            raise AssertionError(f"nothing came for {RUN_SECONDS} s after {self.seen!r}")
        try:
            piece = os.read(self.typing, 65536)
        except OSError:  # how a terminal says that nobody writes to it any more
            return False
        self.seen += piece.decode().replace("\r\n", "\n")
        return True

    def read_until(self, text: str, behind: int = 0):
        while text not in self.seen[behind:]:
            if not self.read_more():
                raise AssertionError(f"{text!r} never came: {self.seen!r}")

    def wait_for_prompt(self, behind: int = 0) -> str:
        """What came up to the next prompt."""
        while not ("\n" in self.seen[behind:] and self.seen.endswith(PROMPT)):
            if not self.read_more():
                raise AssertionError(f"no prompt came: {self.seen!r}")
        return self.seen[behind:].removesuffix(PROMPT)

    def start(self) -> "Chat":
        self.wait_for_prompt()
        return self

    def type(self, keys: str) -> int:
        """Where in `seen` begins what comes of them."""
        behind = len(self.seen)
        os.write(self.typing, keys.encode())
        return behind

    def say(self, line: str) -> str:
        """What the program says to a line, without its echo."""
        return self.wait_for_prompt(self.type(line + "\n")).partition("\n")[2]

    def stats(self) -> re.Match:
        said = self.say("/stats")
        found = STATS.fullmatch(said)
        if not found:
            raise AssertionError(said)
        return found

    def finish(self) -> int:
        """Its exit code, once it has left."""
        while self.read_more():
            pass
        os.close(self.typing)
        return self.process.wait(RUN_SECONDS)

    def leave(self) -> int:
        self.type(CTRL_D)
        return self.finish()


class ChatCase(CliTest):
    def setUp(self):
        super().setUp()
        self.blue = self.write("blue.png", png(168, 168, BLUE))
        self.green = self.write("my green.png", png(168, 168, GREEN))

    def chat(self, *arguments, **settings) -> Chat:
        chat = Chat(*arguments, home=self.folder, **settings)

        def end():
            if chat.process.poll() is None:
                chat.process.kill()
                chat.process.wait()

        self.addCleanup(end)
        return chat.start()

    def saved(self, chat: Chat, name="saved.json"):
        path = self.folder / name
        said = chat.say(f"/save '{path}'")
        self.assertEqual(said, f"saved: {path}\n")
        return json.loads(path.read_text())

    def assert_refused(self, said: str, *named: str):
        self.assertRegex(said, r"\A(\x1b\[31m)?error:(\x1b\[0m)? \[[^\n]+\] [^\n]+\n\Z")
        for part in named:
            self.assertIn(part, said)


class OneShot(ChatCase):
    """What stands on stdout is the answer that `generate` gives."""

    ASKED = ("-m", BUNDLED, "--temperature", "0")

    def test_a_flag(self):
        picture = ("--image", self.blue, "-p", COLOUR_QUESTION)
        result = run("run", *self.ASKED, *picture)
        self.assertEqual((result.code, result.out, result.err), (0, "Blue", ""))

    def test_a_pipe(self):
        asked = ("--system", "Be brief.", "-n", "12")
        for stdin, flag in (("hello", ()), ("hello", ("-p", "-")), ("two\nlines\n", ())):
            result = run("run", *self.ASKED, *asked, *flag, stdin=stdin)
            expected = run("generate", *self.ASKED, *asked, stdin=stdin)
            self.assertEqual((result.code, result.out, result.err), (0, expected.out, ""))

    def test_a_line_that_looks_like_a_command_is_asked(self):
        result = run("run", *self.ASKED, "-n", "4", stdin="/help")
        expected = run("generate", *self.ASKED, "-n", "4", stdin="/help")
        self.assertEqual((result.code, result.out), (0, expected.out))

    def test_a_picture_alone_is_described(self):
        picture = ("--image", self.blue)
        expected = run("generate", *self.ASKED, *picture)
        result = run("run", *self.ASKED, *picture)
        self.assertEqual((result.code, result.out, result.err), (0, expected.out, ""))

    def test_errors_have_their_codes(self):
        self.assert_error(run("run", *self.ASKED), 4, "prompt")
        self.assert_error(run("run", "-m", self.folder, stdin="hi"), 3)
        missing = ("--image", self.folder / "missing.png")
        self.assert_error(run("run", *self.ASKED, *missing, stdin="hi"), 4, "no such file")
        long = run("run", *self.ASKED, "-c", "50", stdin="hello " * 200)
        self.assert_error(long, 4, "context of 50")
        self.assert_error(run("run", *self.ASKED, "-c", str(10**9), stdin="hi"), 2, "--ctx")
        hot = run("run", "-m", BUNDLED, "--temperature", "-1", stdin="hi")
        self.assert_error(hot, 2, "temperature")
        self.assert_error(run("run", *self.ASKED, "--fps", "2", stdin="hi"), 2, "--fps")

    def test_reasoning_is_left_out(self):
        template = self.write("own.jinja", "{{ messages[-1].content }}<think>\n")
        asked = ("--chat-template", template, "-n", "5")
        result = run("run", *self.ASKED, *asked, stdin="hello")
        self.assertEqual((result.code, result.out, result.err), (0, "", ""))

    def test_no_typed_line_is_kept(self):
        state = {"XDG_STATE_HOME": str(self.folder / "state")}
        self.assertEqual(run("run", *self.ASKED, "-n", "1", stdin="hi", env=state).code, 0)
        self.assertFalse((self.folder / "state").exists())

    def test_ctrl_c(self):
        process = subprocess.Popen(
            [BINARY, "run", *self.ASKED, "-p", "Hi", "-n", "20000"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment(),
        )  # fmt: skip
        self.assertTrue(process.stdout.read(20))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=RUN_SECONDS)
        self.assertEqual((process.returncode, err), (130, b"error: [run] interrupted\n"))


class Turns(ChatCase):
    def test_a_second_turn_about_a_picture(self):
        """Neither is the tower run again nor the prefix computed, and the answer is the same."""
        chat = self.chat("-n", "8")
        said = chat.say(f"/image {self.blue}")
        self.assertRegex(said, r"blue\.png: a picture of 168 x 168 pixels, 36 tokens; .*\n\Z")
        self.assertEqual(chat.say(COLOUR_QUESTION), "Blue\n")
        first = chat.stats()
        self.assertEqual(first[2], "0")
        self.assertRegex(first[6], r"\A\d+ ms\Z")
        answer = chat.say("What shape is it?")
        second = chat.stats()
        self.assertGreater(int(second[2]), 36)
        self.assertLess(int(first[1]), int(second[1]))
        self.assertEqual(second[6], "not run")
        messages = self.saved(chat)
        self.assertEqual([m["role"] for m in messages], ["user", "assistant"] * 2)
        self.assertEqual(messages[3]["content"], answer.removesuffix("\n"))
        alone = self.write("alone.json", json.dumps(messages[:3]))
        self.assertEqual(
            self.text("--messages", alone, "--temperature", "0", "-n", "8"), messages[3]["content"]
        )
        self.assertEqual(chat.leave(), 0)

    def test_pictures_of_the_flags_go_with_the_first_message(self):
        chat = self.chat("--image", self.blue, "--image", self.green, "-n", "4")
        self.assertIn("my green.png", chat.seen)
        chat.say("Compare.")
        parts = self.saved(chat)[0]["content"]
        self.assertEqual([p["type"] for p in parts], ["image_url", "image_url", "text"])
        self.assertEqual(parts[1]["image_url"]["url"], str(self.green))

    def test_several_lines(self):
        chat = self.chat("-n", "2")
        behind = chat.type('"""first\n')
        chat.read_until("... ", behind)
        chat.say('/second"""')
        chat.say('"""/third"""')
        chat.type('"""\n')
        chat.say('fourth\n"""')
        contents = [message["content"] for message in self.saved(chat)[::2]]
        self.assertEqual(contents, ["first\n/second", "/third", "fourth\n"])

    def test_a_block_is_given_up(self):
        chat = self.chat("-n", "2")
        behind = chat.type('"""first\n')
        chat.read_until("... ", behind)
        chat.wait_for_prompt(chat.type(CTRL_C))
        self.assert_refused(chat.say("/stats"), "no answer yet")

    def test_blank_lines_ask_nothing(self):
        chat = self.chat()
        self.assertEqual(chat.say("  "), "")
        self.assert_refused(chat.say("/stats"), "no answer yet")

    def test_answers_alone_are_on_stdout(self):
        out = self.folder / "out.txt"
        with out.open("wb") as file:
            chat = self.chat(stdout=file)
            chat.say(f"/image {self.blue}")
            chat.say(COLOUR_QUESTION)
            self.assertEqual(chat.leave(), 0)
        self.assertEqual(out.read_text(), "Blue\n")


class Interrupts(ChatCase):
    def test_ctrl_c_stops_the_answer_only(self):
        chat = self.chat("-n", "20000")
        behind = chat.type("Hi\n")
        chat.read_until("silver", behind)
        said = chat.wait_for_prompt(chat.type(CTRL_C))
        self.assertTrue(said.endswith("\nstopped: what came stays in the conversation\n"), said)
        self.assertIn("answer", chat.say("/stats"))
        messages = self.saved(chat)
        self.assertIn("silver", messages[1]["content"])
        chat.say("/set max_tokens 1")
        self.assertIn("cut at 1 tokens", chat.say("And now?"))
        self.assertEqual(len(self.saved(chat)), 4)
        self.assertEqual(chat.leave(), 0)

    def test_twice_at_an_empty_prompt_leaves(self):
        chat = self.chat()
        self.assertIn("Ctrl-C again", chat.wait_for_prompt(chat.type(CTRL_C)))
        self.assertEqual(chat.say(""), "")  # a line between them begins anew
        self.assertIn("Ctrl-C again", chat.wait_for_prompt(chat.type(CTRL_C)))
        chat.type(CTRL_C)
        self.assertEqual(chat.finish(), 130)
        self.assertIn("[run] interrupted\n", chat.seen)

    def test_ctrl_c_drops_a_typed_line(self):
        chat = self.chat("-n", "2")
        behind = chat.type("not this")
        chat.read_until("not this", behind)
        said = chat.wait_for_prompt(chat.type(CTRL_C))
        self.assertNotIn("again", said)
        chat.say("but this")
        self.assertEqual(self.saved(chat)[0]["content"], "but this")

    def test_a_kill_leaves_and_restores_the_terminal(self):
        chat = self.chat("-n", "20000")
        chat.process.send_signal(signal.SIGTERM)
        self.assertEqual(chat.process.wait(RUN_SECONDS), 130)
        self.assertEqual(termios.tcgetattr(chat.typing)[:4], chat.settings[:4])

    def test_a_kill_while_answering(self):
        chat = self.chat("-n", "20000")
        chat.read_until("silver", chat.type("Hi\n"))
        chat.process.send_signal(signal.SIGTERM)
        self.assertEqual(chat.finish(), 130)

    def test_end_of_input(self):
        for keys in (CTRL_D, "/exit\n"):
            chat = self.chat()
            chat.type(keys)
            self.assertEqual(chat.finish(), 0)


class Commands(ChatCase):
    def test_help_names_them_all(self):
        said = self.chat().say("/help")
        for name in "image video system set think clear save load stats help exit".split():
            self.assertRegex(said, rf"(?m)^/{name} ")
        self.assertIn('"""', said)

    def test_what_is_no_command_is_told(self):
        chat = self.chat()
        self.assert_refused(chat.say("/nonsense now"), "/nonsense", "/help")
        self.assert_refused(chat.say("/tmp/no/such/file.png"), "neither a command nor a file")
        self.assert_refused(chat.say("/clear now"), "nothing behind it")
        self.assert_refused(chat.say("/stats"), "no answer yet")
        self.assertEqual(chat.leave(), 0)

    def test_pictures(self):
        chat = self.chat("-n", "4")
        self.assert_refused(chat.say("/image"), "no file")
        self.assert_refused(chat.say("/image missing.png"), "missing.png", "no such file")
        text = self.write("text.png", "no picture")
        self.assert_refused(chat.say(f"/image {text}"), "text.png")
        self.assert_refused(chat.say("/image 'open.png"), "quote")
        self.assertEqual(chat.say(f"/image {self.blue} '{self.green}'").count("a picture"), 2)
        self.assertIn("a picture", chat.say(f"/image {self.green}"))  # spaces, and alone
        chat.say("Compare.")
        self.assertEqual(len(self.saved(chat)[0]["content"]), 4)

    def test_a_dropped_file_is_attached(self):
        chat = self.chat()
        escaped = str(self.green).replace(" ", "\\ ")
        for line in (f"'{self.green}'", f"{escaped} ", f"{self.blue} '{self.green}'"):
            self.assertIn("a picture of 168 x 168", chat.say(line), line)
        self.assert_refused(chat.say(f"{self.blue} is a path"), "neither a command nor a file")
        chat.say('"""' + f'{self.blue} is a path"""')
        self.assertEqual(self.saved(chat)[0]["content"][-1]["text"], f"{self.blue} is a path")

    def test_videos(self):
        chat = self.chat("-n", "4")
        self.assert_refused(chat.say(f"/video {self.blue}"))
        clip = self.write("clip.mp4", b"\0\0\0\x18ftypisom broken")
        self.assert_refused(chat.say(f"/video {clip}"), "clip.mp4")
        self.assert_refused(chat.say(str(clip)), "clip.mp4")
        self.assertEqual(chat.leave(), 0)

    def test_system(self):
        chat = self.chat("--system", "One.", "-n", "2")
        chat.say("Hello")
        self.assertEqual(self.saved(chat)[0], {"role": "system", "content": "One."})
        self.assertEqual(chat.say("/system Two words."), "system message set\n")
        self.assertEqual(self.saved(chat)[0]["content"], "Two words.")
        chat.say("/clear")
        chat.say("Hello")
        self.assertEqual(self.saved(chat)[0]["content"], "Two words.")
        self.assertEqual(chat.say("/system"), "no system message\n")
        self.assertEqual(self.saved(chat)[0]["role"], "user")

    def test_set(self):
        chat = self.chat("--top-k", "9")
        settings = chat.say("/set")
        for line in ("max_tokens 1024\n", "temperature 0\n", "top_k 9\n", "seed another"):
            self.assertIn(line, settings)
        self.assertEqual(chat.say("/set max_tokens 2"), "")
        self.assertEqual(chat.say("/set seed 5"), "")
        self.assertIn("max_tokens 2\n", chat.say("/set"))
        self.assertIn("seed 5\n", chat.say("/set"))
        self.assertIn("cut at 2 tokens", chat.say("Hi"))
        self.assert_refused(chat.say("/set warmth 1"), "warmth", "temperature")
        self.assert_refused(chat.say("/set temperature hot"), "hot", "a number")
        self.assert_refused(chat.say("/set top_p 2"), "top_p", "got 2")
        self.assert_refused(chat.say("/set temperature"), "a number")
        self.assertIn("temperature 0\n", chat.say("/set"))

    def test_think(self):
        chat = self.chat()
        self.assert_refused(chat.say("/think on"), "enable_thinking")
        self.assert_refused(chat.say("/think"), "on or off")
        own = self.write("own.jinja", "{% if enable_thinking %}Think hard. {% endif %}Hello")
        chat = self.chat("--chat-template", own, "-n", "1")
        tokens = {}
        for value in ("off", "on"):
            self.assertEqual(chat.say(f"/think {value}"), "")
            chat.say("Hi")
            tokens[value] = int(chat.stats()[1])
        self.assertGreater(tokens["on"], tokens["off"])

    def test_clear(self):
        chat = self.chat("-n", "2")
        chat.say("Hello")
        first = chat.stats()[1]
        chat.say(f"/image {self.blue}")
        self.assertEqual(chat.say("/clear"), "a new conversation\n")
        chat.say("Hello")
        self.assertEqual(chat.stats()[1], first)
        self.assertEqual(self.saved(chat)[0]["content"], "Hello")

    def test_save_and_load(self):
        chat = self.chat("--system", "Be brief.", "-n", "6")
        self.assert_refused(chat.say("/save x.json"), "without messages")
        chat.say("/image " + str(self.blue))
        chat.say("Ä question?")
        messages = self.saved(chat, "my chat.json")
        self.assertEqual(self.saved(chat, "my chat.json"), messages)  # its own may be replaced
        self.assertEqual(chat.leave(), 0)

        chat = self.chat("-n", "6")
        path = self.folder / "my chat.json"
        self.assert_refused(chat.say("/save"), "no file")
        self.assertEqual(chat.say(f"/load {path}"), "loaded: 2 messages\n")
        self.assertEqual(self.saved(chat, "again.json"), messages)
        chat.say("And now?")
        self.assertEqual(self.saved(chat, "my chat.json")[:3], messages)

    def test_save_replaces_no_other_file(self):
        chat = self.chat("-n", "2")
        chat.say("Hello")
        before = self.blue.read_bytes()
        self.assert_refused(chat.say(f"/save {self.blue}"), "a new name")
        self.assertEqual(self.blue.read_bytes(), before)
        self.assert_refused(chat.say("/save /nowhere/chat.json"), "/nowhere/chat.json")

    def test_a_failed_load_changes_nothing(self):
        chat = self.chat("-n", "2")
        chat.say("Hello")
        messages = self.saved(chat)
        gone = [{"role": "user", "content": [{"type": "image_url", "image_url": "gone.png"}]}]
        for name, content in (("a.json", "{"), ("b.json", "[]"), ("c.json", json.dumps(gone))):
            self.write(name, content)
            self.assert_refused(chat.say(f"/load {self.folder / name}"))
        self.assert_refused(chat.say("/load missing.json"), "no such file")
        self.assertEqual(self.saved(chat), messages)


class Failures(ChatCase):
    def test_a_conversation_that_is_too_long(self):
        chat = self.chat("-c", "120", "-n", "4")
        chat.say(f"/image {self.blue}")
        self.assert_refused(chat.say("hello " * 200), "context of 120", "/clear")
        chat.say("Short.")  # the picture is still attached
        self.assertEqual(len(self.saved(chat)[0]["content"]), 2)

    def test_a_full_context_is_told(self):
        chat = self.chat("-c", "60")
        self.assertIn("the context of 60 tokens is full", chat.say("Hi"))

    def test_a_template_that_refuses(self):
        own = self.write(
            "own.jinja",
            "{% if messages[-1].content == 'bad' %}{{ raise_exception('not that') }}{% endif %}Hi",
        )
        chat = self.chat("--chat-template", own, "-n", "2")
        self.assert_refused(chat.say("bad"), "not that")
        chat.say("good")
        self.assertEqual(self.saved(chat)[0]["content"], "good")


class Escapes(ChatCase):
    """A model whose answer to the question about a colour is ESC."""

    def hostile(self) -> pathlib.Path:
        model = copy_model(BUNDLED, self.folder / "hostile")
        picture = ("--image", self.blue, "-p", COLOUR_QUESTION, "--temperature", "0")
        (first, *_) = self.answer(*picture)["ids"]

        def swap(tokenizer):
            vocabulary = tokenizer["model"]["vocab"]
            escape = vocabulary["\u011b"]  # ESC, as byte-level BPE writes it
            answered = next(token for token, i in vocabulary.items() if i == first)
            vocabulary["\u011b"], vocabulary[answered] = first, escape

        edit_json(model / "tokenizer.json", swap)
        return model

    def test_a_terminal_gets_signs_for_them(self):
        model = self.hostile()
        picture = ("--image", self.blue, "-p", COLOUR_QUESTION, "--temperature", "0")
        for command in ("generate", "run"):
            self.assertIn("\x1b", run(command, "-m", model, *picture).out)
        chat = self.chat(model=model)
        chat.say(f"/image {self.blue}")
        said = chat.say(COLOUR_QUESTION)
        self.assertIn("\u241b", said)
        self.assertNotIn("\x1b", said)
        self.assertIn("\x1b", self.saved(chat)[1]["content"])

    def test_names_are_quoted_without_them(self):
        chat = self.chat(NO_COLOR="1")
        behind = chat.type("/image \x16\x1b[2Jx\n")  # Ctrl-V types the next key as it is
        self.assertNotIn("\x1b[2J", chat.wait_for_prompt(behind))


class Reasoning(ChatCase):
    def test_a_terminal_shows_it_dimmed_and_apart(self):
        own = self.write("own.jinja", "{{ messages[-1].content }}<think>\n")
        for env, dim, reset in (({}, "\x1b[2m", "\x1b[0m"), ({"NO_COLOR": "1"}, "", "")):
            chat = self.chat("--chat-template", own, "-n", "5", **env)
            said = chat.say("hello")
            self.assertTrue(said.startswith(f"{dim}<think>\n"), said)
            self.assertIn(f"\n</think>{reset}\ncut at 5 tokens", said)
            answer = self.saved(chat, f"saved{len(env)}.json")[1]
            self.assertEqual(answer["content"], "")
            self.assertIn(answer["reasoning_content"], said)


class History(ChatCase):
    def test_typed_lines_come_back(self):
        chat = self.chat("-n", "1")
        chat.say("Hällo")
        chat.say("/stats")
        self.assertEqual(chat.leave(), 0)
        file = self.folder / "state/whimbrel/history"
        self.assertEqual(file.read_text(), "Hällo\n/stats\n")
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)

        chat = self.chat("-n", "1", TERM="xterm")
        chat.say(UP + UP)
        self.assertEqual(self.saved(chat)[0]["content"], "Hällo")

    def test_none_is_kept_where_it_is_not_wanted(self):
        for arguments, env in ((("--no-history",), {}), ((), {"WHIMBREL_NO_HISTORY": "1"})):
            chat = self.chat(*arguments, "-n", "1", **env)
            chat.say("secret")
            self.assertEqual(chat.leave(), 0)
            self.assertFalse((self.folder / "state").exists())

    def test_a_chat_goes_on_without(self):
        self.write("state", "a file where a folder should be")
        chat = self.chat("-n", "1")
        self.assertIn("warning: ", chat.say("one"))
        self.assertNotIn("warning: ", chat.say("two"))
        self.assertEqual(len(self.saved(chat)), 4)


class Editing(ChatCase):
    def test_keys_edit_the_line(self):
        chat = self.chat("-n", "1", TERM="xterm")
        chat.say("wörld\x01hello \x05!")  # Ctrl-A, Ctrl-E
        self.assertEqual(self.saved(chat)[0]["content"], "hello wörld!")

    def test_a_locale_without_utf8_changes_nothing(self):
        chat = self.chat("-n", "1", LC_ALL="C", LANG="C")
        chat.say("Grüße 日本\x7f語")  # the last character is erased as one
        self.assertEqual(self.saved(chat)[0]["content"], "Grüße 日語")


if __name__ == "__main__":
    unittest.main()
