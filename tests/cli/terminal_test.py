"""What a person at a terminal sees: words as they come, a progress bar, colours, Ctrl-C."""
import os
import pty
import re
import selectors
import signal
import subprocess
import unittest

from support import BINARY, BUNDLED, RUN_SECONDS, CliTest, environment, run

ESCAPE_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WIPE = "\r\x1b[K"
# The bundled model never ends this answer by itself.
ENDLESS = ("-p", "Hi", "-n", "20000")


class Session:
    """The program with stdout and stderr each on a terminal of its own, or on a pipe.

    With terminals="same" both are on one, as for a user, and `seen["out"]` has all.
    """

    def __init__(self, *arguments, terminals=("out", "err"), stdin=subprocess.DEVNULL, **env):
        if terminals == "same":
            ends = {"out": pty.openpty()}
        else:
            ends = {n: pty.openpty() if n in terminals else os.pipe() for n in ("out", "err")}
        self.process = subprocess.Popen(
            [BINARY, *map(str, arguments)],
            stdin=stdin,
            stdout=ends["out"][1],
            stderr=ends["err"][1] if "err" in ends else subprocess.STDOUT,
            env=environment(**env),
        )
        self.read_ends = {name: end for name, (end, _) in ends.items()}
        for _, write_end in ends.values():
            os.close(write_end)
        self.seen = {"out": "", "err": ""}
        self.selector = selectors.DefaultSelector()
        for name, end in self.read_ends.items():
            self.selector.register(end, selectors.EVENT_READ, name)

    def read_more(self) -> bool:
        """Waits for the next piece on either; false when both are at their end."""
        if not self.selector.get_map():
            return False
        events = self.selector.select(RUN_SECONDS)
        if not events:
            self.process.kill()
            raise AssertionError(f"nothing came for {RUN_SECONDS} s after {self.seen}")
        for key, _ in events:
            try:
                piece = os.read(key.fd, 65536)
            except OSError:  # how a terminal says that nobody writes to it any more
                piece = b""
            if not piece:
                self.selector.unregister(key.fd)
            self.seen[key.data] += piece.decode()
        return True

    def read_until(self, name: str, text: str):
        while text not in self.seen[name]:
            if not self.read_more():
                raise AssertionError(f"{text!r} never came on {name}: {self.seen}")

    def finish(self) -> tuple[int, str, str]:
        while self.read_more():
            pass
        self.selector.close()
        for end in self.read_ends.values():
            os.close(end)
        return self.process.wait(RUN_SECONDS), self.seen["out"], self.seen["err"]


def session(*arguments, **settings) -> tuple[int, str, str]:
    return Session(*arguments, **settings).finish()


def left_on_screen(written: str) -> str:
    """What stays on a line after carriage returns and erasing."""
    lines = []
    for line in ESCAPE_COLOUR.sub("", written).split("\n"):
        shown = ""
        for part in line.split("\r"):
            part, erase, rest = part.partition("\x1b[K")
            shown = part + ("" if erase else shown[len(part) :])
            shown = rest or shown
        lines.append(shown)
    return "\n".join(lines)


class Streaming(CliTest):
    def test_words_come_before_the_end(self):
        streamed = Session("generate", "-m", BUNDLED, *ENDLESS, terminals=())
        streamed.read_until("out", "silver")
        self.assertIsNone(streamed.process.poll(), "all came at once, after the end")
        first = len(streamed.seen["out"])
        self.assertLess(first, 500)
        while len(streamed.seen["out"]) < first + 200:
            self.assertTrue(streamed.read_more())
        self.assertIsNone(streamed.process.poll())
        streamed.process.kill()
        streamed.finish()

    def test_pieces_make_the_text(self):
        for stop in ((), ("--stop", "garden magnet rocket")):
            question = ("-p", "Hi", "-n", 100, *stop)
            code, out, err = session("generate", "-m", BUNDLED, *question, terminals=())
            self.assertEqual((code, out, err), (0, self.answer(*question)["text"], ""))


class Progress(CliTest):
    QUESTION = ("generate", "-m", BUNDLED, "-p", "Hi", "-n", "4")

    def test_bars_on_a_terminal_are_wiped(self):
        code, out, err = session(*self.QUESTION)
        self.assertEqual(code, 0)
        self.assertRegex(err, r"loading \[#+ *\] +\d+%")
        self.assertRegex(err, r"reading \[#+\] 100%")
        self.assertTrue(err.endswith(WIPE), err[-40:])
        self.assertEqual(left_on_screen(err), "")
        percents = [int(percent) for percent in re.findall(r"loading \[[# ]{30}\] +(\d+)%", err)]
        self.assertEqual(percents, sorted(percents))
        self.assertEqual(percents[-1], 100)

    def test_answer_on_a_terminal_ends_its_line(self):
        _, out, _ = session(*self.QUESTION)
        self.assertEqual(out, run(*self.QUESTION).out + "\r\n")

    def test_bars_leave_the_answer_alone(self):
        code, seen, _ = session(*self.QUESTION, terminals="same")
        self.assertIn("reading [", seen)
        self.assertEqual(left_on_screen(seen), run(*self.QUESTION).out + "\n")

    def test_bars_are_for_stderr(self):
        """With the answer in a file, they are still shown, without colours."""
        code, out, err = session(*self.QUESTION, terminals=("err",))
        self.assertEqual((code, out), (0, run(*self.QUESTION).out))
        self.assertIn("loading [", err)
        self.assertNotRegex(err, ESCAPE_COLOUR)

    def test_none_in_a_pipe(self):
        code, _, err = session(*self.QUESTION, terminals=("out",))
        self.assertEqual((code, err), (0, ""))

    def test_none_when_not_wanted(self):
        code, _, err = session(*self.QUESTION, "--no-progress")
        self.assertEqual((code, err), (0, ""))

    def test_json(self):
        code, out, err = session(*self.QUESTION, "--json")
        self.assertEqual((code, out.count("\n")), (0, 1))
        self.assertEqual(left_on_screen(err), "")


class Colours(CliTest):
    BAD = ("generate", "-m", BUNDLED, "-p", "")
    GOOD = ("generate", "-m", BUNDLED, "-p", "Hi", "-n", "2")

    def test_on_a_terminal(self):
        self.assertRegex(session(*self.BAD)[2], r"\A\x1b\[31merror:\x1b\[0m \[prompt\]")
        self.assertRegex(session(*self.GOOD)[2], ESCAPE_COLOUR)

    def test_no_color(self):
        for arguments in (self.BAD, self.GOOD):
            self.assertNotRegex(session(*arguments, NO_COLOR="1")[2], ESCAPE_COLOUR)

    def test_empty_no_color_counts_as_unset(self):
        self.assertRegex(session(*self.BAD, NO_COLOR="")[2], ESCAPE_COLOUR)

    def test_none_when_stdout_is_no_terminal(self):
        self.assertNotRegex(session(*self.BAD, terminals=("err",))[2], ESCAPE_COLOUR)

    def test_none_in_the_answer(self):
        self.assertNotIn("\x1b", session(*self.GOOD)[1])


class NothingAsked(CliTest):
    def test_a_terminal_is_not_read(self):
        typing, stdin = pty.openpty()
        self.addCleanup(os.close, typing)
        self.addCleanup(os.close, stdin)
        for extra in ((), ("--raw",)):
            code, out, err = session("generate", "-m", BUNDLED, *extra, terminals=(), stdin=stdin)
            self.assertEqual((code, out), (2, ""))
            self.assertRegex(err, r"\Aerror: \[generate\] .*-p TEXT.*stdin\n\Z")


class NoStandardInput(CliTest):
    def test_a_model_loads(self):
        """As services start programs: a weight file must not get descriptor 0."""
        command = f'exec "{BINARY}" generate -m "{BUNDLED}" -p Hi -n 2 --temperature 0 <&-'
        found = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, timeout=RUN_SECONDS, check=False
        )
        self.assertEqual((found.returncode, found.stderr), (0, ""))
        asked = ("-p", "Hi", "-n", 2, "--temperature", 0)
        self.assertEqual(found.stdout, run("generate", "-m", BUNDLED, *asked).out)


class Interrupt(CliTest):
    def interrupt(self, waiting: Session, signal_number=signal.SIGINT) -> tuple[int, str, str]:
        waiting.process.send_signal(signal_number)
        return waiting.finish()

    def assert_interrupted(self, ended: tuple[int, str, str]):
        code, _, err = ended
        self.assertEqual(code, 130)
        self.assertRegex(err, r"\Aerror: \[\w+\] interrupted\n\Z")

    def test_while_answering(self):
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal_number.name):
                waiting = Session("generate", "-m", BUNDLED, *ENDLESS, terminals=())
                waiting.read_until("out", "silver")
                self.assert_interrupted(self.interrupt(waiting, signal_number))

    def test_json_leaves_no_half_answer(self):
        waiting = Session("generate", "-m", BUNDLED, *ENDLESS, "--json", terminals=("err",))
        waiting.read_until("err", "reading [")
        code, out, err = self.interrupt(waiting)
        self.assertEqual((code, out), (130, ""))
        self.assertEqual(left_on_screen(err).strip(), "error: [generate] interrupted")

    def test_while_loading(self):
        waiting = Session("generate", "-m", BUNDLED, *ENDLESS, terminals=("err",))
        waiting.read_until("err", "loading [")
        code, _, err = self.interrupt(waiting)
        self.assertEqual(code, 130)
        self.assertRegex(left_on_screen(err).strip(), r"\Aerror: \[\w+\] interrupted\Z")

    def test_while_waiting_for_stdin(self):
        for typed in (b"", b"half a question"):
            with self.subTest(typed):
                stdin, typing = os.pipe()
                os.write(typing, typed)
                # The bundled model's line shows that it has come as far as reading.
                waiting = Session("generate", terminals=(), stdin=stdin)
                waiting.read_until("err", "bundled")
                code, out, err = self.interrupt(waiting)
                os.close(typing)
                os.close(stdin)
                self.assertEqual((code, out), (130, ""))
                self.assertRegex(err, r"\nerror: \[\w+\] interrupted\n\Z")


if __name__ == "__main__":
    unittest.main()
