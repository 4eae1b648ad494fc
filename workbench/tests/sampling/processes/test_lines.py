"""Beliefs about what a process notes of its own threads: the lines of Python they are at, and which
part of torch's work they are in."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from recorded import run_program

from rlox_opt.sampling.processes.lines import Beside, by_thread
from rlox_opt.sampling.processes.run import RecordedProcess

CALLED = np.ones(12, bool)
# Each function goes on for so many ns, without most of what a busy machine took from it. It tells
# since when it was at it, and until when surely: where all threads are kept from running as it
# ends, the next look at them comes in the function after it.
BUSY = """\
import json, threading, time

def wait(what, left):
    begin = last = now = time.monotonic_ns()
    while left > 0:
        time.sleep(0.05)
        last, now = now, time.monotonic_ns()
        left -= min(now - last, 100_000_000)
    marks[what] = begin, last

def spin(what, left):
    begin = last = now = time.monotonic_ns()
    while left > 0:
        last, now = now, time.monotonic_ns()
        left -= min(now - last, 100_000_000)
    marks[what] = begin, last

def both():
    spin("spin", 1_000_000_000)
    wait("wait", 1_000_000_000)

marks = {}
other = threading.Thread(target=wait, args=("other", 2_000_000_000), name="other")
other.start()
both()
other.join()
open("{marks}", "w").write(json.dumps({**marks, "id": other.native_id}))
"""


def busy(folder: Path) -> tuple[RecordedProcess, dict[str, Any]]:
    """The record of the program, and what it tells."""
    marks = folder / "marks.json"
    run = run_program(folder, BUSY.replace("{marks}", str(marks)), frames=True)
    (process,) = run.processes
    return process, json.loads(marks.read_text())


def functions(process: RecordedProcess, tid: int, begin: int, end: int) -> list[list[str]]:
    """The functions on the stack of a thread, at moments well within a time: a third of a second
    after it begins, and before it ends."""
    times = np.linspace(begin, end, 20)[7:-7].astype(np.int64)
    return [
        [frame.name for frame in stack]
        for stack in Beside(process).lines(tid, times, CALLED[: len(times)])
    ]


def test_a_thread_was_at_the_lines_that_it_ran(tmp_path: Path) -> None:
    process, marks = busy(tmp_path)
    main = process.header.pid
    for at in ("spin", "wait"):
        assert all(s == ["<module>", "both", at] for s in functions(process, main, *marks[at]))
    assert all("wait" in stack for stack in functions(process, marks["id"], *marks["other"]))
    amid = np.array([sum(marks["wait"]) // 2])
    (stack,) = Beside(process).lines(main, amid, CALLED[:1])
    assert stack[-1].line == BUSY.splitlines().index("        time.sleep(0.05)") + 1


LOOPS = """\
import json, time

def counted(n):
    for i in range(n):
        n ^= i
        if i < 0:
            n = never(n)

def endless(left):
    while True:
        left -= 1
        if left == 0:
            return
        if left < 0:
            never(left)

marks = []
def mark(): marks.append(time.monotonic_ns())
mark(); counted(8_000_000)
mark(); endless(8_000_000)
mark()
open("{marks}", "w").write(json.dumps(marks))
"""


def looked(process: RecordedProcess, begin: int, end: int) -> int:
    """When one of the looks at the main thread within a time was had. The middle of the time would
    not do: all threads may have been kept from running then, until the end of it."""
    had = by_thread(process, process.looks())[process.header.pid][:, 2]
    had = np.sort(had[(begin < had) & (had < end)])
    return int(had[len(had) // 2])


def test_a_loop_without_calls_is_seen_at_its_first_line_and_at_none_that_never_ran(
    tmp_path: Path,
) -> None:
    marks = tmp_path / "marks.json"
    (process,) = run_program(tmp_path, LOOPS.replace("{marks}", str(marks)), frames=True).processes
    at = [looked(process, *loop) for loop in pairwise(json.loads(marks.read_text()))]
    stacks = Beside(process).lines(process.header.pid, np.array(at), CALLED[:2])
    text = LOOPS.splitlines()
    found = [text[stack[-1].line - 1].strip() for stack in stacks]
    # Not every version of Python has an instruction for `while True`.
    assert found[0] == "for i in range(n):"
    assert found[1] in ("while True:", "left -= 1")


def test_a_process_that_was_not_asked_to_notes_no_lines(tmp_path: Path) -> None:
    """Of the same program as above, which notes them where it is asked to."""
    (process,) = run_program(tmp_path, LOOPS.replace("{marks}", str(tmp_path / "m"))).processes
    assert not list(process.looks())


def test_a_fork_notes_the_lines_of_its_own_threads(tmp_path: Path) -> None:
    program = (
        "import os, time\n"
        "def child():\n"
        "    until = time.process_time() + 0.6\n"
        "    while time.process_time() < until: pass\n"
        "if os.fork() == 0:\n    child()\n    os._exit(0)\n"
        "os.wait()\n"
    )
    run = run_program(tmp_path, program, frames=True)
    parent, child = run.processes
    names = [
        {frame.name for stack in stacks for frame in stack}
        for process in (parent, child)
        for stacks in [
            Beside(process).lines(
                process.header.pid,
                np.linspace(process.begin_ns + 1e8, process.end_ns - 1e8, 5).astype(np.int64),
                CALLED[:5],
            )
        ]
    ]
    assert "child" not in names[0]
    assert "child" in names[1]


TORCH = """\
enabled = [True]

def is_grad_enabled():
    return enabled[0]

class autograd:
    @staticmethod
    def backward(*tensors):
        time.sleep(0.1)

    class grad_mode:
        class no_grad:
            def __enter__(self):
                self.before, enabled[0] = enabled[0], False
            def __exit__(self, *error):
                enabled[0] = self.before

class nn:
    class utils:
        @staticmethod
        def clip_grad_norm_(parameters):
            time.sleep(0.1)

class optim:
    class Optimizer:
        def __init__(self, rate):
            self.rate = rate
        def zero_grad(self):
            pass

import time
"""
# Each part is long beside what a busy machine may put between a mark and it.
TRAINS = """\
import json, time, torch

class Own(torch.optim.Optimizer):
    def step(self):
        with torch.autograd.grad_mode.no_grad():
            time.sleep(0.1)

marks = []
def mark(): marks.append(time.monotonic_ns())
mark(); time.sleep(0.1)
mark(); torch.autograd.backward()
mark(); Own(0.1).step()
mark()
with torch.autograd.grad_mode.no_grad():
    time.sleep(0.1)
mark(); torch.nn.utils.clip_grad_norm_(None)
mark(); time.sleep(0.1)
mark()
open("{marks}", "w").write(json.dumps(marks))
"""


def test_the_parts_of_torchs_work_are_noted(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(TORCH)
    marks = tmp_path / "marks.json"
    program = TRAINS.replace("{marks}", str(marks))
    (process,) = run_program(tmp_path, program).processes
    at = np.array(json.loads(marks.read_text()))
    middles = ((at[1:] + at[:-1]) // 2).astype(np.int64)
    parts = ["grad", "backward", "optimizer", "no_grad", "optimizer", "grad"]
    assert Beside(process).parts(process.header.pid, middles) == parts


def test_gradients_that_are_never_on_again_are_noted_to_the_end(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(TORCH)
    program = (
        "import time, torch\ntorch.autograd.grad_mode.no_grad().__enter__()\ntime.sleep(0.4)\n"
    )
    (process,) = run_program(tmp_path, program).processes
    times = np.array([process.end_ns - int(1e8)])
    assert Beside(process).parts(process.header.pid, times) == ["no_grad"]


def test_a_process_that_never_goes_backward_trains_nothing(tmp_path: Path) -> None:
    (process,) = run_program(tmp_path, "import time\ntime.sleep(0.1)\n").processes
    assert Beside(process).parts(process.header.pid, np.array([process.begin_ns])) == [""]


def test_a_file_name_may_have_several_lines(tmp_path: Path) -> None:
    spins = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end:\n    pass\n"
    program = f"exec(compile({spins!r}, 'one\\ntwo', 'exec'))\n"
    (process,) = run_program(tmp_path, program, frames=True).processes
    assert any(name.path.startswith("one\ntwo\n") for name in process.names.values())
    Beside(process)
