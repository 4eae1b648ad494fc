"""Callbacks of both libraries: what they write, when they stop."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO as TheirPPO
from stable_baselines3.common import callbacks as theirs
from stable_baselines3.common import logger as theirs_logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
from toys import Clock

import rlox
from rlox.learner import callbacks as ours

SMALL = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "seed": 0}
ARMS = {
    "ours": (rlox.PPO, ours),
    "theirs in ours": (rlox.PPO, theirs),
    "theirs": (TheirPPO, theirs),
}
each_arm = pytest.mark.parametrize("arm", ARMS)
pytestmark = pytest.mark.filterwarnings("ignore:.*(Monitor|not of the same type|R4|R9).*")


def model_of(trainer, env=None):
    return trainer("MlpPolicy", env or Clock(5), device="cpu", **SMALL)


@each_arm
def test_evaluations_are_written_and_the_best_is_saved(arm, tmp_path):
    trainer, module = ARMS[arm]
    callback = module.EvalCallback(
        Clock(7), n_eval_episodes=2, eval_freq=10, log_path=str(tmp_path),
        best_model_save_path=str(tmp_path), verbose=0,
    )  # fmt: skip
    model = model_of(trainer).learn(32, callback)
    written = np.load(tmp_path / "evaluations.npz")
    assert written["timesteps"].tolist() == [10, 20, 30]
    assert written["results"].tolist() == [[7.0, 7.0]] * 3
    assert written["ep_lengths"].tolist() == [[7, 7]] * 3
    assert callback.best_mean_reward == 7.0
    assert (tmp_path / "best_model.zip").exists()
    if trainer is rlox.PPO:
        assert model.logger.values["eval/mean_reward"] == 7.0
        assert rlox.PPO.load(tmp_path / "best_model").num_timesteps == 10


@each_arm
def test_checkpoints_are_saved_under_their_names(arm, tmp_path):
    trainer, module = ARMS[arm]
    model_of(trainer).learn(32, module.CheckpointCallback(8, str(tmp_path), name_prefix="m"))
    names = {f"m_{n}_steps.zip" for n in (8, 16, 24, 32)}
    assert {path.name for path in tmp_path.iterdir()} == names


@each_arm
def test_training_stops_where_it_would(arm):
    trainer, module = ARMS[arm]

    def steps(callback):
        return model_of(trainer).learn(400, callback).num_timesteps

    assert steps(module.StopTrainingOnMaxEpisodes(3)) == 15
    never = module.StopTrainingOnNoModelImprovement(2, min_evals=1)
    after = module.EvalCallback(Clock(2), callback_after_eval=never, eval_freq=10, verbose=0)
    assert steps(after) == 40
    enough = module.StopTrainingOnRewardThreshold(1.5)
    on_best = module.EvalCallback(Clock(2), callback_on_new_best=enough, eval_freq=12, verbose=0)
    assert steps(on_best) == 12
    assert (
        steps([module.StopTrainingOnMaxEpisodes(9), module.ConvertCallback(lambda *_: True)]) == 45
    )
    assert steps(lambda known, _: known["self"].num_timesteps < 21) == 21


@each_arm
def test_every_n_steps_a_child_is_called(arm, tmp_path):
    trainer, module = ARMS[arm]
    child = module.CheckpointCallback(1, str(tmp_path))
    model_of(trainer).learn(32, module.EveryNTimesteps(12, child))
    assert {path.name for path in tmp_path.iterdir()} == {
        "rl_model_12_steps.zip",
        "rl_model_24_steps.zip",
    }


STEPS = "native, with steps in Python"


@pytest.mark.parametrize(
    ("callback", "path"),
    [
        (lambda: ours.EvalCallback("CartPole-v1", verbose=0, eval_freq=16), "native"),
        (lambda: ours.StopTrainingOnMaxEpisodes(1000), "native"),
        (lambda: ours.EveryNTimesteps(16, ours.ConvertCallback(lambda *_: True)), STEPS),
        (lambda: lambda *_: True, STEPS),
        (lambda: theirs.StopTrainingOnMaxEpisodes(1000), STEPS),
    ],
)
def test_our_callbacks_leave_rollouts_in_rust(callback, path):
    class Asks(ours.BaseCallback):
        def _on_rollout_end(self):
            self.path = self.model.rollout_path

    asks = Asks()
    rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL).learn(32, [callback(), asks])
    assert asks.path.partition(":")[0] == path


def test_evaluations_are_made_as_often_where_rollouts_are_in_rust():
    class Sub(ours.EvalCallback):
        def _on_step(self):
            return super()._on_step()

    results = []
    for base in (ours.EvalCallback, Sub):
        callback = base(gym.make("CartPole-v1", max_episode_steps=3), verbose=0, eval_freq=4)
        rlox.PPO("CartPole-v1", n_envs=2, n_steps=8, batch_size=16, seed=3).learn(64, callback)
        results.append((callback.n_calls, callback.last_mean_reward))
    assert results[0] == results[1] == (32, 3.0)


class Succeeds(Clock):
    """Every second episode is a success."""

    episodes = 0

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        if terminated or truncated:
            self.episodes += 1
            info["is_success"] = self.episodes % 2 == 0
        return obs, reward, terminated, truncated, info


@each_arm
def test_successes_are_written(arm, tmp_path):
    trainer, module = ARMS[arm]
    callback = module.EvalCallback(
        Succeeds(3), n_eval_episodes=4, eval_freq=16, log_path=str(tmp_path), verbose=0
    )
    model = model_of(trainer)
    recorded = {}
    model.set_logger(Records(recorded))
    model.learn(32, callback)
    written = np.load(tmp_path / "evaluations.npz")
    assert written["successes"].tolist() == [[False, True, False, True]] * 2
    assert recorded["eval/success_rate"] == 0.5


class Records(theirs_logger.Logger):
    """Keeps all that was recorded."""

    def __init__(self, recorded):
        super().__init__(None, [])
        self.recorded = recorded

    def record(self, key, value, exclude=None):
        self.recorded[key] = value


def test_where_rollouts_come_from_another_thread_steps_are_counted_all_the_same(tmp_path):
    model = rlox.PPO("CartPole-v1", n_envs=2, n_steps=16, batch_size=16, collector="async")
    model.learn(128, ours.CheckpointCallback(24, str(tmp_path)))  # four rollouts
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"rl_model_64_steps.zip", "rl_model_96_steps.zip"}


def test_an_attribute_of_a_callback_may_be_called_callbacks():
    class Has(ours.BaseCallback):
        def __init__(self, value):
            super().__init__()
            self.callbacks = value

    for value in (["a"], 3):
        model_of(rlox.PPO).learn(16, Has(value))


@pytest.mark.parametrize(
    ("eval_env", "kind"),
    [
        (Clock(5), "a Clock"),
        ("CartPole-v1", "the id 'CartPole-v1'"),
        (DummyVecEnv([lambda: Clock(5)]), "a DummyVecEnv"),
    ],
)
def test_evaluations_that_lack_the_normaliser_are_refused_before_training(eval_env, kind):
    def normalized(**more):
        return VecNormalize(DummyVecEnv([lambda: Clock(5)]), **more)

    model = model_of(rlox.PPO, normalized())
    says = f"eval_env: is {kind}, .* wrap it .*VecNormalize"
    with pytest.raises(ValueError, match=says):
        model.learn(16, ours.EvalCallback(eval_env, eval_freq=8, verbose=0))
    assert model.num_timesteps == 0
    model.learn(16, ours.EvalCallback(eval_env, eval_freq=0))  # it never evaluates
    alike = normalized(training=False, norm_reward=False)
    callback = ours.EvalCallback(alike, eval_freq=8, verbose=0)
    model.learn(16, callback)
    assert callback.last_mean_reward == 5.0


def test_a_buffer_that_is_not_written_is_refused_before_training(tmp_path):
    model = rlox.SAC("MlpPolicy", "Pendulum-v1", prioritized=True)
    callback = ours.CheckpointCallback(4, str(tmp_path), save_replay_buffer=True)
    with pytest.raises(ValueError, match=r"save_replay_buffer: is True.*prioritized=False"):
        model.learn(8, callback)
    assert model.num_timesteps == 0
