"""Programs of Stable-Baselines3's users: `PPO("MlpPolicy", env, …)` and what goes with it."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO as TheirPPO
from stable_baselines3 import SAC as TheirSAC
from stable_baselines3.common.callbacks import BaseCallback as TheirCallback
from stable_baselines3.common.evaluation import evaluate_policy as their_evaluation
from stable_baselines3.common.logger import configure
from stable_baselines3.common.noise import NormalActionNoise
from toys import Clock

import rlox
from rlox.learner.callbacks import BaseCallback
from rlox.learner.collectors import Rollout
from rlox.learner.evaluation import evaluate_policy
from rlox.learner.spaces import flatten_obs


class Sees(Clock):
    """A Clock that shows what its `observation_space` holds, drawn anew at each step."""

    def __init__(self, space, action_space=None, length=5):
        super().__init__(length, action_space=action_space)
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        _, *rest = super().step(action)
        return self.observation_space.sample(), *rest


IMAGE = spaces.Box(0, 255, (3, 36, 36), np.uint8)
LAST = spaces.Box(0, 255, (36, 36, 3), np.uint8)
VECTOR = spaces.Box(-1, 1, (2,), np.float32)
BOTH = spaces.Dict({"image": IMAGE, "n": spaces.Discrete(3), "v": VECTOR})
EACH = {
    "vector": ("MlpPolicy", VECTOR, spaces.Discrete(2)),
    "box": ("MlpPolicy", VECTOR, spaces.Box(-2, 2, (2,), np.float32)),
    "choices": ("MlpPolicy", spaces.MultiDiscrete([3, 2]), spaces.MultiDiscrete([2, 3])),
    "bits": ("MlpPolicy", spaces.MultiBinary(4), spaces.MultiBinary(3)),
    "number": ("MlpPolicy", spaces.Discrete(5), spaces.Discrete(3)),
    "image": ("CnnPolicy", IMAGE, spaces.Discrete(2)),
    "dict": ("MultiInputPolicy", BOTH, spaces.Discrete(2)),
}
SMALL = {"n_steps": 16, "batch_size": 16, "n_epochs": 2, "seed": 0}


def their_rollout(theirs):
    """What Stable-Baselines3 has collected, for both libraries to learn from."""
    _, callback = theirs._setup_learn(16)
    theirs.collect_rollouts(theirs.env, callback, theirs.rollout_buffer, 16)
    buffer = theirs.rollout_buffer
    seen = buffer.observations
    seen = {k: v[:, 0] for k, v in seen.items()} if isinstance(seen, dict) else seen[:, 0]
    return seen, buffer


MORE = {"plain": {}, "clipped": {"clip_range_vf": 0.05, "normalize_advantage": False}}


@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize("kind", EACH)
def test_ppo_learns_from_a_rollout_as_stable_baselines_does(kind, more):
    """Same weights, same rollout, one minibatch: no draw is left that could differ."""
    policy, space, action_space = EACH[kind]
    arguments = {**SMALL, "ent_coef": 0.01, "learning_rate": 1e-3, **MORE[more]}
    space.seed(0)
    theirs = TheirPPO(policy, Sees(space, action_space), device="cpu", **arguments)
    theirs.set_logger(configure(None, []))
    ours = rlox.PPO(policy, Sees(space, action_space), **arguments)
    ours.policy.load_state_dict(theirs.policy.state_dict())
    seen, buffer = their_rollout(theirs)
    rows = flatten_obs(seen, space)
    actions = torch.as_tensor(buffer.actions[:, 0])
    if isinstance(action_space, spaces.Discrete):
        actions = actions[:, 0].long()
    if isinstance(action_space, spaces.MultiDiscrete):
        actions = actions.long()
    if isinstance(action_space, spaces.MultiBinary):
        actions = actions.float()
    columns = (buffer.log_probs, buffer.advantages, buffer.returns)
    rest = [torch.as_tensor(column[:, 0].copy()) for column in columns]
    theirs.train()
    ours._log_interval, ours._end = None, 16
    ours.train(Rollout(ours._tensor(rows), actions, *rest))
    found, expected = ours.policy.state_dict(), theirs.policy.state_dict()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=2e-5, msg=name)


@pytest.mark.parametrize("kind", EACH)
def test_ppo_acts_learns_and_is_saved_wherever_it_may_act(kind, tmp_path):
    policy, space, action_space = EACH[kind]
    env = Sees(space, action_space)
    model = rlox.PPO(policy, env, **SMALL).learn(32)
    obs = space.sample()
    action, state = model.predict(obs, deterministic=True)
    assert action_space.contains(action) or action in action_space
    assert state is None
    model.save(tmp_path / "model")
    loaded = rlox.PPO.load(tmp_path / "model.zip")
    np.testing.assert_array_equal(loaded.predict(obs, deterministic=True)[0], action)


@pytest.mark.parametrize("kind", ["vector", "image", "dict"])
def test_sac_acts_learns_and_is_saved_wherever_it_may_see(kind, tmp_path):
    policy, space, _ = EACH[kind]
    env = Sees(space, VECTOR)
    settings = {"learning_starts": 4, "batch_size": 4, "buffer_size": 50, "seed": 0}
    model = rlox.SAC(policy, env, **settings).learn(12)
    obs = space.sample()
    action, _ = model.predict(obs, deterministic=True)
    assert action in VECTOR
    model.save(tmp_path / "model")
    loaded = rlox.SAC.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(obs, deterministic=True)[0], action)


def test_images_may_have_their_channels_last():
    model = rlox.PPO("CnnPolicy", Sees(LAST), **SMALL).learn(16)
    assert model.policy.features_extractor.cnn[0].in_channels == 3
    theirs = TheirPPO("CnnPolicy", Sees(LAST), device="cpu", **SMALL)
    model.policy.load_state_dict(theirs.policy.state_dict())
    image = LAST.sample()
    ours = model.policy.get_value(model._acting.rows(image, model.device)[0])
    seen = torch.as_tensor(image.transpose(2, 0, 1)[None])
    torch.testing.assert_close(ours, theirs.policy.predict_values(seen).flatten())


def test_policy_kwargs_shape_the_networks_and_are_kept(tmp_path):
    kwargs = {"net_arch": {"pi": [32], "vf": [8, 8]}, "activation_fn": torch.nn.ReLU}
    model = rlox.PPO("MlpPolicy", "CartPole-v1", policy_kwargs=kwargs, **SMALL).learn(16)
    theirs = TheirPPO("MlpPolicy", "CartPole-v1", policy_kwargs=kwargs, device="cpu")
    shapes = {name: value.shape for name, value in theirs.policy.state_dict().items()}
    assert {name: value.shape for name, value in model.policy.state_dict().items()} == shapes
    assert isinstance(model.policy.actor[1], torch.nn.ReLU)
    assert (model.rollout_path, model.update_path) == ("native", "native")
    model.save(tmp_path / "model")
    loaded = rlox.PPO.load(tmp_path / "model")
    assert isinstance(loaded.policy.actor[1], torch.nn.ReLU)
    kwargs = {"net_arch": {"pi": [64, 64], "qf": [400, 300]}}
    sac = rlox.SAC("MlpPolicy", "Pendulum-v1", policy_kwargs=kwargs)
    their_sac = TheirSAC("MlpPolicy", "Pendulum-v1", policy_kwargs=kwargs, device="cpu")
    shapes = {name: value.shape for name, value in their_sac.policy.state_dict().items()}
    ours = sac.get_parameters()["policy"]
    assert {name: value.shape for name, value in ours.items()} == shapes


def test_weights_of_stable_baselines_can_be_taken_up():
    theirs = TheirSAC("MlpPolicy", "Pendulum-v1", device="cpu", seed=0)
    ours = rlox.SAC("MlpPolicy", "Pendulum-v1")
    parameters = {"policy": theirs.get_parameters()["policy"]}
    ours.set_parameters(parameters, exact_match=False)
    obs = np.array([[0.1, 0.9, 2.0]], np.float32)
    expected = theirs.predict(obs, deterministic=True)[0]
    np.testing.assert_allclose(ours.predict(obs, deterministic=True)[0], expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"parameters lack actor\.optimizer"):
        ours.set_parameters(parameters)
    with pytest.raises(ValueError, match="parameters hold value"):
        ours.set_parameters({"value": {}})


def test_defaults_are_theirs_in_their_form_alone():
    named, short = rlox.PPO("MlpPolicy", "CartPole-v1"), rlox.PPO("CartPole-v1")
    theirs = TheirPPO("MlpPolicy", "CartPole-v1", device="cpu")
    for name in ("n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "n_envs", "vf_coef"):
        assert getattr(named, name) == getattr(theirs, name), name
    assert (short.n_steps, short.batch_size, short.n_envs) == (128, 512, 8)
    sac, their_sac = (c("MlpPolicy", "Pendulum-v1") for c in (rlox.SAC, TheirSAC))
    for name in ("learning_starts", "batch_size", "gradient_steps", "tau", "target_entropy"):
        assert getattr(sac, name) == getattr(their_sac, name), name
    assert rlox.SAC("Pendulum-v1").learning_starts == 1000


def test_other_defaults_are_said_once(capsys, monkeypatch):
    monkeypatch.setattr(rlox.PPO, "_said", set())
    for _ in range(2):
        rlox.PPO("CartPole-v1", n_steps=4, n_envs=2).learn(8)
        rlox.PPO("MlpPolicy", "CartPole-v1").learn(8)
    said = 'PPO(env) has batch_size=512 for 64, n_epochs=4 for 10 of PPO("MlpPolicy", env)\n'
    assert capsys.readouterr().err == said


def test_each_way_to_name_policy_and_environment_is_the_same():
    env, module = "CartPole-v1", rlox.PPO("CartPole-v1").policy
    made = [
        rlox.PPO("MlpPolicy", env),
        rlox.PPO("MlpPolicy", env=env),
        rlox.PPO(policy="MlpPolicy", env=env),
        rlox.PPO(env, policy="MlpPolicy"),
    ]
    assert {model.n_steps for model in made} == {2048}
    assert rlox.PPO(env, policy=module).policy is module
    assert rlox.PPO(module, env).policy is module
    for given in [("MlpPolicy", env), ("MlpPolicy",)]:
        with pytest.raises(TypeError, match="given twice"):
            rlox.PPO(*given, policy="MlpPolicy", env=env)
    with pytest.raises(TypeError, match="by name: n_envs=3"):
        rlox.PPO(env, 3)
    with pytest.raises(TypeError, match="env is needed"):
        rlox.PPO(policy="MlpPolicy")


@pytest.mark.parametrize("optimizations", [None, ()], ids=["native", "torch"])
def test_schedules_are_followed_as_stable_baselines_follows_them(optimizations):
    def told(trainer, base, **more):
        rates = []

        class Asks(base):
            def _on_rollout_start(self):
                model = self.model
                optimizer = model.optimizer if trainer is rlox.PPO else model.policy.optimizer
                rates.append(optimizer.param_groups[0]["lr"])

            def _on_step(self):
                return True

        settings = {"learning_rate": lambda left: 1e-3 * left, "clip_range": lambda left: left}
        trainer("MlpPolicy", "CartPole-v1", **SMALL, **settings, **more).learn(64, Asks())
        return rates

    ours = told(rlox.PPO, BaseCallback, optimizations=optimizations)
    assert ours == pytest.approx(told(TheirPPO, TheirCallback, device="cpu"))
    assert len(set(ours)) == 4


def test_target_kl_ends_an_update_where_stable_baselines_ends_it():
    class Counts(torch.optim.Adam):
        steps = 0

        def step(self, closure=None):
            type(self).steps += 1
            return super().step(closure)

    settings = {**SMALL, "n_epochs": 50, "learning_rate": 1e-2, "seed": 1}
    kwargs = {"optimizer_class": Counts}

    def steps(trainer, target_kl):
        Counts.steps = 0
        more = {"target_kl": target_kl, "policy_kwargs": kwargs, "device": "cpu"}
        model = trainer("MlpPolicy", "CartPole-v1", **settings, **more).learn(16)
        return Counts.steps, model._n_updates

    assert steps(rlox.PPO, 1e-9) == steps(TheirPPO, 1e-9) == (1, 2)
    assert steps(rlox.PPO, None) == steps(TheirPPO, None) == (50, 50)


def test_what_is_not_here_is_refused_with_what_to_do_instead():
    with pytest.raises(ValueError, match="_init_setup_model=False is not supported: networks are"):
        rlox.PPO("MlpPolicy", "CartPole-v1", _init_setup_model=False)
    with pytest.raises(ValueError, match=r"replay_buffer_class=.*HER .* not here; relabel goals"):
        rlox.SAC("MlpPolicy", "Pendulum-v1", replay_buffer_class=dict)
    assert rlox.PPO("MlpPolicy", "CartPole-v1", use_sde=False)
    with pytest.raises(TypeError, match="unexpected argument 'gama'"):
        rlox.PPO("MlpPolicy", "CartPole-v1", gama=0.9)
    with pytest.raises(ValueError, match=r"policy is 'MlpPolicies'; there are "):
        rlox.PPO("MlpPolicies", "CartPole-v1")


def test_a_policy_class_of_theirs_is_trained():
    from stable_baselines3.common.policies import ActorCriticPolicy

    class Deep(ActorCriticPolicy):
        pass

    kwargs = {"net_arch": [16]}
    model = rlox.PPO(Deep, "CartPole-v1", policy_kwargs=kwargs, **SMALL)
    before = {k: v.clone() for k, v in model.policy.theirs.state_dict().items()}
    model.learn(32)
    assert model.policy.mlp_extractor.policy_net[0].out_features == 16
    after = model.policy.theirs.state_dict()
    assert all(not torch.equal(before[k], after[k]) for k in before if k.endswith("weight"))
    action = model.predict(np.zeros(4))[0]
    assert isinstance(action, np.ndarray) and int(action) in {0, 1}


@pytest.mark.parametrize("evaluate", [evaluate_policy, their_evaluation])
def test_a_policy_is_evaluated_by_either_library(evaluate):
    model = rlox.PPO("MlpPolicy", Clock(7), **SMALL)
    for whose in (model, model.policy):
        with (
            pytest.warns(UserWarning, match="Monitor")
            if evaluate is their_evaluation
            else (torch.no_grad())
        ):
            assert evaluate(whose, Clock(7), n_eval_episodes=3) == (7.0, 0.0)
    assert evaluate(model, model.get_env(), n_eval_episodes=3) == (7.0, 0.0)


def test_train_freq_and_gradient_steps_are_theirs(monkeypatch):
    def updates(**settings):
        done = []

        class Counts(rlox.SAC):
            def train_once(self):
                done.append(self.num_timesteps)

        env = Clock(5, action_space=VECTOR)
        Counts("MlpPolicy", env, learning_starts=0, **settings).learn(20)
        return done

    assert updates() == list(range(1, 21))
    assert updates(train_freq=4, gradient_steps=2) == [4, 4, 8, 8, 12, 12, 16, 16, 20, 20]
    assert updates(train_freq=(1, "episode")) == [5, 10, 15, 20]
    assert updates(train_freq=(10, "step"), gradient_steps=-1) == [10] * 10 + [20] * 10
    assert updates(train_freq=(2, "episode"), gradient_steps=-1) == [10] * 10 + [20] * 10


def test_action_noise_is_added_and_begins_anew_with_each_episode():
    class Counting(NormalActionNoise):
        resets = 0

        def reset(self):
            Counting.resets += 1

    env = Clock(5, action_space=spaces.Box(-2, 2, (2,), np.float32))
    noise = Counting(np.array([10.0, -10.0]), np.zeros(2))
    rlox.SAC("MlpPolicy", env, action_noise=noise, learning_starts=10).learn(20)
    np.testing.assert_array_equal(env.actions, [[2.0, -2.0]] * 20)
    assert Counting.resets == 5  # at the beginning, too, as in Stable-Baselines3


def test_targets_move_at_every_so_many_updates():
    env = Clock(5, action_space=VECTOR)
    settings = {"learning_starts": 1, "batch_size": 4, "tau": 1.0, "train_freq": 8}

    def distance(**more):
        model = rlox.SAC("MlpPolicy", env, **settings, **more).learn(8)
        pairs = zip(model.critic.parameters(), model.critic_target.parameters(), strict=True)
        return max(float((a - b).abs().max().detach()) for a, b in pairs)

    assert distance(gradient_steps=3) == 0  # tau=1 copies at each
    assert distance(gradient_steps=3, target_update_interval=2) == 0  # the third is one of them
    assert distance(gradient_steps=2, target_update_interval=2) > 0


def test_set_env_goes_on_elsewhere():
    model = rlox.PPO("MlpPolicy", Clock(3), **SMALL).learn(16)
    model.set_env(Clock(4))
    model.learn(16, reset_num_timesteps=False)
    assert model.episode_lengths == [3] * 5 + [4] * 4
    with pytest.raises(ValueError, match="env: its observation space"):
        model.set_env(gym.make("CartPole-v1"))
    with pytest.raises(ValueError, match="env: has 2 environments"):
        model.set_env([Clock, Clock])
