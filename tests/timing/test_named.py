"""Beliefs about `span`: a name for a block or a function, which costs nothing where unrecorded."""

import threading
from collections.abc import Iterator

import pytest

from rlox.timing import named, span


@pytest.fixture
def timing() -> Iterator[None]:
    named._timing.enabled = True
    named._timing.reset()
    yield
    named._timing.enabled = False


def calls() -> dict[str, int]:
    return {phase.name: phase.calls for phase in named._timing.phases()}


def test_functions_and_blocks_have_the_names_that_they_are_given(timing: None) -> None:
    @span
    def load(n: int) -> int:
        with span("parse"):
            return n + 1

    @span("save it")
    def save() -> None:
        """Doc."""

    assert load(2) == 3
    save()
    assert (save.__name__, save.__doc__) == ("save", "Doc.")
    assert calls() == {"load": 1, "load/parse": 1, "save it": 1}


def test_a_function_that_calls_itself_is_inside_itself(timing: None) -> None:
    @span
    def down(n: int) -> None:
        if n:
            down(n - 1)

    down(2)
    assert {"down": 1, "down/down": 1, "down/down/down": 1}.items() <= calls().items()


def test_a_span_that_is_kept_may_be_entered_while_it_is_open(timing: None) -> None:
    kept = span("kept")
    for _ in range(2):
        with kept, kept, kept:
            pass
    with span("after"):
        pass
    assert calls() == {"kept": 2, "kept/kept": 2, "kept/kept/kept": 2, "after": 1}


def test_a_span_that_is_kept_may_be_open_in_several_threads(timing: None) -> None:
    kept, entered, leave = span("kept"), threading.Event(), threading.Event()

    def other() -> None:
        with kept:
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=other, name="other")
    with kept:
        thread.start()
        assert entered.wait(60)
    with span("after"):
        pass
    leave.set()
    thread.join()
    assert calls() == {"kept": 1, "after": 1}
    assert [(phase.name, phase.calls) for phase in named._timing.trees()["other"]] == [("kept", 1)]


def test_the_inner_of_two_is_left_first_whoever_began(timing: None) -> None:
    """The first thread has left its block when the second thread enters the name once more."""
    kept, left = span("kept"), threading.Event()
    entered = threading.Event()

    def other() -> None:
        with kept:
            entered.set()
            assert left.wait(60)
            with kept:
                pass
            with span("beside"):
                pass

    thread = threading.Thread(target=other, name="second")
    with kept:
        thread.start()
        assert entered.wait(60)
    left.set()
    thread.join()
    found = {phase.name: phase.calls for phase in named._timing.trees()["second"]}
    assert found == {"kept": 1, "kept/kept": 1, "kept/beside": 1}


def test_nothing_is_timed_where_nothing_is_recorded() -> None:
    named._timing.reset()
    with span("a block"):
        pass
    assert "a block" not in calls()


def test_what_works_after_the_call_is_refused() -> None:
    async def coroutine() -> None: ...

    def generator() -> Iterator[int]:
        yield 1

    for function in (coroutine, generator):
        with pytest.raises(TypeError, match="after the call"):
            span(function)
