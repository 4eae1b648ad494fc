"""`rlox-opt record` where something fails or is mistyped: what is known stays, and the reason is
told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from toy_history import SPENT, Make, entries

from rlox_opt.cli.main import main
from rlox_opt.history import store
from rlox_opt.project.builds import Artefact, Builds, NotBuiltError


def out(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed, on one line."""
    return " ".join(capsys.readouterr().out.split())


def test_a_failure_that_passes_is_tried_again_and_hides_nothing(
    history: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made,) = history({})

    def fails(*_: Any) -> NoReturn:
        raise NotBuiltError(f"{made} does not build: no network")

    def numbers() -> int:
        (found,) = store.newest(entries(tmp_path)).values()
        return len(found.cells)

    assert main(["record", *SPENT]) == 0
    there = numbers()
    with monkeypatch.context() as patched:
        patched.setattr(Builds, "build", fails_for_twins(fails))
        assert main(["record", "--again", *SPENT]) == 2
    assert len(entries(tmp_path)) == 2
    assert numbers() == there > 0


def fails_for_twins(fails: Callable[..., NoReturn]) -> Callable[..., Artefact]:
    """A commit's build, which fails, where the control's does not."""
    build = Builds.build
    return lambda self, *of: fails() if self.twins else build(self, *of)


def test_a_name_that_no_benchmark_has_records_nothing(
    history: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history({})
    assert main(["record", "--bench", "toys.time_staedy", *SPENT]) == 2
    assert "no benchmark of it has such a name" in out(capsys)
    assert not entries(tmp_path)


def test_a_commit_whose_benchmarks_cannot_be_read_is_no_control(
    history: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = history({"name": "unreadable"}, {}, {"passes": 11})
    assert main(["record", *made, *SPENT]) == 0
    found = {entry.commit: entry for entry in entries(tmp_path)}
    assert {entry.control["commit"] for entry in found.values()} == {made[1]}
    assert [bool(found[commit].cells) for commit in made] == [False, True, True]
    assert "RuntimeError: of its import" in out(capsys)
    with pytest.raises(SystemExit, match="2"):
        main(["record", made[1], "--control", made[0], *SPENT])
    said = " ".join(capsys.readouterr().err.split())
    assert "cannot be the control, since no benchmark can be read" in said
