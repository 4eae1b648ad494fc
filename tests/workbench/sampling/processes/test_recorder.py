"""Beliefs about recording: every process is found and says what it is, whatever starts it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recorded import calls, environment, finished, run_program
from rlox_opt.sampling.processes.format import lines
from rlox_opt.sampling.processes.inside import rlox_opt_identity
from rlox_opt.sampling.processes.inside.rlox_opt_segments import RECORDER, Segments, read_clock
from rlox_opt.sampling.processes.phases import log_of
from rlox_opt.sampling.processes.run import RecordedRun
from rlox_opt.sampling.processes.threads import threads_of

FAMILY = """
import multiprocessing as mp, subprocess, sys, threading, time
from rlox.timing import Timing, span

timing = Timing("Worker")

def work(queue):
    for _ in range(3):
        with timing.add_time("step"):
            with timing.add_time("inner"):
                time.sleep(0.001)
    queue.put("done")

@span
def in_thread():
    time.sleep(0.002)

if __name__ == "__main__":
    with timing.add_time("before the fork"):
        pass
    for method in ("fork", "spawn"):
        context = mp.get_context(method)
        queue = context.Queue()
        worker = context.Process(target=work, args=(queue,))
        worker.start()
        queue.get()
        worker.join()
    subprocess.run([sys.executable, "-c", "print(1)"], stdout=subprocess.DEVNULL, check=True)
    thread = threading.Thread(target=in_thread, name="helper")
    thread.start()
    thread.join()
"""


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    return run_program(tmp_path_factory.mktemp("family"), FAMILY)


def test_forked_spawned_and_started_processes_record_themselves(family: RecordedRun) -> None:
    main = family.processes[0]
    assert main.title == "main"
    found = {process.title for process in family.processes}
    assert {"main", "work 1", "work 2", "python -c"} <= found
    for process in family.processes[1:]:
        assert process.header.parent_key == main.key or process.role == "resource tracker"
    assert {p.how for p in family.processes if p.role != "resource tracker"} == {"exit"}


def test_each_process_has_its_own_phases_and_not_its_parents(family: RecordedRun) -> None:
    workers = [process for process in family.processes if process.role == "work"]
    assert len(workers) == 2
    for worker in workers:
        assert calls(worker) == {("MainThread", "step"): 3, ("MainThread", "step/inner"): 3}
    assert calls(family.processes[0])["MainThread", "before the fork"] == 1


def test_a_decorated_function_is_a_span_of_its_thread(family: RecordedRun) -> None:
    assert calls(family.processes[0])["helper", "in_thread"] == 1


def test_totals_are_those_of_the_process_alone(family: RecordedRun) -> None:
    for process in family.processes:
        if process.role == "work":
            paths = {process.names[t.source, t.name].path: t.calls for t in process.totals}
            assert paths == {"step": 3, "step/inner": 3}


def test_what_is_put_into_a_queue_and_got_from_it_meets_on_one_channel(family: RecordedRun) -> None:
    main, worker = family.processes[0], next(p for p in family.processes if p.role == "work")
    gets = {n.channel for n in main.names.values() if (n.kind, n.on) == ("wait", "queue")}
    sends = {family.channel(n) for n in worker.names.values() if n.kind == "send"}
    assert gets & sends


def test_waiting_for_a_process_and_sleeping_are_waits(family: RecordedRun) -> None:
    waits = {n.on for p in family.processes for n in p.names.values() if n.kind == "wait"}
    assert {"process", "sleep", "queue"} <= waits


def test_the_thread_that_records_is_no_part_of_the_program(family: RecordedRun) -> None:
    for process in family.processes:
        if process.end_ns - process.begin_ns > 500_000_000:
            assert RECORDER in {thread.name for thread in process.threads.values()}
            assert RECORDER not in {use.name for use in threads_of(process, None)}


def test_the_clocks_of_one_machine_agree(family: RecordedRun) -> None:
    begins = [process.begin_ns for process in family.processes]
    assert begins == sorted(begins)
    assert family.clock.after_ns < begins[0]


def test_a_killed_process_leaves_what_it_had_written(tmp_path: Path) -> None:
    program = (
        "import time\n"
        "from rlox.timing import Timing\n"
        "timing = Timing()\n"
        "while True:\n"
        "    with timing.add_time('step'): time.sleep(0.01)\n"
    )
    script = tmp_path / "program.py"
    script.write_text(program)
    clock = read_clock()
    with subprocess.Popen([sys.executable, str(script)], env=environment(tmp_path)) as process:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not _steps(tmp_path):
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    run = finished(tmp_path, clock)
    (killed,) = run.processes
    assert killed.how is None
    assert calls(killed)["MainThread", "step"] > 5


def _steps(folder: Path) -> bool:
    return any(file.read_text().count('"spans"') > 5 for file in folder.glob("*-*.jsonl"))


def test_only_the_window_that_was_asked_for_is_kept(tmp_path: Path) -> None:
    # It is flushed here alone, four times a second of a clock of its own: a busy machine may keep
    # the recorder from running for all of a real window.
    program = (
        "import time\n"
        "from types import SimpleNamespace\n"
        "import rlox_opt_recorder\n"
        "from rlox.timing import Timing\n"
        "timing = Timing()\n"
        "recorder = rlox_opt_recorder.active()\n"
        "recorder._stop_thread()\n"
        "now = time.monotonic_ns()\n"
        "rlox_opt_recorder.time = SimpleNamespace(monotonic_ns=lambda: now)\n"
        "recorder.options['start_ns'] = recorder._flushed = now\n"
        "for step in range(150):\n"
        "    with timing.add_time('step'): pass\n"
        "    now += 10_000_000\n"
        "    if step % 25 == 24: recorder.flush()\n"
    )
    run = run_program(tmp_path, program, start_ns=2**62, from_s=0.3, for_s=0.5)
    (process,) = run.processes
    (total,) = process.totals
    assert total.calls == 150
    assert sum(calls(process).values()) == 50  # what came after a flush that was in the window
    ((begin, end),) = process.recorded
    assert begin > process.begin_ns
    assert end - begin == 500_000_000


FORKS = """
import os, threading
import rlox_opt_recorder
from rlox.timing import Timing

timing = Timing("Worker")
recorder = rlox_opt_recorder.active()
stop, others = recorder._stop_thread, []

def fork(name):
    child = os.fork()
    if not child:
        with timing.add_time(name):
            pass
        os._exit(0)
    os.waitpid(child, 0)

def stop_meanwhile_another_forks(*patience):
    stop(*patience)
    if not others:
        others.append(threading.Thread(target=fork, args=("of another thread",)))
        others[0].start()
        others[0].join()

recorder._stop_thread = stop_meanwhile_another_forks
with timing.add_time("before"):
    pass
fork("of this thread")
"""


def test_two_threads_may_fork_at_once(tmp_path: Path) -> None:
    run = run_program(tmp_path, FORKS)
    found = sorted(span.path for process in run.processes[1:] for span in log_of(process))
    assert found == ["of another thread", "of this thread"]


THREADS = """
import threading
import rlox_opt_recorder
from rlox.timing import Timing

timing = Timing("Worker")
recorder = rlox_opt_recorder.active()
recorder._stop_thread()  # it is flushed here alone

def work():
    with timing.add_time("step"):
        pass

for turn in range(5):
    while (recorder._flushes + 1) % rlox_opt_recorder._SLOW_FLUSHES:
        recorder.flush()
    for n in range(40):
        thread = threading.Thread(target=work, name=f"worker {turn} {n}")
        thread.start()
        thread.join()
    recorder.flush()
tracks = [track for source in recorder.sources for track in source.tracks]
for known in (recorder.threads.by_number, recorder.threads._numbers, tracks):
    assert len(known) < 150, known
assert recorder.threads.opened > 200
"""


def test_threads_that_have_ended_are_forgotten_once_all_of_them_is_written(tmp_path: Path) -> None:
    (process,) = run_program(tmp_path, THREADS, segment_bytes=500, segments=1000).processes
    workers = {f"worker {turn} {n}" for turn in range(5) for n in range(40)}
    assert calls(process) == {(worker, "step"): 1 for worker in workers}
    assert {process.threads[total.thread].name for total in process.totals} == workers
    assert len(process.files) > 5
    for file in process.files:  # each can be read without the others
        found = [(kind, value) for kind, value in lines(file) if kind in ("thread", "spans")]
        told = {value[0] for kind, value in found if kind == "thread"}
        assert told >= {value[1] for kind, value in found if kind == "spans"}


def test_what_each_segment_repeats_does_not_fill_it(tmp_path: Path) -> None:
    files = Segments(str(tmp_path / "7-1"), 200, 8, lambda _: [{"source": [0, 500 * "x"]}])
    for _ in range(10):
        files.write([{"counter": ["x", 1, 1]}])
    files.close()
    assert len(list(tmp_path.iterdir())) < 3


def test_a_process_that_is_killed_early_leaves_something(tmp_path: Path) -> None:
    program = (
        "import os, signal, time\n"
        "from rlox.timing import span\n"
        "if not os.fork():\n"
        "    with span('early'): pass\n"
        "    time.sleep(0.15)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.wait()\n"
    )
    found = []
    for turn in range(3):  # a busy machine may keep one from running until it is killed
        _, child = run_program(tmp_path / f"{turn}", program).processes
        assert child.how is None
        found.append(calls(child))
        if found[-1]:
            break
    assert found[-1] == {("MainThread", "early"): 1}, found


def test_forking_again_and_again_does_not_put_off_the_writing(tmp_path: Path) -> None:
    program = (
        "import os, time\n"
        "import rlox_opt_recorder\n"
        "recorder = rlox_opt_recorder.active()\n"
        "time.sleep(0.6)\n"
        "before = recorder._flushes\n"
        "for _ in range(20):\n"
        "    if not os.fork(): os._exit(0)\n"
        "    os.wait()\n"
        "    time.sleep(0.05)\n"
        "assert recorder._flushes >= before + 3, recorder._flushes\n"
    )
    assert len(run_program(tmp_path, program).processes) == 21


def test_a_forks_child_lets_py_spy_look_as_its_parent_does(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "import rlox_opt_recorder\n"
        "allowed = []\n"
        "rlox_opt_recorder.allow_ptrace = lambda: allowed.append(os.getpid())\n"
        "child = os.fork()\n"
        "if not child: os._exit(0 if allowed == [os.getpid()] else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert not allowed\n"
    )
    assert len(run_program(tmp_path, program, ptrace=True).processes) == 2


def test_a_flow_of_any_number_is_whole_and_of_none_is_left_out(tmp_path: Path) -> None:
    program = (
        "from rlox.timing import Timing\n"
        "timing = Timing()\n"
        "for number in (2**64 + 5, 7.0, 'a word', float('nan'), None, 9):\n"
        "    timing.flow('rollout', number)\n"
    )
    (process,) = run_program(tmp_path, program).processes
    assert [row[2] for block in process.flows() for row in block.data.tolist()] == [5, 7, 9]


def test_a_process_whose_place_another_program_takes_was_not_killed(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from rlox.timing import span\n"
        "with span('before'): pass\n"
        "try: os.execv('/not/there', ['x'])\n"
        "except FileNotFoundError: pass\n"
        "with span('still there'): pass\n"
        "os.execvp(sys.executable, [sys.executable, '-c', 'print(1)'])\n"
    )
    first, second = run_program(tmp_path, program).processes
    assert (first.how, second.how) == ("exec", "exit")
    assert first.header.pid == second.header.pid
    assert [span.path for span in log_of(first)] == ["before", "still there"]


def test_a_gauge_that_shows_no_number_is_left_out(tmp_path: Path) -> None:
    program = (
        "import rlox_opt_recorder\n"
        "rlox_opt_recorder.active().gauge('nothing', lambda: float('nan'))\n"
        "rlox_opt_recorder.active().gauge('length', lambda: 3)\n"
    )
    (process,) = run_program(tmp_path, program).processes
    assert [(name, value) for name, _, value in process.counters()] == [("length", 3.0)]


def test_nothing_is_kept_of_a_gauge_that_is_gone(tmp_path: Path) -> None:
    program = (
        "import rlox_opt_recorder\n"
        "recorder, things = rlox_opt_recorder.active(), [3]\n"
        "recorder.gauge('length', lambda: things[0])\n"
        "recorder.flush()\n"
        "assert list(recorder.gauges._before) == ['length']\n"
        "things.clear()\n"
        "recorder.flush()\n"
        "assert not recorder.gauges._read\n"
        "assert not recorder.gauges._before\n"
    )
    (process,) = run_program(tmp_path, program).processes
    assert [(name, value) for name, _, value in process.counters()] == [("length", 3.0)]


@pytest.mark.parametrize(
    ("name", "target", "role"),
    [
        ("Worker<AsyncVectorEnv>-3", "_async_worker", ("env worker", 3)),
        ("Process-2", "rollout", ("rollout", 2)),
        ("Process-1:2", "rollout", ("rollout", 2)),
        ("SpawnPoolWorker-4", "worker", ("SpawnPoolWorker", 4)),
        ("rollout_proc11", None, ("rollout_proc", 11)),
        ("learner", "train", ("learner", None)),
    ],
)
def test_roles_come_from_the_names_that_programs_give(
    name: str, target: str | None, role: tuple[str, int | None]
) -> None:
    assert rlox_opt_identity.named(name, target)[:2] == role
