"""An extension in Cython: compiled Python that works by the interpreter's own functions in C."""

import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from _build import extension, left_out
from _clock import Clock

SOURCE = """
def objects(int n):
    cdef list found = []
    cdef dict counts = {}
    for i in range(n):
        found.append((i, str(i)))
        counts[i % 97] = counts.get(i % 97, 0) + i
    return len(found) + len(counts)

def numbers(long n):
    cdef double x = 0.5
    cdef long i
    for i in range(n):
        x = x * 3.7 * (1.0 - x)
    return x
"""


def main(clock: Clock, walker: ModuleType) -> None:
    while clock.go_on():
        with clock.part("python"):
            sum(i * i % 7 for i in range(150_000))
        with clock.part("native"):
            walker.objects(60_000)
        with clock.part("native"):
            walker.numbers(3_000_000)
    clock.tell()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "walker.pyx")
        source.write_text(SOURCE)
        clock = Clock()
        with clock.waiting():
            made = subprocess.run([sys.executable, "-m", "cython", "-3", str(source)], check=False)
            if made.returncode:
                left_out("Cython")
            built = extension("walker", source.with_suffix(".c"))
        main(clock, built)
