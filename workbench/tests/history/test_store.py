"""The history's store: what is written is read again, and what breaks the schema is named."""

import dataclasses
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlox_opt.history import store
from rlox_opt.history.store import UNITS, Cell, Entry, Profile
from rlox_opt.system import schema
from rlox_opt.system.files import NotReadError

MACHINE = {"cpu": "Toy(R) CPU @ 1.00GHz", "cores": 2}

positive = st.floats(1e-12, 1e12)
shares = st.dictionaries(st.text(min_size=1, max_size=8), st.floats(0, 1), max_size=4)
texts = st.text(max_size=20)
times = st.datetimes(
    datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(timezone.utc)
)  # fmt: skip
cells = st.builds(
    Cell,
    benchmark=texts,
    kind=st.sampled_from([*UNITS]),
    value=st.floats(0, 1e15),
    ratio=st.none() | positive,
    ratio_ci99=st.none() | st.tuples(positive, positive),
    restarts=st.none() | st.integers(1, 100),
)
profiles = st.builds(
    Profile,
    samples=st.integers(0, 10**6),
    layers=shares,
    phases=shares,
    functions=shares,
    folded=st.none() | texts,
)
entries = st.builds(
    Entry,
    commit=st.text("0123456789abcdef", min_size=40, max_size=40),
    parent=st.none() | texts,
    subject=texts,
    committed=times,
    date=times,
    machine=st.just(MACHINE),
    toolchain=st.dictionaries(texts, texts, max_size=3),
    profile=texts,
    features=st.lists(texts, max_size=3).map(tuple),
    control=st.fixed_dictionaries({"commit": texts, "features": st.lists(texts, max_size=2)}),
    seconds=st.floats(0, 1e6),
    complete=st.booleans(),
    cells=st.lists(cells, max_size=5).map(tuple),
    profiles=st.dictionaries(texts, profiles, max_size=2),
    failures=st.lists(st.fixed_dictionaries({"benchmark": texts, "reason": texts}), max_size=2).map(
        tuple
    ),
    optimizations=st.lists(texts, max_size=3).map(tuple),
    causes=st.dictionaries(texts, st.fixed_dictionaries({"layer": texts}), max_size=2),
    built=st.dictionaries(texts, texts, max_size=3),
)


def entry(**changes: Any) -> Entry:
    """An entry that says little."""
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    cell = Cell("a.time_it", "time", 1.0, 1.1, (1.0, 1.2), 5)
    control = {"commit": "c" * 40, "features": []}
    first = Entry("a" * 40, None, "subject", now, now, MACHINE, {}, "release", (), control, 1.0, True, (cell,))  # fmt: skip  # noqa: E501
    return dataclasses.replace(first, **changes)


@given(entries)
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, of: Entry) -> None:
    folder = tmp_path_factory.mktemp("history")
    path = store.append(of, folder)
    assert store.read(path) == of
    assert store.entries(folder) == [(path, of)]
    assert store.of_commit(of.commit, path.parent) == [of]


def test_a_file_is_named_for_its_machine_its_time_and_its_commit(tmp_path: Path) -> None:
    path = store.append(entry(), tmp_path)
    assert path.relative_to(tmp_path) == Path("toy-1.00ghz-2c/2026-01-02T030405Z_aaaaaaaaaa.json")
    assert store.append(entry(), tmp_path).name == "2026-01-02T030405Z_aaaaaaaaaa-2.json"


def test_what_is_built_otherwise_than_before_is_named_with_both() -> None:
    old = entry(toolchain={"numpy": "2.3"}, built={"profile": "thin", "allocator": "mimalloc"})
    new = entry(toolchain={"numpy": "2.4"}, built={"profile": "thin", "features": "fast"})
    assert new.built_unlike(old) == [
        "numpy: 2.3 → 2.4",
        "allocator: mimalloc → none",
        "features: none → fast",
    ]
    assert old.built_unlike(old) == []
    earlier = entry(toolchain={"numpy": "2.3"})
    assert old.built_unlike(earlier) == [], "an entry from before this was kept tells nothing of it"


def table(**changes: Any) -> Any:
    whole = json.loads(json.dumps(dataclasses.asdict(entry()), default=str))
    return {"schema": 1, **whole, **changes}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"schema": 2}, "`schema` is 2; it takes 1"),
        ({"committed": "yesterday"}, "yesterday"),
        (
            {"cells": [{"benchmark": "a", "kind": "tme", "value": 1.0}]},
            r"cells\[0\].kind` is 'tme'; it takes time",
        ),
        (
            {"cells": [{"benchmark": "a", "kind": "time", "value": -1.0}]},
            r"cells\[0\].value` is -1",
        ),
        (
            {"cells": [{"benchmark": "a", "kind": "time", "value": 1.0, "ratio": 0.0}]},
            r"cells\[0\].ratio` is 0",
        ),
        ({"cells": [{"name": "a"}]}, r"the key `cells\[0\].benchmark` is missing"),
        ({"cells": 3}, "`cells` is 3; it takes `array`"),
        (
            {"profiles": {"ppo": {"samples": 1, "layers": {"a": 1, "b": "x"}, "phases": {}}}},
            "`profiles.ppo.layers.b` is 'x'; it takes `float`",
        ),
        ({"profiles": []}, r"`profiles` is \[\]; it takes `object`"),
        ({"features": [[]]}, r"`features\[0\]` is \[\]; it takes `str`"),
        ({"optimizations": [3]}, r"`optimizations\[0\]` is 3; it takes `str`"),
    ],
)
def test_what_breaks_the_schema_is_named(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(NotReadError, match=says):
        schema.parse(json.dumps(table(**changes)), Entry, Path("x.json"))


@pytest.mark.parametrize("key", ["commit", "cells", "control"])
def test_a_key_that_is_missing_is_named(key: str) -> None:
    short = table()
    del short[key]
    with pytest.raises(NotReadError, match=f"the key `{key}` is missing"):
        schema.parse(json.dumps(short), Entry, Path("x.json"))


@pytest.mark.parametrize("text", ["", "[]", "null", '{"schema": 1'])
def test_a_file_that_is_none_is_named_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "machine" / "x.json"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(NotReadError, match=str(path)):
        [*store.entries(tmp_path)]


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(NotReadError, match="value"):
        store.append(entry(cells=(Cell("a", "time", float("nan")),)), tmp_path)
    assert not [*tmp_path.rglob("*.json")]


def test_later_numbers_of_some_benchmarks_replace_these_alone() -> None:
    def cells(*values: tuple[str, float]) -> tuple[Cell, ...]:
        return tuple(Cell(name, "time", value) for name, value in values)

    whole = entry(
        cells=cells(("a", 1.0), ("b", 1.0)),
        causes={"a": {"layer": "rust"}, "b": {"layer": "python"}},
        failures=({"benchmark": "c", "reason": "fails"}, {"benchmark": "d", "reason": "fails"}),
    )
    some = entry(complete=False, subject="some", cells=cells(("b", 2.0), ("c", 2.0)))
    nothing = entry(cells=(), failures=({"benchmark": "build", "reason": "does not build"},))
    elsewhere = entry(
        complete=False, cells=cells(("a", 3.0)), control={"commit": "f" * 40, "features": []}
    )
    (found,) = store.newest([nothing, whole, some, nothing, elsewhere]).values()
    assert {cell.benchmark: cell.value for cell in found.cells} == {"a": 1.0, "b": 2.0, "c": 2.0}
    assert found.causes == {"a": {"layer": "rust"}}
    assert [failure["benchmark"] for failure in found.failures] == ["d"]
    assert (found.subject, found.complete) == (whole.subject, True)
    (found,) = store.newest([whole, some, whole]).values()
    assert found.cells == whole.cells
    (found,) = store.newest([nothing]).values()
    assert not found.cells


def test_the_newest_complete_entry_counts() -> None:
    stopped = entry(complete=False, subject="stopped")
    whole = entry(subject="whole")
    again = entry(subject="again", date=whole.date + timedelta(days=1))
    other = entry(features=("opt-p5",))
    (found,) = store.newest([stopped, whole, again]).values()
    assert found.subject == "again"
    (found,) = store.newest([whole, stopped]).values()
    assert found.subject == "whole"
    (found,) = store.newest([stopped]).values()
    assert found.subject == "stopped"
    assert len(store.newest([whole, other])) == 2


def test_what_was_stopped_adds_only_what_was_lacking() -> None:
    whole = entry(cells=(Cell("a", "time", 1.0),))
    cells = Cell("a", "time", 3.0), Cell("b", "time", 3.0)
    stopped = entry(complete=False, stopped=True, cells=cells)
    (found,) = store.newest([whole, stopped]).values()
    assert {cell.benchmark: cell.value for cell in found.cells} == {"a": 1.0, "b": 3.0}
