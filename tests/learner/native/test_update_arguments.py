"""What native updates make of the arrays given to them: shape, memory, bytes; and of threads."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rlox import _core

N, OBS_DIM, ACT_DIM = 4, 3, 2
ADAM = (1e-3, 0.9, 0.999, 1e-8, 1)
Array = NDArray[Any]


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def learner(n: int) -> list[Array]:
    return [zeros(n) for _ in range(3)]


def ppo_arguments() -> dict[str, Any]:
    n_actor, n_critic = OBS_DIM * ACT_DIM + ACT_DIM, OBS_DIM + 1
    return {
        "actor": learner(n_actor),
        "critic": learner(n_critic),
        "rollout": [zeros(N, OBS_DIM), np.zeros(N, np.int64), *(zeros(N) for _ in range(3))],
        "order": np.arange(N),
    }


def ppo(arguments: dict[str, Any], step: int = 0) -> None:
    _core.ppo_update(
        ([OBS_DIM, ACT_DIM], "tanh", tuple(arguments["actor"])),
        ([OBS_DIM, 1], "tanh", tuple(arguments["critic"])),
        None, tuple(arguments["rollout"]), arguments["order"], step, batch_size=N, clip_range=0.2,
        normalize_advantage=True, ent_coef=0.0, vf_coef=0.5, max_grad_norm=0.5, lr=1e-3,
        betas=(0.9, 0.999), eps=1e-5,
    )  # fmt: skip


def sac_arguments() -> dict[str, Any]:
    n_actor, n_critics = 2 * ACT_DIM * (OBS_DIM + 1), 2 * (OBS_DIM + ACT_DIM + 1)
    return {
        "actor": learner(n_actor),
        "critics": learner(n_critics),
        "targets": [zeros(n_critics)],
        "log_alpha": learner(1),
        "batch": {
            "obs": zeros(N, OBS_DIM),
            "next_obs": zeros(N, OBS_DIM),
            "action": zeros(N, ACT_DIM),
            "reward": zeros(N),
            "terminated": np.zeros(N, np.bool_),
        },
        "noise": zeros(2, N, ACT_DIM),
    }


def sac_update() -> _core.SacUpdate:
    critic = ([OBS_DIM + ACT_DIM, 1], "relu")
    return _core.SacUpdate(([OBS_DIM, 2 * ACT_DIM], "relu"), (critic, critic))


def sac(arguments: dict[str, Any], adam: Any = ADAM) -> None:
    sac_update().update(
        tuple(arguments["actor"]), tuple(arguments["critics"]), arguments["targets"][0],
        tuple(arguments["log_alpha"]), arguments["batch"], arguments["noise"], gamma=0.99, tau=0.01,
        target_entropy=-1.0, adams=(ADAM, ADAM, adam), threads=1,
    )  # fmt: skip


def aliases(*lengths: int) -> list[Array]:
    """Arrays of one memory, of which NumPy does not know that they are."""
    memory = bytearray(4 * max(lengths))
    return [np.frombuffer(memory, np.float32, length) for length in lengths]


PLACES = {"ppo": ["actor", "critic"], "sac": ["actor", "critics", "targets", "log_alpha"]}
CALLS: dict[str, Any] = {"ppo": (ppo, ppo_arguments), "sac": (sac, sac_arguments)}


@pytest.mark.parametrize(
    ("call", "one", "other"),
    [
        (call, one, other)
        for call, names in PLACES.items()
        for one in names
        for other in names
        if not one == other == "targets"  # which is one array
    ],
)
def test_parameters_in_the_memory_of_others_are_refused(call: str, one: str, other: str) -> None:
    run, made = CALLS[call]
    arguments = made()
    run(arguments)
    first, last = (one, 0), (other, len(arguments[other]) - 1)
    places = [(arguments[name], i) for name, i in (first, last)]
    shared = aliases(*(len(arrays[i]) for arrays, i in places))
    for (arrays, i), array in zip(places, shared, strict=True):
        arrays[i] = array
    with pytest.raises(
        ValueError, match=f"(?:{one}|{other}): shares memory with (?:{one}|{other})"
    ):
        run(arguments)


def test_parameters_in_the_memory_of_the_data_are_refused() -> None:
    arguments = ppo_arguments()
    arguments["critic"][0], arguments["rollout"][4] = aliases(OBS_DIM + 1, N)
    with pytest.raises(ValueError, match="critic: shares memory with returns"):
        ppo(arguments)
    arguments = sac_arguments()
    arguments["log_alpha"][0], arguments["batch"]["reward"] = aliases(1, N)
    with pytest.raises(ValueError, match="log_alpha: shares memory with reward"):
        sac(arguments)


@pytest.mark.parametrize("name", ["obs", "next_obs", "action", "noise"])
def test_a_batch_of_another_shape_is_named_although_its_length_is_right(name: str) -> None:
    arguments = sac_arguments()
    place = arguments if name == "noise" else arguments["batch"]
    found = place[name]
    place[name] = np.ascontiguousarray(np.moveaxis(found, -1, 0))
    message = rf"{name}: has shape \({place[name].shape[0]}, .*expected \({found.shape[0]}, "
    with pytest.raises(ValueError, match=message):
        sac(arguments)


def test_numbers_of_steps_that_adam_cannot_divide_by_are_refused() -> None:
    arguments = sac_arguments()
    with pytest.raises(ValueError, match="adams: have a step 0, expected numbers of steps from 1"):
        sac(arguments, (*ADAM[:-1], 0))
    assert not arguments["actor"][0].any()
    with pytest.raises(ValueError, match=f"step: is {2**64 - 1}, expected room for the steps"):
        ppo(ppo_arguments(), 2**64 - 1)


@pytest.fixture
def _counting() -> Iterator[None]:
    _core.take_crossings()
    _core.count_crossings(True)
    yield
    _core.count_crossings(False)


@pytest.mark.usefixtures("_counting")
def test_crossings_are_counted_with_the_bytes_of_the_data() -> None:
    ppo(ppo_arguments())
    sac(sac_arguments())
    update, noise = sac_update(), zeros(N, ACT_DIM)
    update.act(sac_arguments()["actor"][0], zeros(N, OBS_DIM), noise)
    tallies = {name: tally[:2] for name, tally in _core.take_crossings().items()}
    assert tallies == {
        # Observations, three columns; actions and order.
        "ppo_update": (1, N * (4 * OBS_DIM + 4 * 3 + 8 * 2)),
        # Both observations, action, noise, reward, flag; errors.
        "SacUpdate.update": (1, N * (4 * 2 * OBS_DIM + 4 * ACT_DIM * 3 + 4 + 1 + 4)),
        "SacUpdate.act": (1, N * 4 * (OBS_DIM + 2 * ACT_DIM)),
    }


def test_where_no_thread_can_be_started_one_does_it_all() -> None:
    program = """if True:
        import numpy as np
        from rlox import _core

        def update(threads):
            rng = np.random.default_rng(0)
            def random(*shape): return rng.normal(size=shape).astype(np.float32)
            def network(n_out):
                n = 64 * 64 + 64 + 64 * n_out + n_out
                moments = random(n), np.zeros(n, np.float32), np.zeros(n, np.float32)
                return [64, 64, n_out], "tanh", moments
            n, actor, critic = 512, network(2), network(1)
            rollout = random(n, 64), rng.integers(0, 2, n), random(n), random(n), random(n)
            figures, _ = _core.ppo_update(
                actor, critic, None, rollout, np.arange(n), 0, batch_size=64, clip_range=0.2,
                normalize_advantage=True, ent_coef=0.0, vf_coef=0.5, max_grad_norm=0.5, lr=1e-3,
                betas=(0.9, 0.999), eps=1e-5, threads=threads,
            )
            return np.concatenate([figures, *actor[2], *critic[2]])

        np.testing.assert_array_equal(update(2), update(1))
    """
    no_room = {**os.environ, "RUST_MIN_STACK": str(2**46)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=no_room)
    assert (done.returncode, done.stderr) == (0, "")
