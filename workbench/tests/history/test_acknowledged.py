"""Acknowledged regressions: an entry fits what it means, and says what is wrong with it."""

from pathlib import Path
from typing import Any

import pytest
import small_projects
import toy_entries as toy
from msgspec.structs import replace

from rlox_opt.cli import diff
from rlox_opt.history import acknowledged
from rlox_opt.history.acknowledged import Acknowledgement
from rlox_opt.history.series import of_store
from rlox_opt.project.commits import Revision
from rlox_opt.project.project import Project
from rlox_opt.stats.levels import Change
from rlox_opt.system.files import NotReadError

SERIES = of_store(toy.history({25: 1.05}))[0]
(CHANGE,) = SERIES.changes
LATE = Change(1, 0, 1.05, (1.04, 1.06), 0.0, "confirmed")  # at the second reading
WHOLE = {
    "benchmark": '"a.*"',
    "commit": '"1a2b3c4"',
    "kind": '"time"',
    "ratio": "1.05",
    "reason": '"meant"',
}


def text(**more: str) -> str:
    """An entry with these values, a whole one but for them; "" leaves one out."""
    lines = [f"{name} = {value}" for name, value in (WHOLE | more).items() if value]
    return "\n".join(["[[acknowledged]]", *lines, ""])


def file(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "acknowledged.toml"
    path.write_text(content)
    return path


def entry(**more: Any) -> Acknowledgement:
    fields: dict[str, Any] = {
        "benchmark": toy.BENCHMARK,
        "commit": toy.commit(25)[:10],
        "kind": "time",
        "ratio": 1.06,
        "reason": "meant",
    }
    return Acknowledgement(**fields | more)


def test_the_file_is_read(tmp_path: Path) -> None:
    found = acknowledged.load(file(tmp_path, text() * 2))
    assert found == [Acknowledgement("a.*", "time", 1.05, "meant", "1a2b3c4")] * 2
    fewer = text(kind='"steps"', ratio="0.9") + text(kind='"allocations"', ratio="3")
    assert [of.ratio for of in acknowledged.load(file(tmp_path, fewer))] == [0.9, 3]
    assert acknowledged.load(file(tmp_path, "")) == []


def test_an_entry_fits_by_name_or_pattern_and_commit() -> None:
    assert entry().fits(SERIES, CHANGE)
    assert entry(benchmark="data_plane.Gae.*").fits(SERIES, CHANGE)
    assert not entry(benchmark="data_plane.Gae").fits(SERIES, CHANGE)
    assert not entry(benchmark="*.Vtrace.*").fits(SERIES, CHANGE)
    assert not entry(commit="0000000").fits(SERIES, CHANGE)


def test_an_entry_fits_a_change_that_is_located_two_commits_beside() -> None:
    near = [n for n in range(40) if entry(commit=toy.commit(n)).fits(SERIES, CHANGE)]
    assert near == [23, 24, 25, 26, 27]


def test_an_entry_whose_commit_has_no_reading_counts_from_the_next_one_on() -> None:
    line = {toy.commit(n): n for n in range(40)}
    whole = toy.history({25: 1.05})
    (series,) = of_store(whole[:25] + whole[27:])
    (change,) = series.changes
    assert series.points[change.index].commit == toy.commit(27)
    assert not entry(commit=toy.commit(25)).fits(series, change)
    near = [n for n in range(40) if entry(commit=toy.commit(n)).fits(series, change, line)]
    assert near == [23, 24, 25, 26, 27, 28, 29]
    # What changed before a machine's first reading is no change of that machine.
    (late,) = of_store(whole[24:])
    assert not entry(commit=toy.commit(5)).fits(late, LATE, line)
    assert entry(commit=toy.commit(24)).fits(late, LATE, line)


def test_an_entry_excuses_one_kind_of_number() -> None:
    assert not entry(kind="instructions").fits(SERIES, CHANGE)
    assert not entry(kind="criterion").fits(SERIES, CHANGE)


def test_what_became_faster_needs_no_excuse() -> None:
    faster = of_store(toy.history({25: 0.95}))[0]
    assert not entry().fits(faster, faster.changes[0])
    training = of_store(toy.history({25: 0.95}, kind="steps"))[0]
    fewer = entry(kind="steps", ratio=0.9)
    assert fewer.fits(training, training.changes[0])
    assert fewer.excuses(training.changes[0].ratio)
    assert not replace(fewer, ratio=0.97).excuses(training.changes[0].ratio)


def test_an_entry_excuses_no_more_than_it_says() -> None:
    assert entry(ratio=1.06).excuses(CHANGE.ratio)
    assert entry(ratio=CHANGE.ratio).excuses(CHANGE.ratio)
    assert entry(ratio=1.04).fits(SERIES, CHANGE)
    assert not entry(ratio=1.04).excuses(CHANGE.ratio)


def test_of_several_entries_the_one_that_excuses_most_answers() -> None:
    known = [entry(ratio=1.01), entry(ratio=1.2), entry(ratio=1.1), entry(benchmark="b", ratio=2)]
    assert acknowledged.answer(known, SERIES, CHANGE) is known[1]
    assert acknowledged.answer(known[3:], SERIES, CHANGE) is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[[acknowledged", "is not TOML"),
        ("accepted = 1", "unknown key `accepted`; it may be one of acknowledged"),
        ("[acknowledged]", "`acknowledged` is {}; it takes `array`"),
        ("acknowledged = [1]", r"`acknowledged\[0\]` is 1"),
        (text(reason=""), r"the key `acknowledged\[0\].reason` is missing"),
        (text(commit="1234567"), r"`acknowledged\[0\].commit` is 1234567; it takes `str`"),
        (text(commit='"HEAD"'), "commit` is 'HEAD'; it takes 7 to 40"),
        (text(reason='" "'), "reason` is ' '"),
        (text(kind=""), "kind` is missing"),
        (text(kind='"tiem"'), "kind` is 'tiem'; it takes what is excused: time, criterion"),
        (text(kind='["time"]'), r"kind` is \['time'\]; it takes"),
        (text(ratio=""), "ratio` is missing"),
        (text(ratio="0.9"), "ratio` is 0.9; it takes .* of time, a number over 1"),
        (text(ratio="1"), "ratio` is 1.0; it takes"),
        (text(ratio="inf"), "ratio` is inf; it takes"),
        (text(ratio="nan"), "ratio` is nan; it takes"),
        (text(ratio="true"), "ratio` is True; it takes"),
        (text(ratio='"5 %"'), "ratio` is '5 %'; it takes"),
        (text(kind='"steps"'), "ratio` is 1.05; it takes .* of steps, over 0 and under 1"),
        (
            '[[acknowledged]]\nbench = "a"',
            r"unknown key `acknowledged\[0\].bench`; it may be one of benchmark",
        ),
    ],
)
def test_a_malformed_entry_is_told_with_what_would_do(
    content: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(NotReadError, match=says):
        acknowledged.load(file(tmp_path, content))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotReadError, match="cannot be read"):
        acknowledged.load(tmp_path / "none.toml")


def in_file(*entries: str) -> dict[str, str]:
    return {
        "pyproject.toml": "[project]\nname = 'thing'\n",
        ".rlox-opt/acknowledged.toml": "".join(entries),
    }


def test_an_entry_without_a_commit_means_the_change_that_brings_it_in_and_not_the_next(
    tmp_path: Path,
) -> None:
    own, other = text(commit=""), text(commit="", benchmark='"b"')
    made = small_projects.repository(
        tmp_path, in_file(), in_file(own), {"x": "next"}, in_file(other, own)
    )
    project = Project.find(tmp_path)

    def of(base: str, head: str) -> list[str]:
        sides = (Revision(commit, commit) for commit in (base, head))
        return [entry.benchmark for entry in acknowledged.of_change(project, *sides)]

    assert of(made[0], made[1]) == ["a.*"]
    assert of(made[1], made[2]) == []
    assert of(made[2], made[3]) == ["b"]
    found = acknowledged.dated(
        project, project.acknowledged, acknowledged.load(project.acknowledged)
    )
    assert [(of.benchmark, of.commit) for of in found] == [("b", made[3]), ("a.*", made[1])]
    assert not entry(commit="").fits(SERIES, CHANGE)


def test_an_entry_with_a_commit_excuses_a_change_that_has_the_commit(tmp_path: Path) -> None:
    (before,) = small_projects.repository(tmp_path, in_file())
    (slower,) = small_projects.repository(tmp_path, {"x": "slower"})
    (after,) = small_projects.repository(tmp_path, in_file(text(commit=f'"{slower[:10]}"')))
    project = Project.find(tmp_path)
    sides = [Revision(commit, commit) for commit in (before, slower, after)]
    assert len(acknowledged.of_change(project, sides[0], sides[2])) == 1
    assert acknowledged.of_change(project, sides[1], sides[2]) == []


@pytest.mark.parametrize("sides", [(0, 1), (1, 0)])
def test_a_file_that_an_old_commit_has_in_another_form_excuses_nothing_and_is_told(
    sides: tuple[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = small_projects.repository(tmp_path, in_file("[[acknowledged]]\n"), in_file(text()))
    project = Project.find(tmp_path)
    assert not diff.meant(project, [Revision(made[n], made[n]) for n in sides])
    said = capsys.readouterr().err
    assert said.startswith("note: no regression is taken as acknowledged: ")
    assert f"{made[0][:10]}:.rlox-opt/acknowledged.toml: the key" in said
