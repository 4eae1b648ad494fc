"""perf over a program with a Timing of this library."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from projects import CLASSIFIER
from rlox_opt.sampling import perf
from rlox_opt.sampling.attribution import attribute
from rlox_opt.sampling.samples import MAIN_THREAD, Samples
from rlox_opt.sampling.spans import SpanLog

PID = 31226


START = 3_968_306_000_000  # shortly before the first record


def spans(*named: tuple[str, int, int]) -> SpanLog:
    """A log of the recorded process from (path, start, end), in milliseconds after START."""
    log = SpanLog()
    log.paths = [path for path, _, _ in named]
    data = log.open_thread("MainThread", PID).data
    for index, (_, start, end) in enumerate(named):
        data.extend((index, START + start * 1_000_000, START + end * 1_000_000))
    return log


LIVE = """
import math, select, sys, time
from rlox.timing import SpanLog, Timing
timing = Timing()
timing.spans = SpanLog()
print("ready", flush=True)
# Until it is told to end: of a time by the clock, perf may be there too late for any.
while not select.select([sys.stdin], [], [], 0)[0]:
    with timing.add_time("work"):
        for i in range(20000):
            math.sqrt(i)
    with timing.add_time("wait"):
        time.sleep(0.002)
timing.spans.save(sys.argv[1])
"""


def sampled(folder: Path) -> Samples:
    """What perf sees of the program in a second and a half."""
    folder.mkdir()
    (folder / "live.py").write_text(LIVE)
    command = [sys.executable, str(folder / "live.py"), str(folder / "spans")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert perf.attach(child.pid, 1.5, folder).wait(60) == 0
        child.stdin.close()
        assert child.wait(60) == 0
    return perf.load(folder, CLASSIFIER, SpanLog.load(folder / "spans"))


@pytest.mark.skipif(perf.unavailable() is not None, reason=str(perf.unavailable()))
def test_a_live_run_is_divided_by_phase_and_layer(tmp_path: Path) -> None:
    for turn in range(3):  # a busy machine may keep perf from emptying its buffer in time
        samples = sampled(tmp_path / f"{turn}")
        if not samples.errors:
            break
    assert samples.errors == 0
    time_of: Counter[tuple[str, str]] = Counter()
    for sample in samples.samples:
        if sample.thread == MAIN_THREAD:
            time_of[sample.phase, sample.layer] += round(sample.weight * 1e6)
    assert time_of["work", "python"] > 0.9 * sum(v for (p, _), v in time_of.items() if p == "work")
    assert time_of["wait", "idle"] > 0.9 * sum(v for (p, _), v in time_of.items() if p == "wait")
    shares = {share.name: share.share for share in attribute(samples, {"work": 3.0, "wait": 1.0})}
    assert shares["python"] == pytest.approx(0.75, abs=0.1)
