"""The trace: what Chrome's format asks for, nested spans, and a bound on its size."""

import json
from typing import Any

import pytest

from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.sampling.spans import SpanLog
from rlox_opt.sampling.torch_profiler import Event
from rlox_opt.views import trace as module
from rlox_opt.views.trace import trace

REPORT = {"algo": "ppo", "env_id": "CartPole-v1", "commit": "abc"}


def blocks(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in found["traceEvents"] if event["ph"] == "X"]


def test_a_trace_is_json_whose_events_have_what_the_format_asks(spans: SpanLog) -> None:
    torch = [Event("aten::mm", 5_000, 9_000, 1), Event("aten::add", 10_000, 12_000, 1)]
    found = json.loads(json.dumps(trace(REPORT, {}, spans, torch)))
    assert found["displayTimeUnit"] == "ms"
    for event in found["traceEvents"]:
        assert {"ph", "name", "pid", "tid"} <= event.keys()
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
        else:
            assert event["ph"] == "M"
            assert event["args"]["name"]


def test_processes_and_threads_have_names(spans: SpanLog) -> None:
    found = trace(REPORT, {}, spans, [Event("aten::mm", 0, 9, 7)])
    names = {(e["name"], e["args"]["name"]) for e in found["traceEvents"] if e["ph"] == "M"}
    assert ("process_name", "ppo CartPole-v1 (plain run)") in names
    assert ("thread_name", MAIN_THREAD) in names
    assert ("thread_name", "collector") in names
    assert ("process_name", "torch.profiler (a run of its own)") in names


def test_an_inner_span_lies_within_its_outer_one(spans: SpanLog) -> None:
    main = [e for e in blocks(trace(REPORT, {}, spans, None)) if e["tid"] == 4242]
    inner = [e for e in main if e["name"] == "backward"]
    outer = [e for e in main if e["name"] == "gradient_update"]
    assert len(inner) == len(outer) == 40
    for a, b in zip(inner, outer, strict=True):
        assert b["ts"] <= a["ts"]
        assert a["ts"] + a["dur"] <= b["ts"] + b["dur"]


def test_a_long_run_is_cut_to_its_last_seconds_and_says_so(
    spans: SpanLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = blocks(trace(REPORT, {}, spans, None))
    monkeypatch.setattr(module, "MOST_SPANS", 30)
    monkeypatch.setattr(module, "MOST_TORCH", 5)
    torch = [Event("op", 1_000 * n, 1_000 * n + 500, 1) for n in range(100)]
    found = trace(REPORT, {}, spans, torch)
    assert len([e for e in blocks(found) if e["cat"] == "phase"]) <= 30
    assert len([e for e in blocks(found) if e["cat"] == "torch"]) == 5
    assert "0.00 s of the plain run" in found["otherData"]["spans"]
    assert "the last 0.00 s" in found["otherData"]["torch.profiler"]
    # The end is what is kept.
    last = max(whole, key=lambda e: e["ts"] if e["tid"] == 4242 else -1)
    kept = max(blocks(found), key=lambda e: e["ts"] if e["tid"] == 4242 else -1)
    assert (kept["name"], kept["dur"]) == (last["name"], last["dur"])


def test_a_run_without_spans_has_an_empty_trace_that_says_why() -> None:
    for nothing in (None, SpanLog()):
        found = trace(REPORT, {}, nothing, None)
        assert found["traceEvents"] == []
        assert found["otherData"]["spans"] == "none were logged"


def test_samples_that_carry_a_time_are_instants_on_their_threads_track() -> None:
    def sample(thread: str, time_ns: int | None) -> Sample:
        return Sample((Frame("leaf", "m"),), "env_step", "rust", 0.001, thread, time_ns)

    samples = {
        "perf": Samples("perf", [sample("pool", 7_000), sample(MAIN_THREAD, 5_000)]),
        "py-spy": Samples("py-spy", [sample(MAIN_THREAD, None)]),
    }
    found = trace(REPORT, samples, None, None)
    instants = [event for event in found["traceEvents"] if event["ph"] == "i"]
    assert [(e["ts"], e["name"], e["cat"], e["s"]) for e in instants] == [
        (0.0, "leaf", "rust", "t"),
        (2.0, "leaf", "rust", "t"),
    ]
    assert len({event["tid"] for event in instants}) == 2
    assert found["otherData"]["py-spy"] == "nothing that carries a time"
