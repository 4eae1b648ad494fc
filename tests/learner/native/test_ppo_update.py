"""PPO's native update against autograd, `torch.optim.Adam` and the torch path."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from drawn import at_an_edge, make_rollout, policies
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from rlox import PPO, _core
from rlox.learner.callbacks import BaseCallback
from rlox.learner.featured import FeaturesActorCritic
from rlox.learner.native.ppo_update import NativeUpdate
from rlox.learner.policies import ActorCritic, CategoricalActorCritic, GaussianActorCritic
from rlox.learner.ppo import FIGURES, Rollout

ENVS = {"categorical": "CartPole-v1", "gaussian": "Pendulum-v1"}


def ppo(kind: str, native: bool, **arguments: Any) -> PPO:
    optimizations = ["R9"] if native else []
    model = PPO(ENVS[kind], seed=3, optimizations=optimizations, **arguments)
    assert model.update_path == ("native" if native else "torch")
    return ready(model)


def ready(model: PPO) -> PPO:
    """`model` as `learn` makes it before it trains."""
    model.logger.start("PPO", 0, 1, progress_bar=False)
    return model


def learn_from(model: PPO, rollout: Rollout) -> dict[str, float]:
    """The figures of one update."""
    model.train(rollout)
    return {name: model.logger.values[name] for name in FIGURES}


def parameters(model: PPO) -> torch.Tensor:
    return nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()


@settings(max_examples=40)
@given(
    policies(),
    st.integers(1, 300),
    st.booleans(),
    st.sampled_from([0.0, 0.02]),
    st.sampled_from([None, 0.3]),
    st.integers(0, 2**31),
)
def test_gradients_are_autograds(
    made: tuple[ActorCritic, int],
    n: int,
    normalize: bool,
    ent_coef: float,
    clip_range_vf: float | None,
    seed: int,
) -> None:
    policy, obs_dim = made
    rollout = make_rollout(policy, obs_dim, n, seed)
    assume(not at_an_edge(policy, rollout.obs))
    kind = "gaussian" if isinstance(policy, GaussianActorCritic) else "categorical"
    model = ppo(
        kind,
        native=True,
        normalize_advantage=normalize,
        ent_coef=ent_coef,
        clip_range_vf=clip_range_vf,
        n_epochs=1,
        batch_size=n,
        max_grad_norm=float("inf"),
        learning_rate=0,
    )
    model.obs_dim, model.policy = obs_dim, policy
    # Without memory and without steps, Adam's mean of the gradient is the gradient.
    model.optimizer = torch.optim.Adam(policy.parameters(), lr=0, betas=(0.0, 0.999))
    figures = learn_from(model, rollout)
    assert model.update_path == "native"
    found = [model.optimizer.state[param]["exp_avg"].double() for param in policy.parameters()]

    policy.double()
    if isinstance(policy, FeaturesActorCritic):  # what is one-hot is float32
        policy.features_extractor.register_forward_hook(lambda *called: called[-1].double())
    wide = Rollout(*(c.double() if c.is_floating_point() else c for c in rollout))
    loss, expected_figures = model.loss(wide)
    expected = torch.autograd.grad(loss, list(policy.parameters()), allow_unused=True)
    scale = max(float(g.abs().max()) for g in expected if g is not None)
    for ours, autograds in zip(found, expected, strict=True):
        reference = torch.zeros_like(ours) if autograds is None else autograds
        torch.testing.assert_close(ours, reference, rtol=2e-5, atol=4e-6 * scale + 1e-7)
    np.testing.assert_allclose(list(figures.values()), expected_figures, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", ENVS)
def test_one_minibatch_moves_the_parameters_as_torch_does(kind: str) -> None:
    models = [ppo(kind, native, n_epochs=1, batch_size=1000) for native in (False, True)]
    rollout = make_rollout(models[0].policy, models[0].obs_dim, 256, seed=1)
    figures = [learn_from(model, rollout) for model in models]
    torch.testing.assert_close(parameters(models[1]), parameters(models[0]), rtol=0, atol=1e-6)
    assert figures[1] == pytest.approx(figures[0], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", ENVS)
def test_fifty_updates_stay_beside_torchs(kind: str) -> None:
    # 300 minibatches: in epochs of three, the last of which is smaller than the others.
    arguments = {"n_epochs": 2, "batch_size": 32, "ent_coef": 0.01}
    models = [ppo(kind, native, **arguments) for native in (False, True)]
    start = parameters(models[0])
    for update in range(50):
        rollout = make_rollout(models[0].policy, models[0].obs_dim, 70, seed=update)
        figures = [learn_from(model, rollout) for model in models]
        assert figures[1] == pytest.approx(figures[0], rel=1e-5, abs=1e-5)
    torchs, natives = (parameters(model) for model in models)
    assert (torchs - start).norm() > 0.3
    assert (natives - torchs).norm() < 1e-4 * (torchs - start).norm()
    assert models[1].optimizer.state_dict()["state"][0]["step"] == 300


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ENVS)
def test_target_kl_ends_an_update_where_torch_ends_it(kind: str, threads: int) -> None:
    arguments = {"n_epochs": 5, "batch_size": 500, "learning_rate": 3e-2}
    n_minibatches = {}
    for target_kl in (1e-9, 0.02, 0.05, 1e9):
        models = [ppo(kind, native, target_kl=target_kl, **arguments) for native in (False, True)]
        models[1]._update_threads = threads
        rollout = make_rollout(models[0].policy, models[0].obs_dim, 1700, seed=0)
        for model in models:
            model.train(rollout)
        torchs, natives = (model.optimizer.state_dict()["state"] for model in models)
        n_minibatches[target_kl] = int(natives[0]["step"]) if natives else 0
        assert n_minibatches[target_kl] == (int(torchs[0]["step"]) if torchs else 0)
        assert models[1]._n_updates == models[0]._n_updates
        told = [model.logger.values for model in models]
        figures = [{name: told_of[name] for name in FIGURES if name in told_of} for told_of in told]
        assert figures[1] == pytest.approx(figures[0], rel=1e-4, abs=1e-5)
        torch.testing.assert_close(parameters(models[1]), parameters(models[0]), rtol=0, atol=1e-5)
        # What is drawn next is the same as well.
        assert torch.equal(*(model._shuffle_generator.get_state() for model in models))
    assert 0 == n_minibatches[1e-9] < n_minibatches[0.02] < n_minibatches[0.05] < 20
    assert n_minibatches[1e9] == 20


@pytest.mark.parametrize("kind", ENVS)
@pytest.mark.parametrize("native_after", [True, False])
def test_what_was_saved_goes_on_on_either_path(
    tmp_path: Path, kind: str, native_after: bool
) -> None:
    model = ppo(kind, native=True)
    rollout = make_rollout(model.policy, model.obs_dim, 700, seed=0)
    model.train(rollout)
    model.save(tmp_path / "model.pt")
    loaded = PPO.load(tmp_path / "model.pt", optimizations=["R9"] if native_after else [])
    ready(loaded)
    assert torch.equal(parameters(loaded), parameters(model))
    loaded._shuffle_generator.set_state(model._shuffle_generator.get_state())
    for one in (model, loaded):
        one.train(rollout)
    assert loaded.update_path == ("native" if native_after else "torch")
    exact = {"rtol": 0, "atol": 0 if native_after else 1e-6}
    torch.testing.assert_close(parameters(loaded), parameters(model), **exact)
    steps = [one.optimizer.state_dict()["state"][0]["step"] for one in (model, loaded)]
    assert steps[0] == steps[1] == 16


@pytest.mark.parametrize("ends", [KeyboardInterrupt, ValueError])
def test_steps_of_adam_are_counted_whatever_ends_an_update(
    ends: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ppo("categorical", native=True)
    update, rollout = _core.ppo_update, make_rollout(model.policy, model.obs_dim, 700, seed=0)

    def interrupted(*arguments: Any, **more: Any) -> None:
        if ends is KeyboardInterrupt:  # which comes when the update is through
            update(*arguments, **more)
        raise ends

    monkeypatch.setattr(_core, "ppo_update", interrupted)
    with pytest.raises(ends):
        model.train(rollout)
    made = model.optimizer.state_dict()["state"][0]["step"]
    assert made == (8 if ends is KeyboardInterrupt else 0)


def test_threads_change_nothing() -> None:
    models = [ppo("categorical", native=True, batch_size=300) for _ in range(2)]
    rollout = make_rollout(models[0].policy, models[0].obs_dim, 1024, seed=0)
    for threads, model in enumerate(models, start=1):
        model._update_threads = threads
        model.train(rollout)
    assert torch.equal(parameters(models[0]), parameters(models[1]))
    assert models[0].logger.values == models[1].logger.values


@pytest.mark.parametrize(("threads", "taken"), [(None, 2), (1, 1), (5, 2)])
def test_threads_are_as_many_as_are_given_and_two_at_most(threads: int | None, taken: int) -> None:
    torch.set_num_threads(3)
    assert ppo("categorical", native=True, threads=threads)._update_threads == taken


def test_weights_given_anew_are_learnt_from() -> None:
    model = ppo("categorical", native=True)
    other = ppo("categorical", native=True)
    rollout = make_rollout(model.policy, model.obs_dim, 64, seed=0)
    other.train(rollout)
    weights = {name: value.clone() for name, value in other.policy.state_dict().items()}
    model.policy.load_state_dict(weights, assign=True)
    model.optimizer = torch.optim.Adam(model.policy.parameters(), lr=0.01)
    model.train(rollout)
    assert model.update_path == "native"
    moved = (parameters(model) - parameters(other)).abs()
    assert 0 < moved.max() < 4 * 0.0101  # four steps of Adam
    assert torch.equal(model._native.flat.params[0], next(model.policy.parameters()))


class OwnForward(CategoricalActorCritic):
    """Somebody else's policy."""


def hooked(model: PPO) -> None:
    model.policy.actor.register_forward_hook(lambda *_: None)


def frozen(model: PPO) -> None:
    next(model.policy.parameters()).requires_grad_(False)


def own_loss(model: PPO) -> None:
    loss = model.loss
    model.loss = lambda batch: loss(batch)


def own_evaluation(model: PPO) -> None:
    evaluate = model.policy.evaluate_actions
    model.policy.evaluate_actions = lambda *batch: evaluate(*batch)


def decaying(model: PPO) -> None:
    model.optimizer.param_groups[0]["weight_decay"] = 0.1


def own_policy(model: PPO) -> None:
    model.policy = OwnForward(4, 2)
    model.optimizer = torch.optim.Adam(model.policy.parameters())


def without_bias(model: PPO) -> None:
    model.policy.critic = nn.Sequential(nn.Linear(4, 1, bias=False))
    model.optimizer = torch.optim.Adam(model.policy.parameters())


def two_activations(model: PPO) -> None:
    layers = nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)
    model.policy.critic = nn.Sequential(*layers)
    model.optimizer = torch.optim.Adam(model.policy.parameters())


def doubled(model: PPO) -> None:
    model.policy.actor[0].weight = model.policy.critic[0].weight
    model.optimizer = torch.optim.Adam(model.policy.parameters())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (hooked, "a layer has a hook"),
        (frozen, "a parameter is frozen"),
        (own_loss, "the loss is replaced"),
        (own_evaluation, "a method of the policy is replaced"),
        (decaying, "Adam runs with weight decay"),
        (own_policy, "the policy is a OwnForward"),
        (without_bias, "there is a Linear where a Linear with bias is expected"),
        (two_activations, "the critic is no chain"),
        (doubled, "networks share parameters"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_torch_trains_what_rust_does_not_know(change: Callable[[PPO], None], reason: str) -> None:
    model = ppo("categorical", native=True, n_steps=16)
    change(model)
    before = parameters(model)
    model.learn(16)
    assert model.update_path.startswith(f"torch: {reason}")
    assert not torch.equal(parameters(model), before)


def hooked_parameter(model: PPO) -> None:
    next(model.policy.parameters()).register_hook(lambda gradient: 0.5 * gradient)


def own_forward(model: PPO) -> None:
    forward = model.policy.actor.forward
    model.policy.actor.forward = lambda x: forward(x)


def other_parameter(model: PPO) -> None:
    model.policy.critic[0].weight = nn.Parameter(model.policy.critic[0].weight.detach().clone())


def only_the_critic(model: PPO) -> None:
    model.optimizer.param_groups[0]["params"] = list(model.policy.critic.parameters())


CHANGES = [hooked, frozen, own_loss, own_evaluation, decaying, own_policy]
CHANGES += [hooked_parameter, own_forward, other_parameter, only_the_critic]


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_callback_changes_between_updates_is_heeded(change: Callable[[PPO], None]) -> None:
    class Change(BaseCallback):
        def on_rollout_end(self) -> None:
            paths.append(self.model.update_path)
            if len(paths) == 2:
                change(self.model)
                still.append(next(self.model.policy.parameters()).detach().clone())

    paths: list[str] = []
    still: list[torch.Tensor] = []
    model = ppo("categorical", native=True, n_steps=16)
    model.learn(4 * 16 * model.n_envs, Change())
    assert paths[:2] == ["native", "native"]
    assert paths[3].startswith("torch: ")
    stands = change in (frozen, only_the_critic)
    assert torch.equal(next(model.policy.parameters()), still[0]) == stands


def test_the_profile_tells_the_native_update() -> None:
    model = ppo("categorical", native=True)
    model.timing.enabled = True
    model.train(make_rollout(model.policy, model.obs_dim, 64, seed=0))
    assert {phase.name for phase in model.timing.phases()} == {"native_update"}


def test_arguments_that_do_not_fit_are_named() -> None:
    model = ppo("categorical", native=True)
    rollout = make_rollout(model.policy, model.obs_dim, 8, seed=0)
    native = NativeUpdate(model)
    with pytest.raises(ValueError, match="actions: holds"):
        native.train(model, rollout._replace(actions=rollout.actions + 2))
    with pytest.raises(TypeError, match="obs: has dtype float64"):
        native.train(model, rollout._replace(obs=rollout.obs.double()))
    with pytest.raises(ValueError, match="returns: has shape"):
        native.train(model, rollout._replace(returns=rollout.returns[1:]))
    widths, _, moments = native.actor
    for activation, clip_range, said in (
        ("tanh", -0.1, r"clip_range: is -0\.1, expected at least 0"),
        ("gelu", 0.2, 'actor: has activation "gelu"'),
    ):
        with pytest.raises(ValueError, match=said):
            _core.ppo_update(
                (widths, activation, moments), native.critic, None,
                tuple(c.numpy() for c in rollout), np.arange(8), 0, batch_size=8,
                clip_range=clip_range, normalize_advantage=True, ent_coef=0.0, vf_coef=0.5,
                max_grad_norm=0.5, lr=1e-3, betas=(0.9, 0.999), eps=1e-5,
            )  # fmt: skip
