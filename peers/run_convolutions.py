"""The passes of PPO's convolutions alone, in torch: no environment, no loss, no optimiser. One pass
forward over the environments for each step, and in each epoch one forward and backward over each
minibatch. No trainer that has torch do these passes is faster."""

from run import JOB, Run, limit_torch

limit_torch()

import torch  # noqa: E402
from torch import nn  # noqa: E402


def network() -> nn.Sequential:
    """The network of Mnih et al. (2015) up to its layer of 512."""
    return nn.Sequential(
        nn.Conv2d(4, 32, 8, 4), nn.ReLU(),
        nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1), nn.ReLU(),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU(),
    )  # fmt: skip


def main() -> None:
    torch.manual_seed(JOB["seed"])
    n_envs, n_steps, batch_size = JOB["n_envs"], JOB["n_steps"], JOB["batch_size"]
    net = network()
    frames, minibatch = torch.rand(n_envs, 4, 84, 84), torch.rand(batch_size, 4, 84, 84)
    gradient = torch.rand(batch_size, 512)
    run = Run()
    run.begin()
    steps = 0
    while steps < JOB["total_timesteps"]:
        with torch.no_grad():
            for _ in range(n_steps):
                net(frames)
        steps += n_envs * n_steps
        for _ in range(JOB["n_epochs"] * n_envs * n_steps // batch_size):
            net(minibatch).backward(gradient)
    run.end(steps)


if __name__ == "__main__":
    main()
