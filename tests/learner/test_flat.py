"""Parameters and Adam's moments in flat vectors, while torch goes on with them."""

import pytest
import torch
from torch import nn

from rlox.learner.flat import Flat
from rlox.learner.native.networks import Unfit


def learn(net: nn.Linear, adam: torch.optim.Adam) -> None:
    adam.zero_grad()
    net(torch.ones(4, 2)).square().sum().backward()
    adam.step()


def trained() -> tuple[nn.Linear, torch.optim.Adam]:
    """After one step, with the same weights every time."""
    torch.manual_seed(0)
    net = nn.Linear(2, 3)
    adam = torch.optim.Adam(net.parameters(), fused=True)
    learn(net, adam)
    return net, adam


def test_parameters_and_moments_become_views_and_keep_their_values() -> None:
    (net, adam), (same, _) = trained(), trained()
    flat = Flat(list(net.parameters()), adam)
    vector, first, _ = flat.tensors
    assert torch.equal(net.weight, same.weight)
    vector += 1
    first.fill_(7)
    assert torch.equal(net.weight, same.weight + 1)
    assert adam.state[net.bias]["exp_avg"].tolist() == [7, 7, 7]
    assert [array.tolist() for array in flat.arrays] == [part.tolist() for part in flat.tensors]


def test_torch_goes_on_with_them() -> None:
    (net, adam), (same, other) = trained(), trained()
    flat = Flat(list(net.parameters()), adam)
    learn(net, adam)
    learn(same, other)
    torch.testing.assert_close(net.weight, same.weight)
    assert flat.steps.tolist() == [2, 2]
    assert flat.holds()


def test_what_has_been_replaced_is_noticed() -> None:
    net, adam = trained()
    flat = Flat(list(net.parameters()), adam)
    net.bias.data = net.bias.data.clone()
    assert not flat.holds()
    flat = Flat(list(net.parameters()), adam)
    adam.load_state_dict(adam.state_dict())
    assert not flat.holds()
    flat = Flat(list(net.parameters()), adam)
    adam.state[net.bias]["exp_avg"] = torch.zeros(3)
    assert not flat.holds()
    flat = Flat(list(net.parameters()), adam)
    adam.state.clear()
    assert not flat.holds()


def test_unequal_steps_are_refused() -> None:
    net, adam = trained()
    adam.state[net.bias]["step"] += 1
    with pytest.raises(Unfit, match="more steps with some parameters"):
        Flat(list(net.parameters()), adam)
