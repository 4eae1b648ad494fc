"""py-spy over a program with a Timing of this library."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from projects import CLASSIFIER
from rlox_opt.sampling import pyspy
from rlox_opt.sampling.attribution import attribute
from rlox_opt.sampling.samples import MAIN_THREAD

from workloads import child


def test_the_child_settles_where_pyspy_drops_it() -> None:
    assert hasattr(child.Run, pyspy.SETTLING)


LIVE = """
import math, time
from rlox_opt.sampling.pyspy import allow_ptrace
from rlox.timing import Timing
allow_ptrace()
timing = Timing()
print("ready", flush=True)
end = time.monotonic() + 120
while time.monotonic() < end:
    with timing.add_time("work"):
        for i in range(20000):
            math.sqrt(i)
    with timing.add_time("wait"):
        time.sleep(0.002)
"""


@pytest.mark.skipif(pyspy.unavailable() is not None, reason=str(pyspy.unavailable()))
def test_a_live_run_is_divided_by_phase_and_layer(tmp_path: Path) -> None:
    (tmp_path / "live.py").write_text(LIVE)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "live.py")], stdout=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            # Long enough for where it is late most of the time, and so hardly meets a wait.
            assert pyspy.attach(child.pid, 4, tmp_path).wait(120) == 0
        finally:
            child.kill()
    samples = pyspy.load(tmp_path, CLASSIFIER)
    layers = Counter((s.phase, s.layer) for s in samples.samples if s.thread == MAIN_THREAD)
    assert layers["work", "python"] > 10
    assert layers["wait", "idle"] > 10
    assert layers["work", "idle"] + layers["wait", "python"] < 0.2 * layers.total()
    shares = {share.name: share.share for share in attribute(samples, {"work": 3.0, "wait": 1.0})}
    assert shares["python"] > 0.5 > shares["idle"] > 0.1
