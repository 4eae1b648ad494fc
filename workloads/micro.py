"""Latencies of the components of training, each alone: the hot-loop figures beside the profile.

Every component's result is checked before it is timed. Then all are timed interleaved, in slices of
about a millisecond and in random order, so that a busy neighbour hits all of them alike; a row is
the median of its slices, with their quartiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import quantiles
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np

import rlox
from rlox._core import roundtrip

if TYPE_CHECKING:
    from rlox.learner.algorithm import Algorithm

ROUNDS = 60
_SLICE_NS = 1_000_000
_BATCH = 256  # transitions of a sampled batch

RUST = "Rust primitives"
ENVIRONMENT = "Environment"
TORCH = "PyTorch operations"


class Component(NamedTuple):
    """Something to time: a call without arguments."""

    group: str
    name: str
    call: Callable[[], object]


def run(trainer: Algorithm) -> list[dict[str, Any]]:
    """Rows of group, name, `us` (median), `low` and `high` (quartiles), `n` slices.

    Raises:
        AssertionError: a component's result is wrong, so that its time would mean nothing.
    """
    return measure([*rust_components(), *environment(trainer), *torch_components(trainer)])


def measure(components: list[Component], rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Time the components against each other, interleaved."""
    counts = [_calls_per_slice(component.call) for component in components]
    us: list[list[float]] = [[] for _ in components]
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        for i in rng.permutation(len(components)):
            us[i].append(_slice_ns(components[i].call, counts[i]) / counts[i] / 1e3)
    rows = []
    for component, values in zip(components, us, strict=True):
        low, median, high = (round(q, 3) for q in quantiles(values, n=4))
        rows.append(
            {
                "group": component.group,
                "name": component.name,
                "us": median,
                "low": low,
                "high": high,
                "n": len(values),
            }
        )
    return rows


def _calls_per_slice(call: Callable[[], object]) -> int:
    call()  # the first call allocates
    return max(1, _SLICE_NS // max(1, min(_slice_ns(call, 1) for _ in range(5))))


def _slice_ns(call: Callable[[], object], count: int) -> int:
    start = perf_counter_ns()
    for _ in range(count):
        call()
    return perf_counter_ns() - start


def rust_components() -> Iterator[Component]:
    """The data plane's primitives, as Python calls them."""
    rng = np.random.default_rng(0)
    for n_envs in (8, 64):
        yield Component(RUST, f"VecEnv.step ({n_envs} envs)", _stepper("CartPole-v1", n_envs))

    buffer = rlox.ReplayBuffer(10_000, 4, 1, seed=0)
    prioritized = rlox.PrioritizedReplayBuffer(10_000, 4, 1, seed=0)
    eight, many = _transitions(rng, 8), _transitions(rng, 10_000)
    one = {name: rows[0] for name, rows in eight.items()}
    one |= {"reward": float(one["reward"]), "terminated": False, "truncated": False}
    buffer.push_batch(**many)
    prioritized.push_batch(**many)
    for each in (buffer, prioritized):
        sample = each.sample(_BATCH)
        assert sample["obs"].shape == (_BATCH, 4)
        rows = np.isin(sample["reward"], many["reward"])
        assert rows.all(), "sampled rewards that were never pushed"
    yield Component(RUST, "ReplayBuffer.push (1)", lambda: buffer.push(**one))
    yield Component(RUST, "ReplayBuffer.push_batch (8)", lambda: buffer.push_batch(**eight))
    yield Component(RUST, f"ReplayBuffer.sample ({_BATCH})", lambda: buffer.sample(_BATCH))
    yield Component(
        RUST, f"PrioritizedReplayBuffer.sample ({_BATCH})", lambda: prioritized.sample(_BATCH)
    )

    rewards, zeros, last = rng.normal(size=(128, 8)), np.zeros((128, 8)), np.zeros(8)
    _, returns = rlox.compute_gae_batched(rewards, zeros, zeros, last, 1.0, 1.0)
    # Undiscounted, from values of zero: a return is what is still to come.
    np.testing.assert_allclose(returns, rewards[::-1].cumsum(0)[::-1], rtol=1e-6, atol=1e-10)
    yield Component(
        RUST,
        "compute_gae_batched (8 x 128)",
        lambda: rlox.compute_gae_batched(rewards, zeros, zeros, last, 0.99, 0.95),
    )

    policy, reference = -rng.random((2, 32, 2048), dtype=np.float32)
    d = (reference - policy).astype(np.float64)
    expected = (np.exp(d) - d - 1).sum(1)
    np.testing.assert_allclose(rlox.compute_token_kl(policy, reference), expected, rtol=1e-4)
    yield Component(
        RUST,
        "compute_token_kl, float32 (32 x 2048)",
        lambda: rlox.compute_token_kl(policy, reference),
    )

    values = rng.random(_BATCH)
    np.testing.assert_array_equal(roundtrip(values), values)
    yield Component(RUST, f"an array there and back ({_BATCH} float64)", lambda: roundtrip(values))


def environment(trainer: Algorithm) -> Iterator[Component]:
    """The run's own environment: as it trains, and one of Gymnasium's."""
    assert trainer.env_id is not None
    env_id, n_envs = trainer.env_id, trainer.n_envs
    yield Component(ENVIRONMENT, f"{env_id}: step ({n_envs} envs)", _stepper(env_id, n_envs))
    env = gym.make(env_id)
    env.reset(seed=0)
    env.action_space.seed(0)
    action = env.action_space.sample()

    def step() -> None:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()

    yield Component(ENVIRONMENT, f"{env_id}: Gymnasium's own step (1 env)", step)


def torch_components(trainer: Algorithm) -> Iterator[Component]:
    """What the trainer asks of torch at each step; for SAC the whole update as well."""
    import torch

    space = trainer.observation_space
    shape = (trainer.n_envs, trainer.obs_dim)
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    obs = torch.from_numpy(array).to(trainer.device)
    generator = torch.Generator(trainer.device).manual_seed(0)
    on_gpu = trainer.device.type == "cuda"
    policy: Any = trainer.policy

    def synchronized(call: Callable[[], Any]) -> Callable[[], Any]:
        def call_and_wait() -> Any:
            result = call()
            torch.cuda.synchronize()
            return result

        return call_and_wait if on_gpu else call

    @synchronized
    @torch.no_grad()
    def act() -> Any:
        return policy.get_action_and_logprob(obs, generator=generator)

    actions, log_probs = act()
    assert len(actions) == trainer.n_envs, f"{space}: actions of the wrong number"
    assert torch.isfinite(log_probs).all(), "log-probabilities that are not finite"
    yield Component(TORCH, f"policy.get_action_and_logprob ({trainer.n_envs} obs)", act)
    if hasattr(policy, "get_value"):

        @synchronized
        @torch.no_grad()
        def value() -> Any:
            return policy.get_value(obs)

        assert torch.isfinite(value()).all(), "values that are not finite"
        yield Component(TORCH, f"policy.get_value ({trainer.n_envs} obs)", value)

    @synchronized
    def convert() -> Any:
        return torch.from_numpy(array).to(trainer.device).cpu().numpy()

    np.testing.assert_array_equal(convert(), array)
    yield Component(TORCH, "NumPy to torch and back", convert)
    update: Callable[[], Any] | None = getattr(trainer, "train_once", None)
    if update is not None:
        before = torch.cat([p.detach().flatten() for p in policy.parameters()])
        update()
        after = torch.cat([p.detach().flatten() for p in policy.parameters()])
        assert not torch.equal(before, after), "an update that changes no parameter"
        yield Component(TORCH, "one whole update", synchronized(update))


def _stepper(env_id: str, n_envs: int) -> Callable[[], object]:
    env = rlox.VecEnv(env_id, n_envs)
    obs, _ = env.reset(seed=0)
    env.action_space.seed(0)
    actions = env.action_space.sample()
    stepped = env.step(actions)[0]
    assert stepped.shape == obs.shape
    assert not np.array_equal(stepped, obs), "a step that changes nothing"
    return lambda: env.step(actions)


def _transitions(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """`n` random transitions of 4 observations and 1 action, as `push_batch` takes them."""
    obs, next_obs = rng.random((2, n, 4), dtype=np.float32)
    return {
        "obs": obs,
        "next_obs": next_obs,
        "action": rng.random((n, 1), dtype=np.float32),
        "reward": rng.random(n, dtype=np.float32),
        "terminated": np.zeros(n, dtype=bool),
        "truncated": np.zeros(n, dtype=bool),
    }
