"""Beliefs about what a run leaves behind: read back as written, and good up to the last line."""

import json
import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import Record, by_hand

from rlox_opt.sampling.processes.format import Clock, Header, Name, Thread, Total, lines, triples
from rlox_opt.sampling.processes.inside.rlox_opt_segments import EXEC, Segments, encode
from rlox_opt.sampling.processes.run import RecordedProcess, keys, read_process, read_run, segments
from rlox_opt.sampling.samples import MAIN_THREAD

KEY = "7-100"
HEADER: dict[str, Any] = {
    "key": KEY,
    "pid": 7,
    "parent": 1,
    "parent_key": None,
    "role": "main",
    "index": None,
    "name": "MainProcess",
    "start": "exec",
    "argv": ["train.py"],
}


def preamble(number: int) -> list[Any]:
    return [{"process": HEADER | {"segment": number}}, {"source": [0, "PPO"]}]


def with_thread(number: int) -> list[Any]:
    return [*preamble(number), ENTRIES[1]]


def spans(*entries: tuple[int, int, int]) -> dict[str, Any]:
    words = array("q", [word for entry in entries for word in entry])
    return {"spans": [0, 0, encode(words)]}


def write(
    folder: Path,
    entries: list[Any],
    size: int = 1 << 20,
    most: int = 8,
    first: Callable[[int], list[Any]] = preamble,
) -> None:
    files = Segments(str(folder / KEY), size, most, first)
    for entry in entries:
        files.write([entry])
    files.close()


ENTRIES = [
    {"clock": [100, 5000, 104]},
    {"thread": [0, 70, "MainThread"]},
    {"name": [0, 0, "rollout"]},
    {"name": [0, 1, "rollout/get", "wait", "queue", "7-1"]},
    spans((1, 110, 120), (0, 105, 130)),
    {"counter": ["sps", 131, 12.5]},
    {"totals": [[0, 0, 0, 1, 20]]},
    {"totals": [[0, 0, 0, 1, 25]]},
    {"role": ["rank", 1, "rank 1"]},
]


def test_a_process_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, [*ENTRIES, {"end": [140, "exit"]}])
    process = read_process(tmp_path, KEY)
    assert (process.title, process.header.pid, process.how) == ("rank 1", 7, "exit")
    assert (process.begin_ns, process.end_ns) == (100, 140)
    assert process.clocks == [Clock(100, 5000, 104)]
    assert process.clocks[0].error_ns == 2
    assert process.threads == {0: Thread(70, "MainThread")}
    assert process.names[0, 0] == Name("rollout")
    assert process.names[0, 1] == Name("rollout/get", "wait", "queue", "7-1")
    (block,) = process.spans()
    assert block.data.tolist() == [[1, 110, 120], [0, 105, 130]]
    assert list(process.counters()) == [("sps", 131, 12.5)]


def test_a_process_says_whose_clock_it_reads_where_that_is_known(tmp_path: Path) -> None:
    write(tmp_path, ENTRIES)
    assert read_process(tmp_path, KEY).header.time_namespace is None
    (file,) = segments(tmp_path, KEY)
    known = {"process": HEADER | {"time_namespace": "time:[4026531834] 0b27"}}
    file.write_text(json.dumps(known) + "\n")
    assert read_process(tmp_path, KEY).header.time_namespace == "time:[4026531834] 0b27"


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["train.py", "--lr", "3"], "train.py"),
        (["-u", "-X", "dev", "./tool", "-m"], "tool"),
        (["-m", "package.train", "tool"], None),
        (["-c", "pass", "tool"], None),
        ([], None),
    ],
)
def test_the_script_of_a_process_is_the_file_that_python_was_given(
    words: list[str], script: str | None
) -> None:
    header = Header(**HEADER | {"argv": ["python", *words]})
    found = RecordedProcess(header, []).script
    assert found == (None if script is None else str(Path.cwd() / script))


def test_spans_of_a_thread_that_no_line_names_are_left_out(tmp_path: Path) -> None:
    lost = {"spans": [0, 3, spans((0, 1, 2))["spans"][2]]}
    write(tmp_path, [lost, *ENTRIES])
    (block,) = read_process(tmp_path, KEY).spans()
    assert (block.thread, len(block.data)) == (0, 2)


def test_the_main_thread_has_one_name_whatever_the_program_calls_it(tmp_path: Path) -> None:
    write(tmp_path, [{"thread": [1, HEADER["pid"], "trainer"]}, {"thread": [2, 71, "loader"]}])
    threads = read_process(tmp_path, KEY).threads
    assert threads == {1: Thread(7, MAIN_THREAD), 2: Thread(71, "loader")}


def test_totals_are_sums_so_far_so_the_last_ones_count(tmp_path: Path) -> None:
    write(tmp_path, ENTRIES)
    assert read_process(tmp_path, KEY).totals == [Total(0, 0, 0, 1, 25)]


def test_a_file_is_good_up_to_its_last_whole_line_wherever_it_is_cut(tmp_path: Path) -> None:
    write(tmp_path, ENTRIES)
    (file,) = segments(tmp_path, KEY)
    whole = file.read_bytes()
    for cut in range(len(whole)):
        file.write_bytes(whole[:cut])
        assert len(list(lines(file))) == whole[:cut].count(b"\n")
    file.write_bytes(whole[: whole.index(b"\n") + 30])
    assert read_process(tmp_path, KEY).how is None


def test_a_long_run_keeps_its_last_segments_each_readable_by_itself(tmp_path: Path) -> None:
    entries = [spans((0, n, n + 1)) for n in range(100, 400)]
    write(tmp_path, entries, size=300, most=3, first=with_thread)
    found = segments(tmp_path, KEY)
    assert len(found) == 3
    process = read_process(tmp_path, KEY)
    assert process.dropped_segments == process.header.segment > 0
    assert process.sources == {0: "PPO"}
    begins = [int(row[1]) for block in process.spans() for row in block.data]
    assert begins == list(range(begins[0], 400))


def test_a_program_that_closes_all_files_keeps_its_own_to_itself(tmp_path: Path) -> None:
    files = Segments(str(tmp_path / KEY), 1 << 20, 8, preamble)
    files.write([ENTRIES[1]])
    number = files._file
    own = os.open(tmp_path / "own", os.O_WRONLY | os.O_CREAT)
    os.dup2(own, number)  # which closes what had the number
    files.write([ENTRIES[2]])
    os.write(number, b"the program's")
    files.close()
    for descriptor in (own, number):
        os.close(descriptor)
    assert (tmp_path / "own").read_bytes() == b"the program's"
    process = read_process(tmp_path, KEY)
    assert (len(process.threads), len(process.names)) == (1, 1)


def test_processes_come_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    for name in ("9-200.0.jsonl", "12-50.0.jsonl", "12-50.torch.0.jsonl", "3-7.samples.jsonl"):
        (tmp_path / name).touch()
    assert keys(tmp_path) == ["12-50", "9-200"]


def test_the_program_that_took_the_first_ones_place_has_its_part(tmp_path: Path) -> None:
    first = Record(tmp_path, 5, begin=1).until(2, EXEC)
    second = Record(tmp_path, 5, "wrapper", parent=first, begin=2).until(3, EXEC)
    Record(tmp_path, 6, "tool", parent=second, begin=2.5).until(3)
    Record(tmp_path, 5, "train", parent=second, begin=3).until(9)
    run = by_hand(tmp_path)
    assert [process.title for process in run.processes] == [
        "main, until exec",
        "main, until exec",
        "tool",
        "main",
    ]
    assert [process.header.parent_key for process in run.processes] == [
        None,
        None,
        second.key,
        None,
    ]


def test_a_run_leaves_out_what_died_before_its_first_line(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1, "clock": [1, 2, 3]}))
    (tmp_path / "9-200.0.jsonl").write_text('{"process": {"key"')
    write(tmp_path, ENTRIES)
    run = read_run(tmp_path)
    assert [process.key for process in run.processes] == [KEY]
    assert run.clock == Clock(1, 2, 3)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no run: run\.json"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text('{"schema": 99}')
    with pytest.raises(ValueError, match="schema 99"):
        read_run(tmp_path)


@given(st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 3)))
def test_integers_survive(entries: list[tuple[int, int, int]]) -> None:
    words = array("q", [word for entry in entries for word in entry])
    assert triples(encode(words)).tolist() == [list(entry) for entry in entries]
