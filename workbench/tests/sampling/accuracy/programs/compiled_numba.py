"""numba: machine code that is made at run time, in no file and without a name."""

from _build import left_out
from _clock import Clock

try:
    import numba
except ImportError:
    left_out("numba")
import numpy as np

values = np.random.default_rng(0).normal(size=200_000)


@numba.njit
def walk(values: np.ndarray) -> float:
    total = 0.0
    for _ in range(20):
        for x in values:
            total = total * 0.5 + x * x
    return total


def main() -> None:
    walk(values)  # compiles
    clock = Clock()
    while clock.go_on():
        with clock.part("python"):
            sum(i % 7 for i in range(100_000))
        with clock.part("native"):
            walk(values)
        with clock.part("numpy"):
            np.sort(values)
    clock.tell()


if __name__ == "__main__":
    main()
