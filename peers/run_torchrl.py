"""TorchRL, assembled as in its own examples: SerialEnv, Collector, its losses."""

from run import JOB, Run, limit_torch

limit_torch()

import torch  # noqa: E402
from tensordict.nn import TensorDictModule  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributions import Categorical  # noqa: E402
from torchrl.collectors import Collector  # noqa: E402
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer  # noqa: E402
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement  # noqa: E402
from torchrl.envs import GymEnv, RewardSum, SerialEnv, TransformedEnv  # noqa: E402
from torchrl.modules import (  # noqa: E402
    MLP,
    NormalParamExtractor,
    ProbabilisticActor,
    TanhNormal,
    ValueOperator,
)
from torchrl.objectives import ClipPPOLoss, SACLoss, SoftUpdate  # noqa: E402
from torchrl.objectives.value import GAE  # noqa: E402


def make_env():
    """The environments, with the return of each episode beside its last step."""

    def one():
        return GymEnv(JOB["env_id"], device="cpu", categorical_action_encoding=True)

    env = SerialEnv(JOB["n_envs"], one) if JOB["n_envs"] > 1 else one()
    env = TransformedEnv(env, RewardSum())
    env.set_seed(JOB["seed"])
    return env


def book(run: Run, data, steps: int) -> None:
    """Log the episodes that ended in `data`, the last of `steps` environment steps."""
    ended, returns = (
        data["next", name].reshape(JOB["n_envs"], -1).T.numpy()
        for name in ("done", "episode_reward")
    )
    run.rollout(ended, returns, steps)


def orthogonal(net: nn.Module, last: float) -> nn.Module:
    """Orthogonal weights, of gain `last` in the last layer."""
    layers = [module for module in net.modules() if isinstance(module, nn.Linear)]
    for linear in layers:
        nn.init.orthogonal_(linear.weight, last if linear is layers[-1] else 2**0.5)
        nn.init.zeros_(linear.bias)
    return net


def ppo(run: Run) -> int:
    """Clipped PPO; returns the environment steps taken."""
    env = make_env()
    obs_dim, n_actions = env.observation_spec["observation"].shape[-1], env.action_spec.space.n
    shape = {"num_cells": [64, 64], "activation_class": nn.Tanh}
    logits = orthogonal(MLP(obs_dim, n_actions, **shape), 0.01)
    actor = ProbabilisticActor(
        TensorDictModule(logits, in_keys=["observation"], out_keys=["logits"]),
        in_keys=["logits"],
        distribution_class=Categorical,
        return_log_prob=True,
        spec=env.action_spec,
    )
    critic = ValueOperator(orthogonal(MLP(obs_dim, 1, **shape), 1.0), in_keys=["observation"])
    advantage = GAE(gamma=JOB["gamma"], lmbda=JOB["gae_lambda"], value_network=critic)
    loss_of = ClipPPOLoss(
        actor,
        critic,
        clip_epsilon=JOB["clip_range"],
        entropy_bonus=JOB["ent_coef"] > 0,
        entropy_coeff=JOB["ent_coef"],
        critic_coeff=JOB["vf_coef"],
        loss_critic_type="l2",
        normalize_advantage=True,
    )
    optimizer = torch.optim.Adam(loss_of.parameters(), lr=JOB["learning_rate"], eps=1e-5)
    rollout = JOB["n_envs"] * JOB["n_steps"]
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(rollout),
        sampler=SamplerWithoutReplacement(),
        batch_size=JOB["batch_size"],
    )
    collector = Collector(
        env,
        actor,
        frames_per_batch=rollout,
        total_frames=-(-JOB["total_timesteps"] // rollout) * rollout,
        device="cpu",
    )
    run.begin()
    steps = 0
    for data in collector:
        steps += data.numel()
        book(run, data, steps)
        with torch.no_grad():
            advantage(data)
        for _ in range(JOB["n_epochs"]):
            buffer.empty()
            buffer.extend(data.reshape(-1))
            for batch in buffer:
                losses = loss_of(batch)
                loss = losses["loss_objective"] + losses["loss_critic"]
                if JOB["ent_coef"] > 0:
                    loss = loss + losses["loss_entropy"]
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(loss_of.parameters(), JOB["max_grad_norm"])
                optimizer.step()
    return steps


def sac(run: Run) -> int:
    """SAC, one update a step after the warm-up; returns the environment steps taken."""
    env = make_env()
    spec = env.action_spec
    obs_dim, act_dim = env.observation_spec["observation"].shape[-1], spec.shape[-1]
    shape = {"num_cells": [256, 256], "activation_class": nn.ReLU}
    net = nn.Sequential(MLP(obs_dim, 2 * act_dim, **shape), NormalParamExtractor())
    actor = ProbabilisticActor(
        TensorDictModule(net, in_keys=["observation"], out_keys=["loc", "scale"]),
        in_keys=["loc", "scale"],
        spec=spec,
        distribution_class=TanhNormal,
        distribution_kwargs={"low": spec.space.low, "high": spec.space.high},
        return_log_prob=False,
    )
    qvalue = ValueOperator(
        MLP(obs_dim + act_dim, 1, **shape),
        in_keys=["action", "observation"],
        out_keys=["state_action_value"],
    )
    loss_of = SACLoss(
        actor, qvalue, num_qvalue_nets=2, loss_function="l2", delay_actor=False, delay_qvalue=True
    )
    loss_of.make_value_estimator(gamma=JOB["gamma"])
    targets = SoftUpdate(loss_of, tau=JOB["tau"])
    lr = JOB["learning_rate"]
    optimizers = {
        "loss_qvalue": torch.optim.Adam(
            list(loss_of.qvalue_network_params.flatten_keys().values()), lr=lr
        ),
        "loss_actor": torch.optim.Adam(
            list(loss_of.actor_network_params.flatten_keys().values()), lr=lr
        ),
        "loss_alpha": torch.optim.Adam([loss_of.log_alpha], lr=lr),
    }
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(min(JOB["buffer_size"], JOB["total_timesteps"])),
        batch_size=JOB["batch_size"],
    )
    collector = Collector(
        env,
        actor,
        frames_per_batch=1,
        init_random_frames=JOB["learning_starts"],
        total_frames=JOB["total_timesteps"],
        device="cpu",
    )
    run.begin()
    steps = 0
    for data in collector:
        steps += data.numel()
        book(run, data, steps)
        collector.update_policy_weights_()
        buffer.extend(data.reshape(-1))
        if steps <= JOB["learning_starts"]:
            continue
        losses = loss_of(buffer.sample())
        for name, optimizer in optimizers.items():
            optimizer.zero_grad()
            losses[name].backward(retain_graph=name == "loss_qvalue")
        for optimizer in optimizers.values():
            optimizer.step()
        targets.step()
    return steps


def main() -> None:
    torch.manual_seed(JOB["seed"])
    run = Run()
    steps = {"ppo": ppo, "sac": sac}[JOB["algo"]](run)
    run.end(steps)


if __name__ == "__main__":
    main()
