"""Programs that may crash, hang or run out of memory, each in a process of its own."""

import os
import subprocess
import sys

PRELUDE = """
import os, resource, signal, sys, threading, time
import numpy as np
import rlox
from rlox import _core

def room(megabytes):
    'From here on the process gets so much memory and no more.'
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    limit = used + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

def transitions(n, obs_dim=4, dtype=np.float32):
    rows, flags = np.zeros((n, obs_dim), dtype), np.zeros(n, bool)
    return rows, rows, np.zeros((n, 1), np.float32), np.zeros(n, np.float32), flags, flags

def in_child(check, counts=lambda: True):
    'Whether the fork counts, which `counts` says right after it: then `check` must hold in it.'
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends who waits for ever
        ok = False
        try:
            ok = check()
        finally:
            os._exit(not ok)
    counted = counts()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code and counted:
        raise SystemExit(f"the child ended with {code}")
    return counted
"""


def run_alone(program: str, timeout: float = 60, **environment: str) -> str:
    """The output of `program`. It must end with status 0 within `timeout` seconds, and print
    nothing to stderr."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + program],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout
