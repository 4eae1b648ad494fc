"""Exit codes: 0 good, 1 a regression or difference, 2 cannot tell or asked wrongly, 3 an error of
our own or nothing written, 130 interrupted. Of every verb, in its help, and of the hook."""

import ast
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import projects
import pytest
from command_line import ROOT, rlox_opt
from rlox_opt.cli import cmp, gate
from rlox_opt.harness.restarts import ContestError, TwinsDifferError
from rlox_opt.plan import end_to_end
from rlox_opt.plan.end_to_end import Variant
from rlox_opt.project.builds import Builds, NotBuiltError
from rlox_opt.race import environments as racing
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, GOOD, INTERRUPTED, OWN_ERROR

VERBS = [
    *("profile", "profile train", "profile script", "profile bench", "profile diff"),
    *("list", "show", "test", "cmp", "ladder", "new"),
    *("peers", "peers ppo", "peers sac", "peers primitives", "peers growth", "peers backends"),
    *("diff", "gate", "bisect", "calibrate", "record", "regressions", "publish"),
    *("claims", "predict"),
]
DIFFER = {
    "profile diff",
    "test",
    "cmp",
    "ladder",
    "gate",
    "regressions",
    "claims",
    "predict",
}  # what can end with 1


def test_the_codes_are_these() -> None:
    assert (GOOD, DIFFERENCE, CANNOT_TELL, OWN_ERROR, INTERRUPTED) == (0, 1, 2, 3, 130)
    assert list(exits.MEANINGS) == [0, 1, 2, 3, 130]


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_every_help_tells_the_codes_in_the_same_words(verb: str) -> None:
    _, _, told = rlox_opt(*verb.split(), "--help").stdout.partition("exit codes:\n")
    lines = told.splitlines()
    expected = {c: m for c, m in exits.MEANINGS.items() if c != 1 or verb in DIFFER | {""}}
    assert len(lines) == len(expected)
    for line, (code, meaning) in zip(lines, expected.items(), strict=True):
        assert line == f"  {code:<5}{meaning}" or line.startswith(f"  {code:<5}{meaning}: ")
        assert len(line) <= 100


def test_every_verb_is_among_these() -> None:
    listed = re.findall(r"^    ([a-z-]+)(?: |$)", rlox_opt("--help").stdout, re.MULTILINE)
    assert {*listed} == {verb.split()[0] for verb in VERBS}


def test_no_verb_writes_a_code_as_a_number() -> None:
    wrong = []
    for path in (ROOT / "rlox" / "opt").rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and function.name in ("run", "conclude"):
                returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
                shown = [ast.unparse(value) for value in returned if value]
                wrong += [f"{path.name}: {text}" for text in shown if re.search(r"\b[1-9]", text)]
    assert not wrong


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


@pytest.mark.parametrize("verb", ["diff", "gate"])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotBuiltError("does not build"), CANNOT_TELL),
        (OSError(28, "No space left on device", "/a/b"), OWN_ERROR),
        (KeyboardInterrupt(), INTERRUPTED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_comparison_that_cannot_be_made(
    verb: str, error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Builds, "build", raising(error))
    assert rlox_opt(verb, "HEAD", "HEAD").returncode == code


@pytest.mark.parametrize(
    ("code", "passed"),
    [(GOOD, 0), (DIFFERENCE, 1), (CANNOT_TELL, 0), (OWN_ERROR, 3), (INTERRUPTED, 130)],
)
def test_a_hook_fails_on_all_but_what_cannot_be_told_of_which_it_warns(
    code: int, passed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setattr(gate, "_judged", lambda _: code)
    assert rlox_opt("gate", "HEAD").returncode == code
    done = rlox_opt("gate", "HEAD", "--hook")
    assert done.returncode == passed
    assert done.stderr.startswith("warning: ") == (code == CANNOT_TELL)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert rlox_opt("gate", "HEAD", "--hook").stderr.startswith("::warning::") == (code == 2)


def test_a_hook_warns_where_its_base_is_not_there() -> None:
    assert rlox_opt("gate", "nowhere/main").returncode == CANNOT_TELL
    assert rlox_opt("gate", "nowhere/main", "--hook").returncode == GOOD


@pytest.mark.parametrize(
    "file", [".pre-commit-config.yaml", ".github/workflows/performance.yml", "README.md"]
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
