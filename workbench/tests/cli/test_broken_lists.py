"""The lists and records that verbs read unasked: broken, they are refused by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measured
import pytest
import toy_projects
from toy_entries import cell, entry, written

from rlox_opt.history import ledger, records, store
from rlox_opt.plan.features import Features
from rlox_opt.plan.testing import planted
from rlox_opt.project import calibration
from rlox_opt.race import environments as racing
from rlox_opt.race.primitives import cases
from rlox_opt.system.files import NotReadError
from rlox_opt.system.machine import machine, slug
from rlox_opt.system.schema import read
from rlox_opt.system.usage import UsageError

TEXTS = [b"", b"[", b"[]", b"{}", b"17", b"\xff", b"a = 1", b'{"a": 1}']


def peers(folder: Path) -> tuple[Path, Callable[[], Any]]:
    project = toy_projects.of(folder, peers=".")
    return folder / "peers.toml", lambda: racing.load(project, "ppo")


def operations(folder: Path) -> tuple[Path, Callable[[], Any]]:
    project = toy_projects.of(folder, peers=".")
    return folder / "primitives" / "primitives.toml", lambda: cases.load(project)


def bugs(folder: Path) -> tuple[Path, Callable[[], Any]]:
    path = folder / "planted.toml"
    return path, lambda: planted.load(path)


def a_manifest(folder: Path) -> tuple[Path, Callable[[], Any]]:
    return folder / "Cargo.toml", Features(folder / "Cargo.toml").known


def ladder(folder: Path) -> tuple[Path, Callable[[], Any]]:
    path = folder / "record" / "m" / "2026-01-01T000000Z_ladder_ppo.json"
    return path, lambda: ledger._newest_ladder("ppo", folder / "record")


def a_calibration(folder: Path) -> tuple[Path, Callable[[], Any]]:
    path = folder / slug(machine()) / "2026-01-01T000000Z_calibration.json"
    return path, lambda: calibration.smallest(folder)


@pytest.mark.parametrize("of", [peers, operations, bugs, a_manifest, ladder, a_calibration])
@pytest.mark.parametrize("content", TEXTS)
def test_a_broken_list_is_refused_by_name(
    of: Callable[[Path], Any], content: bytes, tmp_path: Path
) -> None:
    path, read = of(tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if of is bugs and content == b"":
        assert read() == []  # a list without bugs
        return
    with pytest.raises((NotReadError, UsageError), match=path.name):
        read()


@pytest.mark.parametrize(
    "broken",
    [
        {"control": {"features": []}},
        {"control": {"commit": 3, "features": []}},
        {"machine": {}},
        {"machine": {"cpu": "x", "cores": "../x"}},
        {"causes": {"a": 1}},
        {"failures": [{"benchmark": "a"}]},
        {"profiles": {"ppo": {"samples": 1, "layers": {"rust": "x"}, "phases": {}}}},
        {"commit": None},
        {"subject": ["x"]},
        {"date": "2026-01-01T00:00:00"},
        {"cells": [{"benchmark": 3, "kind": "time", "value": 1.0}]},
        {"cells": [{"benchmark": "a", "kind": "time", "value": 1.0, "ratio_ci99": [1]}]},
    ],
)
def test_an_entry_with_a_value_of_another_kind_is_refused(
    broken: dict[str, Any], tmp_path: Path
) -> None:

    (path,) = written([entry(0, cell(1.0))], tmp_path).glob("*/*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | broken))
    with pytest.raises(NotReadError, match=path.name):
        store.read(path)


@pytest.mark.parametrize("n", ["<script>", [[]], None, {}])
def test_a_record_whose_size_is_no_number_is_refused(n: Any, tmp_path: Path) -> None:
    path = measured.p5(tmp_path, "2026-01-01T00:00:00Z")
    table = json.loads(path.read_text())
    table["results"][0]["size"]["n"] = n
    path.write_text(json.dumps(table))
    with pytest.raises(NotReadError, match=r"size\.n"):
        records.read(path)


def test_a_text_that_nothing_can_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "half a character.json"
    path.write_text(json.dumps({"subject": "\ud800"}))
    with pytest.raises(NotReadError, match=path.name):
        read(path, dict[str, Any])
