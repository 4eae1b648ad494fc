"""Writes the table of a script of this folder as a page with its origin."""

import datetime
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from rlox_opt.system import machine


def write(path: Path, title: str, said: str, rows: Sequence[str]) -> None:
    """Write `rows` as they were printed, under `title`, with the summary `said` and their
    origin."""
    head, dirty = machine.commit(Path(__file__).parents[3])
    commit = (head or "unknown")[:12] + (" with uncommitted changes" if dirty else "")
    names = ("stable_baselines3", "torch", "gymnasium", "numpy")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    today = datetime.datetime.now(datetime.UTC).date()
    origin = f"{today}, commit {commit}, {versions}."
    text = "\n".join([f"# {title}", "", said, "", origin, "", "```", *rows, "```", ""])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
