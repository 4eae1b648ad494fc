"""Vector environments of either library, and those that reset a step after an episode's end."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import PPO as TheirPPO
from stable_baselines3.common import evaluation as their_evaluation
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack, VecNormalize
from toys import Clock, TenPerStep

import rlox
from rlox.learner import evaluation
from rlox.learner.evaluation import evaluate_policy

BOX = spaces.Box(-1, 1, (2,), np.float32)
SMALL = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "seed": 0}


@pytest.mark.parametrize("ends", ["truncated", "terminated"])
def test_their_vector_environment_gives_the_same_rollout_as_ours(ends):
    def clocks():
        return [lambda: Clock(3, ends == "truncated"), lambda: Clock(4, ends == "truncated")]

    envs = [rlox.VecEnv(clocks(), 2), DummyVecEnv(clocks()), clocks()]
    rollouts = []
    for env in envs:
        model = rlox.PPO(env, n_steps=8, policy=TenPerStep())
        rollouts.append(model.collect_rollout())
        assert model.episode_lengths == [3, 4, 3, 4]
    for other in rollouts[1:]:
        for one, expected in zip(other, rollouts[0], strict=True):
            np.testing.assert_array_equal(one.numpy(), expected.numpy())


def test_episodes_are_a_monitors_and_not_those_that_a_wrapper_scaled():
    def make():
        return VecNormalize(DummyVecEnv([lambda: Monitor(Clock(3))]), norm_reward=True)

    ours = rlox.PPO("MlpPolicy", make(), **SMALL).learn(32)
    theirs = TheirPPO("MlpPolicy", make(), device="cpu", **SMALL).learn(32)
    assert [one["r"] for one in ours.ep_info_buffer] == [3.0] * 10
    assert [one["r"] for one in theirs.ep_info_buffer] == [3.0] * 10
    np.testing.assert_allclose(
        ours.get_vec_normalize_env().obs_rms.mean, theirs.get_vec_normalize_env().obs_rms.mean
    )
    assert ours.get_vec_normalize_env().obs_rms.count > 32
    assert ours.get_env() is ours.vector_env.theirs


def test_wrappers_of_theirs_change_what_is_seen():
    model = rlox.PPO("MlpPolicy", VecFrameStack(DummyVecEnv([lambda: Clock(5)]), 3), **SMALL)
    assert model.observation_space.shape == (3,)
    rollout = model.collect_rollout()
    np.testing.assert_array_equal(rollout.obs[:4], [[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3]])


def test_our_environments_are_theirs_by_get_env():
    model = rlox.PPO("MlpPolicy", rlox.VecEnv([lambda: Clock(3), lambda: Clock(2)], 2), **SMALL)
    env = model.get_env()
    assert isinstance(env, VecEnv)
    assert env is model.get_env()
    expected = DummyVecEnv([lambda: Monitor(Clock(3)), lambda: Monitor(Clock(2))])
    np.testing.assert_array_equal(env.reset(), expected.reset())
    for _ in range(5):
        ours, theirs = (one.step(np.zeros(2, int)) for one in (env, expected))
        for a, b in zip(ours[:3], theirs[:3], strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(ours[3], theirs[3], strict=True):
            assert a.get("terminal_observation") == b.get("terminal_observation")
            assert a.get("TimeLimit.truncated", False) == b["TimeLimit.truncated"]
            for key in ("r", "l"):
                assert a.get("episode", {}).get(key) == b.get("episode", {}).get(key)
    assert env.get_attr("length") == [3, 2]
    env.set_attr("length", 9, indices=[1])
    assert env.get_attr("length", [1]) == [9]
    TheirPPO("MlpPolicy", env, device="cpu", **SMALL).learn(32)


def test_stepping_the_trainers_environments_begins_new_episodes():
    model = rlox.PPO("MlpPolicy", Clock(10), **SMALL).learn(16)
    env = model.get_env()
    env.reset()
    env.step(np.zeros(1, int))
    model.learn(16, reset_num_timesteps=False)
    assert model.episode_lengths == [10, 10]


@pytest.mark.parametrize("ends", ["truncated", "terminated"])
def test_steps_that_only_begin_an_episode_are_not_learnt_from(ends):
    def clocks():
        return [lambda: Clock(3, ends == "truncated"), lambda: Clock(2, ends == "truncated")]

    def rollout(mode, n_steps):
        env = SyncVectorEnv(clocks(), autoreset_mode=mode)
        model = rlox.PPO(env, n_steps=n_steps, policy=TenPerStep(), gamma=0.9)
        found = model.collect_rollout()
        return model, sorted(map(tuple, np.column_stack([found.obs, found.returns]).tolist()))

    # Clock(3) needs four steps for an episode, Clock(2) three: 12 steps are 3 and 4 episodes.
    model, masked = rollout(AutoresetMode.NEXT_STEP, 12)
    assert len(masked) == 3 * 3 + 4 * 2
    assert sorted(model.episode_lengths) == [2] * 4 + [3] * 3
    _, whole = rollout(AutoresetMode.SAME_STEP, 12)
    assert set(masked) == set(whole)


def test_sac_stores_no_step_that_only_begins_an_episode():
    env = SyncVectorEnv([lambda: Clock(3, action_space=BOX)] * 2)
    model = rlox.SAC(env, learning_starts=100, batch_size=4).learn(16)
    assert len(model.replay_buffer) == 12
    sample = model.replay_buffer.sample(200, seed=0)
    np.testing.assert_array_equal(sample["next_obs"], sample["obs"] + 1)
    np.testing.assert_array_equal(sample["reward"], 1)


@pytest.mark.parametrize("make", [rlox.PPO, rlox.SAC])
def test_vectors_of_gymnasium_train_as_they_come(make):
    env = gym.make_vec("Pendulum-v1", num_envs=2, vectorization_mode="sync")
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    model = make("MlpPolicy", env)
    if make is rlox.PPO:
        model.n_steps = 16
    model.learn(64)
    assert model.num_timesteps == 64
    with pytest.raises(ValueError, match=r"env: resets in the step after .*SAME_STEP"):
        model.get_env().reset()


class Drawn(Clock):
    """Its first observation is drawn from its own random numbers."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.full(1, self.np_random.integers(100), np.float32), {}


@pytest.mark.parametrize("form", ["instance", "callable", "vector"])
def test_environments_that_were_seeded_keep_their_random_state(form):
    def seeded():
        env = Drawn(3)
        env.reset(seed=5)
        return env

    made = {"instance": seeded(), "callable": [seeded], "vector": rlox.VecEnv(seeded, 1)}[form]
    theirs = TheirPPO("MlpPolicy", DummyVecEnv([seeded]), n_steps=8, batch_size=8, device="cpu")
    expected = theirs.env.reset()
    model = rlox.PPO("MlpPolicy", made, n_steps=8, batch_size=8)
    np.testing.assert_array_equal(model.collect_rollout().obs[0].numpy(), expected[0])
    another = rlox.PPO("MlpPolicy", seeded(), n_steps=8, batch_size=8, seed=1)
    assert another.collect_rollout().obs[0].item() != expected[0], "the trainer's seed"


def test_evaluating_does_not_seed_the_environment_anew():
    drawn = []
    for library in (evaluation, their_evaluation):
        env = Drawn(3)
        env.reset(seed=5)
        seen = []
        model = Watches(seen)
        for _ in range(2):
            library.evaluate_policy(model, DummyVecEnv([lambda e=env: e]), 2, warn=False)
        drawn.append(seen)
    assert drawn[0][:2] == drawn[1][:2]


class Watches:
    """Takes action 0, and keeps the observations."""

    def __init__(self, seen):
        self.seen = seen

    def predict(self, obs, state=None, episode_start=None, deterministic=False):
        self.seen += obs.ravel().tolist()
        return np.zeros(len(obs), int), None


class Forgets(DummyVecEnv):
    """Gives no last observation at an episode's end."""

    def step_wait(self):
        obs, rewards, dones, infos = super().step_wait()
        for info in infos:
            info.pop("terminal_observation", None)
        return obs, rewards, dones, infos


def test_without_a_last_observation_nothing_is_bootstrapped_at_a_time_limit():
    model = rlox.PPO(Forgets([lambda: Clock(3)]), n_steps=6, policy=TenPerStep(), gamma=0.9)
    model.collect_rollout()
    theirs = TheirPPO("MlpPolicy", Forgets([lambda: Clock(3)]), device="cpu", **SMALL).learn(16)
    np.testing.assert_array_equal(theirs.rollout_buffer.rewards, 1)
    np.testing.assert_array_equal(model._stepped[0], 1)
    sac = rlox.SAC("MlpPolicy", Forgets([lambda: Clock(3, action_space=BOX)]), learning_starts=99)
    assert sac.learn(9).replay_buffer.dones.sum() == 3


def test_their_environments_are_shown_while_they_are_evaluated():
    shown = []

    class Shown(DummyVecEnv):
        def render(self, mode=None):
            shown.append(mode)

    evaluation.evaluate_policy(Watches([]), Shown([lambda: Clock(3)]), 1, render=True)
    assert len(shown) == 3


def test_our_environments_take_options_and_keep_what_a_reset_tells():
    class Told(Clock):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0], {"given": options}

    model = rlox.PPO("MlpPolicy", rlox.VecEnv([Told, Told], 2), **SMALL)
    for env in (model.get_env(), DummyVecEnv([lambda: Monitor(Told())] * 2)):
        env.set_options({"far": 1})
        env.reset()
        assert env.reset_infos == [{"given": {"far": 1}}] * 2
        env.reset()
        assert [info["given"] for info in env.reset_infos] == [None, None]
    with pytest.raises(ValueError, match="options: differ, "):
        model.get_env().set_options([{"far": 1}, {"far": 2}])


def test_our_environments_are_stepped_after_training():
    model = rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL).learn(16)
    assert model.get_env().step(np.zeros(1, int))[0].shape == (1, 4)


@pytest.mark.parametrize("ends", ["truncated", "terminated"])
def test_environments_that_reset_a_step_later_are_evaluated(ends):
    def evaluated(mode):
        clocks = [lambda: Clock(3, ends == "truncated"), lambda: Clock(2, ends == "truncated")]
        env, told = SyncVectorEnv(clocks, autoreset_mode=mode), []
        found = evaluate_policy(
            model, env, 5, return_episode_rewards=True,
            callback=lambda given, _: told.append((given["reward"], given["done"])),
        )  # fmt: skip
        return sorted(zip(*found, strict=True)), sorted(told)

    model = rlox.PPO("MlpPolicy", Clock(5), **SMALL)
    late, at_once = map(evaluated, (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP))
    assert late == at_once
    assert at_once[0] == [(2.0, 2)] * 3 + [(3.0, 3)] * 2


def test_two_trainers_of_one_vector_do_not_go_on_from_each_others_steps():
    env = SyncVectorEnv([lambda: Clock(10)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    first, second = (rlox.PPO("MlpPolicy", env, **SMALL) for _ in range(2))
    first.learn(8)
    second.learn(8)
    np.testing.assert_array_equal(first._current_obs(), np.zeros((2, 1)))
