"""The table of a script of this folder, as a file that says what it is of."""

import datetime
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent


def write(path: Path, title: str, said: str, rows: Sequence[str]) -> None:
    """`rows` as they were printed, under `title`, what they come to, and their origin."""
    commit = _git("rev-parse", "--short=12", "HEAD") or "unknown"
    if _git("status", "--porcelain", "--untracked-files=no"):
        commit += " with uncommitted changes"
    names = ("stable_baselines3", "torch", "gymnasium", "numpy")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    today = datetime.datetime.now(datetime.UTC).date()
    origin = f"{today}, commit {commit}, {versions}."
    text = "\n".join([f"# {title}", "", said, "", origin, "", "```", *rows, "```", ""])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True)
    return done.stdout.strip()
