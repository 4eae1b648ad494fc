"""pandas and NumPy: a table whose keys are numbered and whose windows move, and arrays."""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _build import left_out
from _clock import Clock

try:
    import pandas as pd
except ImportError:
    left_out("pandas")

random = np.random.default_rng(0)
asked = [f"key{i * 7 % 90_000}" for i in range(60_000)]
names = np.array(asked, dtype=object)
table = random.normal(size=(600, 800))
buffer = np.empty_like(table)
series = pd.Series(table[0].repeat(200))


def main() -> None:
    clock = Clock()
    while clock.go_on():
        with clock.part("python"):
            sum(len(key) * i % 7 for i, key in enumerate(asked))
        with clock.part("native"):  # pandas' hash tables and its windows are its own
            pd.factorize(names)
            series.rolling(50).median()
        with clock.part("numpy"):
            for _ in range(3):
                np.arctan2(table, 2.0, out=buffer)
                buffer.sort(axis=1)
    clock.tell()


if __name__ == "__main__":
    main()
