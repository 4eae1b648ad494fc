"""SAC in one file, in the manner of CleanRL (Huang et al. 2022): eager torch, top to bottom."""

from run import JOB, Returns, Run, limit_torch

limit_torch()

import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

LOG_STD_MIN, LOG_STD_MAX = -5, 2


def net(n_in: int, n_out: int) -> nn.Sequential:
    """Two layers of 256."""
    return nn.Sequential(
        nn.Linear(n_in, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, n_out)
    )


class Actor(nn.Module):
    """A squashed Gaussian, scaled to the environment's actions."""

    def __init__(self, obs_dim: int, space) -> None:
        super().__init__()
        self.act_dim = space.shape[0]
        self.net = net(obs_dim, 2 * self.act_dim)
        self.register_buffer("scale", torch.tensor((space.high - space.low) / 2))
        self.register_buffer("bias", torch.tensor((space.high + space.low) / 2))

    def forward(self, obs):
        mean, log_std = self.net(obs).chunk(2, dim=-1)
        log_std = LOG_STD_MIN + 0.5 * (LOG_STD_MAX - LOG_STD_MIN) * (torch.tanh(log_std) + 1)
        normal = torch.distributions.Normal(mean, log_std.exp())
        u = normal.rsample()
        y = torch.tanh(u)
        log_prob = normal.log_prob(u) - torch.log(self.scale * (1 - y.pow(2)) + 1e-6)
        return y * self.scale + self.bias, log_prob.sum(1, keepdim=True)


def main() -> None:
    torch.manual_seed(JOB["seed"])
    rng = np.random.default_rng(JOB["seed"])
    env = gymnasium.make(JOB["env_id"])
    env.action_space.seed(JOB["seed"])
    obs_dim, act_dim = env.observation_space.shape[0], env.action_space.shape[0]
    actor = Actor(obs_dim, env.action_space)
    qf1, qf2, target1, target2 = (net(obs_dim + act_dim, 1) for _ in range(4))
    target1.load_state_dict(qf1.state_dict())
    target2.load_state_dict(qf2.state_dict())
    lr, gamma, batch_size = JOB["learning_rate"], JOB["gamma"], JOB["batch_size"]
    q_optimizer = torch.optim.Adam([*qf1.parameters(), *qf2.parameters()], lr=lr)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=lr)
    log_alpha = torch.zeros(1, requires_grad=True)
    alpha_optimizer = torch.optim.Adam([log_alpha], lr=lr)
    alpha = 1.0

    size = min(JOB["buffer_size"], JOB["total_timesteps"])
    b_obs, b_next = (np.zeros((size, obs_dim), np.float32) for _ in range(2))
    b_action = np.zeros((size, act_dim), np.float32)
    b_reward, b_terminated = (np.zeros((size, 1), np.float32) for _ in range(2))

    run = Run()
    returns_of = Returns(run, 1)
    run.begin()
    obs, _ = env.reset(seed=JOB["seed"])
    for step in range(JOB["total_timesteps"]):
        if step < JOB["learning_starts"]:
            action = env.action_space.sample()
        else:
            with torch.no_grad():
                action = actor(torch.as_tensor(obs, dtype=torch.float32)[None])[0][0].numpy()
        next_obs, reward, terminated, truncated, _ = env.step(action)
        i = step % size
        b_obs[i], b_next[i], b_action[i] = obs, next_obs, action
        b_reward[i], b_terminated[i] = reward, terminated
        done = terminated or truncated
        returns_of.add(np.array([reward]), np.array([done]), step + 1)
        obs = env.reset()[0] if done else next_obs
        if step < JOB["learning_starts"]:
            continue

        rows = rng.integers(0, min(step + 1, size), batch_size)
        s, s2, a, r, end = (
            torch.as_tensor(x[rows]) for x in (b_obs, b_next, b_action, b_reward, b_terminated)
        )
        with torch.no_grad():
            a2, log_pi2 = actor(s2)
            x2 = torch.cat([s2, a2], 1)
            soft = torch.min(target1(x2), target2(x2)) - alpha * log_pi2
            target = r + (1 - end) * gamma * soft
        x = torch.cat([s, a], 1)
        q_loss = F.mse_loss(qf1(x), target) + F.mse_loss(qf2(x), target)
        q_optimizer.zero_grad()
        q_loss.backward()
        q_optimizer.step()

        pi, log_pi = actor(s)
        x = torch.cat([s, pi], 1)
        actor_loss = (alpha * log_pi - torch.min(qf1(x), qf2(x))).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()

        alpha_loss = (-log_alpha.exp() * (log_pi.detach() - act_dim)).mean()
        alpha_optimizer.zero_grad()
        alpha_loss.backward()
        alpha_optimizer.step()
        alpha = log_alpha.exp().item()

        for source, target_net in ((qf1, target1), (qf2, target2)):
            for p, q in zip(source.parameters(), target_net.parameters(), strict=True):
                q.data.copy_(JOB["tau"] * p.data + (1 - JOB["tau"]) * q.data)
    run.end(JOB["total_timesteps"])


if __name__ == "__main__":
    main()
