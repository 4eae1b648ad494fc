"""The cases of `test_distributed`, in a process of their own whose forks are the workers: torch is
imported once, and has run nothing before the fork. The workers meet once, and go through all scenes
together. `python workers.py FOLDER`."""

import os
import socket
import sys
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

import torch
import torch._dynamo  # the first optimiser would import it, in every worker anew
import torch.distributed
from toys import Clock

import rlox
from rlox.learner.callbacks import BaseCallback, Checkpoints, EvalCallback
from rlox.learner.distributed import WorkerLostError
from rlox.learner.exchange_cost import ExchangeCost

SIZE = 2
SETTINGS = {
    "n_envs": 4,
    "n_steps": 16,
    "batch_size": 24,
    "n_epochs": 2,
    "seed": 7,
    "threads": 1,
    "optimizations": (),
}
ROLLOUT = 64
TARGET_KL = 1e-3


class Growing(Clock):
    """Each of its episodes is longer than the last one by a number of steps."""

    def __init__(self, by: int) -> None:
        super().__init__(length=20)
        self.by = by

    def reset(self, **options):
        self.length += self.by
        return super().reset(**options)


def ppo(**arguments) -> rlox.PPO:
    return rlox.PPO(**{"env": "CartPole-v1", **SETTINGS, **arguments})


def facts(model: rlox.PPO) -> dict:
    return {
        "weights": [p.detach().clone() for p in model.policy.parameters()],
        "minibatches": max((int(s["step"]) for s in model.optimizer.state.values()), default=0),
        "moments": [state["exp_avg"].clone() for state in model.optimizer.state.values()],
        "steps": model.num_timesteps,
        "returns": model.episode_returns,
        "figures": model.logger.values,
    }


def one_update(rank: int, folder: Path, **arguments) -> dict:
    """A rollout, and what is learnt from it."""
    model, rollouts = ppo(learning_rate=0.01, **arguments), []
    update = model._update

    def kept(rollout) -> None:
        rollouts.append(tuple(rollout))
        update(rollout)

    model._update = kept  # type: ignore[method-assign]
    model.learn(ROLLOUT)
    return facts(model) | {"rollout": rollouts[0], "update": model.update_path}


def one_native_update(rank: int, folder: Path) -> dict:
    """The same where updates run in Rust."""
    return one_update(rank, folder, optimizations=["R9"])


def ended_early(rank: int, folder: Path, **arguments) -> dict:
    """An update that `target_kl` ends."""
    return one_update(rank, folder, target_kl=TARGET_KL, **arguments)


def ended_early_natively(rank: int, folder: Path) -> dict:
    """The same where updates run in Rust."""
    return ended_early(rank, folder, optimizations=["R9"])


def frozen(rank: int, folder: Path) -> dict:
    """The actor's first layer is frozen after the first update."""

    class Freeze(BaseCallback):
        def on_rollout_end(self) -> None:
            if self.num_timesteps == 2 * ROLLOUT:
                self.model.policy.actor[0].requires_grad_(False)
                self.was = facts(self.model)["weights"]

    freeze = Freeze()
    model = ppo(optimizations=["R9"]).learn(3 * ROLLOUT, callback=freeze)
    return facts(model) | {"was": freeze.was}


def at_odds(rank: int, folder: Path) -> dict:
    """One worker's loss is wrapped after the first update, so that Rust cannot run it any more."""

    class Wrap(BaseCallback):
        def on_rollout_end(self) -> None:
            if rank == 1 and self.num_timesteps == 2 * ROLLOUT:
                loss = self.model.loss
                self.model.loss = lambda *args, **kwargs: loss(*args, **kwargs)

    model = ppo(optimizations=["R9"]).learn(3 * ROLLOUT, callback=Wrap())
    return facts(model) | {"update": model.update_path}


def long_and_resumed(rank: int, folder: Path) -> dict:
    """Two trainings in a row, and the second one once more from what was saved between them."""
    model = ppo().learn(2 * ROLLOUT)
    model.save(folder / "between.pt")
    model._last_obs = None  # begin new episodes, too: those under way are not saved
    model.learn(2 * ROLLOUT, reset_num_timesteps=False)
    resumed = rlox.PPO.load(folder / "between.pt", threads=1)
    resumed.learn(2 * ROLLOUT, reset_num_timesteps=False)
    return facts(model) | {"resumed": facts(resumed)}


def native(rank: int, folder: Path) -> dict:
    """The same where rollouts are collected in Rust."""
    on = {"optimizations": ["R4", "R9"], "threads": 1}
    model = ppo(**on).learn(2 * ROLLOUT)
    model.save(folder / "native.pt")
    model._last_obs = None  # begin new episodes, too: those under way are not saved
    model.learn(2 * ROLLOUT, reset_num_timesteps=False)
    resumed = rlox.PPO.load(folder / "native.pt", **on)
    resumed.learn(2 * ROLLOUT, reset_num_timesteps=False)
    return facts(model) | {"resumed": facts(resumed), "path": model.rollout_path}


def not_estimated(rank: int, folder: Path) -> dict:
    """`native` without an estimate of what the exchanges cost."""
    with mock.patch.object(ExchangeCost, "add", lambda *_: None):
        return native(rank, folder)


def stopped(rank: int, folder: Path) -> dict:
    """A callback of one worker ends training."""

    class Stop(BaseCallback):
        def on_step(self) -> bool:
            return rank == 0 or self.num_timesteps < 2 * ROLLOUT

    return facts(ppo().learn(100 * ROLLOUT, callback=Stop()))


def evaluated(rank: int, folder: Path) -> dict:
    """Workers whose own evaluations differ save the best model."""
    wrote = folder / f"evaluations-{rank}"
    callback = EvalCallback(
        Growing(1 - 2 * rank), n_eval_episodes=1, eval_freq=16, log_path=wrote,
        best_model_save_path=folder, verbose=0,
    )  # fmt: skip
    model = ppo(env=[Clock] * 2).learn(3 * ROLLOUT, callback=callback)
    wrote /= "evaluations.npz"
    return facts(model) | {"best": callback.best_mean_reward, "wrote": wrote.exists()}


def lost(rank: int, folder: Path) -> dict:
    """One worker ends in the third rollout."""

    class Die(BaseCallback):
        def on_step(self) -> None:
            if rank == 1 and self.num_timesteps > 2 * ROLLOUT:
                os._exit(1)

    model = ppo()
    try:
        model.learn(100 * ROLLOUT, callback=[Die(), Checkpoints(folder / "last.pt", ROLLOUT)])
    except WorkerLostError as error:
        return facts(model) | {"error": str(error)}
    return {"error": "none"}


SCENES = (
    one_update,
    one_native_update,
    ended_early,
    ended_early_natively,
    frozen,
    at_odds,
    long_and_resumed,
    native,
    not_estimated,
    stopped,
    evaluated,
    lost,  # the last one: a worker does not come back
)


def worker(rank: int, port: int, folder: Path) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(SIZE)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    for scene in SCENES:
        torch.save(scene(rank, folder), folder / f"{scene.__name__}-{rank}.pt")


def main(folder: Path) -> int | None:
    """The exit code of the first worker, which goes through all scenes."""
    fork = get_context("fork")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = [fork.Process(target=worker, args=(rank, port, folder)) for rank in range(SIZE)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    return running[0].exitcode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
