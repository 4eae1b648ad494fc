"""Whatever the extension is called with, an ordinary exception comes out, or a result."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

needs_limits = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no limits here")


@needs_limits
@pytest.mark.parametrize(
    ("count", "options"),
    [
        (9_000, []),
        (6_000, ["--threads", "3"]),
        (3_000, ["--forks", "8"]),
        (2_001, ["--threads", "3", "--forks", "6"]),
    ],
    ids=["alone", "threads", "forks", "both"],
)
def test_hostile_calls_end_in_exceptions(count: int, options: list[str]) -> None:
    program = [sys.executable, str(Path(__file__).with_name("hostile.py"))]
    done = subprocess.run(
        [*program, "--count", str(count), "--seed", "1", *options],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "RUST_BACKTRACE": "1"},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-2000:]
    found = json.loads(done.stdout)
    assert found["counts"]["calls"] >= count and not found["fatal"]
    returned = sum(n for name, n in found["counts"].items() if name.endswith(" returned"))
    assert count / 4 < returned < count, "most calls are meant to come far"
