"""A process that holds one engine's calls and times them: `python serve.py MODULE FORM THREADS`.

Reads commands from stdin and answers on stdout, a JSON value a line each: `["hello"]`,
`["prepare", family, size]`, `["answer", path]` (one call's results, written as .npz), `["fit",
seconds]` (how many calls fill a slice of that length, and what one took), `["time", calls]`,
`["each", calls]` (every call by itself, in ns), `["share", calls]` (CPU time over wall time),
`["memory"]` and `["forget"]`. An error is answered as `{"error": text}`, what an engine does not
have as `{"missing": why}`.

It runs in the environment of a peer, and imports nothing of rlox but what is timed.
"""

import gc
import importlib
import itertools
import json
import math
import os
import resource
import sys
import time
import tracemalloc

MODULE, FORM, THREADS = sys.argv[1], sys.argv[2], int(sys.argv[3])

# Before any library that reads them is imported.
for _name in ("OMP", "MKL", "OPENBLAS", "NUMBA", "RAYON"):
    os.environ[f"{_name}_NUM_THREADS"] = str(THREADS)
# All engines compute on the same cores, so none has a warmer cache or a quieter neighbour.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import numpy as np  # noqa: E402
from arm import Unsupported  # noqa: E402

_WARM_BELOW_S = 0.002  # a longer call warms itself up
_SETTLED = 0.9  # of the call before: one that is not faster than this is as fast as they get


def timed(call, calls: int) -> float:
    """Seconds that `calls` calls take together."""
    start = time.perf_counter()
    for _ in itertools.repeat(None, calls):
        call()
    return time.perf_counter() - start


class Engine:
    """The module of an engine, and the call that it has prepared."""

    def __init__(self) -> None:
        self._module = importlib.import_module(MODULE)
        self._arm = None
        self._warm = False

    def hello(self) -> None:
        """It could be imported."""

    def prepare(self, family: str, size: dict) -> None:
        """Make the inputs; what was prepared before goes first."""
        self.forget()
        make = getattr(self._module, family, None)
        if make is None:
            raise Unsupported("does not have it")
        self._arm = make(**size)
        gc.collect()
        gc.disable()

    def forget(self) -> None:
        """Let go of the call, and of the memory that it holds."""
        self._arm = None
        gc.enable()
        gc.collect()

    def answer(self, path: str) -> None:
        """Write one call's results."""
        np.savez(path, **self._arm.answer())

    def fit(self, seconds: float) -> tuple[int, float]:
        """As many calls as take `seconds`, one at least, and what one of them took.

        The first calls of a process compile, or touch their memory for the first time: a long one
        is followed by others until they are as fast as they get.
        """
        calls, before, took = 1, math.inf, timed(self._arm.call, 1)
        while seconds <= took < _SETTLED * before:
            before, took = took, timed(self._arm.call, 1)
        while took < seconds:
            calls *= 2
            took = timed(self._arm.call, calls)
        self._warm = took / calls < _WARM_BELOW_S
        return calls, took / calls

    def time(self, calls: int) -> float:
        """Seconds of `calls` calls, after one that fetches what the other engines drove out of the
        caches."""
        if self._warm:
            self._arm.call()
        return timed(self._arm.call, calls)

    def each(self, calls: int) -> list[int]:
        """Nanoseconds of each of `calls` calls."""
        call, clock, found = self._arm.call, time.perf_counter_ns, []
        call()
        for _ in range(calls):
            start = clock()
            call()
            found.append(clock() - start)
        return found

    def share(self, calls: int) -> float:
        """CPU time of all threads over wall time: above 1, a call uses more than one of them."""
        start, cpu = time.perf_counter(), time.process_time()
        timed(self._arm.call, calls)
        return (time.process_time() - cpu) / (time.perf_counter() - start)

    def memory(self) -> dict:
        """What a call's result holds, in bytes of the allocator; the most that Python and NumPy
        have allocated within a call (not what Rust or C++ has for itself); its page faults.

        Results are kept alive while they are looked at; the faults are those of a call in a row of
        them, each result freed before the next.
        """
        call = self._arm.call
        tracemalloc.start()
        call()
        start, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call()
        peak = tracemalloc.get_traced_memory()[1] - start
        tracemalloc.stop()
        before = _allocated()
        kept = [call()]
        held = _allocated() - before
        if held < 1_000_000:
            # NumPy keeps a few small blocks back: once those are in use, malloc has the others.
            kept += [call() for _ in range(8)]
            before = _allocated()
            kept += [call() for _ in range(16)]
            held = (_allocated() - before) / 16
        kept.clear()
        calls = 20
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        timed(call, calls)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        return {"held": max(0, round(held)), "peak": peak, "faults": faults / calls}


def _allocated() -> int:
    """Bytes that the process has from glibc's malloc: of its heap, and mapped apart."""
    import ctypes

    class Info(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_size_t)
            for name in (
                "arena",
                "ordblks",
                "smblks",
                "hblks",
                "hblkhd",
                "usmblks",
                "fsmblks",
                "uordblks",
                "fordblks",
                "keepcost",
            )
        ]

    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Info
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def main() -> None:
    # What a library prints goes to stderr; stdout is for answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    engine = Engine()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = getattr(engine, name)(*arguments)
        except Unsupported as why:
            answer = {"missing": str(why)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
