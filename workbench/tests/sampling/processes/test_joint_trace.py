"""Beliefs about the trace of all processes: valid, on one clock, of a bounded size, connected."""

import json
from array import array
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import Record, by_hand

from rlox_opt.sampling.processes.alignment import align
from rlox_opt.sampling.processes.inside.rlox_opt_segments import encode
from rlox_opt.sampling.processes.on_device import on_device
from rlox_opt.sampling.processes.run import read_run, segments
from rlox_opt.sampling.processes.samples_file import read_samples, write_samples
from rlox_opt.sampling.processes.trace import write_trace
from rlox_opt.sampling.samples import Frame, Sample, Samples


def trace(folder: Path, most: int = 1000) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    told = write_trace(folder / "trace.json", read_run(folder), most)
    loaded = json.loads((folder / "trace.json").read_text())
    assert loaded["otherData"]["rlox-opt"]["spans"] == told["spans"]
    return loaded["traceEvents"], told


def blocks(events: list[dict[str, Any]]) -> list[tuple[int, str, float, float]]:
    return [(e["pid"], e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]


def test_every_process_and_thread_is_a_track_with_its_spans(tmp_path: Path) -> None:
    record = Record(tmp_path, 5).thread(1, 51, "collector").span("update/forward", 1, 2)
    record.span("update", 0, 3).span("rollout", 1, 4, thread=1).until(5)
    Record(tmp_path, 6, "env worker", 0, record, begin=1).span("step", 2, 3).until(5)
    by_hand(tmp_path)
    events, told = trace(tmp_path)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == {(5, 5): "MainThread", (5, 51): "collector", (6, 6): "MainThread"}
    assert blocks(events) == [
        (5, "forward", 1000, 1000),
        (5, "update", 0, 3000),
        (5, "rollout", 1000, 3000),
        (6, "step", 2000, 1000),
    ]
    assert told["spans"] == 4


def test_a_trace_of_a_process_that_died_anywhere_is_valid(tmp_path: Path) -> None:
    Record(tmp_path, 5).span("a", 0, 3).until(5)
    Record(tmp_path, 6, begin=1).span("b", 1, 2).flow("rollout", 1, 7).until(5, None)
    by_hand(tmp_path)
    (file,) = segments(tmp_path, "6-1000000")
    whole = file.read_bytes()
    for cut in range(0, len(whole), 7):
        file.write_bytes(whole[:cut])
        events, _ = trace(tmp_path)
        assert (5, "a", 0, 3000) in blocks(events)


def test_a_trace_holds_the_last_spans_when_there_are_too_many(tmp_path: Path) -> None:
    record = Record(tmp_path, 5)
    for number in range(50):
        record.span("step", number * 200, number * 200 + 100)
    record.until(10_000)
    by_hand(tmp_path)
    events, told = trace(tmp_path, most=10)
    assert len(blocks(events)) == told["spans"] == 10
    assert min(ts for _, _, ts, _ in blocks(events)) == 40 * 200_000
    assert told["from_s"] <= 8.0


def test_a_block_that_a_cut_trace_begins_in_is_cut_there_and_an_arrow_into_it_kept(
    tmp_path: Path,
) -> None:
    main = Record(tmp_path, 5).span("main_loop", 0, 10_000)
    worker = Record(tmp_path, 6, "worker", parent=main, begin=1)
    worker.span("receive", 7000, 9000, "wait", "queue", "q")
    main.span("put", 8800, 8801, "send", "queue", "q")
    for number in range(20):
        main.span("step", 9000 + 10 * number, 9005 + 10 * number)
    main.until(10_000)
    worker.until(10_000)
    by_hand(tmp_path)
    events, told = trace(tmp_path, most=21)
    begin = told["from_s"] * 1e6
    assert 7e6 < begin <= 8.8e6
    cut = {name: ts for _, name, ts, _ in blocks(events) if name in ("main_loop", "receive")}
    assert cut == {"main_loop": begin, "receive": begin}
    for event in events:
        if event.get("cat") == "flow":
            around = [(ts, ts + dur) for pid, _, ts, dur in blocks(events) if pid == event["pid"]]
            assert any(first <= event["ts"] < last for first, last in around)
    assert [e["ph"] for e in events if e.get("cat") == "flow"] == ["s", "f"]


def test_a_message_is_an_arrow_from_its_sender_to_its_receiver(tmp_path: Path) -> None:
    rank = Record(tmp_path, 5).write(pair=["a", "b"])
    worker = Record(tmp_path, 6, "env worker", 0, rank, begin=0.5)
    for at in (10, 20, 30):
        rank.span("send", at, at + 1, "send", "pipe", "a")
        worker.span("receive", at - 3, at + 2, "wait", "pipe", "b")
    rank.until(50)
    worker.until(50)
    by_hand(tmp_path)
    events, _ = trace(tmp_path)
    arrows = [(e["ph"], e["pid"], e["id"]) for e in events if e.get("cat") == "flow"]
    assert arrows == [(ph, pid, n) for n in (1, 2, 3) for ph, pid in (("s", 5), ("f", 6))]


def test_a_flow_goes_from_each_passage_to_the_next(tmp_path: Path) -> None:
    record = Record(tmp_path, 5).span("env_step", 0, 2).span("update", 3, 5)
    record.flow("rollout", 4, 1).flow("rollout", 1, 1).flow("rollout", 1, 2).until(6)
    by_hand(tmp_path)
    events, _ = trace(tmp_path)
    arrows = [(e["ph"], e["ts"]) for e in events if e.get("cat") == "flow"]
    assert arrows == [("s", 1000), ("f", 4000)]  # of the second there is but one exchange


def test_samples_are_blocks_that_do_not_overlap(tmp_path: Path) -> None:
    record = Record(tmp_path, 5).span("a", 0, 30).until(40)
    stack = (Frame("main", "train.py", 1), Frame("step", "env.py", 7))
    found = [Sample(stack, "a", "python", 0.005, "MainThread", n * 3_000_000) for n in range(4)]
    found.append(Sample(stack, "a", "idle", 0.02, "MainThread", None))
    write_samples(tmp_path, record.key, Samples("perf", found, 0.005, 2))
    by_hand(tmp_path)
    events, _ = trace(tmp_path)
    drawn = sorted((e["ts"], e["dur"]) for e in events if "sample" in e.get("cat", ""))
    assert drawn == [(0, 3000), (3000, 3000), (6000, 3000), (9000, 5000)]
    back = read_samples(tmp_path, record.key)
    assert back is not None
    assert (back.tool, back.period_s, back.errors, back.samples) == ("perf", 0.005, 2, found)


def test_torchs_operators_have_a_track_of_their_own(tmp_path: Path) -> None:
    torch = Record(tmp_path, 5).span("aten::addmm", 1, 2, "torch", "", "")
    (tmp_path / f"{torch.key}.0.jsonl").rename(tmp_path / f"{torch.key}.torch.0.jsonl")
    Record(tmp_path, 5).span("forward", 0, 3).until(5)
    by_hand(tmp_path)
    events, _ = trace(tmp_path)
    tracks = {e["tid"]: e["name"] for e in events if e["ph"] == "X"}
    assert sorted(tracks.values()) == ["aten::addmm", "forward"]
    assert len(tracks) == 2


ORIGIN = 1_790_000_000_000_000_000  # the real clock when the monotonic one showed 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(apart=st.integers(-(10**12), 10**12), error=st.integers(0, 2000))
def test_another_clock_is_shifted_and_the_same_one_is_left(
    tmp_path: Path, apart: int, error: int
) -> None:
    for file in tmp_path.glob("*.jsonl"):
        file.unlink()
    now = 1_000_000_000
    clock = [now - apart - error, ORIGIN + now, now - apart + error]
    Record(tmp_path, 5).write(clock=clock).until(2000)
    about = {"schema": 1, "clock": [0, ORIGIN, 0], "end": [4 * now, ORIGIN + 4 * now, 4 * now]}
    (tmp_path / "run.json").write_text(json.dumps(about))
    run = read_run(tmp_path)
    found = align(run, run.processes[0])
    if abs(apart) >= 1_000_000 + 2:
        assert abs(found.shift_ns - apart) <= found.error_ns + 2
        assert found.error_ns == pytest.approx(2 * error)
    elif abs(apart) < 1_000_000 - 2:
        assert (found.shift_ns, found.error_ns) == (0, 0)


def test_a_process_that_died_as_its_torch_file_began_is_told_without_it(tmp_path: Path) -> None:
    record = Record(tmp_path, 5).span("a", 0, 3).until(5, None)
    (tmp_path / f"{record.key}.torch.0.jsonl").touch()
    run = by_hand(tmp_path)
    events, _ = trace(tmp_path)
    assert blocks(events) == [(5, "a", 0, 3000)]
    assert on_device(run) is None


def test_what_no_line_names_is_left_out(tmp_path: Path) -> None:
    record = Record(tmp_path, 5).span("a", 0, 3).span("b", 1, 2, thread=9)
    for at in (10, 20):  # exchanges of a flow without a name
        record.write(flows=[0, 0, encode(array("q", [99, at, 1]))])
    record.until(5)
    by_hand(tmp_path)
    events, _ = trace(tmp_path)
    assert blocks(events) == [(5, "a", 0, 3000)]
    assert not [event for event in events if event.get("cat") == "flow"]


def test_an_id_that_the_kernel_used_twice_is_two_processes(tmp_path: Path) -> None:
    Record(tmp_path, 5).span("a", 0, 1).until(2)
    Record(tmp_path, 5, begin=3).span("b", 4, 5).until(6)
    by_hand(tmp_path)
    assert blocks(trace(tmp_path)[0]) == [(5, "a", 0, 1000), (10_000_005, "b", 4000, 1000)]


def messages(folder: Path, **options: Any) -> list[tuple[int, int]]:
    """When each message was sent and received, in ms, as the arrows of the trace say."""
    about = asdict(by_hand(folder).about)
    (folder / "run.json").write_text(json.dumps(about | {"options": options}))
    found: dict[int, list[int]] = {}
    for event in trace(folder)[0]:
        if event.get("cat") == "flow":
            found.setdefault(event["id"], []).append(round(event["ts"] / 1e3))
    return sorted((sent, received) for sent, received in found.values())


def test_a_process_that_wrote_nothing_takes_no_arrow_of_others(tmp_path: Path) -> None:
    rank = Record(tmp_path, 5)
    worker = Record(tmp_path, 6, "env worker", 0, rank, begin=0.5)
    for at in (10, 20, 30):
        rank.span("send", at, at + 1, "send", "pipe", "a")
        worker.span("receive", at - 3, at + 2, "wait", "pipe", "a")
    Record(tmp_path, 7, "env worker", 1, rank, begin=25)  # killed at once
    rank.until(50)
    worker.until(50)
    assert messages(tmp_path) == [(10, 12), (20, 22), (30, 32)]


def test_after_a_process_that_may_have_taken_one_no_message_is_paired(tmp_path: Path) -> None:
    rank = Record(tmp_path, 5)
    worker = Record(tmp_path, 6, "env worker", 0, rank, begin=0.5)
    Record(tmp_path, 7, "env worker", 1, rank, begin=25)  # took the one that was sent at 30
    for at in (10, 20, 30, 40):
        rank.span("send", at, at + 1, "send", "queue", "a")
        if at != 30:
            worker.span("receive", at - 3, at + 2, "wait", "queue", "a")
    rank.until(50)
    worker.until(50)
    assert messages(tmp_path) == [(10, 12), (20, 22)]


def test_messages_are_paired_until_one_that_a_killed_process_took_along(tmp_path: Path) -> None:
    rank = Record(tmp_path, 5)
    killed = Record(tmp_path, 6, "env worker", 0, rank, begin=0.5)
    worker = Record(tmp_path, 7, "env worker", 1, rank, begin=0.6)
    for at in (10, 20, 30, 40):
        rank.span("send", at, at + 1, "send", "queue", "a")
        rank.span("send", at + 5, at + 6, "send", "queue", "other")
    killed.span("receive", 5, 12, "wait", "queue", "a").until(25, None)  # and one more at 32
    worker.span("receive", 5, 22, "wait", "queue", "a")
    worker.span("receive", 23, 42, "wait", "queue", "a")
    for at in (10, 20, 30, 40):
        worker.span("receive", at + 1, at + 7, "wait", "queue", "other")
    rank.until(50)
    worker.until(50)
    others = [(at + 5, at + 7) for at in (10, 20, 30, 40)]
    assert messages(tmp_path) == sorted([(10, 12), (20, 22), *others])


def test_of_a_part_of_a_run_who_came_later_takes_no_arrow(tmp_path: Path) -> None:
    rank = Record(tmp_path, 5)
    short = Record(tmp_path, 6, "env worker", 0, rank, begin=0.5)
    for at in (10, 20, 30, 40):
        rank.span("send", at, at + 1, "send", "pipe", "a")
        if at <= 30:  # the last one is received after the window
            short.span("receive", at - 3, at + 2, "wait", "pipe", "a")
    rank.write(recorded=[0, 45 * 10**6]).write(end=[90 * 10**6, "exit"])
    short.write(recorded=[500_000, 45 * 10**6]).write(end=[90 * 10**6, "exit"])
    Record(tmp_path, 7, "env worker", 1, rank, begin=60).write(end=[90 * 10**6, "exit"])
    assert messages(tmp_path, from_s=0.0, for_s=0.045) == [(10, 12), (20, 22), (30, 32)]


def test_of_a_part_of_a_run_messages_are_paired_while_all_of_them_were_kept(tmp_path: Path) -> None:
    over = 90 * 10**6
    rank = Record(tmp_path, 5)
    early, late, brief = (
        Record(tmp_path, 6 + n, "env worker", n, rank, begin=0.5) for n in range(3)
    )
    brief.span("send", 5, 6, "send", "queue", "a").until(8)  # it ended within the time asked for
    early.span("send", 10, 11, "send", "queue", "a")  # and one at 30, when no more was kept of it
    early.write(recorded=[500_000, 25 * 10**6]).write(end=[over, "exit"])
    for at in (20, 40):
        late.span("send", at, at + 1, "send", "queue", "a")
    late.write(recorded=[500_000, 45 * 10**6]).write(end=[over, "exit"])
    for at in (5, 10, 20, 30, 40):
        rank.span("receive", at, at + 2, "wait", "queue", "a")
    rank.write(recorded=[0, 45 * 10**6]).write(end=[over, "exit"])
    assert messages(tmp_path, from_s=0.0, for_s=0.02) == [(5, 7), (10, 12), (20, 22)]


def test_in_one_time_namespace_the_real_clock_may_be_set(tmp_path: Path) -> None:
    s = 1_000_000_000
    Record(tmp_path, 5).write(clock=[4 * s, ORIGIN + 4 * s, 4 * s]).until(5000)
    about = {"schema": 1, "clock": [0, ORIGIN, 0], "end": [10 * s, ORIGIN + 12 * s, 10 * s]}
    (tmp_path / "run.json").write_text(json.dumps(about | {"time_namespace": "time:[1] boot"}))
    run = read_run(tmp_path)
    (process,) = run.processes
    for namespace, same in (("time:[1] boot", True), ("time:[2] boot", False), (None, False)):
        process.header = replace(process.header, time_namespace=namespace)
        found = align(run, process)
        assert found.seen_ns == pytest.approx(2 * s / 3)  # 4 of the 12 s that the real clock went
        assert (found.shift_ns == 0) == same
        assert not (same and found.error_ns)
    run.about.time_namespace = None
    assert align(run, process).shift_ns
