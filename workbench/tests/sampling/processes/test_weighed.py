"""py-spy's samples beside a watch: how long a thread waited and worked, and in the kernel, is as it
was watched; what it worked at is divided as it was sampled."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import Record, by_hand
from toy_projects import CLASSIFIER

from rlox_opt.sampling.layers import UNKNOWN
from rlox_opt.sampling.processes.run import RecordedProcess
from rlox_opt.sampling.processes.watch import Seen, Watch
from rlox_opt.sampling.processes.watcher import STATES
from rlox_opt.sampling.processes.weighed import weighed
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples

PID, LOOKS = 7, 100
STACK = (Frame("work", "/home/me/train.py", 3),)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> RecordedProcess:
    """Of one second."""
    folder = tmp_path_factory.mktemp("run")
    Record(folder, PID).until(1000)
    (recorded,) = by_hand(folder).processes
    return recorded


def watched(process: RecordedProcess, states: list[str], kernel: float = 0.0) -> Watch:
    """Looks at the main thread, evenly from its begin to its end; such a share of what it ran was
    in the kernel."""
    whole = process.end_ns - process.begin_ns
    runs = states.count("running") / len(states)
    seen = Seen(state=[STATES.index(state) for state in states])
    for ns in np.linspace(0, whole, len(states)):
        seen.at.append(process.begin_ns + round(ns))
        seen.ran.append(round(runs * ns))
        seen.kept.append(0)
        seen.kernel.append(round(kernel * runs * ns))
    return Watch({(PID, PID): seen})


def sampled(errors: int = 0, **layers: int) -> Samples:
    """So many samples of each layer."""
    found = [
        Sample(STACK, f"phase of {layer}", layer, 0.04, MAIN_THREAD)
        for layer, number in layers.items()
        for _ in range(number)
    ]
    return Samples("py-spy", found, 0.04, errors)


def shares(samples: list[Sample]) -> dict[str, float]:
    seconds: Counter[str] = Counter()
    for sample in samples:
        seconds[sample.layer] += sample.weight  # type: ignore[assignment]
    return {layer: of / seconds.total() for layer, of in seconds.items()}


@given(
    running=st.integers(0, 60),
    gil=st.integers(0, 30),
    stopped=st.integers(0, 40),
    kernel=st.floats(0, 1),
    layers=st.dictionaries(st.sampled_from(["python", "numpy", "kernel", "idle", "gil"]),
                           st.integers(1, 30), min_size=1),
    errors=st.integers(0, 20),
)  # fmt: skip
def test_a_thread_waits_and_works_in_the_kernel_as_it_was_watched(
    process: RecordedProcess,
    running: int,
    gil: int,
    stopped: int,
    kernel: float,
    layers: dict[str, int],
    errors: int,
) -> None:
    states = ["running"] * running + ["gil"] * gil + ["lock"] * (LOOKS - running - gil)
    states += ["stopped"] * stopped  # by py-spy, which is no time of its own
    watch = watched(process, states, kernel)
    samples = sampled(errors, **layers)
    found = weighed(samples, process, watch, CLASSIFIER)
    assert sum(s.weight for s in found) == pytest.approx(sum(s.weight for s in samples.samples))
    told, runs = shares(found), running / LOOKS
    assert told.get("gil", 0) == pytest.approx(gil / LOOKS, abs=1e-9)
    assert told.get("idle", 0) == pytest.approx(1 - runs - gil / LOOKS, abs=1e-9)
    assert told.get("kernel", 0) == pytest.approx(runs * kernel, abs=1e-6)
    work = {layer: layers[layer] for layer in ("python", "numpy") if layer in layers}
    rest = runs * (1 - kernel)
    unknown = errors / (errors + sum(layers.values())) if work else 1.0
    assert told.get(UNKNOWN, 0) == pytest.approx(rest * unknown, abs=1e-6)
    for layer, number in work.items():
        expected = rest * (1 - unknown) * number / sum(work.values())
        assert told.get(layer, 0) == pytest.approx(expected, abs=1e-6)


def test_where_calls_cannot_be_seen_waits_are_divided_as_they_were_sampled(
    process: RecordedProcess,
) -> None:
    watch = watched(process, ["running"] * 50 + ["other"] * 50)
    found = weighed(sampled(python=2, idle=3, gil=1), process, watch, CLASSIFIER)
    assert shares(found) == pytest.approx({"python": 0.5, "idle": 0.375, "gil": 0.125})


def test_what_the_kernel_did_is_of_the_phases_that_worked(process: RecordedProcess) -> None:
    watch = watched(process, ["running"] * LOOKS, kernel=0.5)
    found = weighed(sampled(python=3, numpy=1), process, watch, CLASSIFIER)
    seconds = {s.phase: s.weight for s in found if s.layer == "kernel"}
    assert seconds == pytest.approx({"phase of python": 0.06, "phase of numpy": 0.02})


def test_a_thread_that_was_hardly_watched_counts_as_it_was_sampled(
    process: RecordedProcess,
) -> None:
    samples = sampled(python=3, idle=1)
    for watch in (Watch({}), watched(process, ["lock"] * 20)):
        assert weighed(samples, process, watch, CLASSIFIER) == samples.samples


def test_a_main_thread_that_was_renamed_counts_as_it_was_watched(tmp_path: Path) -> None:
    Record(tmp_path, PID).thread(1, PID, "trainer").until(1000)
    (renamed,) = by_hand(tmp_path).processes
    watch = watched(renamed, ["running"] * 50 + ["lock"] * 50)
    found = weighed(sampled(python=4), renamed, watch, CLASSIFIER)
    assert shares(found) == pytest.approx({"python": 0.5, "idle": 0.5})


def test_a_wait_that_belongs_to_work_in_parallel_is_a_wait(process: RecordedProcess) -> None:
    """torch's own thread waits for those of its pool: not idle, and no work either."""
    pool = (
        Frame("gomp_team_barrier_wait_end", "/lib/libgomp.so.1"),
        Frame("futex_wait", "libc.so"),
    )
    waits = Sample(pool, "", "torch_forward", 0.04, MAIN_THREAD)
    works = Sample(STACK, "", "python", 0.04, MAIN_THREAD)
    samples = Samples("py-spy", [waits, works], 0.04)
    watch = watched(process, ["running"] * 25 + ["lock"] * 75)
    found = weighed(samples, process, watch, CLASSIFIER)
    assert shares(found) == pytest.approx({"torch_forward": 0.75, "python": 0.25})
