"""CartPole in C (cartpole.c) by ctypes, its results in arrays that are kept: what is left of a step
without a library. Each process compiles it anew for the machine it runs on."""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from arm import stepping

_SOURCE = Path(__file__).with_name("cartpole.c")
_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")


def _compiled() -> ctypes.CDLL:
    """Raises ImportError where there is no compiler, or where it refuses."""
    cc = shutil.which("cc")
    if cc is None:
        raise ImportError("needs a C compiler: there is no cc on PATH")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "cartpole.so"
        command = [cc, *_FLAGS, str(_SOURCE), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["it said nothing"]
            raise ImportError(f"cc does not compile {_SOURCE.name}: {said[-1]}")
        return ctypes.CDLL(str(library))


class _Envs(ctypes.Structure):
    """`Envs` of cartpole.c, with the arrays that it points into; `results` are those of a step, as
    Gymnasium has them."""

    _fields_ = [
        ("n", ctypes.c_int64),
        ("random", ctypes.c_uint64),
        ("obs", ctypes.c_void_p),
        ("terminated", ctypes.c_void_p),
        ("truncated", ctypes.c_void_p),
        ("steps", ctypes.c_void_p),
    ]

    def __init__(self, n: int) -> None:
        obs = np.zeros((n, 4), np.float32)
        terminated, truncated = np.zeros((2, n), np.bool_)
        self._steps = np.zeros(n, np.int32)
        self.results = (obs, np.ones(n, np.float32), terminated, truncated, {})
        arrays = (obs, terminated, truncated, self._steps)
        super().__init__(n, 0x9E3779B97F4A7C15, *(array.ctypes.data for array in arrays))


_LIBRARY = _compiled()
_LIBRARY.reset.argtypes = [ctypes.c_void_p]
_LIBRARY.step.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_LIBRARY.reset.restype = _LIBRARY.step.restype = None


def env_step(n_envs):
    envs = _Envs(n_envs)
    at, move, results = ctypes.byref(envs), _LIBRARY.step, envs.results
    _LIBRARY.reset(at)

    def step(actions):
        move(at, actions.ctypes.data)
        return results

    return stepping(step, results[0], n_envs)
