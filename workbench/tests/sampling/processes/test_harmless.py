"""Beliefs about the recorded program: it runs as it does by itself, whatever it is made of."""

import os
import subprocess
import sys
from pathlib import Path

from recorded import calls, environment, run_program

from rlox_opt.sampling.processes.run import read_run


def test_the_programs_own_sitecustomize_is_still_run(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.mark = 42\n")
    env = environment(tmp_path)
    env["PYTHONPATH"] += os.pathsep + str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", "print(mark)"], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "42\n"


def test_a_program_without_rlox_is_recorded_as_well(tmp_path: Path) -> None:
    env = environment(tmp_path)
    env["PYTHONPATH"] = env["PYTHONPATH"].split(os.pathsep)[0]
    subprocess.run(
        [sys.executable, "-c", "import time; time.sleep(0.01)"], env=env, cwd=tmp_path, check=True
    )
    (tmp_path / "run.json").write_text('{"schema": 1, "clock": [0, 0, 0]}')
    (process,) = read_run(tmp_path).processes
    assert [name.on for name in process.names.values()] == ["sleep"]


def test_what_a_process_runs_with_is_told_although_its_time_is_not_kept(tmp_path: Path) -> None:
    (process,) = run_program(tmp_path, "pass", start_ns=2**62).processes
    assert not process.recorded
    assert process.loaded["versions"]["python"] == sys.version.split()[0]


def test_a_folder_that_cannot_be_written_does_not_harm_the_program(tmp_path: Path) -> None:
    env = environment(tmp_path / "not there")
    done = subprocess.run(
        [sys.executable, "-c", "print(7)"], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "7\n"
    assert "is not recorded" in done.stderr


AS_DOCUMENTED = """
import multiprocessing, threading, weakref
from multiprocessing import connection

class Pool:
    make_lock = threading.Lock

lock = multiprocessing.Lock()
assert lock.acquire(block=False)
assert not lock.acquire(block=False)
assert not lock.acquire(timeout=-1)
lock.release()
with lock, multiprocessing.Lock():
    pass
one, other = multiprocessing.Pipe()
assert connection.wait(object_list=[one], timeout=0.01) == []
assert Pool().make_lock().acquire()
made = threading.Lock()
assert weakref.ref(made)() is made
assert isinstance(threading.Lock, type)  # as from Python 3.13 on, for `threading.Lock | None`
"""


def test_what_the_recorder_replaces_takes_what_the_original_takes(tmp_path: Path) -> None:
    (process,) = run_program(tmp_path, AS_DOCUMENTED).processes
    assert process.how == "exit"
    locks = {name.channel for name in process.names.values() if name.kind == "hold"}
    assert len(locks) == 2


def library(folder: Path, text: str) -> None:
    """A package that has the name of one that is recorded."""
    inner = folder / "sample_factory" / "utils"
    inner.mkdir(parents=True)
    for package in (inner.parent, inner):
        (package / "__init__.py").touch()
    (inner / "timing.py").write_text(text)


def test_a_module_that_was_looked_for_first_is_recorded_when_it_is_imported(tmp_path: Path) -> None:
    library(
        tmp_path,
        "class TimingContext:\n"
        "    def __init__(self, key): self._key = key\n"
        "    def __enter__(self): pass\n"
        "    def __exit__(self, *error): pass\n",
    )
    program = (
        "import importlib.util\n"
        "assert importlib.util.find_spec('sample_factory.utils.timing')\n"
        "from sample_factory.utils.timing import TimingContext\n"
        "with TimingContext('rollout'): pass\n"
    )
    (process,) = run_program(tmp_path, program).processes
    assert calls(process) == {("MainThread", "rollout"): 1}


def complaining(program: Path) -> subprocess.CompletedProcess[str]:
    """A program that ends well, recorded in its folder, though the recorder may complain."""
    return subprocess.run(
        [sys.executable, str(program)],
        env=environment(program.parent),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def test_a_library_that_is_not_as_we_know_it_is_imported_all_the_same(tmp_path: Path) -> None:
    library(tmp_path, "mark = 42\n")
    program = tmp_path / "program.py"
    program.write_text("from sample_factory.utils.timing import mark\nprint(mark)")
    done = complaining(program)
    assert done.stdout == "42\n"
    assert "sample_factory.utils.timing is not recorded" in done.stderr


def test_a_queue_that_is_closed_says_so_as_before(tmp_path: Path) -> None:
    program = (
        "import multiprocessing\n"
        "queue = multiprocessing.Queue()\n"
        "queue.put(1)\n"
        "queue.close()\n"
        "queue.join_thread()\n"
        "try: queue.get()\n"
        "except ValueError: pass\n"
    )
    run_program(tmp_path, program)


def test_signals_that_the_program_blocks_wait_until_it_asks_for_them(tmp_path: Path) -> None:
    run_program(
        tmp_path,
        "import os, signal, time\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"  # by default it ends the process
        "time.sleep(0.05)\n"
        "assert signal.sigwait({signal.SIGUSR1}) == signal.SIGUSR1\n",
    )
