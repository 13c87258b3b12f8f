"""What the check tools know of the project."""
import pathlib
import subprocess

# The families' names: model_type in their config.json, and the file's name in src/models.
FAMILIES = ("qwen2", "qwen2_vl", "qwen2_5_vl", "qwen3", "qwen3_moe", "qwen3_vl", "qwen3_vl_moe")
NOT_OURS = {".git", ".venv", "target", "__pycache__"}


def kept_files(root: pathlib.Path) -> list[pathlib.Path]:
    """The files that git keeps or would keep; outside a checkout, all but build products."""
    # The owner of a checkout in a container is often somebody else.
    git = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "-co"]
    found = subprocess.run([*git, "--exclude-standard"], capture_output=True, check=False)
    if (root / ".git").exists() and found.returncode == 0:
        paths = [root / name for name in found.stdout.decode().split("\0") if name]
        return [path for path in paths if path.is_file()]
    return [path for path in root.rglob("*") if path.is_file() and not is_built(path, root)]


def is_built(path: pathlib.Path, root: pathlib.Path) -> bool:
    parts = path.relative_to(root).parts
    return parts[0].startswith("build") or not NOT_OURS.isdisjoint(parts)
