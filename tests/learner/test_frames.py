"""Frames with their channels last in memory (R18): who gets them, and that nothing else changes."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn
from toys import Seen

import rlox
from rlox.learner.features import NatureCNN, frames_as_given, frames_with_channels_last

FRAMES = spaces.Box(0, 255, (4, 36, 36), np.uint8)
ACTIONS = {rlox.PPO: spaces.Discrete(2), rlox.SAC: spaces.Box(-1, 1, (1,), np.float32)}
SETTINGS = {
    rlox.PPO: {"n_steps": 4, "batch_size": 2, "n_epochs": 1},
    rlox.SAC: {"learning_starts": 2, "batch_size": 2, "buffer_size": 16},
}


def trained(kind, **more):
    """Whether each input of a convolution had its channels last while a trainer learnt."""
    model = kind("CnnPolicy", Seen(FRAMES, ACTIONS[kind]), seed=0, **SETTINGS[kind], **more)
    seen = []

    def see(_, given):
        seen.append(given[0].is_contiguous(memory_format=torch.channels_last))

    for network in model._networks():
        for part in network.modules():
            if isinstance(part, NatureCNN):
                part.cnn.register_forward_pre_hook(see)
    model.learn(8)
    return seen


@pytest.mark.parametrize("on", [[], ["R18"]])
@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.__name__)
def test_our_convolutions_get_them_in_all_networks(kind, on):
    seen = trained(kind, optimizations=on)
    assert seen
    assert set(seen) == {bool(on)}


class Own(nn.Module):
    """A user's extractor, which counts on frames as torch makes them."""

    def __init__(self, observation_space):
        super().__init__()
        self.features_dim = int(np.prod(observation_space.shape))

    def forward(self, observations):
        return observations.view(len(observations), -1)


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.__name__)
def test_a_users_extractor_gets_frames_as_they_are(kind):
    assert trained(kind, policy_kwargs={"features_extractor_class": Own}) == []


def test_features_and_gradients_are_the_same_up_to_rounding():
    torch.manual_seed(0)
    extractor, frames = NatureCNN(FRAMES), torch.rand(5, *FRAMES.shape)
    found = []
    for order in (frames_as_given, frames_with_channels_last):
        extractor.order = order
        extractor.zero_grad()
        features = extractor(frames)
        features.square().sum().backward()
        found.append([features.detach(), *(p.grad.clone() for p in extractor.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_frames_of_an_accelerator_stay_as_they_are():
    frames = torch.empty(2, *FRAMES.shape, device="meta")
    assert frames_with_channels_last(frames) is frames
