"""A program's own Timing report, read and laid beside ours.

The text has the form of Sample Factory's log, and figures of nobody's run.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlox_opt.sampling.processes.own_timing import beside, trees
from rlox_opt.views import processes

TEXT = (Path(__file__).parents[1] / "data" / "sample_factory_timing.txt").read_text()


def test_every_component_is_read_with_its_inner_blocks() -> None:
    found = {tree.component: dict(tree.seconds) for tree in trees(TEXT)}
    assert list(found) == [
        "Batcher 0", "InferenceWorker_p0-w0", "RolloutWorker_w0", "RolloutWorker_w1", "Runner",
    ]  # fmt: skip
    assert found["Batcher 0"] == {"batching": 1.1365, "releasing_batches": 0.0136}
    assert found["InferenceWorker_p0-w0"] == {
        "wait_policy": 0.0022,
        "wait_policy/wait_policy_total": 9.7697,
        "update_model": 0.3025,
        "update_model/weight_update": 0.0015,
        "one_step": 0.0034,
        "one_step/handle_policy_step": 10.2299,
        "one_step/handle_policy_step/deserialize": 0.7926,
        "one_step/handle_policy_step/stack": 0.0621,
        "one_step/handle_policy_step/forward": 3.8143,
        "one_step/handle_policy_step/send_messages": 0.5522,
        "one_step/handle_policy_step/prepare_outputs": 1.8651,
        "one_step/handle_policy_step/prepare_outputs/to_cpu": 1.1702,
    }
    assert found["RolloutWorker_w1"]["save_policy_outputs/split_output_tensors"] == 0.3037
    assert found["Runner"] == {"main_loop": 21.4041}


def test_colours_of_a_terminal_are_no_part_of_it() -> None:
    coloured = TEXT.replace("[2026", "\x1b[36m[2026").replace("view:", "view:\x1b[0m")
    assert trees(coloured) == trees(TEXT)


def worker(index: int, env_step: float) -> dict[str, Any]:
    blocks = {"env_step": env_step, "overhead": 1.03, "save_policy_outputs": 0.63}
    return {
        "title": f"rollout_proc {index}",
        "threads": [
            {
                "name": "MainThread",
                "phases": [
                    {"name": name, "seconds": s, "calls": 100} for name, s in blocks.items()
                ],
            },
            {"name": "feeder", "phases": []},
        ],
    }


def test_equal_workers_are_told_apart_by_their_times() -> None:
    rows = beside({"processes": [worker(1, 12.9), worker(0, 17.1)]}, TEXT)
    found = {(row["component"], row["block"]): row for row in rows}
    assert found["RolloutWorker_w0", "env_step"]["ours"] == "rollout_proc 0"
    assert found["RolloutWorker_w1", "env_step"]["ours"] == "rollout_proc 1"
    assert found["RolloutWorker_w1", "env_step"]["our_s"] == 12.9
    assert found["RolloutWorker_w0", "enqueue_policy_requests"]["our_s"] is None
    assert found["Runner", "main_loop"]["ours"] is None
    assert ("InferenceWorker_p0-w0", "update_model/weight_update") not in found  # next to nothing


def test_a_block_that_the_program_tells_by_the_call_is_told_so_on_both_sides() -> None:
    policy = {"one_step": (10.6, 3000), "one_step/handle_policy_step": (10.3, 3000)}
    phases = [{"name": name, "seconds": s, "calls": n} for name, (s, n) in policy.items()]
    process = {"title": "policy", "threads": [{"name": "MainThread", "phases": phases}]}
    rows = beside({"processes": [process]}, TEXT)
    found = {row["block"]: row for row in rows if row["component"] == "InferenceWorker_p0-w0"}
    assert found["one_step"]["per_call"] is True
    assert found["one_step"]["our_s"] == pytest.approx(10.6 / 3000)
    assert found["one_step/handle_policy_step"]["per_call"] is False
    assert found["one_step/handle_policy_step"]["our_s"] == 10.3
    (table,) = processes.own_timing(rows).tables
    shown = {row[2]: row[3:] for row in table.rows}
    assert shown["one_step, mean per call"] == ("3.40 ms", "3.53 ms")


def test_a_mean_of_the_latest_calls_is_no_sum_though_it_is_not_that_of_all() -> None:
    phases = [{"name": "one_step", "seconds": 30.0, "calls": 100_000}]
    process = {"title": "policy", "threads": [{"name": "MainThread", "phases": phases}]}
    rows = beside({"processes": [process]}, TEXT)
    (row,) = (row for row in rows if row["block"] == "one_step")
    assert row["own_s"] > 10 * 30.0 / 100_000
    assert (row["per_call"], row["our_s"]) == (True, pytest.approx(0.0003))


def test_the_section_has_both_side_by_side() -> None:
    rows = beside({"processes": [worker(0, 17.1)]}, TEXT)
    section = processes.own_timing(rows)
    (table,) = section.tables
    assert ("RolloutWorker_w0", "rollout_proc 0", "env_step", "17.1 s", "17.1 s") in table.rows


@pytest.mark.parametrize("text", ["", "no report", "X profile tree view:", "a: 1\nb: 2\n"])
def test_what_is_no_report_has_no_blocks(text: str) -> None:
    assert all(not tree.seconds for tree in trees(text))


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    trees(text + "\nX profile tree view:\n" + text)
