"""Trials of injected regressions: noted at once, their work looked for, causes scored."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from injected_toy import TOY
from msgspec import structs
from rich.console import Console
from rlox_opt.history.cause import Cause
from rlox_opt.project.explained import Told, Why
from rlox_opt.system.progress import Lines

from asv_bench.injected import scores, tools, trials
from asv_bench.injected.journal import Journal, Step
from asv_bench.injected.regressions import Regression
from asv_bench.injected.trials import ProbeError, Trials


@pytest.fixture
def progress() -> Lines:
    return Lines(Console(quiet=True))


def test_a_run_that_was_cut_short_goes_on_where_it_was(tmp_path: Path, progress: Lines) -> None:
    path = tmp_path / "journal.jsonl"
    did = []

    def steps() -> Iterator[Step]:
        for number in range(4):

            def does(number: int = number) -> dict[str, Any]:
                did.append(number)
                if did == [0, 1]:
                    raise tools.ToolError("no answer")
                if did == [0, 1, 2, 3]:
                    raise KeyboardInterrupt
                return {"found": number}

            yield Step("diff", "", {"number": number}, does)

    first = Journal(path, trials.BEARABLE)
    with pytest.raises(KeyboardInterrupt):
        first.run([*steps()], progress)
    assert [why for _, why in first.failures([*steps()])] == ["no answer"]
    with path.open("a") as file:
        file.write('{"number": 3, "fou')
    Journal(path, trials.BEARABLE).run([*steps()], progress)
    assert did == [0, 1, 2, 3, 1, 3]
    Journal(path, trials.BEARABLE).run([*steps()], progress)
    assert did == [0, 1, 2, 3, 1, 3]  # the row after the one cut short is there
    assert [row.get("found") for row in first.rows] == [0, None, 2]


def probed(tmp_path: Path, quarter: float, whole: float) -> Trials:
    journal = Journal(tmp_path / "journal.jsonl", trials.BEARABLE)
    for k, ratio in zip(trials.probes(TOY), (quarter, whole), strict=True):
        ci99 = [ratio - 0.01, ratio + 0.01]
        row = {"what": "probe", "regression": "toy", "k": k, "ratio": ratio, "ci99": ci99}
        journal.rows.append(row)
    return Trials("", journal, answering="")


def test_the_work_of_a_slowdown_is_looked_for_and_its_truth_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, asked = probed(tmp_path, 1.05, 1.25), []

    def probe(_: Trials, regression: Regression, k: int) -> dict[str, Any]:
        asked.append(k)
        return {"ratio": 1.01 + k * 0.002, "ci99": [1.0, 2.0]}  # to begin costs 1 %

    monkeypatch.setattr(Trials, "_probe", probe)
    assert of.work(TOY, 0) == (0, 1.0)
    assert asked == []
    assert of.work(TOY, 3) == (11, pytest.approx(1.032))
    assert asked == [15, 11]  # by the line through the probes: 15, which is 4 %
    assert of.work(TOY, 3) == (11, pytest.approx(1.032))
    assert asked == [15, 11]  # it is in the journal
    assert of.work(TOY, 0.1)[0] == 1  # never less than one unit


def test_an_answer_is_of_one_commit_s_tools_and_a_probe_of_none(tmp_path: Path) -> None:
    earlier = probed(tmp_path, 1.05, 1.25)
    later = dataclasses.replace(earlier, answering="later")
    assert earlier.probe(TOY, 1).key == later.probe(TOY, 1).key
    for asked in (
        lambda of: of.trial(TOY, 3, 0, "diff", 1.0, []),
        lambda of: of.aa([TOY.benchmark], "asv", 0, 1.0),
        lambda of: of.bisection([TOY], 0, 4, (3.0, 5.0)),
        lambda of: of.attribution(TOY, 3, 0),
    ):
        earlier.journal.rows.append({**asked(earlier).key})
        assert earlier.journal.of(asked(earlier).key)
        assert later.journal.of(asked(later).key) is None


def test_a_probe_that_is_hardly_slower_or_too_small_gives_no_truth(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="another twin"):
        probed(tmp_path, 1.00, 1.01).work(TOY, 1)
    with pytest.raises(ProbeError, match="beyond its probe"):
        probed(tmp_path, 1.02, 1.08).work(TOY, 10)
    with pytest.raises(ProbeError, match="was not probed"):
        probed(tmp_path, 1.05, 1.25).work(structs.replace(TOY, probe=7), 1)


def test_the_probes_of_a_linear_slowdown_agree_on_the_k_of_one_per_cent() -> None:
    rows = [
        {"regression": "toy", "k": 100, "ratio": 1.25, "ci99": [1.2, 1.5]},
        {"regression": "toy", "k": 25, "ratio": 1.0625, "ci99": [0.99, 1.125]},
    ]
    *_, whole, quarter = scores.probe_table(rows)
    assert whole == "| toy | 100 | 1.2500 | 1.2000–1.5000 | 4.0 | 2.0–5.0 |"
    assert quarter == "| toy | 25 | 1.0625 | 0.9900–1.1250 | 4.0 | 2.0–∞ |"


def test_every_tool_gets_the_same_benchmarks_beside_and_none_that_is_affected() -> None:
    there = [f"toys.time_{n}" for n in range(9)] + [TOY.benchmark, "others.time_far"]
    drawn = {tuple(trials.beside(TOY, percent, 0, there, 3)) for percent in (0, 1, 3, 5, 10)}
    assert len(drawn) > 1
    for names in drawn:
        assert len(names) == 3
        assert not {TOY.benchmark, "others.time_far"} & {*names}
    assert trials.beside(TOY, 3, 0, there, 3) == trials.beside(TOY, 3.0, 0, there, 3)


def test_an_attribution_is_right_where_layer_and_function_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, progress: Lines
) -> None:
    of = Trials("", Journal(tmp_path / "journal.jsonl", trials.BEARABLE), answering="")
    said = {
        10: Cause(1.1, "rust", {"rust": 0.9, "python": 0.1}, "crates/a/toy.rs:extra", 0.8),
        20: Cause(1.2, "kernel", {"kernel": 0.7, "rust": 0.3}, "crates/a/toy.rs:work", 0.7),
        40: Cause(1.4, "rust", {"rust": 1.0}, None, None),
    }
    asked = []

    def with_cause(
        _: object, before: str, after: str, benchmark: str, ratio: float
    ) -> tuple[Why, Cause]:
        asked.append((before, after, benchmark, ratio))
        cause = said[[10, 20, 40][len(asked) - 1]]
        place, _, name = (cause.function or "").partition(":")
        touched = [Told("Rust", 0.9, 0.8, 1.0, place, name)] if name != "work" else []
        return Why(benchmark, ratio, touched=touched), cause

    monkeypatch.setattr(trials, "built", lambda commit: f"build of {commit}")
    monkeypatch.setattr(trials.commits, "slowed", lambda idle, regression, k: f"slowed by {k}")
    monkeypatch.setattr(trials, "judged", lambda *_, **__: SimpleNamespace(ratio=1.5))
    monkeypatch.setattr(trials.why, "with_cause", with_cause)
    monkeypatch.setattr(Trials, "work", lambda self, _, percent: (4 * percent, 1 + percent / 100))
    steps = [of.attribution(TOY, percent, 0) for percent in (10, 20, 40)]
    of.journal.run(steps, progress)
    assert asked[0] == ("build of ", "build of slowed by 40", "toys.time_work", 1.5)
    rows = [of.journal.of(step.key) for step in steps]
    right = [tuple(row["right"]) for row in rows if row]
    assert right == [(True, True), (False, True), (True, False)]
    in_all, of_each = "\n".join(scores.attribution_tables(rows, [TOY])).split("\n\n")
    assert "| 10 % | 1/1 | 1/1 | 1/1 |" in in_all
    assert "| 20 % | 0/1 | 1/1 | 0/1 |" in in_all
    assert "| toy | 10.0 | rust | rust (90 %) | crates/a/toy.rs:extra | yes | yes |" in of_each
