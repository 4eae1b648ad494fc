"""Looking at threads from outside: who is there, what each is at, where CPython's lock lies."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlox_opt.sampling.processes.format import lines
from rlox_opt.sampling.processes.run import segments
from rlox_opt.sampling.processes.watch import Watch
from rlox_opt.sampling.processes.watcher import WATCH, Watcher, statics, tree

MAPS = """\
55d0c0000000-55d0c0001000 r--p 00000000 08:01 11 /usr/bin/python3.11
55d0c0001000-55d0c0200000 r-xp 00001000 08:01 11 /usr/bin/python3.11
55d0c0200000-55d0c0210000 rw-p 00200000 08:01 11 /usr/bin/python3.11
55d0c0210000-55d0c0250000 rw-p 00000000 00:00 0
55d0c1000000-55d0c1400000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f0100000000-7f0100100000 rw-p 00100000 08:01 12 /usr/lib/x86_64-linux-gnu/libc.so.6
7f0200000000-7f0200010000 rw-p 00300000 08:01 13 /opt/python/lib/libpython3.12.so.1.0
"""
PROGRAM = """
import subprocess, sys, threading, time
sys.setswitchinterval(0.5)  # who waits sleeps meanwhile, however busy the machine is
sleeps = "import time; print(flush=True); time.sleep(120)"
child = subprocess.Popen([sys.executable, "-c", sleeps], stdout=subprocess.PIPE)
child.stdout.readline()  # it has started, which takes longer on a busy machine
print("ready", flush=True)
def spin():
    while True:
        pass
threading.Thread(target=spin, daemon=True).start()
threading.Thread(target=spin, daemon=True).start()
sys.stdin.read()
child.kill()
child.wait()
import os
os._exit(0)
"""


def test_the_interpreters_own_variables_are_found_in_its_mappings() -> None:
    assert statics(MAPS) == [
        (0x55D0C0200000, 0x55D0C0210000),
        (0x55D0C0210000, 0x55D0C0250000),
        (0x7F0200000000, 0x7F0200010000),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_library_may_lie_in_a_folder_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    (library := Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.so"))).write_bytes(bytes(4096))
    with library.open("r+b") as file, mmap.mmap(file.fileno(), 4096):
        assert not Watcher(os.getpid(), tmp_path)._is_static(os.getpid(), 1)


def looks(folder: Path) -> list[tuple[int, list[list[int]]]]:
    """When it looked, and what it saw of each thread."""
    return [(at, tasks) for file in segments(folder, WATCH) for _, (at, tasks) in lines(file)]


def looks_at_three(pid: int, folder: Path) -> int:
    """At how many looks a process had three threads. In a second of a busy machine there may be
    next to none."""
    return sum([task[0] for task in tasks].count(pid) == 3 for _, tasks in looks(folder))


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_threads_of_a_process_and_its_children_are_seen_running_and_waiting(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (_, child) = tree(process.pid)
        begin = time.monotonic_ns()
        with Watcher(process.pid, tmp_path):
            deadline = time.monotonic() + 60
            while looks_at_three(process.pid, tmp_path) < 40 and time.monotonic() < deadline:
                time.sleep(0.05)
        end = time.monotonic_ns()
        spinning = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        process.communicate()
    watch = Watch.load(tmp_path)
    sleeper, main = watch.of(child, child), watch.of(process.pid, process.pid)
    assert sleeper is not None
    assert main is not None
    assert sleeper.spent(sleeper.ran, begin, end) < 0.2
    states = sleeper.states([], begin, end)
    if states["other"] == sum(states.values()):
        pytest.skip("the kernel forbids to look at system calls here")
    assert states["sleep"] > 0.5 * sum(states.values())
    assert not states["gil"] + states["lock"]
    others = [watch.of(process.pid, tid) for tid in spinning if tid != process.pid]
    found = [seen.states([], begin, end) for seen in others if seen is not None]
    assert len(found) == 2
    for states in found:
        assert states["gil"] + states["running"] >= 0.9 * sum(states.values())
    both = found[0] + found[1]  # one has the interpreter, the other one waits for it
    assert both["gil"] > 0.3 * both.total()


def test_it_looks_only_in_the_time_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [0]  # by a clock that goes on at each reading: a busy machine leaves out whole times

    def monotonic_ns() -> int:
        told.append(told[-1] + 50)
        return told[-1]

    clock = SimpleNamespace(monotonic_ns=monotonic_ns, thread_time=time.thread_time)
    monkeypatch.setattr("rlox_opt.sampling.processes.watcher.time", clock)
    with Watcher(os.getpid(), tmp_path, 100, 300):
        while told[-1] < 500:
            time.sleep(0.01)
    assert [at for at, _ in looks(tmp_path)] == [100, 150, 200, 250]


def test_of_many_threads_it_looks_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def costly(*_: object) -> list[object]:
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return []

    monkeypatch.setattr("rlox_opt.sampling.processes.watcher.tree", lambda pid: [pid])
    monkeypatch.setattr(Watcher, "_tasks", costly)
    with Watcher(os.getpid(), tmp_path):
        time.sleep(0.5)
    (file,) = segments(tmp_path, WATCH)
    assert 1 <= len(list(lines(file))) <= 3  # of seven
