"""Features extractors beside Stable-Baselines3's: the order of a Dict, layers, and names."""

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import NatureCNN

import rlox
from rlox.learner.spaces import flatten_obs

ACTIONS = spaces.Box(-1, 1, (2,), np.float32)
IMAGE = spaces.Box(0, 255, (3, 36, 36), np.uint8)
UNSORTED = spaces.Dict(z=spaces.Box(-9, 9, (2,)), a=spaces.Box(-9, 9, (1,)))
SETTINGS = {
    "PPO": {"n_steps": 8, "batch_size": 8, "n_epochs": 1},
    "SAC": {"learning_starts": 4, "batch_size": 4, "buffer_size": 50},
}


class Shows(gym.Env):
    """Shows samples of a space; an episode has five steps."""

    def __init__(self, space, action_space=ACTIONS):
        self.observation_space, self.action_space = space, action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.at += 1
        return self.observation_space.sample(), 1.0, False, self.at == 5, {}


def both(name, policy, space, **more):
    """A trainer of each library."""
    settings = {"seed": 0, "device": "cpu", **SETTINGS[name], **more}
    return [
        getattr(one, name)(policy, Shows(space), **settings) for one in (rlox, stable_baselines3)
    ]


def test_a_dict_keeps_its_order_in_a_file(tmp_path):
    class Fixed(Shows):
        def reset(self, **kwargs):
            super().reset(**kwargs)
            return {"z": np.float32([1, 2]), "a": np.float32([5])}, {}

    model = rlox.SAC("MultiInputPolicy", Fixed(UNSORTED), **SETTINGS["SAC"]).learn(4)
    model.save(tmp_path / "model")
    loaded = rlox.SAC.load(tmp_path / "model")
    assert list(loaded.observation_space.spaces) == ["z", "a"]
    obs = UNSORTED.sample()
    found, expected = (one.predict(obs, deterministic=True)[0] for one in (loaded, model))
    np.testing.assert_array_equal(found, expected)
    model.save_replay_buffer(tmp_path / "buffer")
    loaded.load_replay_buffer(tmp_path / "buffer")
    assert loaded.replay_buffer.transitions()["obs"][0].tolist() == [1, 2, 5]


def test_features_of_a_dict_stand_in_its_order():
    ours, theirs = both("PPO", "MultiInputPolicy", UNSORTED)
    ours.policy.load_state_dict(theirs.policy.state_dict())
    obs = {key: value[None] for key, value in UNSORTED.sample().items()}
    seen = theirs.policy.obs_to_tensor(obs)[0]
    torch.testing.assert_close(
        ours.policy.predict_values(ours.policy.obs_to_tensor(obs)[0]),
        theirs.policy.predict_values(seen),
    )


MADE = {
    "images": ("CnnPolicy", IMAGE),
    "a dict": ("MultiInputPolicy", spaces.Dict(b=IMAGE, a=spaces.Discrete(3))),
}
FORMS = {
    "usual": {},
    "shared": {"share_features_extractor": True},
    "apart": {"share_features_extractor": False},
    "three critics": {"n_critics": 3},
}


def values(model, obs):
    """All that its networks say of an observation."""
    with torch.no_grad():
        seen, _ = model.policy.obs_to_tensor(obs)
        if hasattr(model.policy, "predict_values"):
            return [*model.policy(seen, deterministic=True)]
        action = model.policy.actor(seen, deterministic=True)
        found = [action]
        for critic in (model.critic, model.critic_target):
            given = (
                model._tensor(flatten_obs(obs, model.observation_space))
                if hasattr(model, "_tensor")
                else seen
            )
            found += [q.flatten() for q in critic(given, action)]
        return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("name", ["PPO", "SAC"])
def test_weights_go_from_either_library_to_the_other(name, kind, form):
    if name == "PPO" and "n_critics" in FORMS[form]:
        return
    ours, theirs = both(name, *MADE[kind], policy_kwargs={"net_arch": [8], **FORMS[form]})
    obs = ours.observation_space.sample()
    obs = {k: np.asarray(v)[None] for k, v in obs.items()} if isinstance(obs, dict) else obs[None]
    assert ours.get_parameters().keys() == theirs.get_parameters().keys()
    given = theirs.get_parameters()["policy"]
    assert ours.get_parameters()["policy"].keys() == given.keys()
    assert not close(values(ours, obs), values(theirs, obs))
    ours.set_parameters(theirs.get_parameters())
    assert close(values(ours, obs), values(theirs, obs))
    other = both(name, *MADE[kind], policy_kwargs={"net_arch": [8], **FORMS[form]}, seed=1)[1]
    other.set_parameters(ours.get_parameters())
    assert close(values(other, obs), values(theirs, obs))


def close(found, expected):
    pairs = zip(found, expected, strict=True)
    return all(torch.allclose(a.flatten(), b.flatten(), atol=1e-5) for a, b in pairs)


@pytest.mark.parametrize("kind", [("CnnPolicy", IMAGE), ("MlpPolicy", ACTIONS)])
def test_what_their_optimizer_knows_of_a_weight_is_known_of_the_same_weight(kind):
    ours, theirs = both("PPO", *kind, policy_kwargs={"net_arch": [8]}, learning_rate=1e-3)
    theirs.learn(8)
    ours.set_parameters(theirs.get_parameters())
    expected = dict(theirs.policy.named_parameters())
    held = [theirs.policy.optimizer.state[expected[name]] for name in sorted(expected)]
    named = ours.policy.state_dict(keep_vars=True)
    found = [ours.optimizer.state[named[name]] for name in sorted(expected)]
    for one, other in zip(found, held, strict=True):
        torch.testing.assert_close(one["exp_avg"], other["exp_avg"], rtol=0, atol=0)
    kept = ours.optimizer.state_dict()
    ours.set_parameters(ours.get_parameters())
    assert kept["state"].keys() == ours.optimizer.state_dict()["state"].keys()
    ours.learn(8)


EARLIER = {
    "latent_pi.": "net.latent_pi.",
    "mu.": "net.mu.",
    "log_std.": "net.log_std.",
    "qf": "twins.qf",
}


def earlier_name(key):
    begins = next((new for new in EARLIER if key.startswith(new)), None)
    return key if begins is None else EARLIER[begins] + key.removeprefix(begins)


@pytest.mark.parametrize("name", ["PPO", "SAC"])
def test_names_of_earlier_files_are_still_read(name):
    ours, other = (
        both(name, "CnnPolicy", IMAGE, policy_kwargs={"net_arch": [8]}, seed=seed)[0]
        for seed in (0, 1)
    )
    for part in ("policy", "critic") if name == "SAC" else ("policy",):
        state = getattr(ours, part).state_dict()
        twice = ("pi_features", "vf_features")
        earlier = {earlier_name(k): v for k, v in state.items() if not k.startswith(twice)}
        assert earlier.keys() != state.keys()
        getattr(other, part).load_state_dict(earlier)
        for key, value in getattr(other, part).state_dict().items():
            torch.testing.assert_close(value, state[key], rtol=0, atol=0)


@pytest.mark.parametrize("named", [{}, {"features_extractor_class": NatureCNN}])
def test_layers_above_their_nature_cnn_are_theirs(named, tmp_path):
    ours, theirs = both("PPO", "CnnPolicy", IMAGE, policy_kwargs=named)
    assert ours.policy.state_dict().keys() == theirs.policy.state_dict().keys()
    ours.save(tmp_path / "model")
    loaded = rlox.PPO.load(tmp_path / "model")
    assert loaded.policy.state_dict().keys() == theirs.policy.state_dict().keys()


def test_widths_may_be_numpys_integers(tmp_path):
    for arch in ([np.int64(8)], {"pi": [np.int64(8)], "vf": [np.int32(8)]}):
        model, _ = both("PPO", "MlpPolicy", ACTIONS, policy_kwargs={"net_arch": arch})
        model.save(tmp_path / "model")
        loaded = rlox.PPO.load(tmp_path / "model")
        assert loaded.policy.actor[0].out_features == 8
