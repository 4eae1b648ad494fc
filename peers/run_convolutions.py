"""The passes of PPO's convolutions alone, in torch: no environment, no loss, no optimiser. One pass
forward over the environments for each step, and in each epoch one forward and backward over each
minibatch. Frames lie as torch has them by default; a trainer that lays them otherwise can be
faster."""

from run import JOB, Run, convolutions, limit_torch

limit_torch()

import torch  # noqa: E402


def main() -> None:
    torch.manual_seed(JOB["seed"])
    n_envs, n_steps, batch_size = JOB["n_envs"], JOB["n_steps"], JOB["batch_size"]
    net = convolutions()
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
