"""Components are timed interleaved, and only after their results were found right."""

import pytest

import rlox
from workloads import micro
from workloads.micro import Component


def test_every_component_is_called_in_every_round() -> None:
    calls = {"a": 0, "b": 0}

    def count(name: str) -> None:
        calls[name] += 1

    rows = micro.measure(
        [Component("g", "a", lambda: count("a")), Component("g", "b", lambda: count("b"))], rounds=5
    )
    assert [(row["group"], row["name"], row["n"]) for row in rows] == [("g", "a", 5), ("g", "b", 5)]
    assert all(0 < row["low"] <= row["us"] <= row["high"] for row in rows)
    assert min(calls.values()) >= 5 * 10  # a slice holds many calls of something so short


def test_a_row_is_the_time_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0

    def work(ns: int) -> None:
        nonlocal now
        now += ns

    monkeypatch.setattr(micro, "perf_counter_ns", lambda: now)
    short, long = micro.measure(
        [
            Component("g", "short", lambda: work(700)),
            Component("g", "long", lambda: work(3_000_000)),
        ],
        rounds=7,
    )
    assert (short["low"], short["us"], short["high"]) == pytest.approx((0.7, 0.7, 0.7))
    assert long["us"] == pytest.approx(3000)


def test_the_primitives_pass_their_own_checks() -> None:
    names = [component.name for component in micro.rust_components()]
    assert len(names) == len(set(names)) >= 8


def test_a_wrong_result_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rlox.compute_gae_batched

    def wrong(*arguments: object, **options: object) -> object:
        advantages, returns = right(*arguments, **options)  # type: ignore[arg-type]
        return advantages, returns * 1.01

    monkeypatch.setattr(rlox, "compute_gae_batched", wrong)
    with pytest.raises(AssertionError):
        list(micro.rust_components())
