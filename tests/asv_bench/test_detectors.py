"""The scores of detectors: histories are what they say, counts are right, a run can be gone on."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import projects
import pytest
from rlox_opt.system.exits import INTERRUPTED

from asv_bench.levels import __main__ as command
from asv_bench.levels import detectors, families, scores, synthetic
from asv_bench.levels.detectors import Detector, Family, Jumps, every, permuted
from asv_bench.levels.synthetic import NOISES, SHAPES, Floats, drawn, places, shapes

FLAT, STEP, BUMP = SHAPES[0], SHAPES[1], SHAPES[-1]


def said(*found: tuple[int, float]) -> Detector:
    """A detector that always says the same."""
    return Detector("toy", "1", lambda _: [*found])


@pytest.mark.parametrize(
    ("noise", "sd"), [("gauss", 0.01), ("ar1", 0.01), ("ar1_strong", 0.01), ("bimodal", 0.02)]
)
def test_noise_has_the_deviation_that_it_says(noise: str, sd: float) -> None:
    drawn_ = np.array([NOISES[noise](np.random.default_rng(n)) for n in range(200)])
    assert drawn_.std() == pytest.approx(sd, rel=0.1)


def test_noise_with_a_memory_keeps_what_it_says() -> None:
    histories = np.array([synthetic.ar1(np.random.default_rng(n)) for n in range(200)])
    kept = (histories[:, 1:] * histories[:, :-1]).mean() / (histories**2).mean()
    assert kept == pytest.approx(0.6, abs=0.03)


def test_one_seed_gives_one_noise_for_all_shapes() -> None:
    for noise in NOISES:
        for shape in shapes(noise):
            same = drawn(noise, shape, [7]) - shape.levels()
            assert same == pytest.approx(drawn(noise, FLAT, [7]))


def test_a_detector_sees_one_machine_at_a_time() -> None:
    seen = []

    def detect(logs: Floats) -> Jumps:
        seen.append(len(logs))
        return [(3, 0.1)]

    found = Detector("toy", "1", detect).changes(np.zeros(100), places("machines"))
    assert (found, seen) == ([(3, 0.1), (53, 0.1)], [50, 50])


@pytest.mark.parametrize(
    ("found", "located", "false"),
    [
        ([(50, 0.03)], True, False),
        ([(52, 0.2)], True, False),
        ([(48, 0.01), (90, 0.1)], True, True),
        ([(53, 0.03)], False, True),
        ([(50, -0.03)], False, False),
        ([], False, False),
    ],
)
def test_located_is_near_and_in_the_same_direction(
    found: Jumps, located: bool, false: bool
) -> None:
    assert scores.whole(said(*found), "gauss", STEP, 0) == {"located": located, "false": false}


def test_all_changes_of_a_history_must_be_located() -> None:
    assert not scores.whole(said((50, 0.05)), "gauss", BUMP, 0)["located"]
    assert scores.whole(said((50, 0.05), (70, -0.05)), "gauss", BUMP, 0)["located"]


def test_the_delay_is_the_commits_from_the_change_on() -> None:
    late = Detector("toy", "1", lambda logs: [(50, 0.03)] if len(logs) >= 54 else [])
    assert scores.live(late, "gauss", STEP, 0) == {"commits": 4}
    assert scores.live(said(), "gauss", STEP, 0) == {"commits": math.inf}
    assert scores.live(late, "gauss", FLAT, 0) == {"false": True}


def test_every_detector_sees_a_change_that_anybody_sees() -> None:
    for detector in every():
        logs = drawn("gauss", FLAT, [1]) + 0.1 * (np.arange(100) >= 50)
        near = [jump for at, jump in detector.changes(logs, places("gauss")) if abs(at - 50) <= 2]
        assert near == [pytest.approx(0.1, abs=0.01)], detector.name


def test_permutation_finds_as_often_as_it_says_in_noise_without_a_memory() -> None:
    rng = np.random.default_rng(0)
    p = [permuted(rng.normal(size=40))[1] for _ in range(200)]
    assert np.mean(np.array(p) <= 0.2) == pytest.approx(0.2, abs=0.08)


def test_permuted_blocks_are_the_ranks_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    cusum = detectors._cusum
    monkeypatch.setattr(detectors, "_cusum", lambda ranks: seen.append(ranks) or cusum(ranks))
    permuted(drawn("ar1_strong", FLAT, [0])[:37])
    (orders,) = [of for of in seen if of.ndim == 2]
    assert (np.sort(orders, axis=1) == np.arange(37) - 18).all()


def test_a_run_is_recorded_and_gone_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def detect(logs: Floats) -> Jumps:
        calls.append(len(logs))
        if len(calls) == 200:
            raise KeyboardInterrupt
        return [(50, 0.03)]

    monkeypatch.setattr(command, "JOURNAL", tmp_path / "levels.jsonl")
    monkeypatch.setattr(command, "PROJECT", projects.of(projects.ROOT, state=str(tmp_path)))
    monkeypatch.setattr(command, "every", lambda: [Detector("toy", "1", detect)])
    asked = ["--noise", "gauss", "--flat", "50", "--change", "50", "--live", "0"]
    assert command.main(asked) == INTERRUPTED
    assert not [*tmp_path.rglob("*_levels*.json")]
    assert command.main(asked) == 0
    assert len(calls) == len(SHAPES) * 50 + 50  # the chunk that was cut short, again
    (path,) = tmp_path.rglob("*_levels*.json")
    cells = {cell["shape"]: cell for cell in json.loads(path.read_text())["cells"]}
    assert (cells[FLAT.name]["histories"], cells[FLAT.name]["false"]) == (50, 50)
    assert cells[STEP.name]["located"] == 50
    assert cells["-3 % in the middle"]["located"] == 0
    lines = capsys.readouterr().out.splitlines()
    assert "gauss, flat".ljust(44) + "1.000".rjust(10) in lines
    assert "gauss, +3 % in the middle".ljust(44) + "1.000".rjust(10) in lines


def test_another_first_history_is_another_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the first of all is what it always was: records of before go on being comparable."""
    seen: list[Floats] = []
    monkeypatch.setattr(command, "JOURNAL", tmp_path / "levels.jsonl")
    monkeypatch.setattr(command, "PROJECT", projects.of(projects.ROOT, state=str(tmp_path)))
    toy = Detector("toy", "1", lambda logs: seen.append(logs) or [])
    monkeypatch.setattr(command, "every", lambda: [toy])
    asked = ["--noise", "gauss", "--flat", "50", "--change", "0", "--live", "0"]
    assert command.main(asked) == command.main([*asked, "--first", "50"]) == 0
    assert len(seen) == 100
    assert seen[0] == pytest.approx(drawn("gauss", FLAT, [crc32(b"gauss"), 0]))
    assert seen[50] == pytest.approx(drawn("gauss", FLAT, [crc32(b"gauss"), 50]))
    records = [json.loads(path.read_text()) for path in tmp_path.rglob("*_levels*.json")]
    assert sorted(record["first"] for record in records) == [0, 50]
    assert [cell["histories"] for record in records for cell in record["cells"]] == [50, 50]


def together(**found: Jumps) -> Detector:
    """A detector that says this of the series of a family, and nothing of the others."""

    def family(series: Family, _: Mapping[str, Sequence[int]]) -> dict[str, Jumps]:
        return {name: found.get(f"of_{name}", []) for name in series}

    return Detector("toy", "1", lambda _: [], family)


@pytest.mark.parametrize(
    ("found", "located", "false"),
    [
        ({"of_0": [(34, 0.05)]}, True, False),
        ({"of_0": [(36, 0.01), (20, 0.1)]}, True, True),
        ({"of_0": [(34, -0.05)]}, False, True),
        ({"of_0": [(34, 0.05)], "of_7": [(34, 0.05)]}, True, True),
        ({"of_7": [(34, 0.05)]}, False, True),
        ({}, False, False),
    ],
)
def test_of_a_family_only_the_step_is_right_and_only_in_its_series(
    found: dict[str, Jumps], located: bool, false: bool
) -> None:
    told = families.look(together(**found), "family of gauss", "+5 % late", "", 0)
    assert told == {"located": located, "false": false}


def test_a_recorded_family_is_made_of_blocks_of_the_readings() -> None:
    family = families.recorded(np.random.default_rng(0))
    quiet = families._quiet()
    assert set(family) == set(quiet)
    assert len(family) > 25
    assert len(quiet[families.STEPPED].logs) == 20
    for name, of in family.items():
        assert len(of.logs) == len(of.errors) == families.COMMITS
        for begin in range(0, families.COMMITS - families._BLOCK, families._BLOCK):
            block = of.logs[begin : begin + families._BLOCK]
            there = np.lib.stride_tricks.sliding_window_view(quiet[name].logs, len(block))
            assert (there == block).all(axis=1).any()


def test_a_step_is_added_to_its_series_alone_and_counts_suspect_it_beside_mistakes() -> None:
    seen: list[tuple[Family, Mapping[str, Sequence[int]]]] = []

    def family(series: Family, suspected: Mapping[str, Sequence[int]]) -> dict[str, Jumps]:
        seen.append((series, suspected))
        return {name: [] for name in series}

    toy = Detector("toy", "1", lambda _: [], family)
    for shape, hint in (("flat", ""), ("+14 % late", ""), ("+14 % late", ", counted")):
        families.look(toy, "recorded", shape, hint, 3)
    (flat, no_hint), (step, _), (_, hints) = seen
    for name in flat:
        added = step[name].logs - flat[name].logs
        expected = np.where(np.arange(44) >= 34, math.log(1.14), 0.0)
        assert added == pytest.approx(expected if name == families.STEPPED else np.zeros(44))
    assert no_hint == {}
    assert {len(of) for name, of in hints.items() if name != families.STEPPED} == {2}
    assert 34 in hints[families.STEPPED]


def test_a_name_that_no_detector_has_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--only", "otava"])
    assert "'otava' begins the name of none: levels, asv" in capsys.readouterr().err
