"""Actions drawn in Rust: what torch draws from the same random numbers."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from drawn import make_rollout, policies
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import rlox
from rlox import _core
from rlox.learner.featured import FeaturesActorCritic, kwargs_for
from rlox.learner.features import FlattenExtractor
from rlox.learner.heads import Bernoullis, Gaussian
from rlox.learner.joined import ActorInRust, ActorInTorch, actor_in_rust
from rlox.learner.native.networks import Unfit, Watch, actor_critic_networks
from rlox.learner.policies import CategoricalActorCritic, GaussianActorCritic


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@settings(max_examples=60)
@given(policies(), st.integers(1, 40), st.integers(0, 2**31))
@torch.no_grad()
def test_they_are_those_that_torch_draws(made, n, seed):
    policy, obs_dim = made
    obs = make_rollout(policy, obs_dim, n, seed).obs
    found = ActorInRust(policy)(obs, seeded(seed))
    expected, _ = policy.get_action_and_logprob(obs, generator=seeded(seed))
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    features = isinstance(policy, FeaturesActorCritic)
    if isinstance(policy, GaussianActorCritic) or (features and isinstance(policy.head, Gaussian)):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        return
    if features and isinstance(policy.head, Bernoullis):
        # Where a bit's noise is its probability but for rounding, it may be either.
        probs = torch.sigmoid(policy._said(policy._seen(obs)))
        near = (torch.rand(probs.shape, generator=seeded(seed)) - probs).abs() < 1e-5
        assert ((found == expected) | near).all()
        return
    # Where two choices come at the same time but for rounding, either may be taken.
    said = policy._said(policy._seen(obs)) if features else policy.actor(obs)
    scores = said - torch.empty_like(said).exponential_(generator=seeded(seed)).log()
    numbers = policy.head.numbers if features else [said.shape[1]]
    for chosen, part in zip(found.view(n, -1).T, torch.split(scores, numbers, dim=1), strict=True):
        taken = part.gather(1, chosen[:, None])[:, 0]
        assert (part.max(dim=1).values - taken).max() < 1e-4 * (1 + part.abs().max())


class Toggles(gym.Env):
    """Two switches and a dial, none of which matters."""

    observation_space = spaces.Box(-1, 1, (3,), np.float32)

    def __init__(self, action_space):
        self.action_space = action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action)
        return self.np_random.uniform(-1, 1, 3).astype(np.float32), 1.0, False, False, {}


@pytest.mark.parametrize(
    "action_space",
    [
        spaces.MultiDiscrete([2, 2, 5]),
        spaces.Discrete(4),
        spaces.Box(-1, 1, (2,), np.float32),
        spaces.MultiBinary(3),
    ],
)
def test_training_in_python_s_environments_is_that_of_torch(action_space):
    """Two rollouts and what is learnt of the first: the second is drawn with its weights."""
    arguments = {"n_steps": 32, "batch_size": 16, "n_epochs": 2, "seed": 5}
    models = [
        rlox.PPO("MlpPolicy", Toggles(action_space), optimizations=on, **arguments).learn(64)
        for on in (["R14"], ["R14", "R17"])
    ]
    weights = [torch.nn.utils.parameters_to_vector(model.policy.parameters()) for model in models]
    torch.testing.assert_close(*weights, rtol=1e-4, atol=1e-5)
    made = actor_in_rust(models[1].policy)
    assert isinstance(made, ActorInRust)


class Own(CategoricalActorCritic):
    pass


@pytest.mark.parametrize(
    ("optimizations", "arguments", "reason"),
    [
        (["R17"], {}, "ask for R14"),
        (["R14", "R17"], {"policy": Own(3, 4)}, "the policy is a Own"),
        (["R14", "R17"], {}, None),
        (["R14"], {"policy": Own(3, 4)}, None),
    ],
)
def test_who_asks_for_it_is_told_once_where_it_does_nothing(optimizations, arguments, reason):
    env = Toggles(spaces.Discrete(4))
    model = rlox.PPO(env, n_steps=4, batch_size=4, optimizations=optimizations, **arguments)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.learn(4)
        model.learn(4)
    said = [str(one.message) for one in told if "R17" in str(one.message)]
    assert len(said) == (reason is not None)
    assert all(reason in one for one in said)


def test_it_is_not_told_where_rollouts_are_in_rust_or_nobody_asked():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arguments = {"n_envs": 1, "n_steps": 8, "batch_size": 8}
        rlox.PPO("CartPole-v1", optimizations=["R4", "R17"], **arguments).learn(8)
        rlox.PPO("CartPole-v1", **arguments).learn(8)


def test_what_rust_does_not_know_is_left_to_torch():
    assert actor_in_rust(Own(3, 2)) is None
    assert isinstance(
        actor_in_rust(CategoricalActorCritic(3, 2).requires_grad_(False)), ActorInRust
    )
    shares = CategoricalActorCritic(3, 2)
    shares.actor[2].weight = shares.actor[0].weight = torch.nn.Parameter(torch.zeros(64, 64))
    shares.actor[0].in_features = 64
    assert isinstance(actor_in_rust(shares), ActorInTorch)


def of_features():
    space = spaces.MultiDiscrete([2, 3])
    kwargs = kwargs_for("MlpPolicy", space, None)
    return FeaturesActorCritic(space, spaces.MultiDiscrete([2, 2]), kwargs)


@pytest.mark.parametrize(
    ("make", "part", "method"),
    [
        (of_features, "head", "draw"),
        (of_features, "head", "log_prob"),
        (of_features, "head", "_log_probs"),
        (of_features, "shown", "_shown"),
        (of_features, "features_extractor", "forward"),
        (of_features, "mlp_extractor", "forward"),
        (of_features, "value_net", "forward"),
        (lambda: CategoricalActorCritic(3, 2), "actor", "forward"),
        (lambda: CategoricalActorCritic(3, 2), "critic.1", "forward"),
    ],
)
def test_who_replaces_a_method_within_the_policy_has_it_called(make, part, method):
    policy = make()
    assert isinstance(actor_in_rust(policy), ActorInRust)
    setattr(policy.get_submodule(part), method, lambda *args: None)
    with pytest.raises(Unfit, match=r"a method of .* is replaced"):
        actor_critic_networks(policy)
    assert actor_in_rust(policy) is None


def another_layer(policy):
    policy.mlp_extractor.value_net.append(torch.nn.Tanh())


def an_extractor(policy):
    policy.vf_features_extractor = FlattenExtractor(spaces.Box(-1, 1, (5,)))


def a_parameter(policy):
    policy.temperature = torch.nn.Parameter(torch.ones(1))


@pytest.mark.parametrize("add", [another_layer, an_extractor, a_parameter])
def test_what_is_added_to_a_policy_is_noticed(add):
    policy = of_features()
    watch = Watch([policy], [])
    watch.require_undisturbed()
    add(policy)
    with pytest.raises(Unfit, match="another number of parts"):
        watch.require_undisturbed()


def test_arguments_that_do_not_fit_are_named():
    params = np.zeros(4 * 3 + 3, np.float32)
    network = [4, 3], "tanh", params
    for arguments, said in (
        (([4, 3], "tanh", params[:-1]), "actor: has shape"),
        (([4, 3], "gelu", params), 'actor: has activation "gelu"'),
    ):
        with pytest.raises(ValueError, match=said):
            _core.ActionSampler(arguments)
    with pytest.raises(ValueError, match="log_std: has shape"):
        _core.ActionSampler(network, np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="logits of nvec"):
        _core.ActionSampler(network, None, [2, 2])
    with pytest.raises(ValueError, match="nvec: holds 0"):
        _core.ActionSampler(network, None, [3, 0])
    with pytest.raises(ValueError, match="nvec: belongs to choices"):
        _core.ActionSampler(network, np.zeros(3, np.float32), [2, 1])
    with pytest.raises(ValueError, match="nvec: belongs to choices, and bits is true"):
        _core.ActionSampler(network, None, [2, 1], True)
    with pytest.raises(ValueError, match="log_std: belongs to continuous actions, and bits"):
        _core.ActionSampler(network, np.zeros(3, np.float32), None, True)
    with pytest.raises(ValueError, match="log_std: holds NaN, expected numbers from -87 to 87"):
        _core.ActionSampler(network, np.full(3, np.nan, np.float32))
    acting = _core.ActionSampler(network, None, [2, 1])
    obs, noise = np.zeros((5, 4), np.float32), np.ones((5, 3), np.float32)
    assert acting.draw(obs, noise).shape == (5, 2)
    with pytest.raises(ValueError, match="noise: has shape"):
        acting.draw(obs, noise[:4])
    with pytest.raises(ValueError, match="obs: has shape"):
        acting.draw(obs[:, :3].copy(), noise)
    with pytest.raises(TypeError, match="obs: "):
        acting.draw(obs.astype(np.float64), noise)
    for bad in (0.0, -1.0, np.nan, np.inf):
        noise[2, 1] = bad
        with pytest.raises(ValueError, match=r"noise: holds .*, expected positive numbers"):
            acting.draw(obs, noise)
    params[:] = np.nan
    acting = _core.ActionSampler((*network[:2], params))
    with pytest.raises(ValueError, match="actor: gives NaN, from which no action can be drawn"):
        acting.draw(obs, np.ones((5, 3), np.float32))
