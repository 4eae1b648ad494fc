"""PPO in one file, in the manner of CleanRL (Huang et al. 2022): eager torch, top to bottom.

`form` says which library makes the vector environment: "gymnasium", "envpool" or "pufferlib".
"""

from run import JOB, Returns, Run, limit_torch

limit_torch()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributions import Categorical  # noqa: E402


def make_envs():
    """The vector environment, the sizes of its observations and its number of actions."""
    env_id, n_envs, seed = JOB["env_id"], JOB["n_envs"], JOB["seed"]
    if JOB["form"] == "envpool":
        import envpool

        envs = envpool.make(env_id, env_type="gymnasium", num_envs=n_envs, seed=seed)
        return envs, envs.observation_space.shape[0], envs.action_space.n
    if JOB["form"] == "pufferlib":
        import gymnasium
        from pufferlib import emulation, vector

        class Env(emulation.GymnasiumPufferEnv):
            """Also starts a new episode after a time limit, which PufferLib 1.0.1 does not."""

            def step(self, action):
                found = super().step(action)
                self.done = found[2] or found[3]
                return found

        def creator():
            return Env(env_creator=gymnasium.make, env_args=[env_id])

        envs = vector.make(creator, num_envs=n_envs, backend=vector.Serial)
    else:
        from functools import partial

        import gymnasium
        from gymnasium.vector import AutoresetMode, SyncVectorEnv

        thunks = [partial(gymnasium.make, env_id)] * n_envs
        envs = SyncVectorEnv(thunks, autoreset_mode=AutoresetMode.SAME_STEP)
    return envs, envs.single_observation_space.shape[0], envs.single_action_space.n


def layer(n_in: int, n_out: int, gain: float = 2**0.5) -> nn.Linear:
    """A linear layer with orthogonal weights and no bias."""
    made = nn.Linear(n_in, n_out)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    """Two networks of two tanh layers."""

    def __init__(self, obs_dim: int, n_actions: int) -> None:
        super().__init__()

        def net(n_out: int, gain: float) -> nn.Sequential:
            return nn.Sequential(
                layer(obs_dim, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, n_out, gain)
            )

        self.critic, self.actor = net(1, 1.0), net(n_actions, 0.01)

    def value(self, obs):
        return self.critic(obs)

    def act(self, obs, action=None):
        probs = Categorical(logits=self.actor(obs))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(obs)


def main() -> None:
    np.random.seed(JOB["seed"])  # noqa: NPY002
    torch.manual_seed(JOB["seed"])
    n_envs, n_steps, gamma = JOB["n_envs"], JOB["n_steps"], JOB["gamma"]
    envs, obs_dim, n_actions = make_envs()
    agent = Agent(obs_dim, n_actions)
    optimizer = torch.optim.Adam(agent.parameters(), lr=JOB["learning_rate"], eps=1e-5)

    obs = torch.zeros(n_steps, n_envs, obs_dim)
    actions = torch.zeros(n_steps, n_envs, dtype=torch.long)
    log_probs, rewards, dones, values = (torch.zeros(n_steps, n_envs) for _ in range(4))

    run = Run()
    returns_of = Returns(run, n_envs)
    run.begin()
    steps = 0
    first = envs.reset() if JOB["form"] == "envpool" else envs.reset(seed=JOB["seed"])
    next_obs = torch.Tensor(first[0])
    next_done = torch.zeros(n_envs)
    while steps < JOB["total_timesteps"]:
        for t in range(n_steps):
            steps += n_envs
            obs[t], dones[t] = next_obs, next_done
            with torch.no_grad():
                action, log_prob, _, value = agent.act(next_obs)
            values[t], actions[t], log_probs[t] = value.flatten(), action, log_prob
            new_obs, reward, terminated, truncated, _ = envs.step(action.numpy())
            done = np.logical_or(terminated, truncated)
            rewards[t] = torch.as_tensor(reward).view(-1)
            next_obs, next_done = torch.Tensor(new_obs), torch.Tensor(done)
            returns_of.add(reward, done, steps)

        with torch.no_grad():
            last_value = agent.value(next_obs).flatten()
            advantages = torch.zeros_like(rewards)
            gae = torch.zeros(n_envs)
            for t in reversed(range(n_steps)):
                going_on = 1.0 - (next_done if t == n_steps - 1 else dones[t + 1])
                next_value = last_value if t == n_steps - 1 else values[t + 1]
                delta = rewards[t] + gamma * next_value * going_on - values[t]
                advantages[t] = gae = delta + gamma * JOB["gae_lambda"] * going_on * gae
            returns = advantages + values

        b_obs, b_actions = obs.reshape(-1, obs_dim), actions.reshape(-1)
        b_log_probs, b_advantages = log_probs.reshape(-1), advantages.reshape(-1)
        b_returns = returns.reshape(-1)
        order = np.arange(n_envs * n_steps)
        for _ in range(JOB["n_epochs"]):
            np.random.shuffle(order)  # noqa: NPY002
            for start in range(0, len(order), JOB["batch_size"]):
                mb = order[start : start + JOB["batch_size"]]
                _, new_log_prob, entropy, new_value = agent.act(b_obs[mb], b_actions[mb])
                log_ratio = new_log_prob - b_log_probs[mb]
                ratio = log_ratio.exp()
                with torch.no_grad():
                    ((ratio - 1) - log_ratio).mean()  # the KL divergence that CleanRL logs
                adv = b_advantages[mb]
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                clipped = torch.clamp(ratio, 1 - JOB["clip_range"], 1 + JOB["clip_range"])
                policy_loss = torch.max(-adv * ratio, -adv * clipped).mean()
                value_loss = ((new_value.view(-1) - b_returns[mb]) ** 2).mean()
                loss = policy_loss - JOB["ent_coef"] * entropy.mean() + JOB["vf_coef"] * value_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), JOB["max_grad_norm"])
                optimizer.step()
    run.end(steps)


if __name__ == "__main__":
    main()
