"""The asv benchmarks: found without torch, given shared inputs, and sampled as asv should."""

import ast
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asv_runner import discovery

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "asv_bench" / "benchmarks"


@pytest.fixture(scope="module")
def benchmarks() -> Iterator[list[Any]]:
    """As asv finds them."""
    sys.path.insert(0, str(BENCHMARKS.parent))
    yield list(discovery.disc_benchmarks(str(BENCHMARKS)))
    sys.path.remove(str(BENCHMARKS.parent))
    forget()


def forget() -> None:
    """Let go of what the benchmarks keep: all of it together takes gigabytes."""
    for name, module in list(sys.modules.items()):
        if name.startswith("benchmarks."):
            for function in vars(module).values():
                if hasattr(function, "cache_clear"):
                    function.cache_clear()


def test_every_module_is_found_without_torch() -> None:
    program = f"""
import json, sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
sys.path.insert(0, {str(BENCHMARKS.parent)!r})
from asv_runner.discovery import disc_benchmarks
print(json.dumps([benchmark.name for benchmark in disc_benchmarks({str(BENCHMARKS)!r})]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {name.split(".")[0] for name in json.loads(done.stdout)}
    shared = {"__init__", "inputs", "provenance", "skip"}
    assert found == {path.stem for path in BENCHMARKS.glob("*.py")} - shared


def test_without_torch_training_is_left_out_and_does_not_fail() -> None:
    # A benchmark that fails keeps asv from comparing any.
    program = f"""
import itertools, sys
sys.modules["torch"] = None
sys.path.insert(0, {str(BENCHMARKS.parent)!r})
from asv_runner.benchmarks.mark import SkipNotImplemented
from asv_runner.discovery import disc_benchmarks
from importlib import util
found, util.find_spec = util.find_spec, lambda name: None if name == "torch" else found(name)
for benchmark in disc_benchmarks("benchmarks.trainers"):
    for number, _ in enumerate(itertools.product(*benchmark.params)):
        benchmark.set_param_idx(number)
        try:
            benchmark.func(*benchmark._current_params)
        except SkipNotImplemented:
            print("skipped")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("skipped") == 10


def test_each_kind_of_benchmark_is_there(benchmarks: list[Any]) -> None:
    assert {benchmark.type for benchmark in benchmarks} == {"time", "peakmemory", "track"}


def test_no_benchmark_has_a_setup(benchmarks: list[Any]) -> None:
    # With one, asv times a single cold call a sample.
    wrong = [
        benchmark.name for benchmark in benchmarks if benchmark._setups or benchmark._setup_cache
    ]
    assert not wrong


def test_timed_benchmarks_come_in_rounds_interleaved_with_the_other_commit(
    benchmarks: list[Any],
) -> None:
    rounds = {b.name: b.rounds for b in benchmarks if b.type == "time"}
    assert not [name for name, number in rounds.items() if number < 2]


@pytest.mark.parametrize(
    "module", ["boundary", "data_plane", "memory", pytest.param("pairs", marks=pytest.mark.slow)]
)
def test_every_benchmark_that_needs_no_torch_passes_its_own_check(
    benchmarks: list[Any], module: str
) -> None:
    for benchmark in benchmarks:
        if benchmark.name.split(".")[0] == module:
            for values in itertools.product(*benchmark._params):
                benchmark.func(*values)
            forget()


@pytest.mark.slow
def test_every_benchmark_of_the_trainers_passes_its_own_check(benchmarks: list[Any]) -> None:
    for benchmark in benchmarks:
        if benchmark.name.startswith("trainers."):
            for values in itertools.product(*benchmark._params):
                benchmark.func(*values)


def test_inputs_know_nothing_of_rlox() -> None:
    tree = ast.parse((BENCHMARKS / "inputs.py").read_text())
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names == {"functools", "numpy"}


def test_inputs_are_drawn_once_and_cannot_be_written(benchmarks: list[Any]) -> None:
    inputs = sys.modules["benchmarks.inputs"]
    calls = {
        "rollout": (3,),
        "rollouts": (2, 3, "env_major"),
        "off_policy": (3,),
        "log_probs": (2, 3),
        "transitions": (3, 4),
        "one_transition": (4,),
        "priorities": (3,),
        "pushes": (3,),
    }
    assert set(calls) == {name for name, x in vars(inputs).items() if hasattr(x, "cache_info")}
    for name, arguments in calls.items():
        draw = getattr(inputs, name)
        assert draw(*arguments) is draw(*arguments)
        drawn = draw(*arguments)
        for array in drawn if isinstance(drawn, tuple) else (drawn,):
            assert not isinstance(array, np.ndarray) or not array.flags.writeable, name
