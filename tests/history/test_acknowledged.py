"""Acknowledged regressions: an entry fits what it means, and says what is wrong with it."""

from pathlib import Path

import pytest
import toy_entries as toy

from rlox.history import acknowledged
from rlox.history.acknowledged import AcknowledgedError, Acknowledgement
from rlox.history.series import of_store

SERIES = of_store(toy.history({25: 1.05}))[0]
(CHANGE,) = SERIES.changes


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "acknowledged.toml"
    path.write_text(text)
    return path


def entry(**more: str) -> Acknowledgement:
    fields = {"benchmark": toy.BENCHMARK, "commit": toy.commit(25)[:10], "reason": "meant"}
    return Acknowledgement(**fields | more)


def test_the_file_is_read(tmp_path: Path) -> None:
    text = '[[acknowledged]]\nbenchmark = "a.*"\ncommit = "1a2b3c4"\nreason = "meant"\n'
    found = acknowledged.load(file(tmp_path, text * 2))
    assert found == [Acknowledgement("a.*", "1a2b3c4", "meant")] * 2
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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[acknowledged", "is not TOML"),
        ("accepted = 1", "has `accepted`"),
        ("[acknowledged]", r"write \[\[acknowledged\]\]"),
        ("acknowledged = [1]", r"acknowledged\[0\] is 1"),
        ('[[acknowledged]]\nbenchmark = "a"\ncommit = "1a2b3c4"', "`reason` is missing"),
        (
            '[[acknowledged]]\nbenchmark = "a"\ncommit = 1234567\nreason = "b"',
            "`commit` is 1234567",
        ),
        ('[[acknowledged]]\nbenchmark = "a"\ncommit = "HEAD"\nreason = "b"', "`commit` is 'HEAD'"),
        ('[[acknowledged]]\nbenchmark = "a"\ncommit = "1a2b3c4"\nreason = " "', "`reason` is ' '"),
        ('[[acknowledged]]\nbench = "a"', r"acknowledged\[0\]: has `bench`; it takes benchmark"),
    ],
)
def test_a_malformed_entry_is_told_with_what_would_do(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(AcknowledgedError, match=says):
        acknowledged.load(file(tmp_path, text))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(AcknowledgedError, match="cannot be read"):
        acknowledged.load(tmp_path / "none.toml")
