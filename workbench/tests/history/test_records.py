"""Records are written whole, never over one another, and read back as they were written."""

import json
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from rlox_opt.history import records
from rlox_opt.history.records import append, newest
from rlox_opt.system.files import NotReadError

MACHINE = {"cpu": "Intel(R) Xeon(R) CPU @ 2.80GHz", "cores": 2}
OTHER = {"cpu": "AMD EPYC 7B13", "cores": 4}


def result(ratio: float = 5.31, **more: Any) -> dict[str, Any]:
    return {
        "workload": "sample_256",
        "size": {"n": 1_000_000},
        "ratio": ratio,
        "ci95": [ratio * 0.95, ratio * 1.05],
        "verdict": "faster",
        "restarts": 10,
        "baseline_s": 1.2e-3,
        "optimized_s": 2.3e-4,
        "instructions": None,
        "allocations": {"baseline": 5, "optimized": 5},
        "aa": {"ratio": 1.001, "ci95": [0.998, 1.004]},
    } | more


def record(**more: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "id": "P5",
        "date": "2026-11-21T17:36:05Z",
        "commit": "f956de0",
        "dirty": False,
        "machine": MACHINE,
        "build": {"profile": "release", "features": [], "rustc": "1.95.0"},
        "seconds": 61.5,
        "complete": True,
        "results": [result()],
    } | more


def test_a_record_lies_under_its_machine_named_for_time_and_id(tmp_path: Path) -> None:
    path = append(record(), tmp_path)
    assert path == tmp_path / "intel-xeon-2.80ghz-2c" / "2026-11-21T173605Z_p5.json"
    assert json.loads(path.read_text()) == record()


def test_the_name_is_in_universal_time(tmp_path: Path) -> None:
    path = append(record(date="2026-11-21T17:36:05+02:00"), tmp_path)
    assert path.name == "2026-11-21T153605Z_p5.json"


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    append(record(also={"bytes": 3}), tmp_path)
    (found,) = records.records("p5", tmp_path)
    assert found.results[0].ci95 == (5.31 * 0.95, 5.31 * 1.05)
    assert found.also == {"bytes": 3}
    assert found.result("sample_256", {"n": 1_000_000}) == found.results[0]
    assert found.result("sample_256", {"n": 1_000}) is None
    assert found.result("set_256", {"n": 1_000_000}) is None


def test_a_record_is_never_overwritten(tmp_path: Path) -> None:
    paths = [append(record(seconds=n), tmp_path) for n in range(12)]
    assert [path.name for path in paths[:3]] == [
        "2026-11-21T173605Z_p5.json",
        "2026-11-21T173605Z_p5-2.json",
        "2026-11-21T173605Z_p5-3.json",
    ]
    # Newest last, also where ten come before two in the alphabet.
    assert [found.seconds for found in records.records("P5", tmp_path)] == list(range(12))


def test_two_writers_at_once_keep_both_their_records(tmp_path: Path) -> None:
    """Processes, as two terminals are; threads within them, for more of it."""
    context = get_context("spawn")
    arguments = [(tmp_path, first) for first in (0, 100)]
    with context.Pool(2) as pool:
        pool.starmap(_write_twenty, arguments)
    found = records.records("P5", tmp_path)
    assert sorted(r.seconds for r in found) == [*range(20), *range(100, 120)]
    assert not list(tmp_path.rglob(".writing-*"))


def _write_twenty(folder: Path, first: int) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: append(record(seconds=n), folder), range(first, first + 20)))


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OSError, match="no space"):
        append(record(), tmp_path)
    (kept,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert kept.parent == tmp_path, "where it should lie is nothing"


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (record(schema=2), "`schema` is 2"),
        (record(id="X5"), "`id` is 'X5'"),
        (record(date="2026-11-21"), "`date` is '2026-11-21'"),
        (record(machine={"cores": 2}), "`machine` is {'cores': 2}; it takes cpu and cores"),
        (record(complete=1), "`complete` is 1"),
        (record(results=[result(verdict="great")]), r"`results\[0\].verdict` is 'great'"),
        (record(results=[result(), result(ci95=[2.0])]), r"`results\[1\].ci95` is \[2.0\]"),
        (record(results=[result(ci95=[2.0, 1.0])]), r"`results\[0\].ci95`"),
        (record(results=[result(-1.0, ci95=[1, 2])]), r"`results\[0\].ratio` is -1.0"),
        (record(results=[result(allocations={})]), r"`results\[0\].allocations.baseline`"),
        (record(seconds=float("nan")), "nan"),
        ({k: v for k, v in record().items() if k != "build"}, "the key `build` is missing"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(
    broken: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(NotReadError, match=says):
        append(broken, tmp_path)
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not JSON"),
        ('{"schema": 1, "id": "P5"', "is not JSON"),
        ("[]", "is []; it takes `object`"),
        (json.dumps(record(results=[3])), "`results[0]` is 3"),
        (json.dumps(record(id="P6")), "`id` is 'P6'"),
        (json.dumps(record(complete=False)), "is not complete"),
    ],
)
def test_a_file_that_cannot_be_used_is_left_out_and_named(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = append(record(), tmp_path)
    bad = good.with_name("2026-11-22T000000Z_p5.json")
    bad.write_text(text)
    assert [found.path for found in records.records("P5", tmp_path)] == [good]
    warned = capsys.readouterr().err
    assert warned.startswith(f"{bad}: ")
    assert says in warned
    assert warned.count("\n") == 1


def test_records_of_other_optimisations_are_not_touched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(record(id="P50"), tmp_path)
    append(record(id="P15"), tmp_path)
    assert records.records("P5", tmp_path) == []
    assert capsys.readouterr().err == ""


def test_the_latest_is_the_newest_on_this_machine_and_else_on_any(tmp_path: Path) -> None:
    append(record(date="2026-11-21T00:00:00Z"), tmp_path)
    append(record(date="2026-11-22T00:00:00Z"), tmp_path)
    append(record(date="2026-11-23T00:00:00Z", machine=OTHER), tmp_path)

    def day(**arguments: Any) -> int:
        found = newest(records.records("P5", tmp_path), **arguments)
        assert found is not None
        return found.date.day

    assert day() == 23
    assert day(prefer="intel-xeon-2.80ghz-2c") == 22
    assert day(prefer="some-other-8c") == 23


def test_the_latest_can_be_asked_to_hold_a_result(tmp_path: Path) -> None:
    append(record(date="2026-11-21T00:00:00Z"), tmp_path)
    append(record(date="2026-11-22T00:00:00Z", results=[result(size={"n": 1_000})]), tmp_path)
    found = newest(records.records("P5", tmp_path), ("sample_256", {"n": 1_000_000}))
    assert found is not None
    assert found.date.day == 21
    assert newest(records.records("P5", tmp_path), ("sample_256", {"n": 7})) is None


def test_without_a_folder_there_are_no_records(tmp_path: Path) -> None:
    assert records.records("P5", tmp_path / "nowhere") == []
    assert newest(records.records("P5", tmp_path / "nowhere")) is None
