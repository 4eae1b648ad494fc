"""Whose code a stack is in, of a program that is not known beforehand."""

from pathlib import Path

import pytest

from rlox_opt.project.layers import Layers
from rlox_opt.sampling.samples import Frame
from rlox_opt.sampling.whose import Whose, title

SITE = "/env/lib/python3.12/site-packages"
OWN = Path("/cache/scratch/base")
WHOSE = Whose(Layers(), [OWN], [Path("/suite/benchmarks")])
EVAL = Frame("_PyEval_EvalFrameDefault", "/python/lib/libpython3.12.so.1.0")
FRAMES = {
    "own": Frame("area", f"{OWN}/shapely/measurement.py", 12),
    "own ext": Frame("pygeos_area", f"{OWN}/shapely/lib.cpython-312-x86_64-linux-gnu.so"),
    "geos": Frame("GEOSArea_r", "/usr/lib/x86_64-linux-gnu/libgeos_c.so.1"),
    "bundled": Frame("GEOSArea_r", f"{SITE}/shapely.libs/libgeos-6a3f0d1c.so.3.13.1"),
    "numpy": Frame("array_sum", f"{SITE}/numpy/_core/_multiarray_umath.so"),
    "pandas": Frame("concat", f"{SITE}/pandas/core/reshape/concat.py", 5),
    "bench": Frame("time_area", "/suite/benchmarks/areas.py", 3),
    "functools": Frame("cached_property.__get__", "/python/lib/python3.12/functools.py", 997),
    "malloc": Frame("malloc", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
    "dict": Frame("dict_dealloc", "/python/lib/libpython3.12.so.1.0"),
    "kernel": Frame("schedule", "[kernel.kallsyms]"),
    "rust": Frame("pest::parse", f"{OWN}/pest/src/parser.rs", 7),
    "crate": Frame("memchr::find", "/root/.cargo/registry/src/index-1f/memchr-2.7.4/src/lib.rs", 1),
    "core": Frame("core::str::find", "/rustc/29483883/library/core/src/str/mod.rs", 9),
}


@pytest.mark.parametrize(
    ("told", "names"),
    [
        ("own Python", ["bench", "own"]),
        ("own Python", ["own", "dict"]),
        ("Python's standard library", ["own", "functools"]),
        ("pandas", ["own", "pandas"]),
        ("the benchmark itself", ["bench"]),
        ("own native code", ["own", "own ext"]),
        ("own native code", ["own", "own ext", "malloc"]),
        ("libgeos_c", ["own", "own ext", "geos"]),
        ("shapely", ["own", "own ext", "bundled"]),
        ("NumPy", ["own", "numpy"]),
        ("Kernel", ["own", "kernel"]),
        ("Rust", ["rust", "crate", "core"]),
    ],
)
def test_the_innermost_frame_with_an_owner_tells_whose_it_is(told: str, names: list[str]) -> None:
    frames = [FRAMES[name] for name in names]
    layer = WHOSE.classify(frames, "")
    assert title(WHOSE.part(layer, frames)) == told


def test_python_of_nobody_known_is_the_interpreter_s() -> None:
    frames = [EVAL, FRAMES["dict"]]
    assert title(WHOSE.part(WHOSE.classify(frames, ""), frames)) == "Python"


def test_paths_are_told_without_this_machine_s_part() -> None:
    assert WHOSE.inner(FRAMES["own"].module) == "shapely/measurement.py"
    assert WHOSE.inner(FRAMES["pandas"].module) is None
    assert WHOSE.place(FRAMES["pandas"].module) == "pandas/core/reshape/concat.py"
    assert WHOSE.place(FRAMES["geos"].module) == "libgeos_c.so.1"
