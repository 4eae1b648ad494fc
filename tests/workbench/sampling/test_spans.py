"""Beliefs about the log of spans: complete, ordered, and the same after a trip through a file."""

import sys
import threading
import time
from pathlib import Path

import pytest
from rlox_opt.sampling import spans

from rlox.timing import SpanLog, Timing


def logged(rounds: int = 3) -> Timing:
    timing = Timing()
    timing.spans = SpanLog()
    for _ in range(rounds):
        with timing.add_time("outer"), timing.add_time("inner"):
            pass
    return timing


def test_every_closed_block_is_logged_inner_before_outer() -> None:
    timing = logged()
    assert timing.spans is not None
    spans = list(timing.spans)
    assert [span.path for span in spans] == ["outer/inner", "outer"] * 3
    assert len(timing.spans) == 6
    for inner, outer in zip(spans[::2], spans[1::2], strict=True):
        assert outer.start_ns <= inner.start_ns <= inner.end_ns <= outer.end_ns


def test_a_block_that_is_timed_while_another_closes_leaves_both_spans_whole() -> None:
    timing = Timing()
    timing.spans = log = SpanLog()

    def interrupt(*_: object) -> object:  # at every line of the block's methods, as a signal might
        with timing.add_time("handler"):
            pass
        return interrupt

    block, before = timing.add_time("block"), sys.gettrace()
    sys.settrace(interrupt)  # type: ignore[arg-type]
    block.__enter__()
    block.__exit__(None, None, None)
    sys.settrace(before)
    spans = list(log)
    assert [span.path for span in spans].count("block") == 1
    assert {span.path for span in spans} == {"block", "handler", "block/handler"}
    assert all(0 < span.start_ns <= span.end_ns for span in spans)


def test_spans_of_a_path_sum_to_its_phase() -> None:
    timing = logged(50)
    assert timing.spans is not None
    for phase in timing.phases():
        spans = [span for span in timing.spans if span.path == phase.name]
        assert sum(s.end_ns - s.start_ns for s in spans) == round(phase.seconds * 1e9)
        assert len(spans) == phase.calls


def test_the_clock_of_spans_is_the_monotonic_clock_that_perf_stamps_with() -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    timing = logged(1)
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert timing.spans is not None
    assert all(before <= span.start_ns <= span.end_ns <= after for span in timing.spans)


def test_a_log_set_later_takes_the_threads_that_exist_and_those_to_come() -> None:
    timing = Timing()
    with timing.add_time("early"):
        pass
    timing.spans = log = SpanLog()
    with timing.add_time("early"):
        pass
    thread = threading.Thread(target=lambda: timing.add_time("late").__enter__(), name="other")
    thread.start()
    thread.join()
    assert [(span.path, span.thread) for span in log] == [
        ("early", threading.current_thread().name)
    ]
    assert [t.name for t in log.threads] == [threading.current_thread().name, "other"]
    assert len({t.native_id for t in log.threads}) == 2
    timing.spans = None
    with timing.add_time("early"):
        pass
    assert len(log) == 1
    assert [phase.calls for phase in timing.phases()] == [3]


def test_a_log_survives_a_file(tmp_path: Path) -> None:
    log = logged().spans
    assert log is not None
    log.save(tmp_path / "spans")
    again = spans.SpanLog.load(tmp_path / "spans")
    assert list(again) == list(log)
    assert (again.pid, again.monotonic_ns, again.real_ns) == (
        log.pid,
        log.monotonic_ns,
        log.real_ns,
    )


def test_a_file_that_is_cut_or_is_no_log_is_refused(tmp_path: Path) -> None:
    log = logged().spans
    assert log is not None
    log.save(tmp_path / "spans")
    whole = (tmp_path / "spans").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-8])
    (tmp_path / "other").write_bytes(b"hello\n")
    with pytest.raises(ValueError, match="cut short"):
        spans.SpanLog.load(tmp_path / "cut")
    with pytest.raises(ValueError, match="not a span log"):
        spans.SpanLog.load(tmp_path / "other")
