"""What `save` writes and `load` makes of it: weights, optimisers, arguments, random streams."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from toys import Clock, Seen
from trainers import STEPS, TRAINERS, each_trainer, ppo, sac, same, trained, weights

import rlox
from rlox.learner.callbacks import Checkpoints
from rlox.learner.policies import CategoricalActorCritic, SquashedGaussianActor, TwinCritic


@each_trainer
def test_save_and_load_keep_the_policy_and_go_on(make, tmp_path):
    model = trained(make)
    model.save(tmp_path / "model.pt")
    loaded = type(model).load(tmp_path / "model.pt")
    assert same(weights(model), weights(loaded))
    assert loaded.num_timesteps == model.num_timesteps
    assert loaded._arguments == model._arguments
    obs = model.observation_space.sample()
    np.testing.assert_array_equal(
        model.predict(obs, deterministic=True)[0], loaded.predict(obs, deterministic=True)[0]
    )
    before = weights(loaded)
    loaded.learn(STEPS[type(model).__name__])
    assert not same(before, weights(loaded))


@pytest.mark.parametrize("optimizations", [(), ("R4", "R9")])
@pytest.mark.parametrize("make", [TRAINERS[name] for name in ("ppo", "ppo-continuous")])
def test_loaded_training_goes_on_to_the_bit(make, optimizations, tmp_path):
    model = trained(make, optimizations=optimizations)
    model.save(tmp_path / "model.pt")
    loaded = rlox.PPO.load(tmp_path / "model.pt")
    assert loaded.optimizations == model.optimizations
    model._last_obs = None  # begin new episodes, too: those under way are not saved
    for one in (model, loaded):
        one.learn(256, reset_num_timesteps=False)
    assert same(weights(model), weights(loaded))
    assert model.episode_returns == loaded.episode_returns
    assert model.num_timesteps == loaded.num_timesteps == 640
    obs = np.zeros((20, model.obs_dim))
    np.testing.assert_array_equal(model.predict(obs)[0], loaded.predict(obs)[0])


def test_random_actions_go_on_where_they_were(tmp_path):
    model = sac(learning_starts=100)
    model.learn(20)
    model.save(tmp_path / "model.pt")
    loaded = rlox.SAC.load(tmp_path / "model.pt")
    for one in (model, loaded):
        one.learn(20, reset_num_timesteps=False)
    drawn = [one.replay_buffer.transitions()["action"][-20:].tolist() for one in (model, loaded)]
    assert drawn[0] == drawn[1]


def test_loading_imports_no_module_that_a_file_names(tmp_path, monkeypatch):
    (tmp_path / "runs_code.py").write_text("raise SystemExit('run')")
    monkeypatch.syspath_prepend(tmp_path)
    model = ppo()
    model.env_id = "runs_code:CartPole-v1"
    model.save(tmp_path / "model.pt")
    with pytest.raises(ValueError, match=r"'runs_code:CartPole-v1', and runs_code is not imported"):
        rlox.PPO.load(tmp_path / "model.pt")
    assert rlox.PPO.load(tmp_path / "model.pt", env="CartPole-v1").n_envs == model.n_envs


def test_a_dict_in_another_order_is_no_space_of_the_model(tmp_path):
    box = spaces.Box(-1, 1, (2,), np.float32)
    orders = [spaces.Dict([(name, box) for name in names]) for names in ("ab", "ba")]
    ppo(Seen(orders[0])).save(tmp_path / "model.pt")
    with pytest.raises(ValueError, match=r"has b, a, and the model was trained .* order a, b;"):
        rlox.PPO.load(tmp_path / "model.pt", env=Seen(orders[1]))


def test_another_seed_may_be_given_to_load(tmp_path):
    trained(ppo).save(tmp_path / "model.pt")
    first, second = (rlox.PPO.load(tmp_path / "model.pt", seed=seed) for seed in (1, 2))
    assert not same(weights(first.learn(128)), weights(second.learn(128)))


@pytest.mark.parametrize(("was", "now"), [("auto", 0.3), (0.2, 0.3), (0.2, "auto_0.3")])
def test_another_temperature_may_be_given_to_load(was, now, tmp_path):
    sac(ent_coef=was).save(tmp_path / "model.pt")
    loaded = rlox.SAC.load(tmp_path / "model.pt", ent_coef=now)
    assert loaded.temperature().item() == pytest.approx(0.3)
    assert (loaded.alpha_optimizer is None) is (now == 0.3)


def test_numbers_of_numpys_are_saved_as_pythons(tmp_path):
    """A sweep draws its settings with NumPy."""
    settings = {
        "learning_rate": np.float64(1e-3),
        "gamma": np.float32(0.5),
        "n_steps": np.int64(16),
    }
    ppo(**settings, seed=np.int64(3)).learn(64).save(tmp_path / "model.pt")
    loaded = rlox.PPO.load(tmp_path / "model.pt")
    assert {name: getattr(loaded, name) for name in ("gamma", "n_steps", "seed")} == {
        "gamma": 0.5,
        "n_steps": 16,
        "seed": 3,
    }
    assert loaded.optimizer.param_groups[0]["lr"] == 1e-3


def test_random_streams_of_another_kind_of_device_begin_anew(tmp_path):
    """A generator's state has 16 bytes on a GPU, thousands on a CPU."""
    ppo().save(tmp_path / "model.pt")
    saved = torch.load(tmp_path / "model.pt", weights_only=True)
    (streams,) = saved["streams"]
    streams |= {name: torch.zeros(16, dtype=torch.uint8) for name in rlox.PPO._generators}
    torch.save(saved, tmp_path / "model.pt")
    assert rlox.PPO.load(tmp_path / "model.pt").learn(128).num_timesteps == 128


def test_checkpoints_are_saved_between_update_and_rollout(tmp_path):
    model = ppo().learn(512, callback=Checkpoints(tmp_path / "model.pt", every=200))
    loaded = rlox.PPO.load(tmp_path / "model.pt")
    assert loaded.num_timesteps == 256  # at 128 and 384 too little is new
    assert loaded.episode_returns == model.episode_returns[: len(loaded.episode_returns)] != []
    assert not same(weights(loaded), weights(model))
    loaded.learn(256, reset_num_timesteps=False)
    assert loaded.num_timesteps == 512


def test_optimiser_state_is_saved(tmp_path):
    model = trained(ppo)
    model.save(tmp_path / "model.pt")
    loaded = rlox.PPO.load(tmp_path / "model.pt", learning_rate=0.1)
    ours, theirs = model.optimizer.state_dict(), loaded.optimizer.state_dict()
    assert ours["state"][0]["step"] == theirs["state"][0]["step"] > 0
    assert torch.equal(ours["state"][0]["exp_avg"], theirs["state"][0]["exp_avg"])
    assert theirs["param_groups"][0]["lr"] == 0.1


def test_file_of_another_algorithm_is_refused(tmp_path):
    ppo().save(tmp_path / "model.pt")
    with pytest.raises(ValueError, match="holds a PPO, not a SAC"):
        rlox.SAC.load(tmp_path / "model.pt")


def test_environment_objects_are_given_again(tmp_path):
    rlox.PPO(Clock(), n_steps=8).save(tmp_path / "model.pt")
    alone = rlox.PPO.load(tmp_path / "model.pt")
    assert alone.predict(np.zeros(1))[0] in Clock().action_space
    assert alone.get_env() is None
    with pytest.raises(RuntimeError, match=r"env: .* without an environment; .*set_env"):
        alone.learn(8)
    alone.set_env(Clock())
    assert alone.learn(8).num_timesteps == 8
    assert rlox.PPO.load(tmp_path / "model.pt", env=Clock()).n_envs == 1


def test_replaced_modules_train_and_are_given_again(tmp_path):
    net = CategoricalActorCritic(4, 2, hidden=(8,))
    before = [p.clone() for p in net.parameters()]
    model = ppo(policy=net).learn(128)
    assert model.policy is net
    assert not same(before, list(net.parameters()))
    model.save(tmp_path / "model.pt")
    loaded = rlox.PPO.load(tmp_path / "model.pt", policy=CategoricalActorCritic(4, 2, hidden=(8,)))
    assert same(weights(model), weights(loaded))
    with pytest.raises(ValueError, match=r"policy: .* must be given to load, too"):
        rlox.PPO.load(tmp_path / "model.pt")

    actor, critic = SquashedGaussianActor(3, 1, (8,)), TwinCritic(3, 1, (8,))
    before = [p.clone() for p in (*actor.parameters(), *critic.parameters())]
    sac(policy=actor, critic=critic).learn(60)
    assert not same(before, [*actor.parameters(), *critic.parameters()])


def box(low, high, shape=(1,), dtype=np.float32):
    return spaces.Box(low, high, shape, dtype)


class Seeing(Clock):
    def __init__(self, action_space, observation_space):
        super().__init__(action_space=action_space)
        self.observation_space = observation_space


OTHER_SPACES = {
    "action bounds": (rlox.SAC, box(-1, 1), box(0, 100), box(-2, 2), box(0, 100)),
    "action type": (rlox.PPO, box(-1, 1), box(0, 100), box(-1, 1, dtype=np.float64), box(0, 100)),
    "numbers of actions": (rlox.PPO, spaces.Discrete(2), box(0, 100), spaces.Discrete(3), None),
    "first action": (
        *(rlox.PPO, spaces.Discrete(2), box(0, 100)),
        *(spaces.Discrete(2, start=5), box(0, 100)),
    ),
    "kind of action": (rlox.PPO, spaces.Discrete(1), box(0, 100), box(-1, 1), box(0, 100)),
    "observation bounds": (rlox.PPO, spaces.Discrete(2), box(0, 100), None, box(0, 50)),
    "observation type": (
        *(rlox.PPO, spaces.Discrete(2), box(0, 100)),
        *(None, box(0, 100, dtype=np.float64)),
    ),
    "observation shape": (rlox.PPO, spaces.Discrete(2), box(0, 100), None, box(0, 100, (1, 1))),
}


@pytest.mark.parametrize(
    ("kind", "acts", "sees", "acts_now", "sees_now"), OTHER_SPACES.values(), ids=OTHER_SPACES
)
def test_an_environment_of_other_spaces_is_refused(kind, acts, sees, acts_now, sees_now, tmp_path):
    kind(Seeing(acts, sees)).save(tmp_path / "model.pt")
    acts_now, sees_now = acts_now or acts, sees_now or sees
    with pytest.raises(ValueError, match="env: ") as raised:
        kind.load(tmp_path / "model.pt", env=Seeing(acts_now, sees_now))
    was, now = (acts, acts_now) if acts != acts_now else (sees, sees_now)
    assert str(was) in str(raised.value)
    assert str(now) in str(raised.value)
    kind.load(tmp_path / "model.pt", env=Seeing(acts, sees))


def test_an_id_that_stands_for_another_environment_by_now_is_refused(tmp_path, monkeypatch):
    ppo("Acrobot-v1").save(tmp_path / "model.pt")
    spec = replace(gym.spec("Acrobot-v1"), entry_point=gym.spec("MountainCar-v0").entry_point)
    monkeypatch.setitem(gym.registry, "Acrobot-v1", spec)
    with pytest.raises(ValueError, match="env: "):
        rlox.PPO.load(tmp_path / "model.pt")


def test_files_that_do_not_tell_their_spaces_are_taken(tmp_path):
    """Those of earlier versions."""
    ppo().save(tmp_path / "model.pt")
    saved = torch.load(tmp_path / "model.pt", weights_only=True)
    del saved["spaces"]
    torch.save(saved, tmp_path / "model.pt")
    rlox.PPO.load(tmp_path / "model.pt")


def test_what_was_set_since_is_saved(tmp_path):
    model = rlox.SAC("Pendulum-v1", gradient_steps=-1, train_freq=2, seed=0)
    model.train_freq, model.gradient_steps, model.target_entropy = 4, 7, -0.25
    model.save(tmp_path / "model.pt")
    loaded = rlox.SAC.load(tmp_path / "model.pt")
    found = loaded.train_freq.frequency, loaded.gradient_steps, loaded.target_entropy
    assert found == (4, 7, -0.25)
    model.action_noise = lambda: 0.1
    model.save(tmp_path / "model.pt")
    with pytest.warns(UserWarning, match=r"action_noise: .* cannot hold what was given"):
        rlox.SAC.load(tmp_path / "model.pt")


def test_as_many_updates_as_steps_follow_a_train_freq_that_was_set_since():
    model = rlox.SAC("Pendulum-v1", gradient_steps=-1, learning_starts=4, batch_size=4, seed=0)
    model.train_freq = 4
    assert model.learn(16)._n_updates == 12


@pytest.mark.parametrize(
    "space",
    [spaces.Discrete(3, dtype=np.int32), spaces.MultiDiscrete([3, 2], dtype=np.int32)],
    ids=str,
)
def test_a_space_of_other_integers_is_the_same_space(space, tmp_path):
    model = rlox.PPO(Clock(3, action_space=space), n_steps=8, batch_size=8)
    model.save(tmp_path / "model.pt")
    assert rlox.PPO.load(tmp_path / "model.pt").action_space == space
    rlox.PPO.load(tmp_path / "model.pt", env=Clock(3, action_space=space))


def test_files_of_others_are_refused_by_name(tmp_path):
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    theirs = stable_baselines3.PPO("MlpPolicy", "CartPole-v1", device="cpu")
    theirs.save(tmp_path / "theirs.zip")
    advice = r"theirs\.zip: PPO\.save has not written it, .* set_parameters\("
    with pytest.raises(ValueError, match=advice):
        rlox.PPO.load(tmp_path / "theirs.zip")
    with pytest.raises(ValueError, match=r"theirs\.zip: policy\.save has not written it"):
        SquashedGaussianActor.load(tmp_path / "theirs.zip")
    with pytest.raises(ValueError, match=r"theirs\.zip: save_replay_buffer has not written it"):
        sac().load_replay_buffer(tmp_path / "theirs.zip")
    torch.save({"weights": torch.zeros(1)}, tmp_path / "weights.zip")
    with pytest.raises(ValueError, match=r"weights\.zip: PPO\.save has not written it"):
        rlox.PPO.load(tmp_path / "weights.zip")


def test_a_folder_and_a_unit_are_saved(tmp_path):
    types = pytest.importorskip("stable_baselines3.common.type_aliases")
    episodes = types.TrainFreq(2, types.TrainFrequencyUnit.EPISODE)
    model = rlox.SAC("MlpPolicy", "Pendulum-v1", train_freq=episodes, tensorboard_log=tmp_path)
    model.save(tmp_path / "model.pt")
    loaded = rlox.SAC.load(tmp_path / "model.pt")
    assert tuple(loaded.train_freq) == (2, "episode")
    assert loaded.tensorboard_log == str(tmp_path)


def test_a_trainer_of_a_thread_is_loaded_without_its_environments(tmp_path):
    env = rlox.VecEnv("CartPole-v1", 2)
    model = rlox.PPO(env, n_steps=16, batch_size=16, collector="async").learn(32)
    model.save(tmp_path / "model.pt")
    loaded = rlox.PPO.load(tmp_path / "model.pt")
    assert loaded.predict(np.zeros(4))[0] in (0, 1)
    loaded.set_env(rlox.VecEnv("CartPole-v1", 2))
    loaded.learn(32)


def test_updates_are_counted_by_the_epochs_that_they_had(tmp_path):
    ppo(n_epochs=3).learn(128).save(tmp_path / "model.pt")
    loaded = rlox.PPO.load(tmp_path / "model.pt", n_epochs=1)
    loaded.learn(128, reset_num_timesteps=False)
    assert loaded.logger.values["train/n_updates"] == 4


@pytest.mark.parametrize("n", [4, [4], [2, 3]])
def test_vectors_of_bits_are_what_they_were(n, tmp_path):
    space = spaces.MultiBinary(n)
    env = Seen(spaces.Dict({"bits": space}), action_space=space)
    model = ppo(env, policy="MultiInputPolicy", n_steps=16, batch_size=16).learn(16)
    model.save(tmp_path / "model.pt")
    assert rlox.PPO.load(tmp_path / "model.pt", env=env).num_timesteps == 16
    loaded = rlox.PPO.load(tmp_path / "model.pt")
    loaded.set_env(env)
    assert same(weights(loaded), weights(model))


def test_parameters_of_a_file_are_its_all_or_none(tmp_path):
    learned, fixed = sac(), sac(ent_coef=0.1, seed=8)
    learned.save(tmp_path / "learned.pt")
    fixed.save(tmp_path / "fixed.pt")
    before = weights(fixed)
    with pytest.raises(ValueError, match="parameters hold alpha_optimizer; there are "):
        fixed.set_parameters(tmp_path / "learned.pt")
    assert same(before, weights(fixed))
    with pytest.raises(ValueError, match="parameters lack alpha_optimizer, which exact_match asks"):
        learned.set_parameters(tmp_path / "fixed.pt")
    learned.set_parameters(tmp_path / "fixed.pt", exact_match=False)
    assert same(weights(learned)[:-1], before[:-1])
