"""The flamegraph's trees: time is the plain run's, phases are outermost, nothing is lost."""

from collections import defaultdict
from typing import Any

import pytest

from rlox_opt.sampling.flamegraph import self_seconds, tree
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples

Path = tuple[str, ...]


def by_path(found: dict[str, Any]) -> dict[Path, tuple[float, str]]:
    """(seconds, layer) of each node."""
    open_: list[str] = []
    paths = {}
    for depth, name, layer, seconds, _ in found["nodes"]:
        open_[depth:] = [found["names"][name][0]]
        paths[tuple(open_)] = (seconds, found["layers"][layer])
    return paths


def sample(phase: str, layer: str, *names: str, weight: float = 0.01) -> Sample:
    return Sample(tuple(Frame(n, "m.py") for n in names), phase, layer, weight, MAIN_THREAD)


def test_phases_are_as_wide_as_the_plain_runs_clock_says(report: dict[str, Any], samples) -> None:
    own = self_seconds(report)
    # py-spy's samples have env_step twice as long; the picture must not.
    paths = by_path(tree(samples["py-spy"], own))
    for phase in report["phases"]:
        path = ("training", *phase["name"].split("/"))
        assert paths[path][0] == pytest.approx(phase["seconds"], rel=1e-3), path
    assert paths["training",][0] == pytest.approx(report["train_s"], rel=1e-3)


def test_no_node_is_narrower_than_its_children(report: dict[str, Any], samples) -> None:
    paths = by_path(tree(samples["perf"], self_seconds(report)))
    inner: dict[Path, float] = defaultdict(float)
    for path, (seconds, _) in paths.items():
        inner[path[:-1]] += seconds
    for path, (seconds, _) in paths.items():
        assert inner[path] <= seconds + 1e-4


def test_frames_that_all_stacks_begin_with_are_left_out() -> None:
    started = ["<module>", "main"]
    found = [sample("a", "rust", *started, "work", "leaf")] * 30
    found += [sample("b", "python", *started, "other")] * 30
    paths = by_path(tree(Samples("perf", found), {}))
    assert ("training", "a", "work", "leaf") in paths
    assert ("training", "b", "other") in paths


def test_the_interpreters_own_functions_are_one_frame_but_for_a_leaf() -> None:
    def native(name: str) -> Frame:
        return Frame(name, "python3.11")

    call = [
        native("_PyEval_EvalFrameDefault"),
        native("cfunction_call"),
        Frame("mm", "libtorch.so"),
    ]
    leaf = [Frame("step", "a.py"), native("_PyEval_EvalFrameDefault"), native("PyDict_GetItem")]
    found = [Sample(tuple(f), "a", "python", 0.01, MAIN_THREAD) for f in (call, leaf)]
    found += [sample("b", "rust", name) for name in ("x", "y")]
    paths = by_path(tree(Samples("perf", found), {}))
    assert ("training", "a", "CPython", "mm") in paths
    assert ("training", "a", "step", "CPython", "PyDict_GetItem") in paths


def test_stacks_without_their_bottom_do_not_keep_the_whole_ones_long() -> None:
    found = [sample("a", "rust", "<module>", "main", "work")] * 8
    found += [sample("a", "rust", "mkl")] * 9
    found += [sample("b", "rust", "<module>", "main", "other")] * 5
    found += [sample("b", "rust", "main", "skipped")]
    paths = by_path(tree(Samples("perf", found), {}))
    assert ("training", "a", "work") in paths
    assert ("training", "a", "mkl") in paths
    assert ("training", "b", "skipped") in paths


def test_a_node_has_the_layer_that_most_of_it_belongs_to() -> None:
    found = [sample("a", "rust", "f", "g")] * 3 + [sample("a", "python", "f")] * 2
    found += [sample("b", "numpy", "h")] * 6
    paths = by_path(tree(Samples("perf", found), {"a": 5.0, "b": 1.0}))
    assert paths["training", "a", "f"] == (pytest.approx(5.0), "rust")
    assert paths["training", "b", "h"] == (pytest.approx(1.0), "numpy")


def test_other_threads_are_not_in_the_training_threads_time() -> None:
    other = Sample((Frame("worker", "m"),), "", "rust", 9.0, "pool")
    found = tree(Samples("perf", [sample("a", "rust", "f"), other]), {"a": 1.0})
    assert by_path(found)["training",][0] == pytest.approx(1.0)


def test_no_samples_make_no_tree() -> None:
    assert tree(Samples("perf", []), {"a": 1.0})["nodes"] == []


def test_self_seconds_leave_out_inner_phases_and_name_what_is_outside() -> None:
    phases = [
        {"name": "a", "seconds": 3.0},
        {"name": "a/b", "seconds": 2.0},
        {"name": "c", "seconds": 1.0},
    ]
    own = self_seconds({"phases": phases, "train_s": 5.0})
    assert own == {"a": 1.0, "a/b": 2.0, "c": 1.0, "": 1.0}
