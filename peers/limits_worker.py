"""Reads one case of `rlox-opt peers limits`, and prints one line of JSON.

    python peers/limits_worker.py CASE THREADS SECONDS

A case is an operation, which is timed in turn with the machine's limit for it, or a limit alone.
The limits are loops in C (limits.c), compiled for the instructions that this library uses.
"""

from __future__ import annotations

import ctypes
import json
import math
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlox import ReplayBuffer, VecEnv, _core, compute_gae, compute_gae_batched, compute_token_kl

_CHUNK_S = 0.02
_REGISTERS = 12  # of AVX2's 16, which also hold a factor and a term
# For each level of `rlox._core.instructions()`, what the compiler may use, and bytes of a register.
_LEVELS = {"portable": ("x86-64", 16), "avx2": ("x86-64-v3", 32), "avx512": ("x86-64-v4", 64)}
_IN_L1 = 2048  # floats of each array that the exponentials are taken of and written to
_CYCLES = 1_000_000
Call = Callable[[], object]


class Limited(NamedTuple):
    """An operation: its call, what it is limited by, and how much of that a call takes. Copies are
    limited by the machine's copies of as many bytes."""

    call: Call
    by: str
    amount: float


@cache
def _library() -> ctypes.CDLL:
    """limits.c, compiled."""
    march, width = _LEVELS[_core.instructions()]
    flags = [f"-march={march}"] if platform.machine() == "x86_64" else []
    if width == 64:
        flags.append("-mprefer-vector-width=512")
    source = Path(__file__).with_name("limits.c")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "limits.so")
        subprocess.run(
            ["cc", "-O3", "-ffp-contract=fast", *flags, f"-DWIDTH={width}",
             f"-DREGISTERS={_REGISTERS}", "-shared", "-fPIC", source, "-o", out],
            check=True,
        )  # fmt: skip
        library = ctypes.CDLL(str(out))
    for name in ("multiply_adds", "exponentials", "copy", "cycles"):
        getattr(library, name).restype = None
    return library


def _arrays(n: int) -> tuple[Any, Any]:
    """Two arrays of `n` ones, float32, aligned to a register of any size. Within their pages they
    lie a third of a page apart: where reads and writes have equal addresses within a page, some
    processors let the read wait for the write."""
    raw = np.ones(2 * n + 2048, np.float32)
    raw = raw[-(raw.ctypes.data % 64) % 64 // 4 :]
    second = -(-n // 1024) * 1024 + 336
    return raw[:n], raw[second:][:n]


def _on_arrays(function: Any, n: int, times: int) -> Call:
    """A call of a C function on arrays of `n` floats, `times` over."""
    arrays = _arrays(n)
    arguments = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    rest = ctypes.c_int64(n), ctypes.c_int64(times)
    return lambda arrays=arrays: function(*arguments, *rest)


def limit(by: str, threads: int, amount: float) -> tuple[Call, float]:
    """A call that does nothing but what an operation is limited by, on so many threads, and how
    much it does: floating-point operations, exponentials or bytes that are read and written. Copies
    are of `amount` bytes a call. A call takes so many milliseconds that waking its threads does not
    count."""
    library = _library()
    if by == "FLOP":
        n, of = 5_000_000, _REGISTERS * _LEVELS[_core.instructions()][1] // 4
        numbers = ctypes.c_int64(n), ctypes.c_float(0.5), ctypes.c_float(1.0)
        one = partial(library.multiply_adds, *numbers)
        each = 2.0 * n * of
        every = [one] * threads
    elif by == "exponentials":
        times = 50_000
        every = [_on_arrays(library.exponentials, _IN_L1, times) for _ in range(threads)]
        each = float(_IN_L1 * times)
    else:
        n = max(16, int(amount / threads / 8) // 16 * 16)
        times = max(1, 200_000_000 // n)
        every = [_on_arrays(library.copy, n, times) for _ in range(threads)]
        each = 8.0 * n * times
    if threads == 1:
        return every[0], each
    pool = ThreadPoolExecutor(threads)  # ctypes calls without the GIL
    return lambda: list(pool.map(lambda call: call(), every)), each * threads


def _forward(widths: Sequence[int], rows: int) -> int:
    """Floating-point operations of a pass forward: a multiplication and an addition for each
    weight."""
    return 2 * rows * sum(a * b for a, b in pairwise(widths))


def _mm(threads: int) -> Limited:
    import torch

    torch.set_num_threads(threads)
    a, b, c = (torch.rand(256, 256) for _ in range(3))
    return Limited(lambda: torch.mm(a, b, out=c), "FLOP", 2.0 * 256**3)


def _layer(_: int) -> Limited:
    from rlox._laboratory import Layer

    return Limited(Layer(256), "FLOP", 2.0 * 256**3)


def _ppo(threads: int) -> Limited:
    from sharing_worker import ppo_update

    call, rows = ppo_update(256), 4 * 1024
    flop = 0
    for n_out in (2, 1):
        widths = [4, 64, 64, n_out]
        # Forward, gradients of weights, and of inputs but for the network's own.
        flop += 3 * _forward(widths, rows) - _forward(widths[:2], rows)
    return Limited(lambda: call(threads), "FLOP", flop)


def _sac(threads: int) -> Limited:
    from sharing_worker import sac_update

    call, rows = sac_update(), 256
    actor, critic = [3, 256, 256, 2], [4, 256, 256, 1]
    of_actor, of_critic = _forward(actor, rows), _forward(critic, rows)
    targets = of_actor + 2 * of_critic
    critics = 2 * (3 * of_critic - _forward(critic[:2], rows))
    # The policy's gradient goes back through that critic of the two that is the lower one.
    policy = 3 * of_actor - _forward(actor[:2], rows) + 2 * of_critic + of_critic
    return Limited(lambda: call(threads), "FLOP", targets + critics + policy)


def _gae(_: int) -> Limited:
    rng, n = np.random.default_rng(0), 32_768
    rewards, values = rng.standard_normal((2, n))
    dones = (rng.random(n) < 0.05).astype(float)
    out = compute_gae(rewards, values, dones, 0.0, 0.99, 0.95)
    call = partial(compute_gae, rewards, values, dones, 0.0, 0.99, 0.95, out=out)
    return Limited(call, "bytes", 40.0 * n)


def _gae_batched(_: int) -> Limited:
    rng, shape = np.random.default_rng(0), (2048, 256)
    rewards, values, dones = (rng.random(shape).astype(np.float32) for _ in range(3))
    columns = rewards, values, (dones < 0.05).astype(np.float32), np.zeros(256, np.float32)
    out = compute_gae_batched(*columns, 0.99, 0.95)
    call = partial(compute_gae_batched, *columns, 0.99, 0.95, out=out)
    return Limited(call, "bytes", 20.0 * math.prod(shape))


def _kl(_: int) -> Limited:
    rng, shape = np.random.default_rng(0), (32, 2048)
    policy = -rng.random(shape).astype(np.float32)
    reference = policy + 0.1 * rng.standard_normal(shape).astype(np.float32)
    out = compute_token_kl(policy, reference)
    return Limited(
        partial(compute_token_kl, policy, reference, out=out), "exponentials", math.prod(shape)
    )


def _step(_: int) -> Limited:
    env, n = VecEnv("CartPole-v1", 1024, seed=0, copy=False), 1024
    env.reset(seed=0)
    actions = np.arange(n) % 2
    # Of each environment: 24 for the polynomials of sine and cosine, 29 for the motion's equations.
    return Limited(lambda: env.step(actions), "FLOP", 53.0 * n)


def _sample(_: int) -> Limited:
    rows, dim, batch = 1000, 28_224, 256
    buffer = ReplayBuffer(rows, dim, 1)
    obs, ones = np.ones((rows, dim), np.float32), np.ones(rows, np.float32)
    flags = np.zeros(rows, np.bool_)
    for _ in range(2):
        buffer.push_batch(obs, obs + 1, ones[:, None], ones, flags, flags)
    return Limited(partial(buffer.sample, batch, copy=False), "bytes", 2 * 8.0 * batch * dim)


# By name, with the numbers of threads that they are read with.
CASES: dict[str, tuple[Callable[[int], Limited], tuple[int, ...]]] = {
    "torch.mm, 256 × 256": (_mm, (1, 2)),
    "our linear layer, 256 × 256": (_layer, (1,)),
    "SAC's update, batches of 256": (_sac, (1, 2)),
    "PPO's update, minibatches of 256": (_ppo, (1, 2)),
    "GAE of 32,768 steps, float64": (_gae, (1,)),
    "GAE of 256 × 2,048 steps, float32": (_gae_batched, (1,)),
    "KL of 32 × 2,048 tokens, float32": (_kl, (1,)),
    "a step of 1,024 CartPole-v1": (_step, (1,)),
    "a sample of 256 rows of 28,224": (_sample, (1,)),
}
# Limits alone: by name, what is limited, and bytes of a copy.
PEAKS: dict[str, tuple[str, float]] = {
    "multiply-adds, float32": ("FLOP", 0.0),
    "exponentials, float32": ("exponentials", 0.0),
    "copies of 16 kB": ("bytes", 32e3),
    "copies of 512 kB": ("bytes", 1e6),
    "copies of 64 MB": ("bytes", 128e6),
}


def _seconds(call: Call, calls: int) -> float:
    """Of one of so many calls."""
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls


def _fitting(call: Call) -> int:
    """How many calls fill a chunk."""
    call()
    return max(1, round(_CHUNK_S / _seconds(call, 3)))


def in_turn(first: Call, second: Call, seconds: float) -> tuple[list[float], list[float]]:
    """Times of the two, from chunks of calls in turn."""
    calls = [_fitting(call) for call in (first, second)]
    began, times = time.monotonic(), ([], [])
    while not times[0] or time.monotonic() - began < seconds:
        for which in (0, 1, 1, 0):
            times[which].append(_seconds((first, second)[which], calls[which]))
    return times


def main() -> None:
    name, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    level = _core.instructions()
    if name in PEAKS:
        by, amount = PEAKS[name]
        call, done = limit(by, threads, amount)
        clock = partial(_library().cycles, ctypes.c_int64(_CYCLES))
        of_call, of_clock = in_turn(call, clock, seconds)
        rate = done / statistics.median(of_call)
        hertz = _CYCLES / statistics.median(of_clock)
        print(json.dumps({"rate": rate, "unit": by, "hertz": hertz, "level": level}))
        return
    of = CASES[name][0](threads)
    call, done = limit(of.by, threads, of.amount)
    of_call, of_limit = in_turn(of.call, call, seconds)
    pairs = zip(of_call, of_limit, strict=True)
    shares = [math.log(of.amount / own * at_most / done) for own, at_most in pairs]
    found = {"log_share": statistics.fmean(shares), "call_s": statistics.median(of_call)}
    print(json.dumps({**found, "by": of.by, "amount": of.amount, "level": level}))


if __name__ == "__main__":
    main()
