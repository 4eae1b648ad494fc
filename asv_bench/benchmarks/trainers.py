"""The phases of training: PPO on CartPole-v1, SAC on Pendulum-v1, one thread of torch.

They are n/a in an environment without torch; asv.trainers.conf.json makes one with it.
"""

from functools import cache
from importlib.util import find_spec
from inspect import signature

import rlox
from benchmarks.skip import skip_unless
from rlox import _core


def one_thread():
    skip_unless(find_spec("torch"), "needs torch: asv --config asv.trainers.conf.json")
    import torch

    torch.set_num_threads(1)
    return torch


@cache
def ppo(**choice):
    """A warm trainer and a rollout, whose figures are those of the policy that collected it."""
    torch = one_thread()
    model = rlox.PPO("CartPole-v1", n_envs=8, seed=0, **choice)
    model.learn(1)
    rollout = model.collect_rollout()
    values, log_probs, _ = model.policy.evaluate_actions(rollout.obs, rollout.actions)
    torch.testing.assert_close(log_probs, rollout.log_probs)
    torch.testing.assert_close(values, rollout.returns - rollout.advantages, rtol=1e-4, atol=1e-4)
    assert len(rollout.obs) == model.n_steps * model.n_envs
    return model, rollout


@cache
def sac(prioritized):
    """A warm trainer with 10 000 transitions; its targets follow the critics at the rate tau."""
    torch = one_thread()
    model = rlox.SAC(
        "Pendulum-v1",
        seed=0,
        learning_starts=10_000,
        buffer_size=100_000,
        prioritized=prioritized,
    )
    model.learn(10_001)
    targets = [parameter.clone() for parameter in model.critic_target.parameters()]
    model.train_once()
    triples = zip(targets, model.critic.parameters(), model.critic_target.parameters(), strict=True)
    for old, critic, target in triples:
        torch.testing.assert_close(target, (1 - model.tau) * old + model.tau * critic)
        assert not torch.equal(target, old)
    return model


@cache
def sac_collecting():
    """SAC without its updates: acting, stepping, storing. Rewards are Pendulum's."""
    torch = one_thread()

    class Collecting(rlox.SAC):
        def train_once(self):
            pass

    model = Collecting("Pendulum-v1", seed=0, learning_starts=0, buffer_size=100_000)
    model.learn(200)
    stored = {name: torch.from_numpy(x) for name, x in model.replay_buffer.sample(200).items()}
    cos, sin, speed = stored["obs"].T
    torque = 2 * stored["action"][:, 0]
    cost = torch.atan2(sin, cos) ** 2 + 0.1 * speed**2 + 0.001 * torque**2
    torch.testing.assert_close(stored["reward"], -cost, rtol=1e-3, atol=1e-4)
    return model


class Phase:
    """Two rounds: a call takes milliseconds, and half of a run goes into importing torch."""

    rounds = 2
    repeat = (10, 20, 5.0)
    timeout = 120


class Ppo(Phase):
    def time_rollout(self):
        ppo()[0].collect_rollout()

    def time_update(self):
        model, rollout = ppo()
        model.train(rollout)

    def time_update_with_torch(self):
        """Where the default may be another."""
        one_thread()
        chosen = "optimizations" in signature(rlox.PPO).parameters
        model, rollout = ppo(optimizations=()) if chosen else ppo()
        model.train(rollout)

    def track_crossings_per_step(self):
        """Of collecting and learning, per step of one environment."""
        model, _ = ppo()
        n_steps = model.n_steps * model.n_envs
        return crossings(lambda: model.train(model.collect_rollout())) / n_steps

    def peakmem_large_rollout(self):
        """One iteration over 524 288 transitions of 8 floats, 17 MB."""
        one_thread()
        model = rlox.PPO("CartPole-v1", n_envs=256, n_steps=2_048, batch_size=65_536, n_epochs=1)
        model.learn(1)

    track_crossings_per_step.unit = "calls"


class Sac(Phase):
    params = (False, True)
    param_names = ("prioritized",)

    def time_train_once(self, prioritized):
        sac(prioritized).train_once()

    def track_crossings_per_step(self, prioritized):
        """Of collecting and learning."""
        model = sac(prioritized)
        return crossings(lambda: model.learn(50, reset_num_timesteps=False)) / 50

    track_crossings_per_step.unit = "calls"


class SacCollecting(Phase):
    def time_200_steps(self):
        sac_collecting().learn(200)


def crossings(work):
    """Calls over the boundary between Python and Rust while `work` is done."""
    skip_unless(hasattr(_core, "take_crossings"), "this commit counts no crossings")
    _core.take_crossings()
    _core.count_crossings(True)
    work()
    _core.count_crossings(False)
    return sum(calls for calls, _, _ in _core.take_crossings().values())
