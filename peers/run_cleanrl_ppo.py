"""PPO in one file, in the manner of CleanRL (Huang et al. 2022): eager torch, top to bottom.

`form` says which library makes the vector environment: "gymnasium", "pufferlib", "envpool" with one
thread for its environments, or "envpool-2" with two.
"""

from run import JOB, Returns, Run, atari_envs, convolutions, limit_torch, pixels

limit_torch()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributions import Categorical, Normal  # noqa: E402

ENVPOOL_THREADS = {"envpool": 1, "envpool-2": 2}


def make_envs():
    """The vector environment, and the spaces of one environment."""
    env_id, n_envs, seed = JOB["env_id"], JOB["n_envs"], JOB["seed"]
    if threads := ENVPOOL_THREADS.get(JOB["form"]):
        import envpool

        frames = {}
        if pixels():
            env_id = env_id.replace("NoFrameskip-v4", "-v5")
            frames = {"reward_clip": True, "use_fire_reset": True}
        envs = envpool.make(
            env_id,
            env_type="gymnasium",
            num_envs=n_envs,
            num_threads=threads,
            seed=seed,
            **frames,
        )
        return envs, envs.observation_space, envs.action_space
    if pixels():
        envs = atari_envs()
        return envs, envs.single_observation_space, envs.single_action_space
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
    return envs, envs.single_observation_space, envs.single_action_space


def orthogonal(made: nn.Module, gain: float = 2**0.5) -> nn.Module:
    """The layer, with orthogonal weights and no bias."""
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


def layer(n_in: int, n_out: int, gain: float = 2**0.5) -> nn.Module:
    """A linear layer with orthogonal weights and no bias."""
    return orthogonal(nn.Linear(n_in, n_out), gain)


class Frames(nn.Module):
    """The convolutions of Mnih et al. (2015)."""

    def __init__(self) -> None:
        super().__init__()
        self.net = convolutions()
        for one in self.net:
            if isinstance(one, nn.Conv2d | nn.Linear):
                orthogonal(one)

    def forward(self, obs):
        return self.net(obs / 255.0)


class Agent(nn.Module):
    """Two networks of two tanh layers; for images, one layer each over the same convolutions. An
    action is one of several, or Gaussian with a deviation that no observation changes."""

    def __init__(self, obs_space, action_space) -> None:
        super().__init__()
        self.discrete = hasattr(action_space, "n")
        n_out = int(action_space.n) if self.discrete else action_space.shape[0]
        if pixels():
            self.features = Frames()
            self.critic, self.actor = layer(512, 1, 1.0), layer(512, n_out, 0.01)
        else:
            n_in = obs_space.shape[0]
            self.features = nn.Identity()
            self.critic, self.actor = (
                nn.Sequential(
                    layer(n_in, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), layer(64, n, gain)
                )
                for n, gain in ((1, 1.0), (n_out, 0.01))
            )
        if not self.discrete:
            self.log_std = nn.Parameter(torch.zeros(n_out))
            self.low, self.high = action_space.low, action_space.high

    def value(self, obs):
        return self.critic(self.features(obs))

    def act(self, obs, action=None):
        features = self.features(obs)
        out, value = self.actor(features), self.critic(features)
        if self.discrete:
            probs = Categorical(logits=out)
            action = probs.sample() if action is None else action
            return action, probs.log_prob(action), probs.entropy(), value
        probs = Normal(out, self.log_std.exp().expand_as(out))
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), value

    def env_actions(self, action):
        """What the environments take; they refuse actions beyond their bounds."""
        return action.numpy() if self.discrete else np.clip(action.numpy(), self.low, self.high)


def main() -> None:
    np.random.seed(JOB["seed"])  # noqa: NPY002
    torch.manual_seed(JOB["seed"])
    n_envs, n_steps, gamma = JOB["n_envs"], JOB["n_steps"], JOB["gamma"]
    envs, obs_space, action_space = make_envs()
    agent = Agent(obs_space, action_space)
    optimizer = torch.optim.Adam(agent.parameters(), lr=JOB["learning_rate"], eps=1e-5)

    obs = torch.zeros(n_steps, n_envs, *obs_space.shape)
    actions = torch.zeros(n_steps, n_envs, *action_space.shape)
    actions = actions.long() if agent.discrete else actions
    log_probs, rewards, dones, values = (torch.zeros(n_steps, n_envs) for _ in range(4))

    run = Run()
    returns_of = Returns(run, n_envs)
    run.begin()
    steps = 0
    seeded = {} if JOB["form"] in ENVPOOL_THREADS else {"seed": JOB["seed"]}
    first = envs.reset(**seeded)
    next_obs = torch.Tensor(first[0])
    next_done = torch.zeros(n_envs)
    while steps < JOB["total_timesteps"]:
        for t in range(n_steps):
            steps += n_envs
            obs[t], dones[t] = next_obs, next_done
            with torch.no_grad():
                action, log_prob, _, value = agent.act(next_obs)
            values[t], actions[t], log_probs[t] = value.flatten(), action, log_prob
            new_obs, reward, terminated, truncated, _ = envs.step(agent.env_actions(action))
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

        b_obs, b_actions = obs.flatten(0, 1), actions.flatten(0, 1)
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
