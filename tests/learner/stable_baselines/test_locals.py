"""What a callback finds and changes at each step, beside theirs: observations, actions, rewards."""

import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from toys import Clock

import rlox
from rlox.learner.evaluation import evaluate_policy
from rlox.learner.step_locals import INSTEAD

BOX = spaces.Box(-0.5, 0.5, (1,), np.float32)
WAYS = {"native": None, "torch": ()}
each_way = pytest.mark.parametrize("way", WAYS)
each_name = pytest.mark.parametrize("name", ["PPO", "SAC"])


def made(library, name, env, way="native"):
    settings = {"PPO": {"n_steps": 8, "batch_size": 8, "n_epochs": 1}, "SAC": {}}[name]
    if library is rlox:
        settings = {**settings, "optimizations": WAYS[way]}
    return getattr(library, name)("MlpPolicy", env, seed=0, device="cpu", **settings)


class Calls(BaseCallback):
    """Calls a function at each step; False ends training."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def _on_step(self):
        return self.function(self) is not False


@each_way
@each_name
def test_last_observations_are_those_before_the_step(name, way):
    seen = []
    for library in (rlox, stable_baselines3):
        model, seen_here = made(library, name, Clock(3, action_space=BOX), way), []
        model.learn(16, Calls(lambda told, seen=seen_here: seen.append(told.model._last_obs[0, 0])))
        seen.append(seen_here)
        assert model._last_obs[0, 0] == 16 % 3
    assert seen[0] == seen[1] == [step % 3 for step in range(16)]


@each_way
@each_name
def test_what_is_saved_at_a_step_goes_on_after_it(name, way, tmp_path):
    def save(told):
        told.model.save(tmp_path / "model")
        return told.n_calls < 3

    env = Clock(10, action_space=BOX)
    assert made(rlox, name, env, way).learn(16, Calls(save))._last_obs.tolist() == [[3.0]]
    loaded = getattr(rlox, name).load(tmp_path / "model", env=env, force_reset=False)
    assert loaded._current_obs().tolist() == [[3.0]]


@each_way
@each_name
def test_environments_that_a_callback_resets_begin_new_episodes(name, way):
    def reset(told):
        if told.n_calls == 8:
            told.training_env.reset()

    model = made(rlox, name, Clock(10, action_space=BOX), way).learn(8, Calls(reset))
    assert model._current_obs().tolist() == [[0.0]]
    assert model._running_length.tolist() == [0]


class Ours(rlox.learner.callbacks.BaseCallback):
    """The same as this library's kind, whose `on_step` leaves rollouts in Rust."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def on_step(self):
        self.n_calls += 1
        return self.function(self) is not False


@each_way
@pytest.mark.parametrize("kind", [Calls, Ours])
@pytest.mark.parametrize("moves", ["resets", "evaluates"])
def test_what_ppo_learns_around_a_callbacks_reset_is_of_two_episodes(moves, kind, way):
    env = rlox.VecEnv(lambda: Clock(100, action_space=BOX), 1)

    def move(told):
        if told.n_calls == 4 and moves == "resets":
            told.training_env.reset()
        elif told.n_calls == 4:
            evaluate_policy(told.model, env, n_eval_episodes=1)

    model = made(rlox, "PPO", env, way).learn(8, kind(move))
    found = model.rollout_buffer
    assert found.observations.ravel().tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert found.episode_starts.ravel().tolist() == [1, 0, 0, 0, 1, 0, 0, 0]
    # The first of them ends as by a time limit: with the value of the observation after it.
    with torch.no_grad():
        fresh = made(rlox, "PPO", Clock(100, action_space=BOX), way)
        last = fresh.policy.get_value(torch.tensor([[4.0]])).item()
    assert found.rewards.ravel()[3] == pytest.approx(1 + 0.99 * last, rel=1e-5)


@each_way
@pytest.mark.parametrize("moves", ["resets", "evaluates"])
def test_what_sac_stores_around_a_callbacks_reset_is_of_two_episodes(moves, way):
    env = rlox.VecEnv(lambda: Clock(100, action_space=BOX), 1)

    def move(told):
        if told.n_calls == 4 and moves == "resets":
            told.training_env.reset()
        elif told.n_calls == 4:
            evaluate_policy(told.model, env, n_eval_episodes=1)

    model = made(rlox, "SAC", env, way).learn(8, Calls(move))
    stored = model.replay_buffer.transitions()
    assert stored["obs"].ravel().tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert stored["next_obs"].ravel().tolist() == [1, 2, 3, 4, 1, 2, 3, 4]


def found_at_each_step(model, *names):
    """What callbacks find under these names in the `locals` of eight steps."""
    steps = []
    model.learn(8, Calls(lambda told: steps.append([told.locals[name] for name in names])))
    return (np.array(column) for column in zip(*steps, strict=True))


@each_way
def test_actions_of_ppo_are_those_that_the_policy_drew(way):
    for library in (rlox, stable_baselines3):
        env = Clock(5, action_space=BOX)
        model = made(library, "PPO", env, way)
        drawn, taken = found_at_each_step(model, "actions", "clipped_actions")
        assert drawn.shape == taken.shape == (8, 1, 1)
        assert (np.abs(drawn) > 0.5).any()
        np.testing.assert_array_equal(np.clip(drawn, -0.5, 0.5), taken)
        np.testing.assert_array_equal(taken[:, 0], env.actions)
        np.testing.assert_array_equal(drawn.ravel(), np.ravel(model.rollout_buffer.actions))


@each_way
def test_actions_of_sac_are_the_environments_and_those_of_its_buffer_lie_beside_them(way):
    for library in (rlox, stable_baselines3):
        env = Clock(5, action_space=BOX)
        model = made(library, "SAC", env, way)
        taken, stored = found_at_each_step(model, "actions", "buffer_actions")
        np.testing.assert_array_equal(taken[:, 0], env.actions)
        np.testing.assert_allclose(2 * taken, stored, atol=1e-6)
        np.testing.assert_array_equal(stored, model.replay_buffer.actions[:8])


@each_way
def test_what_is_to_be_used_instead_of_what_is_not_there_gives_it(way):
    found = {name: [] for name in INSTEAD}

    def look(told):
        for name, instead in INSTEAD.items():
            with pytest.raises(KeyError) as missing:
                told.locals[name]
            assert instead in str(missing.value.args[0])
            found[name].append(eval(instead, {"self": told}).detach().numpy())

    buffer = made(rlox, "PPO", Clock(5, action_space=BOX), way).learn(8, Calls(look)).rollout_buffer
    for name, column in zip(INSTEAD, ("observations", "values", "log_probs"), strict=True):
        np.testing.assert_allclose(found[name], getattr(buffer, column), rtol=1e-4, atol=1e-5)


def praise(told):
    told.locals["rewards"] += 1.0


@each_way
def test_ppo_learns_from_what_a_callback_adds_to_the_rewards(way):
    """The value after a time limit is added to it."""
    models = [
        made(one, "PPO", Clock(5, action_space=BOX), way) for one in (rlox, stable_baselines3)
    ]
    models[1].policy.load_state_dict(models[0].policy.state_dict())
    ours, theirs = (model.learn(8, Calls(praise)).rollout_buffer.rewards for model in models)
    assert models[0].rollout_path.startswith(way)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert ours[:4].tolist() == [[2.0]] * 4
    assert models[0].episode_returns == [5.0], "those of the environment"


@each_way
@pytest.mark.parametrize("normalized", [False, True])
def test_sac_stores_what_a_callback_adds_to_the_rewards_unless_they_are_normalised(way, normalized):
    stored = []
    for library in (rlox, stable_baselines3):
        env = DummyVecEnv([lambda: Clock(5, action_space=BOX)] * 2)
        model = made(library, "SAC", VecNormalize(env) if normalized else env, way)
        stored.append(model.learn(16, Calls(praise)).replay_buffer.rewards[:8])
    np.testing.assert_array_equal(*stored)
    assert (stored[0] == (1.0 if normalized else 2.0)).all()


def test_sac_keeps_the_step_at_which_a_callback_stops():
    model = made(rlox, "SAC", Clock(5, action_space=BOX))
    model.learn(16, Calls(lambda told: told.n_calls < 3))
    assert model.replay_buffer.observations.ravel().tolist() == [0.0, 1.0, 2.0]


@each_way
def test_what_a_callback_keeps_of_the_rewards_is_not_overwritten(way):
    kept = []
    model = made(rlox, "PPO", "Pendulum-v1", way)
    model.learn(8, Calls(lambda told: kept.append(told.locals["rewards"])))
    np.testing.assert_allclose(kept, model.rollout_buffer.rewards, rtol=1e-6)
