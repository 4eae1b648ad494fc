"""The exit codes, as this repository's hook and workflow take them, and its cards and training."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import projects
import pytest
from command_line import assert_tells_codes, rlox_opt
from projects import ROOT
from rlox_opt.cli import cmp
from rlox_opt.harness.restarts import ContestError, TwinsDifferError
from rlox_opt.plan import end_to_end
from rlox_opt.plan.end_to_end import Variant
from rlox_opt.race import environments as racing
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, GOOD, INTERRUPTED, OWN_ERROR


def raising(error: BaseException) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TwinsDifferError("they differ"), DIFFERENCE),
        (ContestError("hangs"), CANNOT_TELL),
        (OSError(28, "No space left on device"), OWN_ERROR),
        (KeyError("a fault"), OWN_ERROR),
        (KeyboardInterrupt(), INTERRUPTED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_cmp(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    monkeypatch.setattr(cmp, "compare", raising(error))
    assert rlox_opt("cmp", "p13", "--no-record").returncode == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (end_to_end.TrainingDiffersError("p1 differs"), DIFFERENCE),
        (RuntimeError("training failed"), CANNOT_TELL),
        (OSError(28, "No space left on device"), OWN_ERROR),
        (KeyboardInterrupt(), INTERRUPTED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_training_that_differs_is_1_and_training_that_fails_is_2(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(end_to_end, "build_all", raising(error))
    assert rlox_opt("ladder", "ppo").returncode == code
    assert rlox_opt("cmp", "p2", "--end-to-end", "ppo").returncode == code


def test_training_that_does_not_end_is_2(monkeypatch: pytest.MonkeyPatch) -> None:
    built = SimpleNamespace(path=projects.HERE.installed.extension())
    monkeypatch.setattr(end_to_end, "_PATIENCE_S", 0.01)

    def build_all(_project: object, of: list[Variant], _progress: object) -> dict[str, object]:
        return {each.name: built for each in of}

    monkeypatch.setattr(end_to_end, "build_all", build_all)
    done = rlox_opt("cmp", "p2", "--end-to-end", "ppo")
    assert done.returncode == CANNOT_TELL
    assert "did not end within 0.01 s" in done.stderr


def test_a_race_that_nobody_runs_is_2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(racing, "home", lambda project: tmp_path)
    monkeypatch.setattr(racing, "python_of", raising(racing.PeerError("does not install")))
    done = rlox_opt("peers", "ppo", "--only", "sb3", "--no-record")
    assert done.returncode == CANNOT_TELL
    assert done.stderr.endswith("rlox-opt peers: no peer ran\n")


def test_training_that_cannot_be_profiled_is_2(monkeypatch: pytest.MonkeyPatch) -> None:
    from rlox_opt.system.process import ChildError

    monkeypatch.setattr("rlox_opt.sampling.driver.profile", raising(ChildError("exit status 1")))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    done = rlox_opt("profile", "ppo", "--tools", "none")
    assert done.returncode == CANNOT_TELL
    assert "the plain run failed: exit status 1" in done.stderr


@pytest.mark.parametrize("kind", ["ppo", "sac", "primitives", "growth", "backends"])
def test_every_help_of_peers_tells_the_codes_in_the_same_words(kind: str) -> None:
    assert_tells_codes(f"peers {kind}", may_differ=False)


@pytest.mark.parametrize(
    "file",
    [
        ".pre-commit-config.yaml",
        ".github/workflows/performance.yml",
        "docs/guides/pull-requests.md",
    ],
)
def test_hook_and_workflow_take_the_codes_as_gate_gives_them(file: str) -> None:
    calls = [line for line in (ROOT / file).read_text().splitlines() if "rlox-opt gate " in line]
    assert [line for line in calls if "--hook" in line]
    assert "--hook" in rlox_opt("gate", "--help").stdout
    assert "code=$?" not in (ROOT / file).read_text()


def test_what_json_says_is_the_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    done = rlox_opt("regressions", "--history", tmp_path / "history", "--json")
    assert done.returncode == CANNOT_TELL
    done = rlox_opt("regressions", "--json")
    assert done.returncode == json.loads(done.stdout)["exit_code"]
    assert done.returncode in (GOOD, DIFFERENCE)
