"""Waits for a device: told by the kernel that was waited for, and by who launched it.

The trace is written by hand in the shape that torch.profiler exports, and not recorded: an update
whose last phase asks for a number, and so waits for the backward pass. What is expected follows
from its times.
"""

import json
from array import array
from pathlib import Path
from typing import Any

import pytest
from chrome_trace import annotated, read_chrome
from hypothesis import given
from hypothesis import strategies as st

from rlox_opt.sampling.device import NOTHING, UNKNOWN, Call, Kernel, Use, Waited, attribute
from rlox_opt.sampling.processes.inside.rlox_opt_segments import encode
from rlox_opt.sampling.processes.on_device import on_device
from rlox_opt.sampling.processes.run import read_run
from rlox_opt.views import details

TRACE = Path(__file__).with_name("data") / "torch_trace_by_hand.json"
US = 1e-6


def test_a_wait_is_for_the_kernels_of_the_phase_that_launched_them() -> None:
    recorded = read_chrome(TRACE.read_text())
    waited, uses = attribute(recorded.calls, recorded.kernels, annotated(recorded))
    assert {row.waits for row in waited} == {"after_optimizer"}
    seconds = {(row.launched, row.name): row.seconds for row in waited}
    # It waits from 2,440 to 10,540 µs after the beginning.
    assert seconds == {
        ("backward", "ampere_sgemm_128x64_nn"): pytest.approx((7060 - 2440) * US),
        ("backward", "ampere_sgemm_128x64_nt"): pytest.approx(3000 * US),
        ("after_optimizer", "multi_tensor_apply_kernel"): pytest.approx(400 * US),
        ("after_optimizer", "Memcpy DtoH (Device -> Pageable)"): pytest.approx(40 * US),
        ("", NOTHING): pytest.approx(40 * US),
    }
    tracks = {use.phase: use for use in uses}
    assert tracks["after_optimizer"].waits == pytest.approx(8100 * US)
    assert tracks["after_optimizer"].kernels == pytest.approx(440 * US)
    assert tracks["backward"].kernels == pytest.approx(9000 * US)
    assert tracks["backward"].waits == tracks["forward"].waits == 0
    assert tracks["forward"].kernels == pytest.approx(1000 * US)


def test_of_kernels_that_run_at_once_the_last_to_end_is_waited_for() -> None:
    calls = [
        Call("cudaLaunchKernel", 1, 0, 1, 5),
        Call("cudaLaunchKernel", 1, 2, 3, 6),
        Call("cudaDeviceSynchronize", 1, 10, 40, 0),
    ]
    kernels = [Kernel("short", 7, 4, 20, 5), Kernel("long", 8, 5, 40, 6)]
    waited, _ = attribute(calls, kernels, lambda thread, ns: "phase")
    assert [(row.name, round(row.seconds * 1e9)) for row in waited] == [("long", 30)]


def test_a_kernel_that_nobody_is_seen_to_launch_is_nobodys() -> None:
    calls = [Call("cudaStreamSynchronize", 1, 0, 10, 0)]
    waited, uses = attribute(calls, [Kernel("graph", 7, 0, 10, 99)], lambda thread, ns: "phase")
    assert [(row.launched, row.name) for row in waited] == [(UNKNOWN, "graph")]
    assert {use.phase for use in uses} == {"phase", UNKNOWN}


def of_copy(returns_ns: int) -> tuple[list[Waited], list[Use]]:
    """A kernel of 19 ns, then 8 ns of a copy to the host, by a call that began at 2."""
    calls = [
        Call("cudaLaunchKernel", 1, 0, 1, 5),
        Call("cudaMemcpyAsync", 1, 2, returns_ns, 6),
    ]
    kernels = [Kernel("k", 7, 1, 20, 5), Kernel("Memcpy DtoH", 7, 20, 28, 6)]
    return attribute(calls, kernels, lambda _, ns: "backward" if ns < 2 else "log")


def test_a_copy_that_returns_with_its_bytes_was_waited_for() -> None:
    waited, uses = of_copy(returns_ns=30)
    assert {(row.waits, row.launched, row.name): round(row.seconds * 1e9) for row in waited} == {
        ("log", "backward", "k"): 18,
        ("log", "log", "Memcpy DtoH"): 8,
        ("log", "", NOTHING): 2,
    }
    assert {use.phase: round(use.waits * 1e9) for use in uses} == {"log": 28, "backward": 0}
    waited, uses = of_copy(returns_ns=4)  # asynchronously, as from pinned memory
    assert not waited
    assert not any(use.waits for use in uses)


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 30)), max_size=12),
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 60)), max_size=5),
)
def test_every_wait_is_told_to_the_last_nanosecond(
    ran: list[tuple[int, int]], synchronised: list[tuple[int, int]]
) -> None:
    kernels = [Kernel(f"k{i}", 7, at, at + ns, i) for i, (at, ns) in enumerate(ran, 1)]
    calls = [Call("cudaDeviceSynchronize", 1, at, at + ns, 0) for at, ns in synchronised]
    waited, uses = attribute(calls, kernels, lambda thread, ns: "phase")
    assert round(sum(row.seconds for row in waited) * 1e9) == sum(ns for _, ns in synchronised)
    assert round(sum(use.kernels for use in uses) * 1e9) == sum(ns for _, ns in ran)


def test_in_a_run_of_processes_waits_are_told_from_what_torch_recorded_in_each(
    tmp_path: Path,
) -> None:
    trace = read_chrome(TRACE.read_text())
    names = ["forward", "backward", "after_optimizer"]
    begins = {name: (begin, end) for _, name, begin, end in trace.annotations}
    blocks = array("q", [w for n in names for w in (names.index(n), *begins[n])])
    header = {
        "key": "7-1", "pid": 7, "parent": 1, "parent_key": None, "role": "main", "index": None,
        "name": "main", "start": "exec", "argv": ["train.py"],
    }  # fmt: skip
    head = [{"process": header}, {"thread": [0, 7, "MainThread"]}, {"source": [0, "PPO"]}]
    phases = [{"name": [0, i, name]} for i, name in enumerate(names)]
    lines(tmp_path / "7-1.0.jsonl", [*head, *phases, {"spans": [0, 0, encode(blocks)]}])

    stream = 1_000_000_000
    known: list[tuple[str, str]] = []
    spans: dict[int, array[int]] = {7: array("q"), stream: array("q")}
    flows: dict[int, array[int]] = {7: array("q"), stream: array("q")}
    for of, kind, thread in ((trace.calls, "torch", 7), (trace.kernels, "device", stream)):
        for one in of:
            if (one.name, kind) not in known:
                known.append((one.name, kind))
            index = known.index((one.name, kind))
            spans[thread].extend((index, one.begin_ns, one.end_ns))
            flows[thread].extend((index, one.begin_ns, one.correlation))
    torch = [{"process": header}, {"source": [0, "torch"]}]
    torch += [{"thread": [thread, thread, "thread"]} for thread in spans]
    torch += [{"name": [0, i, *name, "", ""]} for i, name in enumerate(known)]
    torch += [{"spans": [0, thread, encode(data)]} for thread, data in spans.items()]
    torch += [{"flows": [0, thread, encode(data)]} for thread, data in flows.items()]
    lines(tmp_path / "7-1.torch.0.jsonl", torch)
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1, "clock": [1, 2, 3]}))

    found = on_device(read_run(tmp_path))
    assert found is not None
    assert found["waited"][0] == {
        "waits": "after_optimizer",
        "launched": "backward",
        "name": "ampere_sgemm_128x64_nn",
        "seconds": pytest.approx((7060 - 2440) * US),
    }
    (section,) = details.on_device(found)
    assert section.tables[0].rows[0] == (
        "after_optimizer", "backward", "ampere_sgemm_128x64_nn", "4.62 ms",
    )  # fmt: skip


def lines(path: Path, entries: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
