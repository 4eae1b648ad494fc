"""Small trainers of every kind, and what they have learnt."""

import pytest
import torch

import rlox


def ppo(env="CartPole-v1", **arguments):
    return rlox.PPO(env, **{"n_envs": 4, "n_steps": 32, "batch_size": 64, "seed": 7, **arguments})


def sac(env="Pendulum-v1", **arguments):
    defaults = {"seed": 7, "buffer_size": 1000, "learning_starts": 50, "batch_size": 32}
    return rlox.SAC(env, **{**defaults, **arguments})


TRAINERS = {
    "ppo": ppo,
    "ppo-continuous": lambda **a: ppo("Pendulum-v1", **a),
    "ppo-async": lambda **a: ppo(collector="async", **a),
    "ppo-async-continuous": lambda **a: ppo("Pendulum-v1", collector="async", **a),
    "sac": sac,
    "ppo-torch": lambda **a: ppo(**{"optimizations": (), **a}),
    "ppo-torch-continuous": lambda **a: ppo("Pendulum-v1", **{"optimizations": (), **a}),
    "sac-torch": lambda **a: sac(**{"optimizations": (), **a}),
    "sac-4": lambda **a: sac(n_envs=4, **a),
    "sac-prioritized": lambda **a: sac(prioritized=True, **a),
}
each_trainer = pytest.mark.parametrize("make", TRAINERS.values(), ids=TRAINERS)
STEPS = {"PPO": 384, "SAC": 64}


def trained(make, **arguments):
    model = make(**arguments)
    return model.learn(STEPS[type(model).__name__])


def weights(model):
    names = ["policy", "critic", "critic_target", "temperature"]
    modules = [getattr(model, name) for name in names if isinstance(model, rlox.SAC)]
    return [p.detach().clone() for module in modules or [model.policy] for p in module.parameters()]


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
