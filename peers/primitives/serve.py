"""A process that times the calls of one engine: `python serve.py MODULE FORM THREADS`.

It reads commands from stdin and answers on stdout, one line of JSON each: `["hello"]`, `["prepare",
family, size]`, `["answer", path]` (one call's results, written as .npz), `["fit", seconds]` (how
many calls fill a slice of that length, and the time of one), `["time", calls]`, `["each", calls]`
(every call separately, in ns), `["share", calls]` (CPU time over wall time), `["memory"]` and
`["forget"]`. An error is answered as `{"error": text}`, a case that the engine does not offer as
`{"missing": why}`.

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

# Set before any library that reads them is imported.
for _name in ("OMP", "MKL", "OPENBLAS", "NUMBA", "RAYON"):
    os.environ[f"{_name}_NUM_THREADS"] = str(THREADS)
# All engines compute on the same cores, so none has a warmer cache or less disturbance.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import numpy as np  # noqa: E402
from arm import Unsupported  # noqa: E402

_WARM_BELOW_S = 0.002  # a longer call needs no warm-up
_SETTLED = 0.9  # calls are warm when one takes more than this part of the call before


def timed(call, calls: int) -> float:
    """Seconds that `calls` calls take together."""
    start = time.perf_counter()
    for _ in itertools.repeat(None, calls):
        call()
    return time.perf_counter() - start


class Engine:
    """An engine's module, and the call that it has prepared."""

    def __init__(self) -> None:
        self._module = importlib.import_module(MODULE)
        self._arm = None
        self._warm = False

    def hello(self) -> None:
        """Answer; the module could be imported."""

    def prepare(self, family: str, size: dict) -> None:
        """Make the inputs, after releasing the call prepared before."""
        self.forget()
        make = getattr(self._module, family, None)
        if make is None:
            raise Unsupported("does not have it")
        self._arm = make(**size)
        gc.collect()
        gc.disable()

    def forget(self) -> None:
        """Release the call, and the memory that it holds."""
        self._arm = None
        gc.enable()
        gc.collect()

    def answer(self, path: str) -> None:
        """Write one call's results."""
        np.savez(path, **self._arm.answer())

    def fit(self, seconds: float) -> tuple[int, float]:
        """The number of calls that take `seconds`, one at least, and the seconds of one call.

        The first calls of a process compile, or touch their memory for the first time. So a long
        call is repeated until calls do not become faster.
        """
        calls, before, took = 1, math.inf, timed(self._arm.call, 1)
        while seconds <= took < _SETTLED * before:
            before, took = took, timed(self._arm.call, 1)
        while took < seconds:
            calls *= 2
            # The faster of two: an interruption alone must not look like enough calls.
            took = min(timed(self._arm.call, calls) for _ in range(2))
        self._warm = took / calls < _WARM_BELOW_S
        return calls, took / calls

    def time(self, calls: int) -> float:
        """Seconds of `calls` calls, after one that brings back into the caches what the other
        engines replaced."""
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
        """CPU time of all threads over wall time: above 1, a call uses more than one CPU."""
        start, cpu = time.perf_counter(), time.process_time()
        timed(self._arm.call, calls)
        return (time.process_time() - cpu) / (time.perf_counter() - start)

    def memory(self) -> dict:
        """The bytes that the allocator holds for a call's result; the most that Python and NumPy
        allocate within a call (Rust's and C++'s own memory is not counted); its page faults.

        Results are kept alive while bytes are counted. Page faults are those of a call within a
        series of calls, each result freed before the next.
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
            # NumPy keeps a few small blocks; once those are used up, malloc provides the others.
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
    """Bytes that the process has from glibc's malloc: on its heap, and in separate mappings."""
    import ctypes

    library = ctypes.CDLL(None)
    new = hasattr(library, "mallinfo2")  # from glibc 2.33 on; its numbers do not wrap at 4 GiB

    class Info(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_size_t if new else ctypes.c_uint)
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

    mallinfo = library.mallinfo2 if new else library.mallinfo
    mallinfo.restype = Info
    info = mallinfo()
    return info.uordblks + info.hblkhd


def main() -> None:
    # Output of libraries goes to stderr; stdout is for answers.
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
