"""`rlox-opt ladder`: which builds, what it computes from their times, and that it goes on."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import projects
import pytest
from rich.console import Console
from rlox_opt.cli import ladder
from rlox_opt.cli.ladder import unfinished
from rlox_opt.plan import end_to_end
from rlox_opt.plan.features import features
from rlox_opt.project import cards
from rlox_opt.system.files import NotReadError
from rlox_opt.system.progress import Lines
from rlox_opt.views.waterfall import waterfall

FEATURES = features(projects.HERE)
CARDS = {card.id: card for card in cards.load(projects.HERE)}


def variants(*ids: str) -> dict[str, tuple[set[str], str]]:
    of = ladder.variants_for(FEATURES, [CARDS[id_] for id_ in ids], [*CARDS.values()])
    return {variant.name: (set(variant.features), variant.profile) for variant in of}


def test_builds_are_none_all_each_alone_and_each_left_out() -> None:
    found = variants("P1", "P13")
    assert list(found) == ["none", "all", "p1", "p13", "all-p1", "all-p13"]
    assert found["p1"][0] == {"opt-p1"}
    assert found["all-p13"][0] == found["all"][0] - {"opt-p13"}


def test_the_build_profile_is_a_step_of_its_own() -> None:
    profiles = {name: profile for name, (_, profile) in variants("P1", "P6").items()}
    before, after = "release-baseline", "release"
    assert profiles == {
        "none": before,
        "p1": before,
        "p6": after,
        "all": after,
        "all-p1": after,
        "all-p6": before,
    }


def test_every_step_lies_on_its_trainers_path() -> None:
    cards = list(CARDS.values())
    on_path = {
        algo: {card.id for card in ladder.steps_of(projects.HERE, algo, cards)}
        for algo in end_to_end.jobs(projects.HERE)
    }
    assert {"P1", "P13", "P2", "R1"} <= on_path["ppo-async"]
    assert {"P2", "R1", "R2", "R4", "R8", "R9"} <= on_path["ppo"]
    assert {"P5", "P4", "P2"} <= on_path["sac-prioritized"]
    assert {"P2", "R3", "R5"} <= on_path["sac"]
    nowhere = {"P3", "P8", "P9", "R6", "R10", "R11"}  # the last three are settings
    assert not nowhere & set().union(*on_path.values())
    assert "R4" not in on_path["ppo-async"]
    assert "P5" not in on_path["sac"]


def test_the_training_loops_steps_are_switched_without_a_build_of_their_own() -> None:
    steps = [CARDS[id_] for id_ in ("P1", "R1", "R5")]
    found = {v.name: v for v in ladder.variants_for(FEATURES, steps, steps)}
    names = ["none", "all", "p1", "all-p1", "r1", "r5", "all-r1", "all-r5"]
    assert list(found) == names
    assert found["r1"].features == found["none"].features
    assert found["all-r1"].features == found["all"].features
    optimizations = {name: found[name].optimizations for name in names}
    assert optimizations == {
        "none": (),
        "p1": (),
        "r1": ("R1",),
        "r5": ("R5",),
        "all": ("R1", "R5"),
        "all-p1": ("R1", "R5"),
        "all-r1": ("R5",),
        "all-r5": ("R1",),
    }


def climbed() -> dict[str, Any]:
    """P1 makes training 10 % faster alone and 5 % with P13 on; P13 does nothing."""
    seconds = {
        "none": 1.1,
        "p1": 1.0,
        "p13": 1.1,
        "all": 1.0,
        "all-p1": 1.05,
        "all-p13": 1.0,
    }
    times = [{name: s * (1 + 1e-4 * i) for name, s in seconds.items()} for i in range(5)]
    found = ladder.climb(projects.HERE, [CARDS["P1"], CARDS["P13"]], "ppo", times)
    return {"ladder": "ppo", **found}


def test_gains_are_those_of_the_times_alone_and_with_the_others() -> None:
    first, second = climbed()["steps"]
    assert first["alone"]["ratio"] == pytest.approx(1.1)
    assert first["with_the_others"]["ratio"] == pytest.approx(1.05)
    assert first["alone"]["verdict"] == "faster"
    assert second["alone"]["verdict"] == "same"
    assert climbed()["together"]["ratio"] == pytest.approx(1.1)


def test_the_picture_has_a_bar_a_step_and_the_whole() -> None:
    svg = ElementTree.fromstring(waterfall(climbed()))
    name = "{http://www.w3.org/2000/svg}"
    assert len(svg.findall(f"{name}rect")) == 4
    texts = " ".join("".join(text.itertext()) for text in svg.findall(f"{name}text"))
    assert "P1" in texts
    assert "all together" in texts
    assert "+10 %" in texts
    kinds = [bar.attrib["class"] for bar in svg.findall(f"{name}rect")]
    assert kinds == ["up", "noise", "rest", "total"]  # P13 alone makes no difference that shows
    width = float(svg.attrib["width"])
    for bar in svg.findall(f"{name}rect"):
        assert 0 <= float(bar.attrib["x"]) <= width - float(bar.attrib["width"])


def test_changes_are_rounded_once_and_none_has_no_sign() -> None:
    found = climbed()
    for step, ratio in zip(found["steps"], (3.3746, 0.9997), strict=True):
        step["with_the_others"] |= {"ratio": ratio, "ci95": None}
    svg = ElementTree.fromstring(waterfall(found))
    texts = ["".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert "+237 %" in texts
    assert "0 %" in texts
    assert "−0.0 %" not in texts


def test_the_axis_can_be_read_whatever_the_gain() -> None:
    for ratio in (1.001, 1.1, 3.0, 12.0, 200.0):
        found = climbed()
        found["together"] = {"ratio": ratio, "ci95": None, "verdict": "faster"}
        svg = ElementTree.fromstring(waterfall(found))
        texts = svg.findall("{http://www.w3.org/2000/svg}text[@text-anchor='middle']")
        places = sorted(float(text.attrib["x"]) for text in texts)
        assert len(places) >= 2
        assert min(b - a for a, b in pairwise(places)) >= 59


def test_rounds_outlive_an_interruption_and_are_forgotten_once_recorded(
    tmp_path: Path,
) -> None:
    project = projects.of(tmp_path)
    of = ladder.variants_for(FEATURES, [CARDS["P1"]], [])
    where = {"commit": "c", "dirty": False, "machine": {}, "build": {}}
    unfinished(project, "ppo", {}, of, where).add({"none": 1.0, "all": 0.5})
    again = unfinished(project, "ppo", {}, of, where)
    assert again.rows == [{"none": 1.0, "all": 0.5}]
    assert unfinished(project, "ppo", {}, of, {**where, "commit": "d"}).rows == [], (
        "another commit's"
    )
    again.add({"none": 2.0, "all": 0.5})
    again.forget(lambda row: row["none"] == 1.0)
    assert unfinished(project, "ppo", {}, of, where).rows == [{"none": 2.0, "all": 0.5}]
    again.forget()
    assert unfinished(project, "ppo", {}, of, where).rows == []


def trained_to(digests: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The rounds of variants named by what is on, such as "b R1", each with its digest."""
    of = [end_to_end.Variant(name, (), tuple(name.split()[1:])) for name in digests]
    built: dict[str, Any] = {name: name for name in digests}
    monkeypatch.setattr(
        end_to_end, "train", lambda project, extension, *_: (1.0, digests[extension])
    )
    return end_to_end.rounds(projects.HERE, of, built, "ppo", 1)


def test_builds_that_train_to_other_parameters_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(end_to_end.TrainingDiffersError, match=r"^c trained"):
        list(trained_to({"a": "x", "b": "x", "c": "y"}, monkeypatch))


def test_parameters_may_differ_where_a_card_gives_a_tolerance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (row,) = trained_to({"a": "x", "b R1": "y", "c R1 R8": "y", "d R8": "x"}, monkeypatch)
    assert row == dict.fromkeys(("a", "b R1", "c R1 R8", "d R8"), 1.0)
    with pytest.raises(end_to_end.TrainingDiffersError, match=r"^c R8 trained"):
        list(trained_to({"a": "x", "b": "x", "c R8": "y"}, monkeypatch))


def test_an_interrupted_comparison_of_trainings_tells_the_rounds_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained = iter([1.0, 2.0, 1.0, 2.0])

    def train(*_: Any) -> tuple[float, str]:
        if (seconds := next(trained, None)) is None:
            raise KeyboardInterrupt
        return seconds, "alike"

    card = next(card for card in cards.load(projects.HERE) if card.id == "R1")
    quiet = Lines(Console(quiet=True))
    monkeypatch.setattr(end_to_end, "train", train)
    monkeypatch.setattr(end_to_end, "build_all", lambda _, of, __: {v.name: "" for v in of})
    found = end_to_end.compare(projects.HERE, card, "ppo", 5, quiet)
    assert (found["restarts"], found["complete"], found["verdict"]) == (2, False, "undecided")
    assert "2 rounds before it was interrupted" in end_to_end.sentences(found)[0]
    with pytest.raises(KeyboardInterrupt):  # before the first round there is nothing to tell
        end_to_end.compare(projects.HERE, card, "ppo", 5, quiet)


def test_a_ratio_of_times_is_paired_within_its_round() -> None:
    times = [{"a": 2.0 * x, "b": 1.0 * x} for x in (1, 3, 1, 5, 2)]
    found = end_to_end.gain(times, "a", "b")
    assert found.ratio == pytest.approx(2)
    assert found.ci95 is not None
    assert math.isclose(*found.ci95)


def test_a_bound_comes_from_the_newest_profile_of_such_a_run(
    tmp_path: Path,
) -> None:
    ours = {name: str(getattr(projects.HERE, name)) for name in ("workloads", "cards")}
    project = projects.of(tmp_path, **ours)

    def profile(name: str, most: float | None, **settings: Any) -> None:
        folder = tmp_path / "profiles" / name
        folder.mkdir(parents=True)
        cards = [{"id": "P5", "bound": most, "bound_ci95": [1.0, most]}]
        report = {"algo": "sac", "env_id": "Pendulum-v1", "settings": settings, "cards": cards}
        (folder / "report.json").write_text(json.dumps(report))

    profile("2026-01-01_m_sac", 1.1, prioritized=True)
    profile("2026-01-02_m_sac", 1.2, prioritized=True)
    profile("2026-01-03_m_sac", 1.3, prioritized=False)
    found = end_to_end.bound(project, CARDS["P5"], "sac-prioritized")
    assert found is not None
    assert (found["bound"], found["profile"]) == (1.2, "profiles/2026-01-02_m_sac")
    assert end_to_end.bound(project, CARDS["P5"], "ppo") is None
    assert end_to_end.bound(project, CARDS["P1"], "sac-prioritized") is None


def test_a_profile_that_cannot_be_read_is_told_before_anything_is_trained(
    tmp_path: Path,
) -> None:
    ours = {name: str(getattr(projects.HERE, name)) for name in ("workloads", "cards")}
    project = projects.of(tmp_path, **ours)
    (tmp_path / "crates").symlink_to(projects.ROOT / "crates")
    folder = tmp_path / "profiles" / "2026-01-01_m_sac"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text("{")
    with pytest.raises(NotReadError, match=r"report\.json"):
        end_to_end.compare(project, CARDS["P5"], "sac-prioritized", 5, Lines(Console(quiet=True)))
