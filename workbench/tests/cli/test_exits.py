"""Exit codes: 0 good, 1 a regression or difference, 2 cannot tell or asked wrongly, 3 an error of
our own or nothing written, 130 interrupted. Of every verb, in its help, and of the hook."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import toy_history
from command_line import assert_tells_codes, rlox_opt

from rlox_opt import cli
from rlox_opt.cli import gate
from rlox_opt.project.builds import Builds, NotBuiltError
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, GOOD, INTERRUPTED, OWN_ERROR

VERBS = [
    "init",
    *("profile", "profile train", "profile script", "profile bench", "profile diff"),
    *("list", "show", "test", "cmp", "ladder", "new"),
    "peers",
    *("diff", "gate", "bisect", "lint-suite", "calibrate", "record", "regressions", "publish"),
    *("claims", "predict"),
]
DIFFER = {
    "profile diff",
    "test",
    "cmp",
    "ladder",
    "gate",
    "lint-suite",
    "regressions",
    "claims",
    "predict",
}  # what can end with 1


def test_the_codes_are_these() -> None:
    assert (GOOD, DIFFERENCE, CANNOT_TELL, OWN_ERROR, INTERRUPTED) == (0, 1, 2, 3, 130)
    assert list(exits.MEANINGS) == [0, 1, 2, 3, 130]


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_every_help_tells_the_codes_in_the_same_words(verb: str) -> None:
    assert_tells_codes(verb, verb in DIFFER | {""})


def test_every_verb_is_among_these() -> None:
    listed = re.findall(r"^    ([a-z-]+)(?: |$)", rlox_opt("--help").stdout, re.MULTILINE)
    assert {*listed} == {verb.split()[0] for verb in VERBS}


def test_no_verb_writes_a_code_as_a_number() -> None:
    wrong = []
    for path in Path(cli.__file__).parent.rglob("*.py"):
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
    verb: str, error: BaseException, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_history.commits(tmp_path, [{}])
    monkeypatch.chdir(tmp_path / "repository")
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
    monkeypatch.setattr(gate, "_judged", lambda _: (code, "so"))
    assert rlox_opt("gate", "HEAD").returncode == code
    done = rlox_opt("gate", "HEAD", "--hook")
    assert done.returncode == passed
    assert done.stderr.startswith("warning: ") == (code == CANNOT_TELL)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert rlox_opt("gate", "HEAD", "--hook").stderr.startswith("::warning::") == (code == 2)


def test_a_hook_warns_where_its_base_is_not_there() -> None:
    assert rlox_opt("gate", "nowhere/main").returncode == CANNOT_TELL
    assert rlox_opt("gate", "nowhere/main", "--hook").returncode == GOOD


@pytest.mark.parametrize("verb", ["diff a b", "record", "calibrate", "regressions", "lint-suite"])
def test_a_pattern_that_is_given_twice_is_refused(verb: str) -> None:
    done = rlox_opt(*verb.split(), "--bench", "one", "--bench", "two")
    assert done.returncode == 2
    expected = "--bench: is given twice; give one REGEX, which may join several by |\n"
    assert done.stderr.endswith(expected)
