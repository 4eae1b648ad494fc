"""A folder ends with its block, that of a killed process with the next one; none that is in use."""

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rlox_opt.system.scratch import scratch


def in_a_process(work: Callable[[], object]) -> int:
    """The id of a process that does `work`."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def killed(home: Path, moment: int) -> bool:
    """Make a folder and fill it in a process that ends at the `moment`-th thing it does in `home`;
    whether it came so far."""

    def work() -> None:
        left = moment

        def hear(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            if event in ("open", "os.mkdir", "os.rmdir", "os.remove") and str(home) in str(
                arguments
            ):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hear)
        with scratch(home) as folder:
            (folder / "part").write_text("half")

    return os.WIFSIGNALED(os.waitpid(in_a_process(work), 0)[1])


def test_a_folder_is_new_empty_and_gone_at_the_end(tmp_path: Path) -> None:
    with scratch(tmp_path / "made" / "for it") as folder:
        assert list(folder.iterdir()) == []
        (folder / "part").touch()
    assert list((tmp_path / "made" / "for it").iterdir()) == []


def test_a_folder_that_was_moved_away_stays_and_may_be_read_by_others(tmp_path: Path) -> None:
    with scratch(tmp_path) as folder:
        (folder / "whole").touch()
        folder.rename(tmp_path / "result")
    assert [path.name for path in tmp_path.iterdir()] == ["result"]
    assert [path.name for path in (tmp_path / "result").iterdir()] == ["whole"]
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "result").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_it_lies_with_the_temporary_files_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch() as folder:
        assert tmp_path in folder.parents


def test_what_a_process_killed_at_any_moment_left_is_removed_by_the_next(tmp_path: Path) -> None:
    moment, left = 1, 0
    while killed(tmp_path, moment):
        left += len(list(tmp_path.iterdir()))
        with scratch(tmp_path) as folder:
            assert list(tmp_path.iterdir()) == [folder.parent], moment
        moment += 1
    assert moment > 7
    assert left > 3


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    told, tell = os.pipe()

    def work() -> None:
        with scratch(tmp_path) as folder:
            (folder / "part").touch()
            os.write(tell, b"ready")
            signal.pause()

    pid = in_a_process(work)
    assert os.read(told, 5) == b"ready"
    with scratch(tmp_path) as folder:
        assert len(list(tmp_path.glob("*/*/part"))) == 1
        assert len(list(tmp_path.iterdir())) == 2
        (folder / "own").touch()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with scratch(tmp_path):
        assert not list(tmp_path.glob("*/*/part"))


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    def work() -> None:
        for _ in range(60):
            with scratch(tmp_path) as folder:
                (folder / "part").write_text("whole")
                if (folder / "part").read_text() != "whole":
                    os._exit(1)
        os._exit(7)

    pids = [in_a_process(work) for _ in range(4)]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [7] * 4
    assert list(tmp_path.iterdir()) == []


def test_what_only_looks_like_a_folder_of_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/lock").touch()
    (tmp_path / ".rlox-making-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / ".rlox-making-file").touch()
    (tmp_path / ".rlox-making-notes").mkdir()
    (tmp_path / ".rlox-making-notes/mine.txt").touch()
    before = sorted(tmp_path.rglob("*"))
    with scratch(tmp_path):
        pass
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder to somebody else")
def test_a_folder_of_another_user_is_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / ".rlox-making-theirs"
    theirs.mkdir()
    (theirs / "lock").touch()
    os.chown(theirs, 65534, 65534)
    with scratch(tmp_path):
        pass
    assert (theirs / "lock").exists()
