"""`AsyncCollector` and the process that it is in: neither keeps the other from ending."""

import os
import subprocess
import sys
from typing import Any

import pytest


def run(program: str, **options: Any) -> subprocess.CompletedProcess[str]:
    prelude = (
        "import time, numpy as np\nfrom rlox import _core\n"
        "def act(obs):\n"
        "    time.sleep(0.002)\n"
        "    n = len(obs)\n"
        "    return np.zeros(n, np.int64), np.zeros(n, np.float32), np.zeros(n, np.float32)\n"
        "def value(obs): return np.zeros(len(obs), np.float32)\n"
        "collector = _core.AsyncCollector("
        "_core.VecEnv('CartPole-v1', 2, 0), act, value, 1_000_000)\n"
        "collector.start()\n"
    )
    return subprocess.run(
        [sys.executable, "-c", prelude + program],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


@pytest.mark.parametrize(
    "program",
    ["", "del collector", "time.sleep(0.05); raise SystemExit(0)", "collector.close()"],
    ids=["exit", "drop", "later", "close"],
)
def test_a_process_ends_although_its_collector_is_at_work(program: str) -> None:
    done = run(program)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_waits_for_the_thread_of_a_collector_that_is_gone() -> None:
    done = run(
        "import threading\n"
        "begun, gone = threading.Event(), threading.Event()\n"
        "def slow(obs):\n"
        "    begun.set()\n"
        "    gone.wait(30)\n"
        "    time.sleep(0.3)\n"
        "    print('stepped', flush=True)\n"
        "    return act(obs)\n"
        "collector = _core.AsyncCollector(_core.VecEnv('CartPole-v1', 2, 0), slow, value, 9)\n"
        "collector.start()\n"
        "begun.wait(30)\n"
        "del collector\n"
        "gone.set()\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "stepped\n", "")


def test_environments_are_given_back_where_no_thread_can_be_started() -> None:
    program = (
        "from rlox import _core\n"
        "env = _core.VecEnv('CartPole-v1', 2, 0)\n"
        "try:\n"
        "    _core.AsyncCollector(env, print, print, 9)\n"
        "except RuntimeError as error:\n"
        "    env.reset()\n"
        "    print(error)\n"
    )
    no_room = {**os.environ, "RUST_MIN_STACK": str(2**46)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=no_room)
    assert done.stderr == ""
    assert done.stdout.startswith("no thread to collect in: ")


def test_ctrl_c_ends_the_wait_for_a_rollout() -> None:
    # The timer starts within the block: a busy machine may come to its next line too late.
    program = (
        "import os, signal, threading\n"
        "timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))\n"
        "try:\n    timer.start()\n    collector.take()\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
