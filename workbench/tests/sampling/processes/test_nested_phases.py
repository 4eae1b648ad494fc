"""Beliefs about the tree of one thread, recorded by several Timings."""

from array import array
from pathlib import Path

import numpy as np
from recorded import Record, by_hand

from rlox_opt.sampling.phases import phases_by_clock
from rlox_opt.sampling.processes.inside.rlox_opt_segments import encode
from rlox_opt.sampling.processes.phases import log_of
from rlox_opt.sampling.processes.run import read_run


def paths(folder: Path) -> list[tuple[str, int, int]]:
    by_hand(folder)
    log = log_of(read_run(folder).processes[0])
    return [(s.path, s.start_ns // 10**6, s.end_ns // 10**6) for s in log]


def test_what_one_timing_logs_is_kept_as_it_is(tmp_path: Path) -> None:
    Record(tmp_path, 5).span("a/b", 1, 2).span("a", 0, 3).span("c", 4, 5).until(6)
    assert paths(tmp_path) == [("a/b", 1, 2), ("a", 0, 3), ("c", 4, 5)]


def test_blocks_of_another_timing_take_the_path_around_them(tmp_path: Path) -> None:
    record = Record(tmp_path, 5).write(source=[1, "spans"])
    record.span("update/forward", 2, 3).span("load", 4, 6, source=1)
    record.span("update/inside", 4, 5).span("update", 1, 7).span("epoch", 0, 8, source=1).until(9)
    assert sorted(paths(tmp_path)) == [
        ("epoch", 0, 8),
        ("epoch/update", 1, 7),
        ("epoch/update/forward", 2, 3),
        ("epoch/update/load", 4, 6),
        ("epoch/update/load/inside", 4, 5),
    ]


def test_waits_and_calls_into_rust_are_no_phases(tmp_path: Path) -> None:
    Record(tmp_path, 5).span("get", 1, 2, "wait", "queue", "q").span("gae", 2, 3, "rust").until(4)
    assert paths(tmp_path) == []


def test_the_phase_of_a_time_is_the_innermost_of_all_timings(tmp_path: Path) -> None:
    record = Record(tmp_path, 5).write(source=[1, "spans"])
    record.span("inner", 2, 4).span("outer", 1, 6, source=1).until(9)
    by_hand(tmp_path)
    log = log_of(read_run(tmp_path).processes[0])
    times = np.array([0, 1_500_000, 3_000_000, 5_000_000, 7_000_000])
    names, index = phases_by_clock(log, 5, times)
    assert [names[i] for i in index] == ["", "outer", "outer/inner", "outer", ""]


def test_what_no_name_was_written_for_is_left_out(tmp_path: Path) -> None:
    record = Record(tmp_path, 5).span("a", 1, 2)
    record.write(spans=[0, 0, encode(array("q", [10**18, 1, 2]))]).until(3)
    (process,) = by_hand(tmp_path).processes
    assert [span.path for span in log_of(process)] == ["a"]
