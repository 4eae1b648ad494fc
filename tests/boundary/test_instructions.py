"""The instructions of our own kernels: the processor's best, or as few as one asks for."""

import os
import subprocess
import sys

import pytest
from alone import run_alone

LEVELS = ("portable", "avx2", "avx512")
SHOW = "print(_core.instructions())"
# Of multiply-adds, which round once where they are one instruction.
WORK = """
rewards, values = np.random.default_rng(0).normal(size=(2, 256))
print(rlox.compute_gae(rewards, values, np.zeros(256), 0.3, 0.9, 0.9)[0].tobytes().hex())
"""


def at(level: str, program: str = SHOW) -> str:
    return run_alone(program, RLOX_INSTRUCTIONS=level).strip()


def test_a_cap_is_held_and_nothing_is_used_that_the_processor_lacks() -> None:
    best = LEVELS.index(at(""))
    for index, level in enumerate(LEVELS):
        assert at(level) == LEVELS[min(index, best)]


def test_kernels_run_with_what_is_left() -> None:
    if at("") == "portable":
        pytest.skip("this processor has nothing better")
    assert at("portable", WORK) != at("", WORK)


def test_what_is_no_level_is_refused_by_name() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import rlox"],
        env=os.environ | {"RLOX_INSTRUCTIONS": "sse"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    expected = 'RLOX_INSTRUCTIONS: is "sse", expected one of portable, avx2, avx512; or unset it'
    assert done.stderr.strip().endswith(f"ValueError: {expected}")
