"""A child is heard, explained when it fails, and never left behind."""

import os
import sys
import time
from pathlib import Path

import pytest

from rlox_opt.system.process import Child, ChildError


def child(program: str, folder: Path) -> Child:
    return Child([sys.executable, "-c", program], folder, os.environ)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(pid)


def test_messages_are_heard_until_the_end(tmp_path: Path) -> None:
    with child("print('{\"a\": 1}'); print('{\"b\": 2}')", tmp_path) as running:
        assert list(running.messages(30)) == [{"a": 1}, {"b": 2}]


def test_messages_before_a_stop_and_after_it(tmp_path: Path) -> None:
    program = "import sys; print('{\"a\": 1}', flush=True); sys.stdin.read(); print('{\"b\": 2}')"
    with child(program, tmp_path) as running:
        assert next(running.messages(30)) == {"a": 1}
        running.stop()
        assert list(running.messages(30)) == [{"b": 2}]


def test_a_crash_is_explained_by_the_end_of_its_stderr(tmp_path: Path) -> None:
    with (
        child("raise SystemError('the reason')", tmp_path) as running,
        pytest.raises(ChildError, match=r"exit status 1: [\s\S]*the reason"),
    ):
        list(running.messages(30))


def test_a_silent_child_is_given_up_and_ended(tmp_path: Path) -> None:
    with (
        child("import time; time.sleep(600)", tmp_path) as running,
        pytest.raises(ChildError, match="said nothing"),
    ):
        list(running.messages(0.2))
    assert not is_running(running.pid)


def test_what_a_child_started_ends_with_it(tmp_path: Path) -> None:
    program = (
        "import subprocess, json; "
        "p = subprocess.Popen(['sleep', '600']); print(json.dumps({'pid': p.pid}))"
    )
    with child(program, tmp_path) as running:
        (message,) = running.messages(30)
    assert gone(message["pid"])


def test_a_child_that_ignores_the_polite_signal_is_killed(tmp_path: Path) -> None:
    program = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('{}', flush=True); time.sleep(600)"
    )
    with child(program, tmp_path) as running:
        next(running.messages(30))
    assert not is_running(running.pid)
