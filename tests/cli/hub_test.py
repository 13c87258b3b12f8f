"""pull, list, rm, and -m owner/name: the Hugging Face cache, as the Python tools lay it out."""
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import unittest

from help_test import examples
from hub import (
    COMMIT,
    NEEDED,
    REPO,
    SMALL,
    WEIGHT_BYTES,
    WEIGHTS,
    WEIGHTS_BLOB,
    HubCase,
    blob_of,
    files_of_model,
)
from support import BUNDLED, SHAPES, SOURCE, parse_json, run
from terminal_test import Session, left_on_screen

PYTHON = SOURCE / ".venv/bin/python"
OTHER_COMMIT = "f" * 40


class Pull(HubCase):
    def test_layout(self):
        self.assert_pulled(self.pull())
        for name in NEEDED:
            blob = blob_of(name, SMALL[name])
            self.assertEqual(os.readlink(self.snapshot / name), f"../../blobs/{blob}")
            self.assertFalse((self.model / "blobs" / blob).is_symlink())
        self.assertEqual(
            sorted(path.name for path in self.model.iterdir()), ["blobs", "refs", "snapshots"]
        )
        lock = self.cache / ".locks/models--owner--tiny" / f"{WEIGHTS_BLOB}.lock"
        self.assertTrue(lock.is_file())

    def test_only_needed_files_are_asked_for(self):
        self.assert_pulled(self.pull())
        asked = {seen.path.rpartition("/")[2] for seen in self.hub.seen if "/resolve/" in seen.path}
        self.assertEqual(asked, set(NEEDED))
        self.assertEqual(self.hub.requests("GET", "onnx"), [])

    def test_second_pull_fetches_nothing(self):
        self.assert_pulled(self.pull())
        del self.hub.seen[:]
        self.assert_pulled(self.pull())
        self.assertEqual([seen.path for seen in self.hub.seen], [f"/api/models/{REPO}/revision/main"])

    def test_new_commit_shares_blobs(self):
        self.assert_pulled(self.pull())
        self.hub.commit, self.hub.files["config.json"] = OTHER_COMMIT, b'{"model_type": "other"}'
        del self.hub.seen[:]
        result = self.pull()
        other = self.model / "snapshots" / OTHER_COMMIT
        self.assertEqual((result.code, result.out), (0, f"{other}\n"))
        self.assertEqual((self.model / "refs/main").read_text(), OTHER_COMMIT)
        self.assertEqual((other / WEIGHTS).read_bytes(), WEIGHT_BYTES)
        self.assertEqual((self.snapshot / "config.json").read_bytes(), SMALL["config.json"])
        self.assertEqual(len(self.hub.requests("GET", "/resolve/")), 1)

    def test_revisions(self):
        self.hub.revisions += ["v1.0", "refs/pr/1"]
        for arguments, name in (
            ((), f"{REPO}@v1.0"),
            (("--revision", "v1.0"), REPO),
            ((), f"{REPO}@refs/pr/1"),
            ((), f"{REPO}@{COMMIT}"),
        ):
            with self.subTest(name, arguments=arguments):
                shutil.rmtree(self.cache, ignore_errors=True)
                result = self.pull(*arguments, name=name)
                self.assertEqual((result.code, result.out), (0, f"{self.snapshot}\n"), result)
                revision = arguments[1] if arguments else name.partition("@")[2]
                ref = self.model / "refs" / revision
                self.assertEqual(ref.exists(), revision != COMMIT)
                if revision != COMMIT:
                    self.assertEqual(ref.read_text(), COMMIT)

    def test_default_owner(self):
        self.hub.repo = "mlx-community/tiny"
        result = self.pull(name="tiny")
        self.assertEqual(result.code, 0, result)
        self.assertIn("models--mlx-community--tiny/snapshots", result.out)

    def test_without_symlinks(self):
        self.assert_pulled(self.pull(HF_HUB_DISABLE_SYMLINKS="1"))
        self.assertFalse((self.snapshot / WEIGHTS).is_symlink())
        del self.hub.seen[:]
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.requests("GET", "/resolve/"), [])

    def test_where_the_cache_is(self):
        other = self.folder / "other"
        for env, cache in (
            ({"HF_HUB_CACHE": str(other / "a")}, other / "a"),
            ({"HUGGINGFACE_HUB_CACHE": str(other / "b")}, other / "b"),
            ({"HF_HOME": str(other / "c")}, other / "c/hub"),
            ({"HF_HOME": "", "XDG_CACHE_HOME": str(other / "d")}, other / "d/huggingface/hub"),
            (
                {"HF_HOME": "", "XDG_CACHE_HOME": "", "HOME": str(other / "e")},
                other / "e/.cache/huggingface/hub",
            ),
            ({"HF_HOME": "~/mine", "HOME": str(other / "f")}, other / "f/mine/hub"),
        ):
            with self.subTest(env):
                result = self.pull(**env)
                self.assertEqual(result.code, 0, result)
                self.assertTrue((cache / "models--owner--tiny/snapshots" / COMMIT).is_dir())

    def test_offline(self):
        result = self.pull(HF_HUB_OFFLINE="1")
        self.assert_error(result, 7, REPO, "HF_HUB_OFFLINE")
        self.assertEqual(self.hub.seen, [])
        self.assert_pulled(self.pull())
        del self.hub.seen[:]
        self.assert_pulled(self.pull(HF_HUB_OFFLINE="1"))
        self.assertEqual(self.hub.seen, [])

    def test_a_repository_that_is_no_model(self):
        for lacking in ("config.json", "tokenizer.json", WEIGHTS):
            with self.subTest(lacking):
                self.hub.names = [name for name in SMALL if name != lacking]
                expected = "*.safetensors" if lacking == WEIGHTS else lacking
                self.assert_failed(self.pull(), 3, REPO, expected)


class Usage(HubCase):
    def test_names(self):
        for name in ("", "/tiny", "owner/", "a/b/c", "../tiny", "owner/..", "own er/tiny", "a--b/c",
                     "owner/tiny.git", "owner/.tiny", "owner/tiny@", "owner/tiny@../main",
                     "owner/tiny@/main", "owner/tiny@a//b", "owner/tiny@a b", "owner/tiny@a.lock",
                     "-owner/tiny", "owner/" + "x" * 97, "owner/t\niny", "owner/t\\iny"):  # fmt: skip
            with self.subTest(name):
                self.assert_error(run("pull", "--", name, env=self.env()), 2, "owner/name")
        self.assertEqual(self.hub.seen, [])

    def test_revision_flag(self):
        self.assert_error(self.pull("--revision", "../x"), 2, "--revision")
        self.assert_error(self.pull("--revision", "v1", name=f"{REPO}@v1"), 2, "--revision")

    def test_variables(self):
        for name, value in (
            ("HF_ENDPOINT", "huggingface.co"),
            ("HF_ENDPOINT", "ftp://hub"),
            ("HF_ENDPOINT", "http://user:word@127.0.0.1"),
            ("HF_HUB_ETAG_TIMEOUT", "0"),
            ("HF_HUB_ETAG_TIMEOUT", "soon"),
            ("HF_HUB_DOWNLOAD_TIMEOUT", "-1"),
        ):
            with self.subTest(name, value=value):
                self.assert_error(self.pull(**{name: value}), 2, name)
        result = self.pull(HF_TOKEN="two words")
        self.assert_error(result, 2, "HF_TOKEN")
        self.assertNotIn("words", result.err)
        self.assertEqual(self.hub.seen, [])

    def test_no_home(self):
        result = self.pull(HF_HOME="", XDG_CACHE_HOME="", HOME="")
        self.assert_error(result, 2, "HF_HOME")


class Progress(HubCase):
    def test_lines_in_a_pipe(self):
        result = self.pull()
        self.assert_pulled(result)
        self.assertNotIn("\r", result.err)
        tenths = [int(percent) for percent in re.findall(r"(?m)^(\d+)% of ", result.err)]
        self.assertEqual(tenths, sorted(set(tenths)))
        self.assertEqual(tenths[-1], 100)
        self.assertLessEqual(len(tenths), 10)
        for name in NEEDED:
            self.assertRegex(result.err, rf"(?m)^{re.escape(name)}: ")

    def test_none_when_not_wanted(self):
        self.assertEqual(self.pull("--no-progress").err, "")
        shutil.rmtree(self.cache)
        self.assertEqual(self.pull(HF_HUB_DISABLE_PROGRESS_BARS="1").err, "")

    def test_resumed_bytes_are_shown(self):
        self.put_incomplete(WEIGHT_BYTES[:512000])
        result = self.pull()
        self.assert_pulled(result)
        self.assertRegex(result.err, rf"(?m)^{re.escape(WEIGHTS)}: going on at \S+ \w+ of ")

    def test_redrawn_on_a_terminal(self):
        code, out, err = Session("pull", REPO, terminals=("err",), **self.env()).finish()
        self.assertEqual((code, out), (0, f"{self.snapshot}\n"))
        self.assertRegex(err, rf"\r\x1b\[K{re.escape(WEIGHTS)} \d+%, all \d+% \(")
        lines = left_on_screen(err).splitlines()
        self.assertEqual([line.partition(":")[0] for line in lines if line.strip()], list(NEEDED))


class Examples(HubCase):
    def test_they_run(self):
        self.hub.repo = "mlx-community/Qwen2.5-VL-3B-Instruct-4bit"
        for command in ("pull", "rm"):
            (line,) = examples(run(command, "--help").out)
            words = shlex.split(line.rpartition("whimbrel ")[2])
            words += ["-y"] if command == "rm" else []
            result = run(*words, env=self.env())
            self.assertEqual((result.code, words[0]), (0, command), result)


class Models(HubCase):
    """-m owner/name, from the cache and from nowhere else."""

    FILES = files_of_model(BUNDLED)

    def test_generate(self):
        self.assertEqual(self.pull().code, 0)
        del self.hub.seen[:]
        asked = ("--image", SHAPES, "-n", "8", "--temperature", "0")
        expected = run("generate", "-m", BUNDLED, *asked)
        for name in (REPO, f"{REPO}@main", f"{REPO}@{COMMIT}"):
            result = run("generate", "-m", name, *asked, env=self.env(), cwd=self.folder)
            self.assertEqual((result.code, result.out, result.err), (0, expected.out, ""), name)
        self.assertEqual(self.hub.seen, [])

    def test_inspect_and_verbose(self):
        self.assertEqual(self.pull().code, 0)
        result = run("inspect", "-m", REPO, "--json", env=self.env(), cwd=self.folder)
        self.assertEqual(parse_json(result.out)["folder"], str(self.snapshot))
        asked = ("generate", "-m", REPO, "-p", "Hi", "-n", "1", "--verbose")
        self.assertIn(str(self.snapshot), run(*asked, env=self.env(), cwd=self.folder).err)

    def test_a_folder_comes_first(self):
        self.assertEqual(self.pull().code, 0)
        (self.folder / REPO).mkdir(parents=True)
        result = run("inspect", "-m", REPO, env=self.env(), cwd=self.folder)
        self.assert_error(result, 3, REPO, "config.json")

    def test_not_there(self):
        for name in (REPO, f"{REPO}@v2", f"{REPO}@{OTHER_COMMIT}", "tiny"):
            with self.subTest(name):
                result = run("generate", "-m", name, "-p", "Hi", env=self.env(), cwd=self.folder)
                self.assert_error(result, 3, f"whimbrel pull {name}", str(self.cache))
        self.assertEqual(self.hub.seen, [])

    def test_partly_there(self):
        for lacking in ("config.json", "tokenizer.json", WEIGHTS):
            with self.subTest(lacking):
                self.assertEqual(self.pull().code, 0)
                (self.snapshot / lacking).unlink()
                result = run("inspect", "-m", REPO, env=self.env(), cwd=self.folder)
                self.assert_error(result, 3, lacking, f"whimbrel pull {REPO}")
                self.assertEqual(self.pull().code, 0)
                self.assertEqual(run("inspect", "-m", REPO, env=self.env(), cwd=self.folder).code, 0)

    def test_ref_of_another_kind(self):
        self.assertEqual(self.pull().code, 0)
        (self.model / "refs/main").write_text("../../../etc")
        result = run("inspect", "-m", REPO, env=self.env(), cwd=self.folder)
        self.assert_error(result, 3, "refs/main", "40 hex digits")


class ListAndRemove(HubCase):
    def list(self, *flags):
        return run("list", *flags, env=self.env())

    def remove(self, *arguments, **settings):
        return run("rm", *arguments, env=self.env(), **settings)

    def test_empty(self):
        for flags, out in (((), ""), (("-q",), "")):
            result = self.list(*flags)
            self.assertEqual((result.code, result.out), (0, out))
        self.assertIn("whimbrel pull", self.list().err)
        self.assertEqual(
            parse_json(self.list("--json").out), {"cache": str(self.cache), "models": []}
        )

    def test_list(self):
        self.hub.revisions += ["v1"]
        self.assertEqual(self.pull().code, 0)
        self.assertEqual(self.pull(name=f"{REPO}@v1").code, 0)
        size = sum(len(SMALL[name]) for name in NEEDED)
        self.assertEqual(
            parse_json(self.list("--json").out)["models"],
            [
                {
                    "name": REPO,
                    "refs": ["main", "v1"],
                    "commit": COMMIT,
                    "files": 3,
                    "bytes": size,
                    "path": str(self.snapshot),
                    "missing": None,
                }
            ],
        )
        self.assertEqual(self.list("-q").out, f"{REPO}\n")
        table = self.list().out.splitlines()
        self.assertEqual(table[0].split(), ["NAME", "REVISION", "SIZE", "PATH"])
        self.assertRegex(table[1], rf"^{REPO} +main,v1 +[\d.]+ \w+ +{self.snapshot}$")

    def test_list_of_what_is_not_whole(self):
        self.assertEqual(self.pull().code, 0)
        (self.snapshot / WEIGHTS).unlink()
        self.assertEqual(parse_json(self.list("--json").out)["models"][0]["missing"], "*.safetensors")
        self.assertIn("(without *.safetensors)", self.list().out)

    def test_list_refuses_both_forms(self):
        self.assert_error(self.list("--json", "-q"), 2, "--quiet")

    def test_others_in_the_cache(self):
        self.assertEqual(self.pull().code, 0)
        (self.cache / "datasets--owner--tiny/snapshots").mkdir(parents=True)
        (self.cache / "models--odd").mkdir()
        (self.cache / "CACHEDIR.TAG").write_text("")
        (self.model / "snapshots/.DS_Store").write_text("")
        self.assertEqual(self.list("-q").out, f"{REPO}\n")

    def test_remove(self):
        self.assertEqual(self.pull().code, 0)
        outside = self.write("outside/file", "kept")
        (self.model / "blobs/link").symlink_to(outside.parent)
        result = self.remove("-y", REPO)
        self.assertEqual((result.code, result.out), (0, ""), result)
        self.assertFalse(self.model.exists())
        self.assertFalse((self.cache / ".locks/models--owner--tiny").exists())
        self.assertTrue(outside.exists())
        self.assertEqual(self.list("-q").out, "")

    def test_remove_asks(self):
        self.assertEqual(self.pull().code, 0)
        result = self.remove(REPO)
        self.assert_error(result, 2, "-y")
        self.assertTrue(self.model.exists())
        for answer, kept in (("n", True), ("", True), ("y", False)):
            typing, stdin = pty.openpty()
            os.write(typing, answer.encode() + b"\n")
            asked = Session("rm", REPO, terminals=(), stdin=stdin, **self.env())
            code, out, err = asked.finish()
            os.close(typing)
            os.close(stdin)
            self.assertEqual((code, out), (0, ""))
            self.assertRegex(err, rf"Remove {REPO} \([\d.]+ \w+\) from {self.model}\? \[y/N\] ")
            self.assertEqual("nothing was removed" in err, kept)
            self.assertEqual(self.model.exists(), kept)

    def test_remove_what_is_not_there(self):
        self.assert_error(self.remove("-y", REPO), 3, REPO, "whimbrel list")
        self.assert_error(self.remove("-y", f"{REPO}@main"), 2, "revision")
        self.assert_error(self.remove("-y", "../hub"), 2, "owner/name")


class HandMadeTree(HubCase):
    """A cache as the Python tools leave it, made here file by file."""

    def test_it_is_used(self):
        for name in NEEDED:
            blob = self.model / "blobs" / blob_of(name, SMALL[name])
            blob.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(SMALL[name])
            self.snapshot.mkdir(parents=True, exist_ok=True)
            (self.snapshot / name).symlink_to(f"../../blobs/{blob.name}")
        (self.model / "refs").mkdir()
        (self.model / "refs/main").write_text(COMMIT)
        (self.model / ".no_exist" / COMMIT).mkdir(parents=True)
        (self.model / ".no_exist" / COMMIT / "chat_template.jinja").write_text("")
        (self.model / "trees").mkdir()
        (self.model / "trees" / f"{COMMIT}.json").write_text('{"format_version": 1, "files": {}}')
        self.assertEqual(run("list", "-q", env=self.env()).out, f"{REPO}\n")
        self.assert_pulled(self.pull())
        self.assertEqual(len(self.hub.seen), 1)
        # Blobs alone are enough as well.
        shutil.rmtree(self.model / "snapshots")
        (self.model / "refs/main").unlink()
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.requests("GET", "/resolve/"), [])

    def test_a_blob_in_the_shared_store(self):
        store = self.cache / "shared" / WEIGHTS_BLOB
        store.parent.mkdir(parents=True)
        store.write_bytes(WEIGHT_BYTES)
        blob = self.model / "blobs" / WEIGHTS_BLOB
        blob.parent.mkdir(parents=True)
        blob.symlink_to(store)
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.requests("GET", WEIGHTS), [])

    def test_a_blob_cut_short_is_fetched_again(self):
        blob = self.model / "blobs" / WEIGHTS_BLOB
        blob.parent.mkdir(parents=True)
        blob.write_bytes(WEIGHT_BYTES[:-1])
        self.assert_pulled(self.pull())


def has_python_tools() -> bool:
    check = [PYTHON, "-c", "import huggingface_hub"]
    return PYTHON.exists() and subprocess.run(check, capture_output=True).returncode == 0


@unittest.skipUnless(has_python_tools(), "no huggingface_hub in .venv")
class PythonTools(HubCase):
    """The same cache and the same hub, met by huggingface_hub."""

    def python(self, code: str, **env) -> str:
        done = subprocess.run(
            [PYTHON, "-c", code],
            env={**os.environ, **{k: v for k, v in self.env(**env).items() if v}},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_they_accept_ours(self):
        self.hub.revisions += ["refs/pr/1"]
        self.assert_pulled(self.pull())
        self.assertEqual(self.pull(name=f"{REPO}@refs/pr/1").code, 0)
        report = json.loads(
            self.python(
                "import json\n"
                "from huggingface_hub import scan_cache_dir, snapshot_download\n"
                "info = scan_cache_dir()\n"
                "repo, = info.repos\n"
                "revision, = repo.revisions\n"
                f"path = snapshot_download({REPO!r}, local_files_only=True)\n"
                "print(json.dumps([[str(w) for w in info.warnings], repo.repo_id,\n"
                "  revision.commit_hash, sorted(revision.refs), len(revision.files), path]))"
            )
        )
        self.assertEqual(
            report, [[], REPO, COMMIT, ["main", "refs/pr/1"], 3, str(self.snapshot)]
        )

    def test_we_accept_theirs(self):
        self.python(
            "from huggingface_hub import snapshot_download\n"
            f"snapshot_download({REPO!r}, allow_patterns={list(NEEDED)!r})",
            HF_HUB_DISABLE_XET="1",
        )
        del self.hub.seen[:]
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.requests("GET", "/resolve/"), [])

    def test_both_have_the_same_lock(self):
        """While the Python tools hold a blob's lock, a pull waits."""
        lock = self.cache / ".locks/models--owner--tiny" / f"{WEIGHTS_BLOB}.lock"
        lock.parent.mkdir(parents=True)
        holder = subprocess.Popen(
            [
                PYTHON,
                "-c",
                "import sys\nfrom huggingface_hub.utils import WeakFileLock\n"
                f"with WeakFileLock({str(lock)!r}):\n"
                "  print('held', flush=True)\n  sys.stdin.read()",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.assertEqual(holder.stdout.readline(), b"held\n")
        waiting = Session("pull", REPO, terminals=(), **self.env())
        waiting.read_until("err", f"{WEIGHTS}: another process is fetching it")
        self.assertEqual(self.hub.requests("GET", WEIGHTS), [])
        holder.communicate(b"")
        self.assertEqual(waiting.finish()[0], 0)


if __name__ == "__main__":
    unittest.main()
