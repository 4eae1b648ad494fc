"""Locks that are noted: as locks they are as before, and who waits for them is told."""

from __future__ import annotations

import pickle
import sys
import threading
import time
from array import array
from collections import defaultdict
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import rlox_opt.sampling.processes as processes_package

INSIDE = Path(processes_package.__path__[0]) / "inside"


class FakeSource:
    """What a recorder's source has."""

    def __init__(self) -> None:
        self.names: list[tuple[str, str, str, str]] = []
        self.data = array("q")

    def index(self, *name: str) -> int:
        if name not in self.names:
            self.names.append(name)  # type: ignore[arg-type]
        return self.names.index(name)  # type: ignore[arg-type]

    def here(self) -> array[int]:
        return self.data

    def spans(self, kind: str) -> list[tuple[int, int]]:
        words = iter(self.data)
        rows = zip(words, words, words, strict=True)
        return [(begin, end) for index, begin, end in rows if self.names[index][1] == kind]


class FakeRecorder:
    key = "7-1"

    def __init__(self) -> None:
        self.found = FakeSource()
        self.made = count()

    def source(self, name: str) -> FakeSource:
        assert name == "waits"
        return self.found


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with `threading.Lock` as it is after the test."""
    monkeypatch.syspath_prepend(str(INSIDE))
    monkeypatch.setattr(threading, "Lock", threading.Lock)
    import rlox_opt_locks

    monkeypatch.setattr(
        rlox_opt_locks, "on_import", lambda *_: None
    )  # of this process, threads alone
    recorder = FakeRecorder()
    rlox_opt_locks.Locks(recorder).install()
    yield recorder
    for path in INSIDE.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_who_waits_and_who_has_it_is_noted_with_the_line_that_made_it(noted: Any) -> None:
    lock: Any = threading.Lock()
    line = sys._getframe().f_lineno - 1

    def other() -> None:
        with lock:
            time.sleep(0.02)

    with lock:
        thread = threading.Thread(target=other)
        thread.start()
        deadline = time.monotonic() + 30
        while not lock.contended and time.monotonic() < deadline:  # until the other one waits
            time.sleep(0.001)
        time.sleep(0.03)
    thread.join()
    source = noted.found
    assert source.names[0][0] == f"lock: {Path(__file__).name}:{line}"
    assert {name[1:3] for name in source.names} == {("wait", "lock"), ("hold", "lock")}
    assert len({name[3] for name in source.names}) == 1
    ((waited, taken),) = source.spans("wait")
    holds = sorted(source.spans("hold"))
    assert len(holds) == 2  # of the first it was known in time that somebody waits
    assert taken - waited > 0.01e9
    assert holds[1][0] == taken
    assert holds[0][1] <= taken


def test_a_lock_that_nobody_waits_for_is_not_noted(noted: Any) -> None:
    lock = threading.Lock()
    for _ in range(10):
        with lock:
            assert lock.locked()
            assert not lock.acquire(blocking=False)
            assert not lock.acquire(False)
    assert not lock.locked()
    assert not noted.found.data


def test_a_lock_is_another_one_than_those_that_were_there_before(noted: Any) -> None:
    for _ in range(5):  # each is likely to lie where the one before it lay
        lock: Any = threading.Lock()
        lock.contended = True
        with lock:
            pass
        del lock
    assert len({name[3] for name in noted.found.names}) == 5


def test_it_times_out_as_a_lock_does(noted: Any) -> None:
    lock = threading.Lock()
    assert lock.acquire()
    begin = time.monotonic()
    assert not lock.acquire(timeout=0.02)
    assert time.monotonic() - begin >= 0.02
    lock.release()
    with pytest.raises(RuntimeError):
        lock.release()


def test_conditions_and_events_can_be_made_of_it(noted: Any) -> None:
    condition = threading.Condition(threading.Lock())
    done: list[int] = []

    def other() -> None:
        with condition:
            done.append(1)
            condition.notify()

    with condition:
        threading.Thread(target=other).start()
        assert condition.wait_for(lambda: bool(done), timeout=10)


def test_locks_are_instances_of_what_makes_them_and_other_things_are_not(noted: Any) -> None:
    kind: Any = threading.Lock
    assert isinstance(threading.Lock(), kind)
    assert isinstance(threading._allocate_lock(), kind)  # type: ignore[attr-defined]
    assert not isinstance(threading.RLock(), kind)


def test_locks_of_the_standard_library_stay_as_they_are(noted: Any) -> None:
    import queue

    assert type(queue.Queue().mutex) is type(threading._allocate_lock())  # type: ignore[attr-defined]


def test_what_makes_locks_can_be_pickled_by_its_name(noted: Any) -> None:
    kept = pickle.dumps(defaultdict(threading.Lock))
    assert pickle.loads(kept).default_factory is threading.Lock
