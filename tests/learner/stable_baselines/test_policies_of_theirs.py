"""Policies and what is asked of them, as Stable-Baselines3's users do."""

import copy

import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from test_drop_in import EACH, LAST, SMALL, Sees

import rlox
from rlox.learner.features import FlattenExtractor, NatureCNN
from rlox.learner.policies import (
    GaussianActorCritic,
    SquashedGaussianActor,
    StochasticPolicy,
    frozen,
    learning_part,
)

BOX = spaces.Box(-2, 3, (2,), np.float32)
FLOATS = spaces.Box(-10, 10, (1, 36, 36), np.float32)
IN_SAC = {"buffer_size": 100, "learning_starts": 8, "batch_size": 8, "seed": 0}
FEW = {"features_extractor_kwargs": {"features_dim": 8}}


def sac(space=LAST, policy="CnnPolicy", **policy_kwargs):
    kwargs = {**FEW, **policy_kwargs} if policy == "CnnPolicy" else policy_kwargs
    return rlox.SAC(policy, Sees(space, BOX), policy_kwargs=kwargs, **IN_SAC)


@pytest.mark.parametrize("case", EACH)
def test_a_policy_that_was_saved_acts_without_its_trainer(case, tmp_path):
    name, space, actions = EACH[case]
    model = rlox.PPO(name, Sees(space, actions), **SMALL).learn(16)
    model.policy.save(tmp_path / "policy")
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]
    loaded = type(model.policy).load(tmp_path / "policy", device="cpu")
    obs = space.sample()
    expected = model.policy.predict(obs, deterministic=True)[0]
    np.testing.assert_array_equal(loaded.predict(obs, deterministic=True)[0], expected)
    loaded.save(tmp_path / "again")
    assert StochasticPolicy.load(tmp_path / "again").state_dict().keys() == (
        model.policy.state_dict().keys()
    )


@pytest.mark.parametrize("space", [LAST, spaces.Box(-1, 1, (3,), np.float32)])
def test_the_policy_of_sac_has_actor_and_critics_by_their_names(space, tmp_path):
    model = sac(space, "CnnPolicy" if space is LAST else "MlpPolicy").learn(16)
    policy = model.policy
    assert policy.actor is policy
    assert (policy.critic, policy.critic_target) == (model.critic, model.critic_target)
    assert not any(name.startswith("critic") for name in policy.state_dict())
    policy.actor.save(tmp_path / "actor.pkl")
    loaded = type(policy.actor).load(tmp_path / "actor.pkl")
    obs = space.sample()
    action, _ = loaded.predict(obs, deterministic=True)
    np.testing.assert_array_equal(action, model.predict(obs, deterministic=True)[0])
    assert not hasattr(loaded, "critic")


def test_a_copy_of_the_policy_is_whole():
    model = sac(spaces.Box(-1, 1, (3,), np.float32), "MlpPolicy")
    twin = copy.deepcopy(model.policy)
    assert twin.actor is twin
    assert twin.critic is not model.critic
    assert model.update_path == "native"


def test_what_load_could_not_make_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="no trainer has made this GaussianActorCritic"):
        GaussianActorCritic(3, 2).save(tmp_path / "policy")
    kwargs = {"activation_fn": lambda: torch.nn.Tanh()}
    model = rlox.PPO("MlpPolicy", "CartPole-v1", policy_kwargs=kwargs, **SMALL)
    with pytest.raises(ValueError, match="policy_kwargs hold a function"):
        model.policy.save(tmp_path / "policy")
    assert not list(tmp_path.iterdir())


def test_a_file_of_something_else_is_refused(tmp_path):
    model = rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL)
    model.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match="holds no policy"):
        type(model.policy).load(tmp_path / "model.zip")
    model.policy.save(tmp_path / "policy")
    with pytest.raises(ValueError, match="a CategoricalActorCritic, not a SquashedGaussianActor"):
        SquashedGaussianActor.load(tmp_path / "policy")


def test_loading_a_policy_leaves_the_global_stream_alone(tmp_path):
    model = rlox.PPO("MlpPolicy", "CartPole-v1", **SMALL)
    model.policy.save(tmp_path / "policy")
    before = torch.get_rng_state()
    type(model.policy).load(tmp_path / "policy")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_class_that_is_not_imported_is_named_and_may_be_given(tmp_path):
    model = rlox.PPO(
        "MlpPolicy", "CartPole-v1", policy_kwargs={"activation_fn": torch.nn.GELU}, **SMALL
    )
    own = {"activation_fn": type("Own", (torch.nn.GELU,), {"__module__": "theirs"})}
    model.policy.made_from = "MlpPolicy", own
    model.policy.save(tmp_path / "policy")
    with pytest.raises(ValueError, match="names the class Own of theirs"):
        type(model.policy).load(tmp_path / "policy")
    assert type(model.policy).load(tmp_path / "policy", policy_kwargs=own)


def test_no_code_of_a_file_is_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return print, ("boom",)

    torch.save({"squashed": Bomb()}, tmp_path / "policy")
    with pytest.raises(Exception, match="Weights only load failed"):
        StochasticPolicy.load(tmp_path / "policy")


def test_a_policy_class_of_theirs_saves_as_it_does_there(tmp_path):
    model = rlox.PPO(ActorCriticPolicy, "CartPole-v1", **SMALL)
    model.policy.save(tmp_path / "policy")
    theirs = ActorCriticPolicy.load(tmp_path / "policy", device="cpu")
    obs = np.zeros(4, np.float32)
    expected = model.policy.predict(obs, deterministic=True)[0]
    assert theirs.predict(obs, deterministic=True)[0] == expected
    with pytest.raises(ValueError, match="call load of the class"):
        type(model.policy).load(tmp_path / "policy")


def test_a_shared_extractor_learns_from_the_actor_alone():
    model = sac(share_features_extractor=True).learn(9)
    shared = model.policy.features_extractor
    assert model.critic.features_extractor is shared
    assert model.critic_target.features_extractor is not shared
    assert learning_part(model.critic) is model.critic.twins
    ids = {id(p) for group in model.critic_optimizer.param_groups for p in group["params"]}
    assert ids == {id(p) for p in model.critic.twins.parameters()}

    batch = model._sample()
    model.critic.zero_grad()
    loss, _ = model.critic_loss(batch, model.target_q(batch))
    loss.backward()
    assert all(p.grad is None for p in shared.parameters())
    assert all(p.grad is not None for p in model.critic.twins.parameters())
    model.critic.zero_grad()
    with frozen(model.critic):
        model.actor_loss(batch)[0].backward()
    assert all(p.grad.any() for p in shared.parameters())
    assert all(p.grad is None for p in model.critic.twins.parameters())


def test_a_shared_extractor_is_learnt_and_its_target_follows():
    model = sac(share_features_extractor=True).learn(9)
    shared, target = model.critic.features_extractor, model.critic_target.features_extractor
    before = [copy.deepcopy(list(part.parameters())) for part in (shared, target)]
    model.train_once()
    for part, were in zip((shared, target), before, strict=True):
        moved = zip(part.parameters(), were, strict=True)
        assert not any(torch.equal(now, was) for now, was in moved)


def test_a_shared_extractor_is_left_to_the_torch_path():
    model = rlox.SAC(
        "CnnPolicy", Sees(LAST, BOX), policy_kwargs={**FEW, "share_features_extractor": True},
        optimizations=["R3", "R12"], **IN_SAC,
    )  # fmt: skip
    model.learn(10)
    (compilation,) = model.compilations
    assert compilation.given_up == "actor and critic share parameters"


def test_a_shared_extractor_is_taken_up_from_a_file(tmp_path):
    model = sac(share_features_extractor=True).learn(12)
    model.save(tmp_path / "model")
    loaded = rlox.SAC.load(tmp_path / "model", env=Sees(LAST, BOX))
    assert loaded.critic.features_extractor is loaded.policy.features_extractor
    for name, value in model.critic.state_dict().items():
        assert torch.equal(loaded.critic.state_dict()[name], value)
    loaded.learn(10)


@pytest.mark.parametrize("settings", [None, {"weight_decay": 0.1}])
def test_sac_learns_with_another_optimizer(settings, tmp_path):
    kwargs = {"optimizer_class": torch.optim.AdamW, "optimizer_kwargs": settings, "net_arch": [8]}
    model = rlox.SAC("MlpPolicy", "Pendulum-v1", policy_kwargs=kwargs, **IN_SAC)
    for optimizer in (model.actor_optimizer, model.critic_optimizer):
        assert type(optimizer) is torch.optim.AdamW
        assert optimizer.param_groups[0]["lr"] == 3e-4
    assert type(model.alpha_optimizer) is torch.optim.Adam
    with pytest.warns(UserWarning, match="the optimizer is a AdamW"):
        model.learn(16)
    assert model.update_path.startswith("torch")
    model.save(tmp_path / "model")
    loaded = rlox.SAC.load(tmp_path / "model")
    assert type(loaded.actor_optimizer) is torch.optim.AdamW
    assert loaded.actor_optimizer.state_dict()["state"].keys() == set(range(6))


def test_none_is_as_good_as_no_arguments():
    kwargs = {"optimizer_kwargs": None, "features_extractor_kwargs": None}
    for trainer, env in ((rlox.PPO, "CartPole-v1"), (rlox.SAC, "Pendulum-v1")):
        assert trainer("MlpPolicy", env, policy_kwargs=kwargs).update_path == "native"


def test_the_old_form_of_net_arch_is_taken_with_a_warning(tmp_path):
    kwargs = {"net_arch": [{"vf": [8], "pi": [4]}]}
    with pytest.warns(UserWarning, match="the old form"):
        model = rlox.PPO("MlpPolicy", "CartPole-v1", policy_kwargs=kwargs, **SMALL)
    assert (model.policy.actor[0].out_features, model.policy.critic[0].out_features) == (4, 8)
    assert model.update_path == "native"


@pytest.mark.parametrize("trainer", [rlox.PPO, rlox.SAC])
def test_convolutions_see_any_three_axes_if_images_are_not_to_be_scaled(trainer):
    small = SMALL if trainer is rlox.PPO else IN_SAC
    env = Sees(FLOATS, BOX)
    with pytest.raises(AssertionError, match="normalize_images=False"):
        trainer("CnnPolicy", env, **small)
    kwargs = {**FEW, "normalize_images": False}
    model = trainer("CnnPolicy", env, policy_kwargs=kwargs, **small).learn(16)
    assert model.policy.features_extractor.cnn[0].in_channels == 1
    both = spaces.Dict({"image": FLOATS, "n": spaces.Discrete(3)})
    kwargs = {"normalize_images": False}
    model = trainer("MultiInputPolicy", Sees(both, BOX), policy_kwargs=kwargs, **small)
    found = model.policy.features_extractor.extractors
    assert [type(part) for part in found.values()] == [NatureCNN, FlattenExtractor]


@pytest.mark.parametrize("name", ["CnnPolicy", "MlpPolicy", "MultiInputPolicy"])
def test_images_with_their_channels_first_are_the_same_images(name):
    of_dict = name == "MultiInputPolicy"
    space = spaces.Dict({"image": LAST}) if of_dict else LAST
    model = rlox.PPO(name, Sees(space), **SMALL)
    images = np.stack([LAST.sample() for _ in range(3)])
    for last in (images, images[0]):
        first = np.moveaxis(last, -1, -3)
        shown = [{"image": one} if of_dict else one for one in (last, first)]
        found = [model.predict(one, deterministic=True)[0] for one in shown]
        np.testing.assert_array_equal(*found)
    tensors = [torch.as_tensor(one) for one in (images, np.moveaxis(images, -1, -3))]
    shown = [{"image": one} if of_dict else one for one in tensors]
    assert torch.equal(*(model.policy.predict_values(one) for one in shown))


@pytest.mark.parametrize(("policy", "space"), [("CnnPolicy", LAST), ("MlpPolicy", BOX)])
@pytest.mark.parametrize("kind", ["PPO", "SAC"])
def test_networks_are_as_large_as_theirs(kind, policy, space):
    """With no net_arch: PPO has no layers above its CNN, and SAC has two of 256."""

    def size(library):
        model = getattr(library, kind)(policy, Sees(space, BOX))
        parts = [model.policy] if kind == "PPO" else [model.actor, model.critic]
        return sum(p.numel() for part in parts for p in part.parameters())

    assert size(rlox) == size(stable_baselines3)
