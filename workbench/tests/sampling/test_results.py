"""The report's own arithmetic, on figures small enough to know the answer."""

from pathlib import Path

import pytest
import toy_projects
from toy_projects import CLASSIFIER

from rlox_opt.sampling import results, torch_profiler
from rlox_opt.sampling.driver import Findings
from rlox_opt.sampling.results import Rates, Ticks
from rlox_opt.sampling.samples import MAIN_THREAD, Sample, Samples
from rlox_opt.sampling.spans import SpanLog
from rlox_opt.sampling.spec import Spec
from rlox_opt.sampling.torch_profiler import Event, TorchProfile

SECOND = 1_000_000_000


def findings() -> Findings:
    spec = Spec(
        child="child_of.py",
        mode="plain",
        algo="ppo",
        env_id="CartPole-v1",
        total_timesteps=2048,
        seed=0,
        device="cpu",
        threads=1,
        warmup_steps=0,
        seconds=0,
        folder="",
        trainer={"n_envs": 8, "n_steps": 128},
    )
    tools = ("py-spy", "perf", "torch.profiler")
    found = Findings(results.skeleton(toy_projects.PROJECT, spec, tools))
    found.self_seconds = {"gradient_update/backward": 3.0, "env_step": 1.0}
    found.steady = Rates(1000.0, 1.0, 0.0)
    return found


def samples(tool: str, rust: int, torch: int) -> Samples:
    """Samples of env_step all Rust, of backward all torch."""
    return Samples(
        tool,
        [Sample((), "env_step", "rust", 0.01, MAIN_THREAD)] * rust
        + [Sample((), "gradient_update/backward", "torch_backward", 0.01, MAIN_THREAD)] * torch,
        0.01,
        2,
    )


def steady_ticks(rate: float, seconds: int = 20, delayed: float = 0.0) -> Ticks:
    """A tick each 0.1 s, at `rate` steps per second, half of a CPU, some time kept waiting."""
    step = SECOND // 10
    ticks = [
        (i * step, round(i * rate / 10), i * step // 2, round(i * step * delayed))
        for i in range(seconds * 10)
    ]
    return Ticks(ticks, 0, seconds * SECOND)


def test_rates_are_of_the_window_alone() -> None:
    slow, fast = steady_ticks(100).ticks, steady_ticks(300, 40).ticks[200:]
    ticks = Ticks(slow + fast, 0, 0)
    assert ticks.rates(0, 19 * SECOND) == pytest.approx((100, 0.5, 0))
    assert ticks.rates(20 * SECOND, 40 * SECOND) == pytest.approx((300, 0.5, 0))
    assert ticks.rates(50 * SECOND, 60 * SECOND) is None


def test_a_busy_neighbour_is_no_slowdown_of_the_tool() -> None:
    found = findings()
    ticks = steady_ticks(400, delayed=0.6)
    results.add_samples(found, "py-spy", samples("py-spy", 50, 50), ticks, (0, 10 * SECOND))
    section = found.report["tools"]["py-spy"]
    assert section["slowdown"] == pytest.approx(1)
    assert section["delayed_share"] == pytest.approx(0.6)


def test_slowdown_is_the_plain_rate_over_the_rate_in_the_window() -> None:
    found = findings()
    results.add_samples(found, "py-spy", samples("py-spy", 50, 50), steady_ticks(400), (0, SECOND))
    section = found.report["tools"]["py-spy"]
    assert section["slowdown"] == pytest.approx(2.5)
    assert section["samples"] == 100
    assert section["errors"] == 2


def test_a_tool_is_kept_with_how_far_its_widest_interval_reaches() -> None:
    found = findings()
    results.add_samples(found, "perf", samples("perf", 50, 50), steady_ticks(400), (0, SECOND))
    (section,) = results.sampled(found).values()
    widest = max(layer["ci95"][1] - layer["ci95"][0] for layer in section["layers"])
    assert section["half_width"] == pytest.approx(widest / 2)
    assert widest > 0.02


def test_what_earlier_samplers_saw_is_told_by_the_preciser_first() -> None:
    found = findings()
    for tool in ("py-spy", "perf"):
        results.add_samples(found, tool, samples(tool, 50, 50), steady_ticks(400), (0, SECOND))
    assert [*results.sampled(found)] == ["perf", "py-spy"]


def test_layers_follow_the_plain_clock_and_not_the_number_of_samples() -> None:
    found = findings()
    results.add_samples(found, "perf", samples("perf", 900, 100), steady_ticks(1000), (0, SECOND))
    results.conclude(toy_projects.PROJECT, found)
    share = {layer["name"]: layer["share"] for layer in found.report["layers"]}
    assert share["rust"] == pytest.approx(0.25)
    assert share["torch_backward"] == pytest.approx(0.75)
    assert sum(share.values()) == pytest.approx(1)


def test_the_ranking_is_perfs_where_it_is_there() -> None:
    found = findings()
    for tool in ("py-spy", "perf"):
        results.add_samples(found, tool, samples(tool, 60, 60), steady_ticks(1000), (0, SECOND))
    results.conclude(toy_projects.PROJECT, found)
    assert found.report["layer_source"] == "perf"
    spreads = {row["name"]: row["spread"] for row in found.report["disagreement"]}
    assert spreads["rust"] == pytest.approx(0)


@pytest.mark.parametrize(("rate", "warned"), [(900, False), (500, True)])
def test_a_ranking_by_a_held_up_py_spy_comes_with_a_warning(rate: float, warned: bool) -> None:
    found = findings()
    seen = samples("py-spy", 60, 60)
    results.add_samples(found, "py-spy", seen, steady_ticks(rate), (0, 10 * SECOND))
    results.conclude(toy_projects.PROJECT, found)
    assert ["pace" in warning for warning in found.report["warnings"]] == [True] * warned


@pytest.mark.parametrize("slowed", [1.0, 1.3, 2.0])
def test_py_spy_slows_work_and_not_waiting(slowed: float) -> None:
    """A program waits for 2 of 10 seconds, and works so much slower under py-spy."""
    found = findings()
    found.self_seconds = {"": 10.0}
    waits, work = 200, round(800 * slowed)
    seen = [Sample((), "", "idle", 0.01, MAIN_THREAD)] * waits
    seen += [Sample((), "", "rust", 0.01, MAIN_THREAD)] * work
    ticks = steady_ticks(1000 * 1000 / (waits + work))
    results.add_samples(found, "py-spy", Samples("py-spy", seen), ticks, (0, 10 * SECOND))
    layers = found.report["tools"]["py-spy"]["layers"]
    share = {layer["name"]: layer["share"] for layer in layers}
    assert share["idle"] == pytest.approx(0.2, abs=0.002)
    assert share["rust"] == pytest.approx(0.8, abs=0.002)


def test_without_a_sampler_nothing_is_ranked() -> None:
    found = findings()
    results.conclude(toy_projects.PROJECT, found)
    assert found.report["layers"] == []
    assert found.report["layer_source"] is None


def test_a_handful_of_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="--seconds"):
        results.add_samples(findings(), "perf", samples("perf", 3, 3), steady_ticks(1), (0, SECOND))


def test_torch_profilers_layers_are_fractions_of_the_plain_phases() -> None:
    found = findings()
    recorded = TorchProfile(
        [Event("mm", 0, 1, 1)], [], {"gradient_update/backward": 0.5}, 10, "10 updates are enough"
    )
    results.add_torch(found, recorded, steady_ticks(500), CLASSIFIER)
    section = found.report["tools"]["torch.profiler"]
    assert section["layers"] == [
        {"name": "torch_backward", "seconds": 1.5, "share": 0.375, "ci95": None}
    ]
    assert section["slowdown"] == pytest.approx(2)
    assert section["updates"] == 10


def test_messages_of_tools_lose_this_machines_folders() -> None:
    told = results.anonymous(
        f"File {toy_projects.PROJECT.root}/toy/learner/ppo.py, and {Path.home()}/x",
        toy_projects.PROJECT.root,
    )
    assert told == "File toy/learner/ppo.py, and x"


def test_nested_operators_count_once() -> None:
    events = [
        Event("outer", 0, 100, 1),
        Event("inner", 10, 40, 1),
        Event("innermost", 20, 30, 1),
        Event("inner", 50, 60, 1),
        Event("other thread", 5, 95, 2),
        Event("later", 100, 110, 1),
    ]
    outermost, self_ns = torch_profiler.nesting(events)
    assert {event.name for event in outermost} == {"outer", "other thread", "later"}
    assert self_ns == [60, 20, 10, 10, 90, 10]


def test_operators_are_joined_with_the_phase_they_began_in() -> None:
    log = SpanLog()
    log.paths = ["update", "update/forward"]
    thread = log.open_thread(MAIN_THREAD, 7)
    thread.data.extend([1, 100, 200, 0, 0, 1000])
    outermost = [Event("mm", 110, 160, 1), Event("mm", 300, 480, 1)]
    fractions = torch_profiler._fractions(outermost, log)
    assert fractions == {"update/forward": 0.5, "update": 0.2}
