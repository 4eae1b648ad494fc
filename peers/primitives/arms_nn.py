"""Steps of small networks in torch. `form` "eager" is written as usual; "compiled" compiles forward
pass and loss, and Adam's step, by torch.compile."""

import math
from itertools import pairwise

import inputs
import torch
from arm import FORM, THREADS, Arm
from torch import nn
from torch.nn import functional

torch.set_num_threads(THREADS)


def _compiled(form):
    return torch.compile(form, dynamic=False) if FORM == "compiled" else form


def _net(widths, activation, start):
    """A network with the parameters from `inputs`."""
    layers = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), activation()]
    net = nn.Sequential(*layers[:-1])
    nn.utils.vector_to_parameters(torch.from_numpy(inputs.params(widths, start)), net.parameters())
    return net


def _training(make) -> Arm:
    """Steps of Adam; `make()` returns networks and a function that gives their loss."""

    def begin():
        nets, loss_of = make()
        parameters = [p for net in nets for p in net.parameters()]
        adam = torch.optim.Adam(parameters, lr=inputs.LR, eps=inputs.EPS)
        loss_of, update = _compiled(loss_of), _compiled(adam.step)

        def step():
            adam.zero_grad()
            loss_of().backward()
            update()

        return parameters, step

    def answer():
        parameters, step = begin()
        step()
        return {"params": nn.utils.parameters_to_vector(parameters).detach().numpy()}

    return Arm(begin()[1], answer)


def _tensors(columns):
    return {name: torch.from_numpy(x) for name, x in columns.items()}


def dqn_step():
    def make():
        q = _net(inputs.Q_NET, nn.ReLU, 0)
        target = _net(inputs.Q_NET, nn.ReLU, inputs.SECOND)
        batch = _tensors(inputs.minibatch())
        actions = batch["actions"][:, None]

        def loss():
            with torch.no_grad():
                next_q = target(batch["next_obs"]).max(1).values
                y = batch["rewards"] + batch["discounts"] * next_q
            found = q(batch["obs"]).gather(1, actions)[:, 0]
            return functional.mse_loss(found, y)

        return [q], loss

    return _training(make)


def ppo_step():
    def make():
        actor = _net(inputs.Q_NET, nn.Tanh, 0)
        critic = _net(inputs.VALUE_NET, nn.Tanh, inputs.SECOND)
        batch = _tensors(inputs.minibatch())
        actions = batch["actions"][:, None]

        def loss():
            a = batch["advantages"]
            a = (a - a.mean()) / (a.std() + 1e-8)
            every = functional.log_softmax(actor(batch["obs"]), dim=1)
            log_probs = every.gather(1, actions)[:, 0]
            ratio = (log_probs - batch["log_probs"]).exp()
            bounded = ratio.clamp(1 - inputs.CLIP_RANGE, 1 + inputs.CLIP_RANGE)
            surrogate = torch.min(ratio * a, bounded * a).mean()
            entropy = -(every.exp() * every).sum(1).mean()
            value_loss = functional.mse_loss(critic(batch["obs"])[:, 0], batch["returns"])
            return inputs.VF_COEF * value_loss - surrogate - inputs.ENT_COEF * entropy

        return [actor, critic], loss

    return _training(make)


def sac_sample():
    actor = _net(inputs.ACTOR, nn.ReLU, 0)
    obs, noise = (torch.from_numpy(x) for x in inputs.draw())
    half_log_2pi = 0.5 * math.log(2 * math.pi)

    @_compiled
    def draw(obs, noise):
        mean, log_std = actor(obs).chunk(2, dim=1)
        log_std = log_std.clamp(-20, 2)
        u = mean + log_std.exp() * noise
        squashing = 2 * (math.log(2) - u - functional.softplus(-2 * u))
        log_prob = -0.5 * noise**2 - log_std - half_log_2pi - squashing
        return torch.tanh(u), log_prob

    @torch.no_grad()
    def call():
        action, log_prob = draw(obs, noise)
        return action.numpy(), log_prob.numpy()

    def answer():
        action, log_prob = call()
        return {"action": action.copy(), "log_prob": log_prob.copy()}

    return Arm(call, answer)


def critic_step():
    def make():
        twins = [_net(inputs.CRITIC, nn.ReLU, start) for start in (0, inputs.SECOND)]
        x, y = (torch.from_numpy(x) for x in inputs.critic_batch())

        def loss():
            return 0.5 * sum(functional.mse_loss(critic(x)[:, 0], y) for critic in twins)

        return twins, loss

    return _training(make)


def layer():
    net, x = _net(inputs.LAYER, nn.ReLU, 0), torch.from_numpy(inputs.layer_rows())
    outputs = _compiled(net.forward)

    @torch.no_grad()
    def call():
        return outputs(x)

    return Arm(call, lambda: {"outputs": call().numpy().copy()})
