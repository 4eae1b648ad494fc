"""`rlox-opt test --planted`: whether the planted bugs fit the tree, and what becomes of them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import projects
import pytest
from rich.console import Console
from rlox_opt.plan.testing import answers, planted
from rlox_opt.plan.testing.planted import Bug
from rlox_opt.project.project import Project
from rlox_opt.system.commands import CannotTell, CompileError, Done
from rlox_opt.system.files import NotReadError
from rlox_opt.system.progress import Lines
from rlox_opt.system.usage import UsageError

BUGS = planted.load(projects.ROOT / projects.HERE.settings.twins.planted)
QUIET = Lines(Console(quiet=True))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.id}-{bug.twin}-{bug.story}")
def test_a_planted_bug_fits_the_tree(bug: Bug) -> None:
    text = (projects.ROOT / bug.file).read_text()
    assert planted.planted_in(text, bug) != text


def test_every_twin_of_every_pair_has_a_bug_that_can_be_seen() -> None:
    seen = {(bug.id, bug.twin) for bug in BUGS if not bug.survives}
    assert seen == {
        (id_, twin)
        for id_ in projects.HERE.installed.paired()
        for twin in ("baseline", "optimized")
    }


BUG = """[[bug]]
id = "P5"
twin = "baseline"
file = "a.rs"
story = "wrong"
find = "a < b"
replace = "a <= b"
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BUG.replace("story", "storey"), r"unknown key `bug\[1\].storey`"),
        (BUG.replace('find = "a < b"\n', ""), r"the key `bug\[1\].find` is missing"),
        (
            BUG.replace("baseline", "before"),
            "is 'before'; it takes baseline or optimized",
        ),
        (BUG.replace("a <= b", "a < b"), r"`bug\[1\].replace` is `find`"),
        (BUG.replace("a.rs", "a\\u0000.rs"), "holds a NUL character"),
    ],
)
def test_a_wrong_list_is_told_by_its_key(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "planted.toml"
    path.write_text(BUG + text)
    with pytest.raises(NotReadError, match=says):
        planted.load(path)


@pytest.mark.parametrize("text", ["c < d", "a < b && a < b"])
def test_a_bug_that_stands_nowhere_or_twice_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "planted.toml"
    path.write_text(BUG)
    (bug,) = planted.load(path)
    with pytest.raises(UsageError, match=r"'find' is [02] times in a\.rs"):
        planted.planted_in(text, bug)


class Scratch:
    """Every test ends as it is told to."""

    outcome: Done | type[BaseException] | CompileError | CannotTell = Done(0, "ok", 1.0)

    def __init__(self, project: Project, hear: Any) -> None:
        self.planted = False

    def test(self, id_: str) -> Done:
        if not self.planted:
            return Done(0, "ok", 1.0)
        if not isinstance(self.outcome, Done):
            raise self.outcome
        return self.outcome

    @contextlib.contextmanager
    def holding(self, bug: Bug) -> Iterator[None]:
        self.planted = True
        yield
        self.planted = False


@pytest.mark.parametrize(
    ("outcome", "survives", "word", "status"),
    [
        (Done(101, "P5 on the case [1]: the twins differ at character 7", 1.0), "", "caught", 0),
        (Done(101, "index out of bounds", 1.0), "", "broke", 2),
        (Done(0, "ok", 1.0), "", "survived", 1),
        (Done(0, "ok", 1.0), "nobody looks", "survived", 0),
        (Done(101, "the twins differ at character 7", 1.0), "nobody looks", "caught", 2),
        (CompileError("error[E0425]"), "", "did not compile", 2),
        (CannotTell("pytest could not run the tests of the pairs"), "", "broke", 2),
    ],
)
def test_what_becomes_of_a_bug_decides_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, outcome: Any, survives: str, word: str, status: int
) -> None:
    bug = Bug("P5", "baseline", "a.rs", "wrong", "a < b", "a <= b", survives)
    monkeypatch.setattr(planted, "load", lambda path: [bug])
    monkeypatch.setattr(answers, "read_text", lambda path: bug.find)
    monkeypatch.setattr(planted, "Scratch", Scratch)
    monkeypatch.setattr(Scratch, "outcome", outcome)
    found = answers.of_planted(projects.HERE, ["P5"], QUIET)
    assert (found.rows[0][2], found.status) == (word, status)


def test_bugs_that_fit_no_more_are_told_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = next(bug for bug in BUGS if bug.id == "P5")
    monkeypatch.setattr(planted, "Scratch", lambda *_: pytest.fail("compiles"))
    for unfit, error in (({"find": "is nowhere"}, UsageError), ({"file": "a.rs"}, NotReadError)):
        bug = msgspec.structs.replace(listed, **unfit)
        monkeypatch.setattr(planted, "load", lambda path, bug=bug: [listed, bug])
        with pytest.raises(error):
            answers.of_planted(projects.HERE, ["P5"], QUIET)


def test_a_copy_that_does_not_compile_is_not_our_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiles_not(*_: object) -> None:
        raise CompileError("error[E0583]: file not found for module `new`")

    monkeypatch.setattr(planted, "Scratch", compiles_not)
    with pytest.raises(CannotTell, match=r"`git add` what is new(.|\n)*E0583"):
        answers.of_planted(projects.HERE, ["P5"], QUIET)


def test_without_a_bug_to_plant_nothing_is_proved() -> None:
    with pytest.raises(CannotTell, match="P6"):
        answers.of_planted(projects.HERE, ["P6"], QUIET)


def test_interrupted_planting_is_told_as_far_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted, "Scratch", Scratch)
    monkeypatch.setattr(Scratch, "outcome", KeyboardInterrupt)
    found = answers.of_planted(projects.HERE, ["P5"], QUIET)
    assert (found.status, found.rows, found.facts["complete"]) == (130, [], False)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_real_bugs_are_caught_and_a_harmless_change_survives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bugs = [bug for bug in BUGS if bug.id == "P13"]
    wide = "optimized.rs"
    harmless = Bug(
        "P13", "optimized", bugs[-1].file, "", "current.clear();", "current.truncate(0);"
    )
    broken = Bug("P13", "optimized", bugs[-1].file, "", "current.clear();", "current.empty();")
    assert bugs[-1].file.endswith(wide)
    monkeypatch.setattr(planted, "load", lambda path: [*bugs, harmless, broken])
    found = answers.of_planted(projects.HERE, ["P13"], QUIET)
    assert found.status == 1
    assert [row[2] for row in found.rows] == ["caught"] * len(bugs) + [
        "survived",
        "did not compile",
    ]
