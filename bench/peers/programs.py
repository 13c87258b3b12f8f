"""Runs other programs, and keeps what they make in the cache folder."""

import os
import pathlib
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence

HERE = pathlib.Path(__file__).parent


class Failure(Exception):
    """One sentence for the user."""


# A program that one of these ends can't run here; others come from outside, as for want of memory.
CRASHES = {-signal.SIGILL, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGABRT}


class Crash(Failure):
    """A program that ended by one of CRASHES."""


def say(text: str):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def run(command: Sequence[str | os.PathLike], **options) -> subprocess.CompletedProcess:
    """Runs to the end and returns both outputs. Throws Failure, or Crash, with the end of what it
    said."""
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **options
    )
    if result.returncode:
        line = shlex.join(str(word) for word in command)
        end = "\n".join((result.stderr or result.stdout).splitlines()[-15:])
        failure = Crash if result.returncode in CRASHES else Failure
        raise failure(f"got exit code {result.returncode} from {line}:\n{end}")
    return result


def cache_folder(flag: pathlib.Path | None) -> pathlib.Path:
    """--cache, else WHIMBREL_BENCH_CACHE, else ~/.cache/whimbrel-bench."""
    named = flag or os.environ.get("WHIMBREL_BENCH_CACHE")
    folder = pathlib.Path(named) if named else pathlib.Path.home() / ".cache/whimbrel-bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def python_of_peers(cache: pathlib.Path) -> pathlib.Path:
    """The Python that has requirements.txt, in a virtual environment of the cache folder."""
    environment = cache / "venv"
    python = environment / "bin/python"
    wanted = (HERE / "requirements.txt").read_text()
    installed = environment / "installed.txt"
    if not installed.exists() or installed.read_text() != wanted:
        say(f"installing the Python packages of the peers into {environment}")
        run([sys.executable, "-m", "venv", environment])
        run([python, "-m", "pip", "install", "--quiet", "-r", HERE / "requirements.txt"])
        installed.write_text(wanted)
    return python


def physical_cores() -> int:
    """Physical cores that this process may run on; where the system doesn't say, its processors."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = set()
    for processor in os.sched_getaffinity(0):
        topology = pathlib.Path(f"/sys/devices/system/cpu/cpu{processor}/topology")
        try:
            ids = ((topology / name).read_text() for name in ("physical_package_id", "core_id"))
            cores.add(tuple(ids))
        except OSError:
            cores.add((str(processor),))
    return len(cores)
