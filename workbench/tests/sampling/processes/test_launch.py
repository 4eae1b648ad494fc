"""Starting a program under the recorder: its gate, Ctrl-C, and when it is over."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlox_opt.sampling.processes.inside.rlox_opt_segments import FOLDER, time_namespace
from rlox_opt.sampling.processes.launch import Exit, Options, launch
from rlox_opt.sampling.processes.report import _left_behind
from rlox_opt.sampling.processes.run import keys, read_run
from rlox_opt.system.ending import ENDING, not_interrupted

SILENT: Any = SimpleNamespace(note=lambda *_: None)


def test_a_script_may_start_python_more_than_once(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\n"{sys.executable}" -c pass\nexec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    outcome = launch([str(script), "-c", "pass"], tmp_path / "run", Options(), None, SILENT)
    assert (outcome.status, outcome.interrupted) == (0, False)
    assert len(keys(tmp_path / "run")) == 2


@pytest.fixture
def heeded() -> Iterator[None]:
    """All that ends a driver does so as Ctrl-C does."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("frames", [True, False])
def test_only_for_perf_are_kernels_of_the_run_time_named_in_a_file(
    frames: bool, tmp_path: Path
) -> None:
    program = f"import os; open({str(tmp_path / 'told')!r}, 'w').write(str(sorted(os.environ)))"
    launch([sys.executable, "-c", program], tmp_path / "run", Options(frames=frames), None, SILENT)
    assert ("ONEDNN_JIT_PROFILE" in (tmp_path / "told").read_text()) is frames


@pytest.mark.parametrize("number", ENDING)
def test_a_second_ctrl_c_does_not_lose_what_the_first_one_kept(
    number: signal.Signals, heeded: None
) -> None:
    with not_interrupted():
        os.kill(os.getpid(), number)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


def interrupted(program: str, folder: Path, again: bool = False) -> Exit:
    """How a program ends that is interrupted as soon as it has made the file `ready` here. With
    `again` SIGTERM follows once the program is being ended, and then the file `again`: by the
    clock, it might come too early or too late on a busy machine."""

    def follow() -> None:
        deadline = time.monotonic() + 60
        while signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
            if time.monotonic() > deadline:  # it would be heeded
                return
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        (folder / "again").touch()

    def note(*_: object) -> None:
        if (folder / "ready").exists():
            (folder / "ready").unlink()
            if again:
                threading.Thread(target=follow, daemon=True).start()
            raise KeyboardInterrupt

    words = [sys.executable, "-c", program, str(folder)]
    return launch(words, folder / "run", Options(), None, SimpleNamespace(note=note))  # type: ignore[arg-type]


def test_a_signal_while_the_program_ends_is_not_heeded(tmp_path: Path, heeded: None) -> None:
    program = (
        "import os, pathlib, signal, sys, time\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "def leave(*_):\n"
        "    while not (folder / 'again').exists():\n"
        "        time.sleep(0.01)\n"
        "    sys.exit(3)\n"
        "signal.signal(signal.SIGINT, leave)\n"
        "(folder / 'ready').touch()\n"
        "time.sleep(30)\n"
    )
    outcome = interrupted(program, tmp_path, again=True)
    assert outcome == Exit(3, True)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == 3


def test_where_only_another_users_processes_are_left_the_run_is_written(
    tmp_path: Path, heeded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "killpg", forbidden)
    program = (
        "import pathlib, sys, time\n"
        "ready = pathlib.Path(sys.argv[1], 'ready')\n"
        "ready.touch()\n"
        "while ready.exists():\n"  # until the interruption
        "    time.sleep(0.01)\n"
    )
    assert interrupted(program, tmp_path) == Exit(0, True)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == 0


def test_workers_that_end_later_than_the_first_process_are_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine may need more than two seconds for what takes a fifth of one.
    monkeypatch.setattr("rlox_opt.sampling.processes.launch._HELPERS_S", 10.0)
    program = (
        "import os, pathlib, signal, sys, time\n"
        "first = os.getpid()\n"
        "def leave(*_):\n"
        "    while os.getppid() == first:\n"  # it is a worker, and the first process is there
        "        time.sleep(0.01)\n"
        "    time.sleep(0.2 * (os.getpid() != first))\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGINT, leave)\n"
        "if not os.fork():\n"
        "    pathlib.Path(sys.argv[1], 'ready').touch()\n"
        "time.sleep(30)\n"
    )
    outcome = interrupted(program, tmp_path)
    assert outcome == Exit(0, True)
    found = {process.header.start: process.how for process in read_run(tmp_path / "run").processes}
    assert found == {"exec": "exit", "fork": "exit"}


ADOPTS = """
import ctypes, sys
from pathlib import Path
from types import SimpleNamespace
from rlox_opt.sampling.processes import launch

PR_SET_CHILD_SUBREAPER = 36  # what the program leaves behind becomes a child of this process
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
launch._HELPERS_S = 20.0
leaves = "import subprocess; subprocess.Popen(['sleep', '0.1'])"
quiet = SimpleNamespace(note=lambda *_: None)
launch.launch([sys.executable, "-c", leaves], Path(sys.argv[1]), launch.Options(), None, quiet)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_what_has_ended_does_not_outlive_the_program_if_nobody_asks_for_its_status(
    tmp_path: Path,
) -> None:
    subprocess.run([sys.executable, "-c", ADOPTS, str(tmp_path)], check=True)
    assert json.loads((tmp_path / "run.json").read_text())["outlived"] is False


def test_what_a_program_leaves_behind_is_none_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_s = 0.3
    monkeypatch.setattr("rlox_opt.sampling.processes.launch._HELPERS_S", waited_s)
    program = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    )
    launch([sys.executable, "-c", program], tmp_path, Options(), None, SILENT)
    about = json.loads((tmp_path / "run.json").read_text())
    # What was left behind goes on, and is waited for: the run had ended so long before.
    assert time.monotonic_ns() - about["end"][0] > waited_s * 1e9
    assert about["end"][0] > about["clock"][2]


def test_whose_clocks_are_one_and_the_same_is_written_down(tmp_path: Path) -> None:
    launch([sys.executable, "-c", "pass"], tmp_path, Options(), None, SILENT)
    about = json.loads((tmp_path / "run.json").read_text())
    (key,) = keys(tmp_path)
    first = json.loads((tmp_path / f"{key}.0.jsonl").read_text().splitlines()[0])
    assert about["time_namespace"] == first["process"]["time_namespace"] == time_namespace()
    if Path("/proc/self/ns/time").exists():
        assert about["time_namespace"].startswith("time:[")


def test_a_program_that_a_shell_started_in_the_background_is_ended_by_what_it_heeds(
    tmp_path: Path, heeded: None
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program inherits it
    program = (
        "import pathlib, sys, time\npathlib.Path(sys.argv[1], 'ready').touch()\ntime.sleep(60)\n"
    )
    assert interrupted(program, tmp_path) == Exit(-signal.SIGTERM, True)


def test_what_is_left_of_a_run_is_found_in_a_folder_of_any_name(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/donn\xe9es"))
    with subprocess.Popen(["sleep", "60"], env={FOLDER: str(folder)}) as left:
        try:
            assert left.pid in _left_behind(folder)
        finally:
            left.kill()
