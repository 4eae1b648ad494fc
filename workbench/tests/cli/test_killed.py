"""`kill -9` of a verb: nothing that it started goes on, and the next run clears its folders."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import toy_history
from survivors import bearing, none_left

MAKING = ".rlox-making-*"


@pytest.fixture
def start(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.Popen[str]]:
    """Starts rlox-opt, or another program, in a folder of its own that has the temporary files as
    well, or in the project's; all of it bears the mark."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(toy_history.__file__).parent), *sys.path])
    )

    def begin(
        *words: object,
        program: tuple[str, ...] = ("-m", "rlox_opt.cli.main"),
        folder: Path = tmp_path,
    ) -> subprocess.Popen[str]:
        command = [sys.executable, *program, *map(str, words)]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, cwd=folder
        )

    return begin


def wait_for(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 150
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def end(process: subprocess.Popen[str]) -> None:
    assert process.poll() is None
    process.kill()
    process.wait()


def test_a_comparison_of_two_commits(
    start: Callable[..., subprocess.Popen[str]], mark: str, tmp_path: Path
) -> None:
    base, head = toy_history.commits(tmp_path, [{}, {"name": "hangs"}])
    toy = (toy_history.__file__, str(tmp_path))
    process = start("diff", base, head, "--bench", "time_hangs", program=toy)
    wait_for(lambda: any("rlox_opt_side" in command for command in bearing(mark)))
    end(process)
    assert none_left(mark)
    assert list((tmp_path / "cache" / "revisions").glob(MAKING))
    quick = ("--bench", "time_steady", "--budget", "1", "--no-counts")
    assert start("diff", base, head, *quick, program=toy).wait() in (0, 2)
    assert not list((tmp_path / "cache" / "revisions").glob(MAKING))
    assert not list((tmp_path / "temporary").iterdir())
