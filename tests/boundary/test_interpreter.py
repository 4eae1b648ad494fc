"""What the extension asks of the interpreter."""

import os
import shutil
import subprocess
import sys

import pytest

PLANTED = "import sys; sys._is_gil_enabled = lambda: {}\nimport rlox\nprint(rlox.__name__)"


def run(python: str, program: str, **environment: str) -> tuple[int, str]:
    """The exit code, and the last line that was printed."""
    done = subprocess.run(
        [python, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    return done.returncode, (done.stdout + done.stderr).strip().splitlines()[-1]


@pytest.mark.parametrize("answer", ["True", "1 / 0"])
def test_a_python_with_its_lock_is_fine(answer: str) -> None:
    assert run(sys.executable, PLANTED.format(answer)) == (0, "rlox")


def test_a_python_whose_lock_was_switched_off_is_refused() -> None:
    """Here only as that Python would say it: `sys._is_gil_enabled` is False."""
    code, said = run(sys.executable, PLANTED.format("False"))
    assert code == 1
    assert said == (
        "ImportError: rlox needs Python's global interpreter lock, which PYTHON_GIL=0 or -X gil=0 "
        "has switched off; run Python without that setting"
    )


FREE_THREADED = next(filter(None, map(shutil.which, ("python3.14t", "python3.13t"))), None)


@pytest.mark.skipif(FREE_THREADED is None, reason="no free-threaded Python here")
def test_a_free_threaded_python_without_its_lock_is_refused() -> None:
    assert FREE_THREADED is not None
    program = "import rlox._core"
    if run(FREE_THREADED, "import numpy")[0] or run(FREE_THREADED, program)[0]:
        pytest.skip("the extension is not installed there")
    code, said = run(FREE_THREADED, program, PYTHON_GIL="0")
    assert code == 1 and "switched off" in said
