"""Compiled updates: what stays the module's and the optimiser's, and going on without."""

import pytest
import torch
from torch import nn

import rlox
from rlox.learner import compiled
from rlox.learner.callbacks import BaseCallback
from rlox.learner.native.networks import Unfit
from rlox.learner.policies import CategoricalActorCritic, SquashedGaussianActor, TwinCritic


@pytest.fixture
def traced(monkeypatch):
    """One graph, run as it was traced: no compiler is needed."""
    monkeypatch.setattr(compiled, "BACKEND", "eager")


def ppo(on=("R2",), **arguments):
    arguments = {"n_envs": 2, "n_steps": 8, "batch_size": 8, "seed": 5, **arguments}
    if "policy" not in arguments:
        arguments["policy_kwargs"] = {"net_arch": [8]}  # there is less to trace
    return rlox.PPO("CartPole-v1", optimizations=on, **arguments)


def weights(model):
    return [p.detach().clone() for p in model.policy.parameters()]


def test_parameters_and_moments_are_saved_and_loaded_as_ever(traced, tmp_path):
    first = ppo().learn(32)
    assert first.compilations[0].graphs == 1
    assert first.compilations[0].seconds > 0
    first.save(tmp_path / "model")
    again = rlox.PPO.load(tmp_path / "model", optimizations=())
    for p, q in zip(first.policy.parameters(), again.policy.parameters(), strict=True):
        assert torch.equal(p, q)
        one, other = first.optimizer.state[p], again.optimizer.state[q]
        assert one["step"] == other["step"] == 16  # 2 rollouts of 4 epochs of 2 minibatches
        assert torch.equal(one["exp_avg"], other["exp_avg"])
        assert torch.equal(one["exp_avg_sq"], other["exp_avg_sq"])


def test_weights_loaded_between_trainings_are_trained_on(traced):
    model, start = ppo(learning_rate=1e-9), ppo(seed=8)
    model.learn(16)
    model.policy.load_state_dict(start.policy.state_dict())
    model.optimizer.load_state_dict(model.optimizer.state_dict())  # other tensors from here on
    model.learn(16)
    for p, q in zip(weights(model), weights(start), strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=1e-6)
    assert model.optimizer.state[next(model.policy.parameters())]["step"] == 16


def test_a_policy_given_between_trainings_is_what_is_trained(traced):
    model = ppo().learn(16)
    old, model.policy = model.policy, CategoricalActorCritic(4, 2, (8,))
    model.optimizer = torch.optim.Adam(model.policy.parameters(), lr=0.01)
    before, old_before = weights(model), [p.clone() for p in old.parameters()]
    model.learn(16)
    assert not torch.equal(before[0], weights(model)[0])
    assert all(map(torch.equal, old_before, old.parameters()))


def test_without_a_compiler_training_goes_on_and_says_so_once(monkeypatch):
    def no_compiler(graph, inputs):
        raise RuntimeError("No working C++ compiler found")

    monkeypatch.setattr(compiled, "BACKEND", no_compiler)
    with pytest.warns(UserWarning, match=r"R2: not compiled.*No working C\+\+ compiler") as told:
        model = ppo().learn(32)
    assert len(told) == 1
    assert model.compilations[0].given_up
    eager = ppo(on=()).learn(32)
    for p, q in zip(weights(model), weights(eager), strict=True):
        assert torch.equal(p, q)


def test_an_optimiser_of_another_kind_is_not_taken_for_adam(traced):
    made = [ppo(on=on) for on in (["R2"], [])]
    for model in made:
        model.optimizer = torch.optim.SGD(model.policy.parameters(), lr=0.01)
    with pytest.warns(UserWarning, match="R2: not compiled.*the optimizer is a SGD"):
        made[0].learn(16)
    made[1].learn(16)
    for p, q in zip(*map(weights, made), strict=True):
        assert torch.equal(p, q)


class Prints(CategoricalActorCritic):
    def evaluate_actions(self, obs, actions):
        torch._dynamo.graph_break()
        return super().evaluate_actions(obs, actions)


def test_a_policy_that_breaks_the_graph_is_trained_eagerly(traced):
    with pytest.warns(UserWarning, match="R2: not compiled"):
        model = ppo(policy=Prints(4, 2)).learn(16)
    assert model.compilations[0].graph_breaks == 1


class NoNoise(SquashedGaussianActor):
    from_noise = property()  # hasattr says no


def test_a_policy_that_takes_no_noise_is_trained_eagerly():
    model = rlox.SAC("Pendulum-v1", learning_starts=4, batch_size=8, policy=NoNoise(3, 1),
                     optimizations=["R3"])  # fmt: skip
    with pytest.warns(UserWarning, match="has no from_noise"):
        model.learn(8)
    assert model.num_timesteps == 8


@pytest.mark.slow
@pytest.mark.parametrize("prioritized", [False, True])
def test_sac_compiled_learns_as_eager_sac_does(prioritized):
    made = [
        rlox.SAC("Pendulum-v1", learning_starts=40, batch_size=32, seed=2, optimizations=on,
                 prioritized=prioritized).learn(60)
        for on in ([], ["R3"])
    ]  # fmt: skip
    for one, other in zip(*(weights(model) for model in made), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    assert made[1].compilations[0].graphs == 1


class Freezes(BaseCallback):
    """Stops the actor, and it alone, after half of the updates."""

    def on_step(self):
        if self.num_timesteps == 30:
            self.model.actor_optimizer.param_groups[0]["lr"] = 0.0
            self.actor, self.critic = weights(self.model), self.model.critic.q1[0].weight.clone()


@pytest.mark.slow
def test_each_optimisers_learning_rate_counts_at_every_update(traced):
    model = rlox.SAC("Pendulum-v1", learning_starts=20, batch_size=8, seed=2, optimizations=["R3"])
    callback = Freezes()
    model.learn(40, callback)
    assert not model.compilations[0].given_up
    assert all(map(torch.equal, callback.actor, weights(model)))
    assert not torch.equal(callback.critic, model.critic.q1[0].weight)


class Halved(rlox.SAC):
    def update(self, batch):
        self.halved = True
        return super().update(batch._replace(rewards=batch.rewards / 2))


def test_an_update_of_ones_own_is_called_not_compiled():
    model = Halved("Pendulum-v1", learning_starts=4, batch_size=8, optimizations=["R3"])
    with pytest.warns(UserWarning, match="R3: not compiled.*update is replaced"):
        model.learn(8)
    assert model.halved


def freeze(model):
    model.policy.mean.weight.requires_grad_(False)


def hook(model):
    model.critic.q1[0].register_forward_hook(lambda layer, x, y: y * 0.5)


def give_a_layer(model):
    model.critic.q1[0] = nn.Linear(4, 256)


def decay(model):
    model.critic_optimizer.param_groups[0]["weight_decay"] = 0.1


def replace_a_loss(model):
    loss = model.actor_loss
    model.actor_loss = lambda batch: loss(batch._replace(obs=batch.obs * 0.5))


class Changes(BaseCallback):
    """Does something to the trainer after half of the updates."""

    def __init__(self, change):
        self.change = change

    def on_step(self):
        if self.num_timesteps == 14:
            torch.manual_seed(0)
            self.change(self.model)


@pytest.mark.parametrize("change", [freeze, hook, give_a_layer, decay, replace_a_loss])
def test_what_a_callback_changes_between_updates_is_heeded(traced, monkeypatch, change):
    """Whether the graph still holds is looked at before each update, whoever runs the graph. So
    most are called as they are, since tracing takes seconds; a hook runs in those, too."""
    if change is not hook:
        monkeypatch.setattr(torch, "compile", lambda update, **_: update)

    def learn(on):
        model = rlox.SAC("Pendulum-v1", learning_starts=8, batch_size=8, seed=2, optimizations=on)
        return model.learn(20, Changes(change))

    with pytest.warns(UserWarning, match="R3: not compiled"):
        compiled = learn(["R3"])
    assert compiled.compilations[0].graphs == 1, "there were updates before the change"
    eager = learn([])
    for one, other in zip(weights(compiled), weights(eager), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    q, r = compiled.critic.q1[0].weight, eager.critic.q1[0].weight
    torch.testing.assert_close(q, r, rtol=1e-4, atol=1e-5)


def test_critics_given_between_updates_are_what_is_trained(traced):
    def replace(model):
        learnt = *model.policy.parameters(), *model.critic.parameters()
        halfway.append([p.detach().clone() for p in learnt])
        model.critic = TwinCritic(3, 1, (8,))
        model.critic_optimizer = torch.optim.Adam(model.critic.parameters(), lr=0.01)

    def small(on):
        return rlox.SAC(
            "Pendulum-v1", learning_starts=8, batch_size=8, seed=2, optimizations=on,
            policy_kwargs={"net_arch": [8]},
        )  # fmt: skip

    halfway = []
    model = small(["R3"])
    old = model.critic
    model.learn(20, Changes(replace))
    assert [made.graphs for made in model.compilations] == [1, 1]
    assert old.q1[0].weight is not model.critic.q1[0].weight
    assert model.critic_optimizer.state[model.critic.q1[0].weight]["step"] == 7
    small([]).learn(20, Changes(replace))
    for one, other in zip(*halfway, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_other_parameters_than_were_compiled_are_noticed():
    for frozen_first in (False, True):
        module = nn.Linear(3, 2)
        module.bias.requires_grad_(not frozen_first)
        flat = compiled.FlatModule(module, torch.optim.Adam(module.parameters()))
        if not frozen_first:
            flat.bind()
        module.bias.requires_grad_(frozen_first)
        with pytest.raises(Unfit, match="a parameter is frozen, or no longer"):
            flat.bind()


def test_adam_goes_on_from_any_step_as_torchs_does():
    module, twin = nn.Linear(3, 5), nn.Linear(3, 5)
    twin.load_state_dict(module.state_dict())
    adam, adams = (torch.optim.Adam(m.parameters(), lr=1e-2) for m in (module, twin))
    flat = compiled.FlatModule(module, adam)
    rng = torch.Generator().manual_seed(0)
    for rounds in (1, 3, 300):  # bound once in so many steps
        tensors = flat.bind()
        for _ in range(rounds):
            for p in twin.parameters():
                p.grad = torch.randn(p.shape, generator=rng)
            gradient = torch.cat([p.grad.reshape(-1) for p in twin.parameters()])
            compiled.adam_(tensors, gradient, flat.eps)
            adams.step()
    for ours, theirs in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.data, theirs.data, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_any_number_of_models_can_be_compiled_in_one_process(traced):
    limit = 2  # Dynamo gives up on a code object at its next graph; it has eight unasked
    with torch._dynamo.config.patch(recompile_limit=limit):
        for seed in range(limit + 1):
            settings = {"learning_starts": 8, "batch_size": 8, "gamma": 0.9 + 0.005 * seed}
            model = rlox.SAC("Pendulum-v1", seed=seed, optimizations=["R3"], **settings).learn(12)
            assert model.compilations[0].graphs == 1, model.compilations[0].given_up
