"""R12: gradients, clipping and Adam over one vector, where they may lie so.

One vector lies elsewhere and is summed in another order, so the kernels of torch and MKL round
otherwise, on each processor in its own way. Adam divides a gradient by its own size: where that is
rounding, a step of full length goes either way, and trainings part. So the trainings that are
compared have an `eps` far above rounding. A step is then no steeper in the gradient than
`lr / eps`, and what rounding does adds up, no more.
"""

import copy

import pytest
import torch
from torch import nn

import rlox
from rlox.learner.callbacks import BaseCallback
from rlox.learner.seams import StepAtOnce

SETTINGS = {"n_envs": 2, "n_steps": 32, "batch_size": 16, "seed": 5, "learning_rate": 0.01}
EPS = 0.01


def trained(on, steps=256, callback=None, **arguments):
    model = smooth(rlox.PPO("CartPole-v1", optimizations=on, **SETTINGS, **arguments))
    return model.learn(steps, callback=callback)


def smooth(model):
    for optimizer in vars(model).values():
        if isinstance(optimizer, torch.optim.Adam):
            optimizer.param_groups[0]["eps"] = EPS
    return model


def assert_close(after, before, updates, gradient=0.5, lr=0.01):
    """Equal but for two roundings in each update: of a weight, which is below 1, and of a gradient,
    whose terms are up to `gradient`: PPO clips it to 0.5, SAC's are below 30 here."""
    tolerance = updates * 2**-24 * (1 + gradient * lr / EPS)
    torch.testing.assert_close(after, before, rtol=0, atol=tolerance)


def weights(model):
    return nn.utils.parameters_to_vector(model.policy.parameters()).detach()


def is_one_vector(model):
    (minibatch,) = model._minibatches.values()
    return minibatch.stepper._flat is not None


def test_training_is_that_of_one_parameter_after_the_other():
    before, after = trained(()), trained(["R12"])
    assert is_one_vector(after)
    assert_close(weights(after), weights(before), updates=64)


def test_sac_trains_alike_too():
    models = [
        smooth(rlox.SAC("Pendulum-v1", optimizations=on, seed=5, learning_starts=50)).learn(75)
        for on in ((), ["R12"])
    ]
    steppers = models[1]._steppers.values()
    assert len(steppers) == 3
    assert all(stepper._flat is not None for stepper in steppers)
    before, after = (
        nn.utils.parameters_to_vector([*m.policy.parameters(), *m.critic_target.parameters(),
                                       *m.temperature.parameters()]).detach()
        for m in models
    )  # fmt: skip
    assert_close(after, before, updates=25, gradient=30, lr=3e-4)


def new_critic(model):
    model.critic = copy.deepcopy(model.critic)
    new_optimiser(model)


def new_optimiser(model):
    parameters = model.critic.parameters()
    model.critic_optimizer = torch.optim.Adam(parameters, lr=0.01, eps=EPS, fused=True)


@pytest.mark.parametrize("what", [new_critic, new_optimiser])
def test_sac_heeds_what_is_replaced_between_updates(what):
    class Once(BaseCallback):
        def on_step(self):
            if self.num_timesteps == 60:
                what(self.model)

    found = []
    for on in ((), ["R12"]):
        torch.manual_seed(0)
        model = smooth(rlox.SAC("Pendulum-v1", optimizations=on, seed=5, learning_starts=50))
        model.learn(75, Once())
        steps = {int(state["step"]) for state in model.critic_optimizer.state.values()}
        assert steps == {16}, "updates since"
        found.append(nn.utils.parameters_to_vector(model.critic.parameters()).detach())
    assert_close(found[1], found[0], updates=25, gradient=30)


@pytest.mark.parametrize("max_norm", [1e-3, 1e3])
def test_the_gradients_length_is_that_of_torch(max_norm):
    models = [trained(on, 64, max_grad_norm=max_norm) for on in ((), ["R12"])]
    norms = [torch.cat([p.grad.flatten() for p in m.policy.parameters()]).norm() for m in models]
    torch.testing.assert_close(norms[1], norms[0], rtol=1e-4, atol=0)


class Meddles(BaseCallback):
    """Does between updates what a user may; not before the first one."""

    def __init__(self, what):
        self.what, self.rollouts = what, 0

    def on_rollout_end(self):
        self.rollouts += 1
        if self.rollouts > 1:
            self.what(self.model)


def load_what_was_there(model):
    model.optimizer.load_state_dict(model.optimizer.state_dict())
    model.policy.load_state_dict(model.policy.state_dict())


def give_other_data(model):
    for param in model.policy.parameters():
        param.data = param.data.clone()


def forget_gradients(model):
    model.optimizer.zero_grad(set_to_none=True)


def halve_the_learning_rate(model):
    model.optimizer.param_groups[0]["lr"] *= 0.5


def freeze_a_layer(model):
    model.policy.actor[0].requires_grad_(False)


def let_weights_decay(model):
    model.optimizer.param_groups[0]["weight_decay"] = 0.1


def hook_steps(model):
    """By which the first weight stands still."""
    weight = model.policy.actor[0].weight
    before = weight.detach().clone()

    def put_back(*_):
        weight.data.copy_(before)

    model.optimizer.register_step_post_hook(put_back)


LEFT = [load_what_was_there, give_other_data, forget_gradients, halve_the_learning_rate]
ENDED = [freeze_a_layer, let_weights_decay, hook_steps]  # what one vector was for


@pytest.mark.parametrize("what", [*LEFT, *ENDED])
def test_what_others_do_to_parameters_and_optimiser_is_heeded(what):
    before, after = (trained(on, 192, Meddles(what)) for on in ((), ["R12"]))
    assert is_one_vector(after) == (what in LEFT)
    assert_close(weights(after), weights(before), updates=48)


def test_another_optimiser_goes_on_as_it_was():
    params = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))]
    stepper = StepAtOnce(params, torch.optim.SGD(params, lr=0.1))
    stepper.zero_grad()
    (params[0].sum() + 2 * params[1].sum()).backward()
    stepper.clip(1.0)
    stepper.step()
    assert stepper._flat is None
    length = (3 + 4 * 2) ** 0.5
    assert params[0].tolist() == pytest.approx([1 - 0.1 / length] * 3, abs=1e-6)
    assert params[1].tolist() == pytest.approx([1 - 0.2 / length] * 2, abs=1e-6)


def test_a_hook_of_adams_is_called():
    params = [nn.Parameter(torch.ones(3))]
    optimizer, calls = torch.optim.Adam(params), []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    stepper = StepAtOnce(params, optimizer)
    stepper.zero_grad()
    params[0].sum().backward()
    stepper.step()
    assert calls == [1]


def test_what_adam_has_learnt_can_be_taken_over_by_torch():
    model = trained(["R12"], 64)
    fresh = torch.optim.Adam(model.policy.parameters(), lr=0.01, eps=1e-5, fused=True)
    fresh.load_state_dict(model.optimizer.state_dict())
    assert {int(state["step"]) for state in fresh.state.values()} == {16}
    stepper = StepAtOnce(list(model.policy.parameters()), fresh)
    stepper.zero_grad()
    assert stepper._flat is not None


@pytest.mark.parametrize("optimizations", [("R9",), ("R12",)])
def test_ppo_begins_anew_where_adams_moments_are_removed(optimizations):
    class Clear(BaseCallback):
        def on_rollout_start(self):
            if self.num_timesteps == 128:
                self.model.optimizer.state.clear()

    models = [trained(on, callback=Clear()) for on in ((), optimizations)]
    states = [model.optimizer.state_dict()["state"] for model in models]
    assert [len(state) for state in states] == [len(states[0])] * 2
    assert float(states[1][0]["step"]) == float(states[0][0]["step"])
    assert_close(weights(models[1]), weights(models[0]), updates=64)
