"""What a program under `profile script` is given to read, and what is said before it starts."""

from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from command_line import started

from rlox_opt.cli import main as cli
from rlox_opt.cli import profile_script
from rlox_opt.sampling import perf, pyspy
from rlox_opt.sampling.processes import launch

FILTER = "import sys\nwith open('told', 'a') as told: told.write(sys.stdin.read())\n"


def filtered(folder: Path, *options: str, **stdin: Any) -> CompletedProcess[str]:
    """A program that appends what it reads to the file `told`."""
    (folder / "filter.py").write_text(FILTER)
    words = ("profile", "script", "filter.py", "--sampler", "none", "--out", "out", *options)
    return started(*words, cwd=folder, **stdin)


def test_what_is_piped_in_is_the_programs_input(tmp_path: Path) -> None:
    done = filtered(tmp_path, input="some text")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "told").read_text() == "some text"


def test_a_file_is_read_again_by_the_run_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("some text")
    with (tmp_path / "text").open() as file:
        done = filtered(tmp_path, "--serial=--one", stdin=file)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "told").read_text() == "some text" * 2


def test_a_pipe_that_would_be_read_twice_is_refused(tmp_path: Path) -> None:
    done = filtered(tmp_path, "--serial=--one", input="some text")
    assert done.returncode == 2
    assert "--serial: runs the program twice, and a pipe can be read once" in done.stderr
    assert not (tmp_path / "told").exists()


def test_that_nothing_can_sample_is_told_before_the_program_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []

    def start(*_: Any) -> None:
        said.append(capsys.readouterr().err)
        raise launch.NotStartedError("this is enough")

    monkeypatch.setattr(launch, "launch", start)
    monkeypatch.setattr(profile_script, "end_as_by_ctrl_c", lambda: None)
    monkeypatch.setattr(perf, "unavailable", lambda: "perf is not there")
    monkeypatch.setattr(pyspy, "unavailable", lambda: "py-spy may not look")
    (tmp_path / "train.py").touch()
    with pytest.raises(SystemExit):
        cli.main(["profile", str(tmp_path / "train.py"), "--out", str(tmp_path / "out")])
    assert "so layers will not be known. perf is not there. py-spy may not look." in said[0]
