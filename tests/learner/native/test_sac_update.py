"""SAC's native update against autograd, `torch.optim.Adam` and the torch path."""

import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from rlox import SAC
from rlox.learner.callbacks import BaseCallback
from rlox.learner.policies import SquashedGaussianActor, TwinCritic

LEARNERS = {
    "policy": "actor_optimizer",
    "critic": "critic_optimizer",
    "critic_target": None,
    "temperature": "alpha_optimizer",
}


class Nowhere(gym.Env[Any, Any]):
    """An environment of any shape, in which nothing happens."""

    def __init__(self, obs_dim: int, act_dim: int) -> None:
        self.observation_space = spaces.Box(-9, 9, (obs_dim,), np.float32)
        self.action_space = spaces.Box(-2, 2, (act_dim,), np.float32)

    def reset(self, **_: Any) -> Any:
        return np.zeros(self.observation_space.shape, np.float32), {}

    def step(self, action: Any) -> Any:
        return *self.reset()[:1], 0.0, False, False, {}


def sac(native: bool, obs_dim: int = 3, act_dim: int = 2, seed: int = 3, **arguments: Any) -> SAC:
    """A trainer with random transitions in its buffer; the same for the same arguments."""
    optimizations = ["R9"] if native else []
    defaults = {"batch_size": 33, "buffer_size": 500}
    env = Nowhere(obs_dim, act_dim)
    model = SAC(env, seed=seed, optimizations=optimizations, **{**defaults, **arguments})
    rng = np.random.default_rng(seed)
    n = 200
    model.replay_buffer.push_batch(
        rng.normal(size=(n, obs_dim)).astype(np.float32),
        rng.normal(size=(n, obs_dim)).astype(np.float32),
        rng.uniform(-1, 1, (n, act_dim)).astype(np.float32),
        rng.normal(size=n).astype(np.float32),
        rng.random(n) < 0.2,
        np.zeros(n, np.bool_),
    )
    model._end = 1000
    return model


def vector(model: SAC, name: str) -> torch.Tensor:
    return nn.utils.parameters_to_vector(getattr(model, name).parameters()).detach()


def moments(model: SAC, optimizer: str) -> dict[str, torch.Tensor]:
    adam = getattr(model, optimizer)
    states = [adam.state[param] for param in adam.param_groups[0]["params"]]
    names = ("step", "exp_avg", "exp_avg_sq")
    return {name: torch.cat([state[name].reshape(-1) for state in states]) for name in names}


def largest_difference(model: SAC, other: SAC) -> float:
    """Of all parameters."""
    return max((vector(model, name) - vector(other, name)).abs().max().item() for name in LEARNERS)


@st.composite
def trainers(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of a trainer, with networks of any shape."""
    obs_dim, act_dim = draw(st.integers(1, 9)), draw(st.integers(1, 6))
    widths = st.lists(st.integers(1, 70), min_size=1, max_size=3).map(tuple)
    actor, critic = draw(widths), draw(widths)
    tanh = draw(st.booleans())

    def modules() -> dict[str, nn.Module]:
        torch.manual_seed(len(actor) + 7 * obs_dim)
        policy = SquashedGaussianActor(obs_dim, act_dim, actor)
        critics = TwinCritic(obs_dim, act_dim, critic)
        if tanh:
            policy.trunk = as_tanh(policy.trunk)
            critics.q1, critics.q2 = as_tanh(critics.q1), as_tanh(critics.q2)
        return {"policy": policy, "critic": critics}

    return {
        "obs_dim": obs_dim,
        "act_dim": act_dim,
        "modules": modules,
        "seed": draw(st.integers(0, 99)),
        "batch_size": draw(st.integers(1, 70)),
        "prioritized": draw(st.booleans()),
        "ent_coef": draw(st.sampled_from(["auto", "auto_0.1", 0.3])),
        "gamma": draw(st.sampled_from([0.0, 0.9, 0.99])),
        "tau": draw(st.sampled_from([0.005, 0.3, 1.0])),
    }


def as_tanh(net: nn.Module) -> nn.Sequential:
    layers = [layer for layer in net.modules() if isinstance(layer, nn.Linear | nn.ReLU)]
    return nn.Sequential(*[nn.Tanh() if isinstance(one, nn.ReLU) else one for one in layers])


@settings(max_examples=25)
@given(arguments=trainers(), critics_agree=st.booleans(), threads=st.sampled_from([1, 2]))
def test_one_update_is_that_of_autograd_and_adam(
    arguments: dict[str, Any], critics_agree: bool, threads: int
) -> None:
    """Adam's mean after its first step is (1 - beta1) times the gradient. Its eps is made large,
    so that a step is smooth in the gradient: by itself it is nearly the gradient's sign."""
    modules = arguments.pop("modules")
    models = [sac(native, **arguments, **modules()) for native in (False, True)]
    for model in models:
        if critics_agree:
            model.critic.q2.load_state_dict(model.critic.q1.state_dict())
            model.critic_target.load_state_dict(model.critic.state_dict())
        for optimizer in filter(None, LEARNERS.values()):
            if getattr(model, optimizer) is not None:
                getattr(model, optimizer).param_groups[0]["eps"] = 0.1
    reference, native = models
    native._choose_update()
    assert native.update_path == "native"
    native._native.threads = threads
    for model in models:
        model.train_once()

    for name, optimizer in LEARNERS.items():
        close(vector(native, name), vector(reference, name), 1e-6)
        if optimizer is not None and getattr(reference, optimizer) is not None:
            found, expected = moments(native, optimizer), moments(reference, optimizer)
            # The temperature's gradient is what is left of log pi's terms, which are of order one,
            # and the critics' of Q - y, whose y has them, too: both paths are some 1e-7 off
            # float64's, which shows where Q - y is small.
            terms = arguments["act_dim"] if name in ("temperature", "critic") else 0.0
            close(found["step"], expected["step"], 0)
            close(found["exp_avg"], expected["exp_avg"], 2e-6, 0.1 * terms)
            close(found["exp_avg_sq"], expected["exp_avg_sq"], 4e-6, 0.001 * terms)
    # So is a loss. Of two million draws, torch's own log pi of one action value is up to 1e-6 off
    # that of float64 where |u| < 1, and so may the native one be. Losses multiply it by:
    alpha = {"auto": 1.0, "auto_0.1": 0.1, 0.3: 0.3}[arguments["ent_coef"]]
    log_pis = {"train/actor_loss": alpha, "train/ent_coef_loss": -math.log(alpha)}
    for name, value in reference._figures.items():
        rounding = max(5e-7, 2e-6 * log_pis.get(name, 0.0)) * arguments["act_dim"]
        assert float(native._figures[name]) == pytest.approx(float(value), rel=2e-6, abs=rounding)
    draws = [model.replay_buffer.sample(50, seed=1) for model in models]
    for column, values in draws[0].items():  # the priorities show in the weights and the draw
        np.testing.assert_allclose(draws[1][column], values, rtol=1e-3, atol=1e-6)


def close(
    found: torch.Tensor, expected: torch.Tensor, tolerance: float, terms: float = 0.0
) -> None:
    """Within `tolerance` of the largest, or of the `terms` that it is left of: sums of float32 are
    as exact as their largest term."""
    scale = max(1e-3, terms, expected.abs().max().item())
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("prioritized", [False, True])
def test_fifty_updates_stay_close_to_the_torch_path(prioritized: bool) -> None:
    reference, native = (sac(kind, prioritized=prioritized) for kind in (False, True))
    for _ in range(50):
        reference.train_once()
        native.train_once()
    assert native.update_path == "native"
    moved = largest_difference(reference, sac(False, prioritized=prioritized))
    assert largest_difference(native, reference) < 1e-3 * moved


def test_one_thread_and_two_give_the_same_to_the_bit() -> None:
    one, two = sac(True), sac(True)
    for _ in range(5):
        for threads, model in ((1, one), (2, two)):
            model._native.threads = threads
            model.train_once()
    assert largest_difference(one, two) == 0


def test_the_policy_draws_as_in_torch() -> None:
    native, reference = sac(True), sac(False)
    for model in (native, reference):
        model.num_timesteps = model.learning_starts
    obs = np.random.default_rng(0).normal(size=(1, 3)).astype(np.float32)
    for _ in range(20):
        np.testing.assert_allclose(
            native._chosen_actions(obs), reference._chosen_actions(obs), atol=1e-5
        )


def test_torch_goes_on_where_the_native_update_ended() -> None:
    mixed, reference = sac(True), sac(False)
    for k in range(12):
        mixed.optimizations = frozenset({"R9"} if k % 6 < 3 else ())
        mixed._choose_update()
        mixed.train_once()
        reference.train_once()
    assert largest_difference(mixed, reference) < 1e-5
    assert moments(mixed, "critic_optimizer")["step"].unique().tolist() == [12]


def test_saved_and_loaded_it_trains_on_as_before(tmp_path: Path) -> None:
    model = sac(True)
    for _ in range(3):
        model.train_once()
    model.save(tmp_path / "model.pt")
    loaded = SAC.load(tmp_path / "model.pt", env=Nowhere(3, 2), optimizations=["R9"])
    loaded.replay_buffer, loaded._act_generator = model.replay_buffer, model._act_generator
    assert largest_difference(model, loaded) == 0
    loaded._end, loaded._draw = 1000, lambda: model.replay_buffer.sample(33, seed=5)
    model._draw = loaded._draw
    state = model._act_generator.get_state()
    loaded.train_once()
    model._act_generator.set_state(state)
    model.train_once()
    assert loaded.update_path == "native"
    assert largest_difference(model, loaded) == 0


def test_parameters_stay_the_modules_own() -> None:
    model = sac(True)
    params = list(model.policy.parameters())
    before = model.predict(np.ones(3, np.float32), deterministic=True)[0]
    model.train_once()
    assert all(a is b for a, b in zip(params, model.policy.parameters(), strict=True))
    assert not np.array_equal(model.predict(np.ones(3, np.float32), deterministic=True)[0], before)


def test_data_that_a_user_gives_a_parameter_is_what_is_trained() -> None:
    models = [sac(True), sac(False)]
    for model in models:
        model.train_once()
        for param in model.policy.parameters():
            param.data = 0.5 * param.data
        model.train_once()
    assert models[0].update_path == "native"
    assert largest_difference(*models) < 1e-5


class Louder(SquashedGaussianActor):
    def get_action_and_logprob(self, *args: Any, **kwargs: Any) -> Any:
        actions, log_probs = super().get_action_and_logprob(*args, **kwargs)
        return actions.clone(), log_probs


def gelu() -> nn.Module:
    policy = SquashedGaussianActor(3, 2, (8,))
    policy.trunk = nn.Sequential(nn.Linear(3, 8), nn.GELU())
    return policy


def hooked() -> nn.Module:
    policy = SquashedGaussianActor(3, 2, (8,))
    policy.mean.register_forward_hook(lambda *_: None)
    return policy


def frozen() -> nn.Module:
    policy = SquashedGaussianActor(3, 2, (8,))
    policy.mean.bias.requires_grad_(False)
    return policy


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (lambda: Louder(3, 2, (8,)), "the policy is a Louder"),
        (gelu, "no chain of Linear layers"),
        (hooked, "a layer has a hook"),
        (frozen, "a parameter is frozen"),
    ],
)
def test_other_modules_are_left_to_torch(policy: Any, reason: str) -> None:
    model = sac(True, policy=policy())
    assert reason in model.update_path
    model.train_once()
    assert model.update_path.startswith("torch: ")


def test_a_hook_of_the_critic_is_called() -> None:
    model, calls = sac(True), []
    model.critic.register_forward_hook(lambda *_: calls.append(1))
    model._choose_update()
    model.train_once()
    assert model.update_path == "torch: the critic has a hook"
    assert calls


def freeze(model: SAC) -> None:
    model.policy.mean.requires_grad_(False)


def hook(model: SAC) -> None:
    model.critic.q1[0].register_forward_pre_hook(lambda *_: None)


def hook_targets(model: SAC) -> None:
    model.critic_target.register_forward_hook(lambda *_: None)


def hook_temperature(model: SAC) -> None:
    model.temperature.register_forward_hook(lambda *_: None)


def replace_a_layer(model: SAC) -> None:
    model.critic.q1[0] = nn.Linear(*reversed(model.critic.q1[0].weight.shape))


def decay(model: SAC) -> None:
    model.alpha_optimizer.param_groups[0]["weight_decay"] = 0.1


@pytest.mark.parametrize(
    "change", [freeze, hook, hook_targets, hook_temperature, replace_a_layer, decay]
)
def test_what_is_changed_between_updates_is_heeded(change: Any) -> None:
    model = sac(True)
    model.train_once()
    assert model.update_path == "native"
    change(model)
    before = model.policy.mean.weight.detach().clone()
    model.train_once()
    assert model.update_path.startswith("torch: ")
    assert torch.equal(model.policy.mean.weight, before) == (change is freeze)


def test_a_replaced_step_is_called() -> None:
    class Bold(SAC):
        def actor_loss(self, *args: Any) -> Any:
            return super().actor_loss(*args)

    model = Bold("Pendulum-v1", optimizations=["R9"])
    assert model.update_path == "torch: actor_loss is replaced"
    model = sac(True)
    calls, target_q = [], model.target_q
    model.target_q = lambda *args: calls.append(1) or target_q(*args)
    model.train_once()
    assert calls
    assert model.update_path == "torch: target_q is replaced"


def test_an_update_of_ones_own_is_called() -> None:
    class Own(SAC):
        def update(self, batch: Any) -> Any:
            return super().update(batch)

    model = Own("Pendulum-v1", optimizations=["R9"])
    assert model.update_path == "torch: update is replaced"


def test_an_optimizer_with_extras_is_left_to_torch() -> None:
    model = sac(True)
    model.critic_optimizer.param_groups[0]["weight_decay"] = 0.1
    model._choose_update()
    assert model.update_path.startswith("torch: Adam runs with")


def test_without_r9_torch_updates() -> None:
    assert sac(False).update_path == "torch"


def learn(total_timesteps: int, callback: BaseCallback | None = None, **arguments: Any) -> SAC:
    modules = {
        "policy": SquashedGaussianActor(3, 1, (16, 16)),
        "critic": TwinCritic(3, 1, (16, 16)),
    }
    torch.manual_seed(0)
    for module in modules.values():
        for param in module.parameters():
            nn.init.normal_(param, std=0.1)
    defaults = {"learning_starts": 20, "batch_size": 16, "seed": 4, "optimizations": ["R9"]}
    model = SAC("Pendulum-v1", **{**defaults, **arguments}, **modules)
    return model.learn(total_timesteps, callback)


def test_same_seed_same_training() -> None:
    assert largest_difference(learn(60), learn(60)) == 0
    assert largest_difference(learn(60), learn(60, seed=5)) > 0


def test_learning_follows_the_torch_path() -> None:
    """Same exploration, same draws: what differs is rounding, which 40 updates do not amplify."""
    native, reference = learn(60), learn(60, optimizations=[])
    assert (native.update_path, reference.update_path) == ("native", "torch")
    assert largest_difference(native, reference) < 1e-4


def test_a_callback_sees_every_step_and_torch_at_one_thread() -> None:
    seen: list[tuple[int, int]] = []

    class Watch(BaseCallback):
        def on_step(self) -> bool:
            seen.append((self.num_timesteps, torch.get_num_threads()))
            return self.num_timesteps < 30

    torch.set_num_threads(2)
    model = learn(60, Watch())
    assert seen == [(n, 1) for n in range(1, 31)]
    assert torch.get_num_threads() == 2
    assert model.num_timesteps == 30
