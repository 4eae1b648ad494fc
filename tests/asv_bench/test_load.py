"""Other work on the machine while something is measured."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from projects import ROOT
from survivors import wait_for

from asv_bench.injected.load import beside
from asv_bench.injected.scores import aa_table
from asv_bench.injected.tools import ToolError


def lines(path: Path, at_least: int) -> int:
    """How many lines a file has, once it has so many."""

    def has() -> int:
        return len(path.read_text().splitlines()) if path.exists() else 0

    wait_for(lambda: has() >= at_least)
    return has()


def runs(path: Path) -> bool:
    """Whether a process has the path on its command line."""
    return (
        subprocess.run(["pgrep", "-f", str(path)], capture_output=True, check=False).stdout != b""
    )


def test_it_runs_again_and_again_until_the_end_and_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with beside(f"echo turn >> '{log}'; sleep 0.01"):
        lines(log, at_least=3)
    before = lines(log, at_least=3)
    time.sleep(0.1)
    assert lines(log, at_least=3) == before
    wait_for(lambda: not runs(log))  # one that was killed has yet to get a core to end on


def test_a_load_that_fails_is_told_with_what_it_said(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(ToolError, match=r"--load: .* failed: .*nowhere"), beside(f"ls '{nowhere}'"):
        while runs(nowhere):
            time.sleep(0.01)


def test_what_the_block_raises_comes_out_also_beside_a_load(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(ValueError, match="its own"), beside(f"echo turn >> '{log}'; sleep 0.01"):
        lines(log, at_least=1)
        raise ValueError("its own")


def test_a_tool_does_not_outlive_the_program_that_runs_it(tmp_path: Path) -> None:
    began = tmp_path / "began"
    program = (
        "import subprocess, sys\n"
        "from asv_bench.injected import __main__ as command\n"
        "tool = ['sh', '-c', 'echo > \"$0\"; sleep 600; :', sys.argv[1]]\n"
        "command._run = lambda _: subprocess.run(tool).returncode\n"
        "command.main(['probe'])\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(began)], cwd=ROOT) as process:
        lines(began, at_least=1)
        process.kill()
    wait_for(lambda: not runs(began))


def test_runs_beside_a_load_have_a_row_of_their_own() -> None:
    cells = {"diff": {"a": {"verdict": "same", "ratio": 1.0, "ci99": None}}}
    row = {"cells": cells, "seconds": 1.0, "threshold": 3.0}
    table = [*aa_table([row | {"load": ""}, row | {"load": "make"}, row | {"load": "make"}])]
    assert [line.split(" | ")[:2] for line in table[2:]] == [
        ["| diff, threshold 3 %", "0/1 (< 95.0 %)"],
        ["| diff, threshold 3 %, beside `make`", "0/2 (< 77.6 %)"],
    ]
