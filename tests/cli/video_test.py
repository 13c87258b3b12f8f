"""Videos: lists of frames in messages, the flags about pictures and videos, files."""
import base64
import json
import subprocess
import sys
import unittest

from support import (
    BINARY,
    BUNDLED,
    GOLDEN,
    RUN_SECONDS,
    SHAPES,
    SOURCE,
    CliTest,
    environment,
    png,
    run,
)

CLIPS = SOURCE / "tests/golden/media/video"
# Runs a program under limits below the video decoder's own, without root's right to raise them.
LIMITED = """
import ctypes, os, resource, sys
PR_CAPBSET_DROP, CAP_SYS_RESOURCE = 24, 24
ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0)
resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.execv(sys.argv[1], sys.argv[1:])
"""
QUESTION = {"type": "text", "text": "Describe the video."}


def frames(count: int) -> list[str]:
    return [str(GOLDEN / f"media/clip-{i}.png") for i in range(count)]


class VideoCase(CliTest):
    def ask(self, *parts, flags=()) -> dict:
        return self.answer(*self.messages(*parts), "-n", 1, *flags)

    def refuse(self, code: int, *named: str, parts=(), flags=()):
        result = run("generate", "-m", BUNDLED, *self.messages(*parts), "-n", 1, *flags)
        self.assert_error(result, code, *named)

    def messages(self, *parts) -> tuple:
        content = [{"role": "user", "content": [*parts, QUESTION]}]
        return "--messages", self.write("messages.json", json.dumps(content))


class Frames(VideoCase):
    def test_media_says_what_became_of_them(self):
        video = {"type": "video", "video": frames(5), "fps": 1}
        [found] = self.ask(video)["media"]
        self.assertEqual(found["kind"], "video")
        self.assertEqual(found["source"], frames(1)[0])
        self.assertEqual(found["size"], [168, 168])
        self.assertEqual(found["resized"], [168, 168])
        self.assertEqual(found["grid_thw"], [3, 12, 12])
        self.assertEqual(found["tokens"], 3 * 36)

    def test_rate_moves_the_positions(self):
        deltas = [
            self.ask({"type": "video", "video": frames(8), **rate})["rope_delta"]
            for rate in ({"fps": 2}, {"fps": 0.5}, {})
        ]
        self.assertGreater(deltas[1], deltas[0])
        self.assertEqual(deltas[2], deltas[0])

    def test_pictures_and_videos_keep_their_order(self):
        picture = {"type": "image_url", "image_url": str(SHAPES)}
        video = {"type": "video", "video": frames(2), "fps": 2}
        media = self.ask(video, picture, video)["media"]
        self.assertEqual([entry["kind"] for entry in media], ["video", "image", "video"])
        starts = [entry["first_token"] for entry in media]
        self.assertEqual(starts, sorted(starts))

    def test_paths_are_relative_to_the_file(self):
        self.write("a.png", png(168, 168, (1, 2, 3)))
        video = {"type": "video", "video": ["a.png", "a.png"]}
        self.assertEqual(self.ask(video)["media"][0]["source"], "a.png")

    def test_jpegs_in_a_data_url(self):
        coded = base64.b64encode((SOURCE / "tests/golden/media/decode/jpeg_420.jpg").read_bytes())
        url = "data:video/jpeg;base64," + ",".join([coded.decode()] * 3)
        [found] = self.ask({"type": "video_url", "video_url": {"url": url}})["media"]
        self.assertEqual((found["kind"], found["grid_thw"][0]), ("video", 2))
        url = "data:video/jpeg;base64," + "," * 4999
        self.refuse(4, "5000 frames", parts=[{"type": "video_url", "video_url": url}])

    def test_bad_frames_are_named(self):
        odd = str(self.write("odd.png", png(100, 168, (1, 2, 3))))
        text = str(self.write("text.png", "no picture"))
        for bad, named in ((odd, "odd.png"), (text, "text.png"), ("missing.png", "missing.png")):
            self.refuse(4, named, parts=[{"type": "video", "video": [*frames(2), bad]}])
        self.refuse(4, "0 frames", parts=[{"type": "video", "video": []}])
        self.refuse(4, "769 frames", parts=[{"type": "video", "video": ["a.png"] * 769}])
        self.refuse(4, "fps", parts=[{"type": "video", "video": frames(2), "fps": -1}])


class Flags(VideoCase):
    def tokens(self, *flags) -> int:
        return self.answer("--image", SHAPES, "-p", "Hi", "-n", 1, *flags)["media"][0]["tokens"]

    def test_pictures_are_bounded(self):
        self.assertLessEqual(self.tokens("--image-tokens", 20), 20)
        same = self.tokens("--max-pixels", 20 * 28 * 28)
        self.assertEqual(self.tokens("--image-tokens", 20), same)
        more = self.tokens("--min-pixels", 150000, "--max-pixels", 200000)
        self.assertGreaterEqual(more, 150000 // 784)

    def test_frames_are_bounded_as_pictures(self):
        video = {"type": "video", "video": frames(2)}
        self.assertLessEqual(self.ask(video, flags=("--image-tokens", 20))["media"][0]["tokens"], 20)

    def test_wrong_values(self):
        picture = ("--image", SHAPES, "-p", "Hi")
        for flags in (
            ("--max-pixels", 0),
            ("--max-pixels", "many"),
            ("--min-pixels", -1),
            ("--image-tokens", 0),
            ("--image-tokens", 4, "--max-pixels", 50000),
            ("--max-pixels", 1000),  # below the model's min_pixels
            ("--min-pixels", 50000, "--max-pixels", 40000),
            ("--fps", 0),
            ("--fps", "nan"),
            ("--max-frames", 769),
            ("--fps", 2),  # no video
            ("--max-frames", 8),
        ):
            with self.subTest(flags):
                result = run("generate", "-m", BUNDLED, *picture, "-n", 1, *flags)
                self.assert_error(result, 2)

    def test_a_list_of_frames_is_not_sampled(self):
        video = [{"type": "video", "video": frames(4)}]
        self.refuse(2, "list of frames", parts=video, flags=("--fps", 1))
        self.refuse(4, "at most 3", parts=video, flags=("--max-frames", 3))

    def test_order_of_flags_is_kept(self):
        clip = CLIPS / "frames.gif"
        for order in (("--image", SHAPES, "--video", clip), ("--video", clip, "--image", SHAPES)):
            media = self.answer(*order, "-p", "Hi", "-n", 1)["media"]
            kinds = [flag[2:] for flag in order if str(flag).startswith("--")]
            self.assertEqual([entry["kind"] for entry in media], kinds)


class Files(VideoCase):
    def video(self, path, *flags) -> dict:
        return self.answer("--video", path, "-p", "What?", "-n", 1, *flags)["media"][0]

    def test_containers(self):
        for name in ("h264.mp4", "vp9.webm", "frames.gif"):
            found = self.video(CLIPS / name)
            self.assertEqual(found["kind"], "video")
            self.assertEqual(found["size"], [48, 64])
            self.assertEqual(found["grid_thw"][0], 2)  # 1.2 s: the least of 4 frames

    def test_sampling(self):
        clip = CLIPS / "h264.mp4"
        self.assertEqual(self.video(clip, "--fps", 10)["grid_thw"][0], 6)
        self.assertEqual(self.video(clip, "--fps", 10, "--max-frames", 6)["grid_thw"][0], 3)
        self.assertEqual(self.video(clip, "--max-frames", 1)["grid_thw"][0], 1)

    def test_urls(self):
        clip = CLIPS / "vp8.webm"
        coded = base64.b64encode(clip.read_bytes()).decode()
        for url in (str(clip), f"file://{clip}", f"data:video/webm;base64,{coded}"):
            [found] = self.ask({"type": "video_url", "video_url": {"url": url}})["media"]
            self.assertEqual(found["size"], [48, 64])

    def test_a_gif_as_a_picture_is_a_still(self):
        answer = self.answer("--image", CLIPS / "frames.gif", "-p", "Hi", "-n", 1)
        self.assertEqual(answer["media"][0]["kind"], "image")

    @unittest.skipUnless(sys.platform.startswith("linux"), "rights as of Linux")
    def test_lower_limits_than_the_decoders_own_are_kept(self):
        asked = ("generate", "-m", BUNDLED, "--video", CLIPS / "h264.mp4", "-p", "Hi", "-n", 1)
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, BINARY, *map(str, asked)],
            env=environment(), capture_output=True, timeout=RUN_SECONDS, check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_no_video(self):
        playlist = self.write("list.mp4", "#EXTM3U\nfile:///etc/passwd\n")
        cut = self.write("cut.mp4", (CLIPS / "h264.mp4").read_bytes()[:1500])
        for path, named in ((playlist, "list.mp4"), (cut, "cut.mp4"), (SHAPES, "shapes.png")):
            result = run("generate", "-m", BUNDLED, "--video", path, "-p", "Hi", "-n", 1)
            self.assert_error(result, 4, named)


if __name__ == "__main__":
    unittest.main()
