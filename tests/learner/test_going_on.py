"""`learn(…, reset_num_timesteps=False)` goes on where training stood, environments included."""

import numpy as np
import pytest
from toys import Clock
from trainers import TRAINERS, ppo, sac, same, weights

import rlox
from rlox.learner.callbacks import BaseCallback
from rlox.learner.evaluation import evaluate_policy

# Episodes of Pendulum last 200 steps, those of the clock 10: longer than what is learnt at a time.
LONG = {
    "ppo": (lambda: ppo("Pendulum-v1", n_envs=2, n_steps=64), 200, 128),
    "ppo-async": (lambda: ppo("Pendulum-v1", n_envs=2, n_steps=64, collector="async"), 200, 128),
    "ppo-torch": (lambda: ppo("Pendulum-v1", n_envs=2, n_steps=64, optimizations=()), 200, 128),
    "ppo-gymnasium": (lambda: ppo(rlox.VecEnv(lambda: Clock(10), 2), n_steps=4), 10, 8),
    "sac": (lambda: sac(n_envs=2, learning_starts=10**6), 200, 128),
    "sac-gymnasium": (lambda: sac(Clock(10, action_space=BOX), learning_starts=10**6), 10, 3),
}
BOX = rlox.VecEnv("Pendulum-v1", 1).single_action_space
each_long = pytest.mark.parametrize(("make", "length", "steps"), LONG.values(), ids=LONG)


@each_long
def test_episodes_longer_than_a_call_of_learn_come_to_their_end(make, length, steps):
    model = make()
    for _ in range(4):
        model.learn(steps, reset_num_timesteps=False)
    assert model.num_timesteps == 4 * steps
    expected = 4 * steps // model.n_envs // length * model.n_envs
    assert model.episode_lengths == [length] * expected
    assert expected > 0


@each_long
def test_counting_anew_begins_new_episodes(make, length, steps):
    model = make()
    for _ in range(4):
        model.learn(steps)
    assert model.num_timesteps == steps
    assert model.episode_lengths == []
    assert model._running_length.tolist() == [steps // model.n_envs] * model.n_envs


@pytest.mark.parametrize(
    "name", ["ppo", "ppo-continuous", "ppo-torch", "ppo-torch-continuous", "sac", "sac-torch"]
)
def test_training_in_two_parts_is_training_in_one(name):
    """To the bit."""
    make, part = TRAINERS[name], 256 if name.startswith("ppo") else 55
    whole = make().learn(2 * part)
    parts = make().learn(part).learn(part, reset_num_timesteps=False)
    assert same(weights(whole), weights(parts))
    assert whole.episode_returns == parts.episode_returns
    assert whole.num_timesteps == parts.num_timesteps


@each_long
def test_what_was_loaded_begins_new_episodes(make, length, steps, tmp_path):
    model = make().learn(steps)
    model.save(tmp_path / "model.pt")
    more = {} if model.env_id else {"env": make().vector_env}
    loaded = type(model).load(tmp_path / "model.pt", **more)
    loaded.learn(steps, reset_num_timesteps=False)
    assert loaded.num_timesteps == 2 * steps
    assert loaded._running_length.tolist() == [steps // model.n_envs] * model.n_envs


class Interrupt(BaseCallback):
    def on_step(self):
        raise KeyboardInterrupt


@each_long
def test_after_an_interruption_new_episodes_begin(make, length, steps):
    """The environments may have moved on without being counted."""
    model = make().learn(steps)
    with pytest.raises(KeyboardInterrupt):
        model.learn(steps, Interrupt(), reset_num_timesteps=False)
    model.learn(steps, reset_num_timesteps=False)
    assert max(model._running_length) == steps // model.n_envs
    assert model.episode_lengths == []


def test_a_rollout_that_is_stopped_within_loses_no_step_unsaid():
    """In Rust the environments are at the rollout's end by then: their episodes do not count."""

    class Stop(BaseCallback):
        def on_step(self):
            return self.num_timesteps < 40

    model = ppo(n_envs=2, n_steps=64).learn(128, Stop())
    assert model.num_timesteps == 40
    model.learn(128, reset_num_timesteps=False)
    assert model.num_timesteps == 168
    assert sum(model.episode_lengths) + model._running_length.sum() <= 168


def test_episodes_in_progress_keep_their_returns():
    model = ppo(Clock(10), n_steps=4, batch_size=4)
    for _ in range(5):
        model.learn(4, reset_num_timesteps=False)
    assert model.episode_returns == [10.0, 10.0]
    assert model._running_return.tolist() == [0.0]
    assert np.count_nonzero(model._running_length) == 0


def test_what_an_evaluation_steps_begins_new_episodes():
    env = rlox.VecEnv([lambda: Clock(10)] * 2, 2)
    model = ppo(env, n_steps=4, batch_size=8).learn(8)
    evaluate_policy(model, env, n_eval_episodes=1)
    model.learn(8, reset_num_timesteps=False)
    assert model._running_length.tolist() == [4, 4]
