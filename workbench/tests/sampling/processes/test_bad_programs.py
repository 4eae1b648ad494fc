"""Beliefs about programs that are hard to look at: there is a report of what could be seen, and a
line on what could not."""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import rlox_opt

from rlox_opt.sampling import perf
from rlox_opt.sampling.processes import samplers

# Seconds of the processor: who shares it with others gets less of it than the clock says.
_FOR = "import time\nuntil = time.process_time() + {}\nwhile time.process_time() < until: pass\n"
WORKS, SOON_DONE = _FOR.format(1), _FOR.format(0.3)
DAEMON = """\
import os, sys, time
if os.fork():
    while not os.path.exists({pid!r}):  # the daemon is there, and so is its record
        time.sleep(0.01)
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
open({pid!r}, "w").write(str(os.getpid()))
for descriptor in range(3, 64):
    try:
        os.close(descriptor)
    except OSError:
        pass
time.sleep(120)  # reading the samples takes long on a busy machine, and the test ends it
"""


def reported(folder: Path, program: str, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit status of `profile script` of a program, and its report."""
    script = folder / "program.py"
    script.write_text(program)
    out = folder / "report"
    status = rlox_opt("profile", "script", script, "--out", out, *options).returncode
    report: dict[str, Any] = json.loads((out / "report.json").read_text())
    assert (out / "report.html").exists()
    return status, report


def said(report: dict[str, Any]) -> str:
    return "\n".join(report["incomplete"])


@pytest.fixture(params=["perf", "none"])
def sampler(request: pytest.FixtureRequest) -> str:
    try:
        samplers.choose(request.param)
    except ValueError as error:
        pytest.skip(str(error))
    return request.param


def test_a_program_that_ends_in_a_second_is_reported(tmp_path: Path, sampler: str) -> None:
    status, report = reported(tmp_path, SOON_DONE, "--sampler", sampler)
    assert status == 0
    (main,) = report["processes"]
    assert main["how"] == "exit"
    if sampler == "perf":
        assert {layer["name"] for layer in main["threads"][0]["layers"]} >= {"python"}
    else:
        assert "layers are not known" in said(report)


def test_a_program_that_fails_is_reported_with_its_status(tmp_path: Path, sampler: str) -> None:
    status, report = reported(tmp_path, f"{SOON_DONE}raise SystemExit(5)\n", "--sampler", sampler)
    assert (status, report["status"]) == (2, 5)
    assert "exit status 5" in said(report)


def test_a_program_that_becomes_another_one_is_reported_until_then(
    tmp_path: Path, sampler: str
) -> None:
    program = f"{SOON_DONE}import os\nos.execv('/bin/sleep', ['sleep', '0.1'])\n"
    status, report = reported(tmp_path, program, "--sampler", sampler)
    assert status == 0
    assert "Replaced by a program that is not recorded (exec)" in said(report)


def test_a_daemon_that_runs_on_is_said_to(tmp_path: Path, sampler: str) -> None:
    pid = tmp_path / "pid"
    try:
        status, report = reported(tmp_path, DAEMON.format(pid=str(pid)), "--sampler", sampler)
        assert status == 0
        assert "running still when the program's first process had ended" in said(report)
    finally:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(pid.read_text()), signal.SIGKILL)


def test_a_program_that_clears_its_environment_is_reported_without_its_children(
    tmp_path: Path, sampler: str
) -> None:
    child = [sys.executable, "-c", WORKS]  # long enough to be told of, were it seen
    program = f"import os, subprocess\nos.environ.clear()\nsubprocess.run({child!r})\n{SOON_DONE}"
    status, report = reported(tmp_path, program, "--sampler", sampler)
    assert status == 0
    assert [process["title"] for process in report["processes"]] == ["main"]
    if sampler == "perf":
        assert "were started without this run's PYTHONPATH" in said(report)


def test_what_is_no_python_is_reported_as_not_seen(tmp_path: Path, sampler: str) -> None:
    seconds = 1 if sampler == "perf" else 0.1  # no shell waits until perf is there
    program = f"sleep {seconds}\n"
    status, report = reported(tmp_path, program, "--sampler", sampler, "--python", "/bin/sh")
    assert (status, report["processes"]) == (0, [])
    assert "No process was recorded" in said(report)


def test_a_program_that_ends_before_it_is_sampled_is_told(tmp_path: Path) -> None:
    status, report = reported(tmp_path, "")
    assert status == 0
    if report["sampler"] is None:
        assert "layers are not known" in said(report)
    elif not report["ranking"]:
        assert report["warnings"] in (
            ["Nothing was sampled, so no layers are known. Give the program more to do."],
            ["Only start-up and waiting were sampled, so nothing is ranked."],
        )


JOINS = """\
import threading, time

def work(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(10_000))

def both():
    work(2)
    # Short, since the wait for it is as long as others on the machine make it.
    late = threading.Thread(target=work, args=(0.2,))
    late.start()
    late.join()

thread = threading.Thread(target=both)
thread.start()
thread.join()
work(0.1)
"""


@pytest.mark.skipif(perf.unavailable() is not None, reason=str(perf.unavailable()))
def test_a_thread_that_waits_since_before_it_is_sampled_waits(tmp_path: Path) -> None:
    status, report = reported(tmp_path, JOINS, "--sampler", "perf", "--from", "1")
    assert status == 0, report["incomplete"]
    (process,) = report["processes"]
    idle = [
        sum(layer["share"] for layer in thread["layers"] if layer["name"] == "idle")
        for thread in process["threads"]
    ]
    main, *others = idle
    assert main > 0.8
    assert len(others) == 2
    assert max(others) < 0.5  # also of the thread that began only then
    assert not (tmp_path / "report" / "run" / perf.DATA).exists()


def test_what_outlives_the_program_may_end_by_itself_and_who_ended_the_rest_is_told(
    tmp_path: Path,
) -> None:
    program = """\
import os, signal, subprocess, sys, time
if len(sys.argv) == 1:
    for what in ("stays", "leaves"):
        subprocess.Popen([sys.executable, __file__, what])
    while not all(os.path.exists(f"{__file__}.{what}") for what in ("stays", "leaves")):
        time.sleep(0.01)
    os._exit(0)
if sys.argv[1] == "leaves":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
open(f"{__file__}.{sys.argv[1]}", "w").close()  # it is ready
time.sleep(60)
"""
    status, report = reported(tmp_path, program, "--sampler", "none")
    assert status == 0
    assert len(report["processes"]) == 3
    (sentence,) = (one for one in report["incomplete"] if "Ended by rlox-opt" in one)
    assert "," not in sentence.rpartition(": ")[2]  # the one that ended by itself is whole
