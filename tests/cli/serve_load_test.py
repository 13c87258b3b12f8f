"""whimbrel serve under load: every request ends in a state that is documented, and nothing is left."""
import os
import pathlib
import sys
import unittest

from serve_test import Server, asking, content_of
from support import SHAPES, CliTest

sys.path.insert(0, str(pathlib.Path(os.environ["WHIMBREL_SOURCE_DIR"]) / "bench"))
import serve_load  # noqa: E402


class LoadCase(CliTest):
    FLAGS = ()

    def load(self, clients: int, seconds: int) -> dict:
        self.server = Server(*self.FLAGS)
        flags = ("--clients", clients, "--seconds", seconds, "--image", SHAPES)
        report = serve_load.measure([self.server.url, *map(str, flags)])
        self.assert_at_rest(report)
        self.assertTrue(content_of(self.server.chat(asking("Hello."), max_tokens=4)))
        self.assertEqual(self.server.stop(), 0)
        return report

    def assert_at_rest(self, report: dict):
        slots = self.server.wait_for_rest()
        self.assertEqual(slots["memory_used"], slots["prefix_bytes"] + slots["feature_bytes"])
        answered = sum(report["ends"].get(end, 0) for end in ("stop", "length"))
        self.assertEqual(slots["requests_finished"], answered)
        self.assertEqual((slots["requests_failed"], slots["requests_cancelled"]), (0, 0))
        self.assertEqual(slots["pictures_encoded"], 1)


class Load(LoadCase):
    def test_nothing_is_lost(self):
        report = self.load(clients=32, seconds=4)
        self.assertLessEqual(set(report["ends"]), {"stop", "length"})
        self.assertGreater(report["requests"], 32)


class Overload(LoadCase):
    """F1: beyond the queue's bound everyone is told so, and the others are served."""

    FLAGS = ("--parallel", "2", "--queue", "4")

    def test_the_rest_is_429(self):
        report = self.load(clients=100, seconds=4)
        refused = {"429 queue_full", "429 too_many_requests_waiting"}
        self.assertLessEqual(set(report["ends"]), {"stop", "length"} | refused)
        self.assertGreater(report["ends"]["429 queue_full"], 0)
        self.assertGreater(report["ends"].get("stop", 0), 0)


class SlowLoad(LoadCase):
    def test_nothing_is_lost_in_a_minute(self):
        report = self.load(clients=64, seconds=60)
        self.assertLessEqual(set(report["ends"]), {"stop", "length"})


if __name__ == "__main__":
    unittest.main()
