"""What is measured of this repository, and which of its commits are."""

import re
import subprocess
from pathlib import Path

import projects
import pytest
from command_line import rlox_opt
from toy_entries import cell, entry, written

ROOT = projects.ROOT


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return rlox_opt("regressions", "--history", folder, *arguments)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout")
def test_what_is_left_out_as_the_workbench_is_loaded_by_nothing_that_is_measured() -> None:
    """Else a change of it would change a time, and not be recorded."""
    out = [of.removeprefix(":(exclude)") for of in projects.HERE.measured if of.startswith(":(")]
    assert out
    parts = [path for path in (ROOT / "rlox").glob("*") if f"rlox/{path.name}" not in out]
    measured = [
        *(path for part in parts for path in part.rglob("*.py")),
        *ROOT.glob("rlox/*.py"),
    ]
    measured += [*(ROOT / "asv_bench" / "benchmarks").rglob("*.py")]
    assert len(measured) > 50
    names = "|".join(of.replace("/", ".") for of in out)
    loaded = re.compile(rf"^\s*(?:from|import) ({names})", re.MULTILINE)
    by = {path.relative_to(ROOT): loaded.findall(path.read_text()) for path in measured}
    assert {str(path): of for path, of in by.items() if of} == {}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout")
def test_commits_that_are_not_on_the_line_of_head_are_left_out_and_counted(tmp_path: Path) -> None:
    line = projects.HERE.commits.line()
    assert line[-1] == projects.HERE.commits.resolve("HEAD").commit
    entries = [entry(0, cell(1.0)), entry(1, cell(1.0), commit=line[0])]
    done = run(written(entries, tmp_path))
    assert "1 recorded commits are not on the line of HEAD" in done.stderr
    assert done.returncode == 0
