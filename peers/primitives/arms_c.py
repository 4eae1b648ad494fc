"""CartPole (cartpole.c) and a replay buffer (ring.c) in C, called by ctypes. Results go into arrays
that are kept, and the addresses of arguments are taken beforehand: it shows the cost of a call
without a library. Each process compiles them anew for its machine."""

import ctypes
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import inputs
import numpy as np
from arm import KNOWN, drawing, stepping, storing

_SOURCES = [Path(__file__).with_name(name) for name in ("cartpole.c", "ring.c")]
_COLUMNS = ("obs", "next_obs", "action", "reward", "terminated", "truncated")
_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")


def _compiled() -> ctypes.CDLL:
    """The compiled library. Raises ImportError if there is no compiler, or if it fails."""
    cc = shutil.which("cc")
    if cc is None:
        raise ImportError("needs a C compiler: there is no cc on PATH")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "engine.so"
        command = [cc, *_FLAGS, *map(str, _SOURCES), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["it said nothing"]
            raise ImportError(f"cc does not compile {_SOURCES[0].parent.name}/*.c: {said[-1]}")
        return ctypes.CDLL(str(library))


class _Envs(ctypes.Structure):
    """`Envs` of cartpole.c, with the arrays that it points to; `results` are those of a step in
    Gymnasium's form."""

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


class _Ring(ctypes.Structure):
    """`Ring` of ring.c, with the arrays of its `columns`."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("capacity", "at", "obs_dim")),
        ("random", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in _COLUMNS),
    ]

    def __init__(self, n: int, obs_dim: int) -> None:
        wide, ones = np.zeros((2, n, obs_dim), np.float32), np.zeros((2, n), np.float32)
        arrays = (*wide, *ones, *np.zeros((2, n), np.bool_))
        self.columns = dict(zip(_COLUMNS, arrays, strict=True))
        super().__init__(n, 0, obs_dim, 0x9E3779B97F4A7C15, *map(_address, arrays))


def _address(array: np.ndarray) -> int:
    return array.ctypes.data


_LIBRARY = _compiled()
_pointer = ctypes.c_void_p
_LIBRARY.reset.argtypes = [_pointer]
_LIBRARY.step.argtypes = [_pointer, _pointer]
_LIBRARY.push.argtypes = [*[_pointer] * 4, ctypes.c_float, ctypes.c_uint8, ctypes.c_uint8]
_LIBRARY.sample.argtypes = [_pointer, ctypes.c_int64, _pointer]
for _function in (_LIBRARY.reset, _LIBRARY.step, _LIBRARY.push, _LIBRARY.sample):
    _function.restype = None


def env_step(n_envs):
    envs = _Envs(n_envs)
    at, move, results = ctypes.byref(envs), _LIBRARY.step, envs.results
    _LIBRARY.reset(at)

    def step(actions):
        move(at, actions)
        return results

    return stepping(step, results[0], n_envs, convert=_address)


def _filled(n, obs_dim):
    ring = _Ring(n, obs_dim)
    rows = 0
    for columns in inputs.chunks(n, obs_dim):
        for column, values in zip(ring.columns.values(), columns, strict=True):
            column[rows : rows + len(values)] = values.reshape(-1, *column.shape[1:])
        rows += len(columns[0])
    return ring


def _push(ring, obs, next_obs, action, *numbers):
    """A push of these arrays, which must stay where they are."""
    return partial(
        _LIBRARY.push, ctypes.byref(ring), *map(_address, (obs, next_obs, action)), *numbers
    )


def _draw(ring, batch):
    out = _Ring(batch, ring.obs_dim)
    draw, at, to = _LIBRARY.sample, ctypes.byref(ring), ctypes.byref(out)

    def sample():
        draw(at, batch, to)
        return out.columns

    return sample


def push(obs_dim, steps):
    ring, one = _filled(inputs.capacity(obs_dim), obs_dim), inputs.one(obs_dim, steps=steps)

    def known():
        small = _Ring(KNOWN, obs_dim)
        for number in range(KNOWN):
            given = inputs.one(obs_dim, number)
            _push(small, *given)()
        return _draw(small, KNOWN)()

    ring.pushed = one  # keeps these arrays alive as long as the ring
    return storing(_push(ring, *one), known)


def sample(batch, obs_dim):
    return drawing(_draw(_filled(inputs.capacity(obs_dim), obs_dim), batch))
