"""What PPO and SAC share: seeds, predict, callbacks, figures, bad arguments."""

import gymnasium as gym
import in_python
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toys import Clock, TenPerStep
from trainers import STEPS, each_trainer, ppo, sac, same, trained, weights

import rlox
from rlox.learner.callbacks import BaseCallback, TimingCallback
from rlox.learner.logger import Logger


@each_trainer
def test_same_seed_same_result(make):
    first = trained(make)
    torch.randn(5)  # somebody else draws
    np.random.rand(5)  # noqa: NPY002
    second = trained(make)
    assert same(weights(first), weights(second))
    assert first.episode_returns == second.episode_returns
    assert not same(weights(first), weights(trained(make, seed=8)))


@each_trainer
def test_nobody_elses_random_numbers_are_moved(make):
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    model = trained(make)
    model.predict(model.observation_space.sample())
    assert torch.equal(torch.get_rng_state(), torch_before)
    np.testing.assert_equal(np.random.get_state(), numpy_before)  # noqa: NPY002


def test_without_a_seed_torchs_own_decides():
    torch.manual_seed(0)
    first, second = ppo(seed=None), ppo(seed=None)
    assert not same(weights(first), weights(second))
    torch.manual_seed(0)
    assert same(weights(first), weights(ppo(seed=None)))


def test_predict_takes_one_observation_or_a_batch():
    model = ppo()
    one, state = model.predict(np.zeros(4), deterministic=True)
    batch, _ = model.predict(np.zeros((3, 4)), deterministic=True)
    assert state is None
    assert one in model.action_space
    assert batch.tolist() == [one] * 3
    assert sac().predict(np.zeros((2, 3)))[0].shape == (2, 1)
    assert sac().predict(np.zeros(3))[0] in sac().action_space
    with pytest.raises(ValueError, match=r"obs: has shape \(5,\)"):
        model.predict(np.zeros(5))


def test_predict_does_not_disturb_training():
    class Looks(BaseCallback):
        def on_step(self):
            self.model.predict(np.zeros(4))
            return True

    assert same(weights(ppo().learn(256)), weights(ppo().learn(256, callback=Looks())))


class Record(BaseCallback):
    def __init__(self, stop_at=None):
        self.events, self.stop_at = [], stop_at

    def on_training_start(self):
        self.events.append("start")

    def on_step(self):
        self.events.append(self.num_timesteps)
        return self.num_timesteps != self.stop_at

    def on_rollout_end(self):
        self.events.append("rollout")

    def on_training_end(self):
        self.events.append("end")


def test_callbacks_hear_of_every_step():
    record = Record()
    model = ppo(n_envs=2, n_steps=3).learn(12, callback=record)
    expected = ["start", 2, 4, 6, "rollout", 8, 10, 12, "rollout", "end"]
    assert record.events == expected
    assert record.model is model
    record = Record()
    sac(n_envs=2).learn(4, callback=record)
    assert record.events == ["start", 2, "rollout", 4, "rollout", "end"]


@each_trainer
def test_callback_that_returns_false_stops(make):
    class Stop(BaseCallback):
        def on_step(self):
            return False

    record = Record()
    model = make().learn(10_000, callback=[Stop(), record])
    assert record.events == ["start", model.num_timesteps, "end"]
    assert model.num_timesteps < 1000


def test_callback_that_returns_nothing_goes_on():
    class Silent(BaseCallback):
        def on_step(self):
            pass

    assert ppo().learn(256, callback=Silent()).num_timesteps == 256


@each_trainer
def test_interrupted_training_leaves_a_model_that_goes_on(make):
    class Interrupt(BaseCallback):
        def on_step(self):
            if self.num_timesteps >= STEPS[type(self.model).__name__]:
                raise KeyboardInterrupt
            return True

    model, record = make(), Record()
    with pytest.raises(KeyboardInterrupt):
        model.learn(10_000, callback=[record, Interrupt()], progress_bar=True)
    assert record.events[-1] == "end"
    model.predict(model.observation_space.sample())
    seen = model.num_timesteps
    model.learn(10, reset_num_timesteps=False)
    assert model.num_timesteps >= seen + 10
    model.learn(10)
    assert model.num_timesteps <= 128


def test_phases_are_timed_only_when_asked():
    model = ppo(optimizations=()).learn(128)
    assert model.timing.phases() == []
    model.learn(256, callback=TimingCallback())
    calls = {phase.name: phase.calls for phase in model.timing.phases()}
    assert calls == {
        "policy_forward": 64,
        "policy_forward/action": 64,
        "policy_forward/value": 64,
        "env_step": 64,
        "store": 64,
        "gae_compute": 2,
        "gae_compute/value": 2,
        "gradient_update": 2,
        "gradient_update/minibatch": 16,
        "gradient_update/forward": 16,
        "gradient_update/backward": 16,
        "gradient_update/clip": 16,
        "gradient_update/optimizer": 16,
    }
    assert not model.timing.enabled


def test_phases_of_sac():
    model = sac(optimizations=()).learn(60, callback=TimingCallback())
    calls = {phase.name: phase.calls for phase in model.timing.phases()}
    inner = {"sample", "target_q", "critic", "actor", "alpha", "polyak"}
    inner |= {f"{a}/{b}" for a in ("critic", "actor", "alpha") for b in STEPS_OF_AN_UPDATE}
    assert calls == {
        "policy_forward": 60,
        "env_step": 60,
        "store": 60,
        "gradient_update": 10,
        **{f"gradient_update/{name}": 10 for name in inner},
    }


def test_phases_of_the_native_paths():
    model = ppo().learn(256, callback=TimingCallback())
    assert {phase.name: phase.calls for phase in model.timing.phases()} == {
        "native_rollout": 2,
        "store": 2,
        "gradient_update": 2,
        "gradient_update/native_update": 2,
    }
    model = sac().learn(60, callback=TimingCallback())
    calls = {phase.name: phase.calls for phase in model.timing.phases()}
    assert (calls["env_step"], calls["gradient_update/native_update"]) == (60, 10)


STEPS_OF_AN_UPDATE = ("forward", "backward", "optimizer")


@pytest.mark.parametrize("env", [in_python.ACROBOT, Clock(200)], ids=["id", "object"])
def test_steps_of_a_python_environment_are_a_phase(env):
    model = ppo(env, n_steps=8).learn(8, callback=TimingCallback())
    names = {phase.name for phase in model.timing.phases()}
    assert "native_rollout/env_step/python_env" in names


def test_figures_are_logged(tmp_path):
    model = ppo(tensorboard_log=tmp_path).learn(512, progress_bar=True)
    values = model.logger.values
    assert values["time/fps"] > 0
    assert values["rollout/ep_rew_mean"] == pytest.approx(np.mean(model.episode_returns[-100:]))
    assert {"train/policy_gradient_loss", "train/value_loss", "train/approx_kl"} < values.keys()
    assert all(np.isfinite(value) for value in values.values())
    assert list(tmp_path.glob("PPO_1/events.*"))
    model = sac(Clock(10, action_space=spaces.Box(-1, 1, (1,), np.float32))).learn(100)
    assert {"train/critic_loss", "train/actor_loss", "train/ent_coef"} < model.logger.values.keys()


def test_the_progress_bar_moves_where_no_figures_are_shown(monkeypatch):
    moved = []
    monkeypatch.setattr(Logger, "advance", lambda self, steps: moved.append(steps))
    ppo(n_envs=2, n_steps=64).learn(256, log_interval=None, progress_bar=True)
    assert moved == [128, 256]


def vector(mode):
    return SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2, autoreset_mode=mode)


def test_environments_are_taken_in_every_form():
    assert rlox.PPO("CartPole-v1", n_envs=3).n_envs == 3
    assert rlox.PPO(gym.make("CartPole-v1")).n_envs == 1
    assert rlox.PPO(vector(AutoresetMode.SAME_STEP)).n_envs == 2
    assert rlox.PPO(rlox.VecEnv("CartPole-v1", 5)).n_envs == 5


def test_reused_arrays_of_an_environment_are_no_trap():
    fresh = ppo(rlox.VecEnv("CartPole-v1", 4)).learn(256)
    reused = ppo(rlox.VecEnv("CartPole-v1", 4, copy=False)).learn(256)
    assert same(weights(fresh), weights(reused))


def test_observations_of_any_box_are_flattened():
    class Image(Clock):
        observation_space = spaces.Box(0, 255, (4, 3, 2), np.uint8)

        def reset(self, **kwargs):
            return np.full((4, 3, 2), 255, np.uint8), super().reset(**kwargs)[1]

        def step(self, action):
            return (np.zeros((4, 3, 2), np.uint8), *super().step(action)[1:])

    rollouts = []
    model = rlox.PPO(Image(), n_steps=4, seed=0)
    model.train = rollouts.append
    model.learn(4)
    assert rollouts[0].obs.shape == (4, 24)
    assert rollouts[0].obs.dtype == torch.float32
    assert rollouts[0].obs[:, 0].tolist() == [1, 0, 0, 1]
    assert int(model.predict(np.zeros((4, 3, 2), np.uint8))[0]) in {0, 1}
    model = sac(Image(action_space=spaces.Box(-1, 1, (1,), np.float32)), learning_starts=8)
    model.learn(12)
    assert model.replay_buffer.sample(2)["obs"].dtype == np.uint8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ppo(n_envs=0), "n_envs must be at least 1, got 0"),
        (lambda: ppo(seed=-1), "seed must be at least 0"),
        (lambda: ppo(device="gpu"), "device 'gpu' cannot be used here"),
        (lambda: ppo(gamma=1.5), r"gamma must be in \[0, 1\], got 1.5"),
        (lambda: ppo(learning_rate=float("nan")), "learning_rate must be at least 0"),
        (lambda: sac(buffer_size=0), "buffer_size must be at least 1"),
        (lambda: sac(tau=-0.1), "tau must be in"),
        (lambda: sac(target_entropy="low"), "target_entropy must be"),
        (lambda: ppo(n_steps=0), "n_steps must be at least 1"),
        (lambda: ppo(batch_size=0), "batch_size must be at least 1"),
        (lambda: ppo(n_epochs=-1), "n_epochs must be at least 1"),
        (lambda: ppo(collector="fast"), '"sync" or "async"'),
        (lambda: ppo(in_python.ACROBOT, collector="async"), "collector"),
        (lambda: ppo().learn(0), "total_timesteps must be at least 1"),
        (lambda: ppo(vector(AutoresetMode.DISABLED)), "SAME_STEP"),
        (lambda: ppo(Clock(action_space=spaces.Tuple([spaces.Discrete(2)]))), "MultiBinary"),
        (lambda: sac("CartPole-v1"), "bounded Box"),
        (lambda: sac(Clock(action_space=spaces.Box(-np.inf, 1, (1,)))), "bounded Box"),
        (lambda: sac(batch_size=0), "batch_size must be at least 1"),
        (lambda: sac(gradient_steps=-2), "gradient_steps must be"),
        (lambda: sac(ent_coef="often"), "ent_coef must be"),
        (lambda: ppo(gym.make("Blackjack-v1")), "FlattenObservation"),
    ],
)
def test_bad_values_name_the_argument_and_the_remedy(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ppo(42), "env must be an environment id"),
        (lambda: ppo(policy=lambda obs: obs), "policy must be a torch.nn.Module"),
        (lambda: ppo(policy=torch.nn.Linear(4, 2)), "lacks get_action_and_logprob, get_value"),
        (lambda: sac(critic=3), "critic must be a torch.nn.Module"),
        (lambda: ppo().learn(10, callback=3), "callback must be"),
    ],
)
def test_wrong_types_name_the_argument(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_policies_only_need_the_methods():
    class Duck(torch.nn.Module):
        get_action_and_logprob = TenPerStep.get_action_and_logprob
        get_value = TenPerStep.get_value

        def __init__(self):
            super().__init__()
            self.unused = torch.nn.Parameter(torch.zeros(1))

        def evaluate_actions(self, obs, actions):
            return TenPerStep.evaluate_actions(self, obs, actions)

    rlox.PPO(Clock(), n_steps=8, policy=Duck()).learn(8)
