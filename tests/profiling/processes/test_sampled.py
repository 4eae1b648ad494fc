"""Beliefs about what py-spy saw of several processes: who waited, and in which thread."""

from pathlib import Path

from recorded import Record, by_hand

from rlox.profiling.processes.sampled import read_samplers
from rlox.profiling.processes.samples_file import read_samples
from rlox.profiling.samples import MAIN_THREAD

CONNECTION = "/lib/python3.11/multiprocessing/connection.py"
STACKS = f"""\
thread (7): MainThread;Connection._recv ({CONNECTION}:395);read (libc.so.6) 5
thread (7): MainThread;Connection._send ({CONNECTION}:384);write (libc.so.6) 2
thread (8);load (/home/train.py:4) 3
"""


def test_who_receives_waits_and_threads_have_their_names(tmp_path: Path) -> None:
    worker = Record(tmp_path, 7).thread(1, 8, "loader").until(1000)
    left = tmp_path / f"{worker.key}.py-spy"
    left.mkdir()
    (left / "pyspy.raw").write_text(STACKS)
    (left / "pyspy.log").write_text("Samples: 10 Errors: 0\n")
    assert read_samplers(by_hand(tmp_path)) == []
    samples = read_samples(tmp_path, worker.key)
    assert samples is not None
    seen = [(sample.thread, sample.layer) for sample in samples.samples]
    assert (
        seen
        == [(MAIN_THREAD, "idle")] * 5 + [(MAIN_THREAD, "kernel")] * 2 + [("loader", "python")] * 3
    )
