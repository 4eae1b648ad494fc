"""Writes the files of a commit into a folder."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

from asv_bench.injected.tools import ToolError


def tree(clone: Path, commit: str, folder: Path, files: Sequence[str] = ()) -> Path:
    """A folder within `folder` with those `files` of a commit (all). Raises ToolError."""
    there = folder / commit
    if not there.is_dir():
        part = there.with_name(f"{commit}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        command = ["git", "-C", str(clone), "archive", commit, "--", *files]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as git:
            try:
                with tarfile.open(fileobj=git.stdout, mode="r|") as archive:
                    archive.extractall(part, filter="data")
            except tarfile.ReadError:
                assert git.stderr
                said = git.stderr.read().decode("utf-8", "replace").strip()
                raise ToolError(f"git archive {commit}: {said}") from None
        part.rename(there)
    return there
