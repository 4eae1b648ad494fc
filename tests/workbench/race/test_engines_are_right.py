"""The engines that need no environment of their own give right results, and a wrong one is seen."""

import os
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import projects
import pytest
from rlox_opt.race.environments import home, python_of
from rlox_opt.race.primitives import cases
from rlox_opt.race.primitives.cases import Case, Engine, WrongError
from rlox_opt.race.primitives.engines import MissingError, Process, Processes, validate
from rlox_opt.race.primitives.growth import in_this_interpreter

from peers.primitives import checks, networks

FAMILIES, ENGINES = cases.load(projects.HERE)
# Small, so that the whole takes seconds.
SMALL: dict[str, dict[str, Any]] = {
    "gae": {"n": 100},
    "gae_batched": {"n_envs": 3, "n_steps": 50, "dtype": "float64"},
    "vtrace": {"n": 100, "dtype": "float64"},
    "token_kl": {"rows": 3, "tokens": 50, "dtype": "float64"},
    "group_advantages": {"groups": 5, "size": 4},
    "push": {"obs_dim": 4, "steps": "joined"},
    "push_batch": {"rows": 8, "obs_dim": 4},
    "sample": {"batch": 32, "obs_dim": 4},
    "per_sample": {"batch": 256, "capacity": 1000},
    "env_step": {"n_envs": 4},
    "rollout": {"n_envs": 4, "n_steps": 50},
}
NO_CC = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
HERE = (
    "rlox",
    "rlox-kept",
    "numpy",
    "numpy-out",
    "gymnasium-sync",
    "gymnasium-vector",
    pytest.param("c", marks=NO_CC),
)
HOME = home(projects.HERE)


def started(name: str) -> Process:
    engine = in_this_interpreter(next(one for one in ENGINES if one.name == name))
    return Process(engine, python_of(engine.peer, HOME), 1, Random(0))


@pytest.fixture(scope="module")
def process(request: pytest.FixtureRequest) -> Iterator[Process]:
    running = started(request.param)
    yield running
    running.close()


def has(process: Process, case: Case) -> bool:
    try:
        process("prepare", case.family, case.size)
    except MissingError:
        return False
    return True


def test_every_family_has_cases_and_every_engine_a_module_and_a_lock() -> None:
    assert {family.name for family in FAMILIES} == set(SMALL)
    names = [engine.name for engine in ENGINES]
    assert len(set(names)) == len(names)
    keys = [case.key for family in FAMILIES for case in family.cases]
    assert len(set(keys)) == len(keys)
    for engine in ENGINES:
        assert engine.peer.driver.exists()
        if engine.peer.lock:
            lock = engine.peer.lock
            assert "--hash=sha256:" in lock.read_text()
            assert "://" not in lock.read_text()


def found_right(process: Process) -> list[str]:
    """The families that an engine has, each held to the reference."""
    held = []
    for family, size in SMALL.items():
        case = Case(family, size)
        if has(process, case):
            validate(process, case)
            held.append(family)
    return held


@pytest.mark.parametrize("process", HERE, indirect=True)
def test_an_engine_of_this_interpreter_is_right_in_all_that_it_has(process: Process) -> None:
    held = found_right(process)
    assert held or process.engine.name == "rlox-kept"


def test_pushes_apart_have_two_observations_to_store_and_joined_ones_one() -> None:
    inputs = checks.inputs()
    joined, apart = (inputs.one(4, steps=steps) for steps in ("joined", "apart"))
    assert (joined[0] == joined[1]).all()
    assert (apart[0] != apart[1]).all()
    family = next(family for family in FAMILIES if family.name == "push")
    sizes = defaultdict[str, set[int]](set)
    for case in family.cases:
        sizes[str(case.size["steps"])].add(int(case.size["obs_dim"]))
    assert sizes["joined"] == sizes["apart"] > sizes["only apart"]  # none is shown alone


@pytest.mark.parametrize(
    "process", ["rlox", "numpy", pytest.param("c", marks=NO_CC)], indirect=True
)
def test_an_engine_stores_pushes_apart_as_well(process: Process) -> None:
    case = Case("push", {"obs_dim": 64, "steps": "apart"})
    assert has(process, case)
    validate(process, case)
    process("time", 5_000)  # more than the ring holds of large rows


def test_a_rollout_of_kept_arrays_leaves_nothing_behind() -> None:
    held = {}
    for name in ("rlox", "rlox-kept"):
        running = started(name)
        running("prepare", "rollout", {"n_envs": 256, "n_steps": 64})
        held[name] = running("memory")["held"]
        running.close()
    assert held["rlox"] >= 2 * 256 * 64 * 4  # advantages and returns
    assert held["rlox-kept"] < 10_000


def test_c_is_left_out_with_the_reason_where_there_is_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    engines = [engine for engine in ENGINES if engine.name == "c"]
    pythons = {engine.name: python_of(engine.peer, HOME) for engine in engines}
    with Processes(engines, pythons, 1, Random(0)) as processes:
        assert not list(processes)
    assert processes.left_out["c"].startswith("does not start")
    assert "needs a C compiler: there is no cc" in processes.left_out["c"]


@pytest.mark.parametrize("name", ["numba", "numba-out", "numba-fast"])
def test_the_loops_that_numba_compiles_are_right(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Python runs them: numba itself is in an environment of its own."""
    (tmp_path / "numba.py").write_text("def njit(fastmath):\n    return lambda loop: loop\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    process = started(name)
    held = found_right(process)
    process.close()
    assert held == ["gae", "gae_batched", "vtrace", "token_kl", "group_advantages", "rollout"]


@pytest.mark.slow
@pytest.mark.parametrize("process", ["sb3", "torch", "gymnasium"], indirect=True)
def test_so_is_one_that_needs_torch(process: Process) -> None:
    for family, size in SMALL.items():
        case = Case(family, {"n_envs": 1} if process.engine.form == "env" else size)
        if (family == "env_step" or process.engine.form != "env") and has(process, case):
            validate(process, case)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Right answers of our own library, by family."""
    path = tmp_path_factory.mktemp("answers") / "answer.npz"
    running = started("rlox")
    found = {}
    for family, size in SMALL.items():
        running("prepare", family, size)
        running("answer", str(path))
        with np.load(path) as file:
            found[family] = {name: file[name] for name in file.files}
    running.close()
    return found


WRONG = [
    ("gae", "returns"),
    ("gae_batched", "advantages"),
    ("vtrace", "vs"),
    ("token_kl", "kl"),
    ("group_advantages", "advantages"),
    ("push", "next_obs"),
    ("push_batch", "action"),
    ("sample", "obs"),
    ("per_sample", "weights"),
    ("env_step", "obs"),
    ("rollout", "advantages"),
]


@pytest.mark.parametrize(("family", "column"), WRONG)
def test_a_column_that_is_off_is_seen(
    answers: dict[str, dict[str, Any]], family: str, column: str
) -> None:
    case = Case(family, SMALL[family])
    checks.check(case, answers[family])
    wrong = {name: array.copy() for name, array in answers[family].items()}
    flat = wrong[column].reshape(-1)
    flat[min(5, len(flat) - 1)] += 0.01
    with pytest.raises(WrongError, match=column):
        checks.check(case, wrong)


def test_draws_that_favour_some_rows_are_seen(answers: dict[str, dict[str, Any]]) -> None:
    low = answers["sample"]["reward"].reshape(-1) < 50_000
    biased = {name: column[low.nonzero()[0]] for name, column in answers["sample"].items()}
    with pytest.raises(WrongError, match="mean index"):
        checks.check(Case("sample", SMALL["sample"]), biased)


def test_environments_that_stand_still_are_seen(answers: dict[str, dict[str, Any]]) -> None:
    still = {name: array.copy() for name, array in answers["env_step"].items()}
    still["obs"][:] = still["obs"][0]
    with pytest.raises(WrongError, match="obs"):
        checks.check(Case("env_step", SMALL["env_step"]), still)


def test_our_networks_compute_what_plain_numpy_does() -> None:
    _, engines = cases.load(projects.HERE, "backends.toml")
    (ours,) = [engine for engine in engines if engine.ours]
    running = Process(ours, python_of(ours.peer, HOME), 1, Random(0))
    for step in ("ppo_step", "sac_sample"):
        running("prepare", step, {})
        validate(running, Case(step, {}))
    with pytest.raises(MissingError):
        running("prepare", "dqn_step", {})
    running.close()


@pytest.mark.slow
def test_torch_computes_what_plain_numpy_does() -> None:
    _, engines = cases.load(projects.HERE, "backends.toml")
    (eager,) = [engine for engine in engines if engine.form == "eager"]
    eager = in_this_interpreter(eager)
    running = Process(eager, python_of(eager.peer, HOME), 1, Random(0))
    for step in networks.STEPS:
        running("prepare", step, {})
        validate(running, Case(step, {}))
    running.close()


def test_the_gradient_of_the_reference_is_that_of_differences() -> None:
    inputs = checks.inputs()
    net = networks.Net(inputs, inputs.Q_NET, False, 0)
    x = inputs.numbers(12, 3).reshape(3, 4)
    by_output = inputs.numbers(6, 5).reshape(3, 2)
    net.forward(x)
    gradient = net.gradient(by_output)
    for at in (0, 300, 2000, len(gradient) - 1):
        values = []
        for step in (1e-6, -1e-6):
            net.params[at] += step
            values.append((net.forward(x) * by_output).sum())
            net.params[at] -= step
        assert gradient[at] == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5, abs=1e-9)


def test_rust_and_python_start_from_the_same_numbers() -> None:
    source = Path(__file__).parents[3] / "crates/rlox-bench/benches/nn_backends/cases.rs"
    text = source.read_text().replace("_", "")
    inputs = checks.inputs()
    assert "0.6180339887498949" in text
    for name in ("LR", "EPS", "CLIPRANGE", "VFCOEF", "ENTCOEF"):
        python = {key.replace("_", ""): value for key, value in vars(inputs).items()}[name]
        rust = text.partition(f"const {name}: ")[2].partition("= ")[2].partition(";")[0]
        assert float(rust) == python
    first = inputs.numbers(2, 1)
    assert first == pytest.approx([0.2360679774997898, -0.5278640450004204])


def test_an_engine_that_has_gone_is_started_anew() -> None:
    running = started("numpy")
    running("hello")
    os.kill(running._started().pid, 9)
    with pytest.raises(Exception, match="the process ended"):
        running("hello")
    running("hello")
    running.close()


def test_names_of_engines_are_fit_for_lists() -> None:
    every: list[Engine] = [*ENGINES, *cases.load(projects.HERE, "backends.toml")[1]]
    assert all("," not in engine.name for engine in every)
