"""`kill -9` of a verb: nothing that it started goes on, and the next run clears its folders."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import toy_history
from survivors import MAKING, bearing, end, none_left, wait_for


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
