"""R14: what a rollout's learner needs besides actions, computed when the rollout is over."""

import pytest
import torch
from torch import nn

import rlox
from rlox.learner.callbacks import TimingCallback
from rlox.learner.policies import CategoricalActorCritic

SETTINGS = {"n_envs": 3, "n_steps": 32, "batch_size": 24, "seed": 5}


class Own(CategoricalActorCritic):
    """A user's: unknown to Rust and to what runs an actor alone. Notes who calls it."""

    def __init__(self):
        super().__init__(4, 2, (8,))
        self.calls = []

    def get_action_and_logprob(self, obs, deterministic=False, generator=None):
        self.calls.append(("act", len(obs)))
        return super().get_action_and_logprob(obs, deterministic, generator)

    def get_value(self, obs):
        self.calls.append(("value", len(obs)))
        return super().get_value(obs)


def collected(on, policy=None, env="CartPole-v1", **settings):
    torch.manual_seed(1)
    model = rlox.PPO(env, policy=policy and policy(), optimizations=on, **SETTINGS | settings)
    model.train = lambda rollout: None
    model.learn(1)
    getattr(model.policy, "calls", []).clear()
    return model, model.collect_rollout()


def is_close(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("policy", "env"), [(None, "CartPole-v1"), (Own, "CartPole-v1"), (None, "Pendulum-v1")]
)
@pytest.mark.parametrize(("n_envs", "n_steps"), [(3, 32), (8, 263)])
def test_the_rollout_is_the_one_of_evaluating_every_step(policy, env, n_envs, n_steps):
    """Of 96 transitions, and of 2,104 with time limits: three passes, the last one short."""
    shape = {"n_envs": n_envs, "n_steps": n_steps}
    (_, before), (_, after) = (collected(on, policy, env, **shape) for on in ((), ["R14"]))
    is_close(after, before)


def test_a_policy_of_the_users_is_asked_once_a_step_and_for_values_at_the_end():
    model, rollout = collected(["R14"], Own)
    acts = [n for name, n in model.policy.calls if name == "act"]
    values = [n for name, n in model.policy.calls if name == "value"]
    assert acts == [3] * 32
    assert values == [len(rollout.obs), 3]  # the rollout, and what it ends in


def test_what_was_said_with_the_actions_is_kept():
    """Of a policy of the user's: whoever draws from something else than it evaluates says so."""
    says = Own.get_action_and_logprob
    model, _ = collected(["R14"], Own)
    model.policy.get_action_and_logprob = lambda *args, **kwargs: (
        (drawn := says(model.policy, *args, **kwargs))[0],
        drawn[1] - 1,
    )
    found = model.collect_rollout()
    _, evaluated, _ = model.policy.evaluate_actions(found.obs, found.actions)
    torch.testing.assert_close(found.log_probs, evaluated.detach() - 1)


@pytest.mark.parametrize(("batch_size", "passes"), [(24, [1024, 476]), (1200, [1200, 300])])
def test_a_pass_has_as_many_rows_as_a_minibatch_or_1024(batch_size, passes):
    model, _ = collected(["R14"], Own, n_envs=12, n_steps=125, batch_size=batch_size)
    assert [n for name, n in model.policy.calls if name == "value"] == [*passes, 12]


def test_training_goes_on_alike():
    settings = SETTINGS | {"n_envs": 2, "batch_size": 16}
    before, after = (
        nn.utils.parameters_to_vector(
            rlox.PPO("CartPole-v1", optimizations=on, **settings).learn(256).policy.parameters()
        ).detach()
        for on in ((), ["R14"])
    )
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-4)


def test_a_policy_that_has_diverged_is_noticed():
    model, _ = collected(["R14"])
    with torch.no_grad():
        model.policy.actor[0].weight.fill_(torch.nan)
    with pytest.raises(ValueError, match="not finite"):
        model.collect_rollout()


def test_its_phases():
    model = rlox.PPO("CartPole-v1", optimizations=["R14"], **SETTINGS)
    model.learn(96, callback=TimingCallback())
    calls = {phase.name: phase.calls for phase in model.timing.phases()}
    assert calls["policy_forward/action"] == calls["policy_forward"] == 32
    assert "policy_forward/value" not in calls
    assert calls["gae_compute/value"] == 1
