"""Beliefs about the extension's own notes of when it was called."""

import threading
import time

import numpy as np
import pytest

from rlox import compute_gae
from rlox._core import count_crossings, record_spans, take_crossings, take_spans

ARRAYS = np.ones(64), np.zeros(64), np.zeros(64)


def call() -> None:
    compute_gae(*ARRAYS, 0.0, 0.99, 0.95)


def taken() -> list[tuple[str, int, int, int]]:
    names, threads = take_spans()
    return [
        (names[site], thread, begin, end)
        for thread, words in threads
        for site, begin, end in np.frombuffer(words, np.int64).reshape(-1, 3).tolist()
    ]


def test_calls_are_noted_by_the_callers_clock_and_thread() -> None:
    before = began = 0
    while not 0 < before - began < 100_000:  # the process may have lost its core in between
        began = time.monotonic_ns()
        record_spans(began)
        before = time.monotonic_ns()
    call()
    other = threading.Thread(target=call)
    other.start()
    other.join()
    after = time.monotonic_ns()
    found = taken()
    record_spans(None)
    assert [name for name, *_ in found] == ["compute_gae"] * 2
    assert {thread for _, thread, *_ in found} == {threading.get_native_id(), other.native_id}
    for _, _, begin, end in found:
        # The two clocks are one, read a moment apart.
        assert before - 100_000 <= begin <= end <= after
    assert taken() == []


def test_nothing_is_noted_unless_it_is_asked_for() -> None:
    record_spans(None)
    call()
    assert taken() == []


@pytest.mark.parametrize("noted", [False, True])
def test_counting_and_noting_do_not_disturb_each_other(noted: bool) -> None:
    record_spans(time.monotonic_ns() if noted else None)
    count_crossings(True)
    take_crossings()
    call()
    counted = take_crossings()
    count_crossings(False)
    call()
    found = taken()
    record_spans(None)
    assert counted["compute_gae"][0] == 1
    assert len(found) == (2 if noted else 0)
