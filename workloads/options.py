"""The training runs that `rlox-opt profile` and `record` know, and whether their options fit each
other, the environment and the machine.

Every mistake is found before training begins, and told in one line: the argument, the value, what
would do.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlox_opt.project import cards
from rlox_opt.project.project import Project
from rlox_opt.sampling.spec import Spec
from rlox_opt.system.numbers import whole
from rlox_opt.system.usage import UsageError

# The runs of the reference profile; what is not here is the trainer's own default.
DEFAULTS: dict[str, dict[str, Any]] = {
    "ppo": {"env_id": "CartPole-v1", "total_timesteps": 50_000, "n_envs": 8, "n_steps": 128},
    "sac": {"env_id": "Pendulum-v1", "total_timesteps": 20_000, "n_envs": 1},
}
NAMES = tuple(sorted(DEFAULTS))
# Short runs: the trainers as they come, and with the settings that put further seams on the path.
JOBS: dict[str, dict[str, Any]] = {
    "ppo": {
        "algo": "ppo",
        "env_id": "CartPole-v1",
        "settings": {"n_envs": 8, "collector": "sync"},
        "warmup": 2_048,
        "steps": 10_240,
        "repeats": 2,
        "threads": 1,
    },
    "sac": {
        "algo": "sac",
        "env_id": "Pendulum-v1",
        "settings": {"n_envs": 1, "prioritized": False, "learning_starts": 100},
        "warmup": 110,
        "steps": 600,
        "repeats": 1,
        "threads": 1,
    },
}
JOBS["ppo-async"] = JOBS["ppo"] | {"settings": {"n_envs": 8, "collector": "async"}}
# Few updates: what varies is the buffer.
JOBS["sac-prioritized"] = JOBS["sac"] | {
    "settings": {"n_envs": 1, "prioritized": True, "learning_starts": 2_900},
    "warmup": 2_910,
    "steps": 3_000,
}
BATCH_SIZE = 512
LEARNING_STARTS = 1000
_STEADY_UPDATES = 100  # of SAC, after which it is warm
_STEADY_ROLLOUTS = 2  # of PPO

SEVERAL = {"--nproc": "nproc", "--vector": "vector"}
EXAMPLES = """\
examples:
  rlox-opt profile train ppo                   CartPole-v1, 50,000 steps, all tools: 2 minutes
  rlox-opt profile train sac --total-timesteps 5000  a shorter run of SAC on Pendulum-v1
  rlox-opt profile train ppo --env-id FrozenLake-v1  any Gymnasium environment
  rlox-opt profile train ppo --tools py-spy,perf --seconds 20
  rlox-opt profile train ppo --tools none --json > report.json
  rlox-opt profile train ppo --nproc 2 --vector async  several processes: one report, one trace
"""
_CHILD = Path(__file__).with_name("child_of.py")


def add_training(parser: argparse.ArgumentParser) -> None:
    """What is trained, beside the algorithm."""
    count = whole(1)
    add = parser.add_argument_group("training").add_argument
    add(
        "--env-id",
        metavar="ID",
        help="any registered Gymnasium environment (CartPole-v1; Pendulum-v1 for SAC)",
    )
    add(
        "--total-timesteps",
        type=count,
        metavar="N",
        help="environment steps of the plain run (50000; 20000 for SAC)",
    )
    add("--n-envs", type=count, metavar="N", help="environments stepped together (8; 1 for SAC)")
    add("--n-steps", type=count, metavar="N", help="PPO: steps per environment and rollout (128)")
    add(
        "--collector",
        choices=("sync", "async"),
        help="PPO: step and learn in turn, or step in the background (sync)",
    )
    add("--prioritized", action="store_true", help="SAC: prioritised replay")
    add("--seed", type=whole(0), default=0, metavar="N", help="the trainer's seed (%(default)s)")
    add("--device", default="cpu", help="where torch computes: cpu, cuda, cuda:1 (%(default)s)")
    add("--threads", type=count, default=1, metavar="N", help="torch's threads (%(default)s)")


def add_switches(parser: argparse.ArgumentParser, does: str) -> None:
    """Optimisations of the training loop: `does` says what is done with or without them."""
    add = parser.add_argument_group("optimisations of the training loop").add_argument
    for option, what in (("--enable", "with"), ("--disable", "without")):
        add(
            option,
            type=_ids,
            default=frozenset(),
            metavar="IDS",
            help=f"{does} {what} these, comma-separated: r1,r4",
        )


def add_several(add: Callable[..., Any]) -> None:
    """Options that spread the training over several processes."""
    add("--nproc", type=int, metavar="N", help="PPO: train in N processes, by torchrun")
    add(
        "--vector",
        choices=("sync", "async"),
        help="Gymnasium's vector environment: all in one process, or each in one of its own",
    )


def command(
    arguments: argparse.Namespace, spec: Spec, path: Path, *, serial: bool = False
) -> list[str]:
    """What trains as the spec in `path` says, over the processes that the arguments ask for; if
    `serial`, in one. Raises UsageError."""
    vector = arguments.vector or "native"
    if serial and vector == "async":
        vector = "sync"
    module = ["-m", "workloads.training", str(path), vector]
    nproc = 1 if serial or arguments.nproc is None else arguments.nproc
    if nproc < 1:
        raise UsageError(f"--nproc {nproc}: trains nowhere; use 1 or more")
    if nproc == 1:
        return [sys.executable, *module]
    if spec.algo != "ppo":
        raise UsageError(f"--nproc {nproc}: {spec.algo.upper()} trains in one; use ppo")
    if arguments.collector == "async":
        raise UsageError(f"--nproc {nproc}: --collector async trains in one; use sync")
    n_envs = spec.trainer["n_envs"]
    if n_envs % nproc:
        raise UsageError(
            f"--nproc {nproc}: the processes share {n_envs} environments; use --n-envs "
            f"{-(-n_envs // nproc) * nproc}"
        )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return [*torchrun, "--nproc-per-node", str(nproc), *module]


def reference(project: Project, algo: str) -> Spec:
    """The training that `rlox-opt profile` takes unasked. Raises UsageError as `spec_of` does."""
    parser = argparse.ArgumentParser()
    parser.add_argument("algo", choices=NAMES)
    add_training(parser)
    add_switches(parser, "train")
    return spec_of(project, parser.parse_args([algo]))


def spec_of(project: Project, arguments: argparse.Namespace) -> Spec:
    """The training that the arguments ask for.

    Raises:
        UsageError: they do not fit each other, the environment or the machine.
    """
    algo, defaults = arguments.algo, DEFAULTS[arguments.algo]
    values = {
        name: default if getattr(arguments, name) is None else getattr(arguments, name)
        for name, default in defaults.items()
    }
    trainer: dict[str, Any] = {"n_envs": values["n_envs"]}
    if algo == "ppo":
        if arguments.prioritized:
            raise UsageError("--prioritized: PPO has no replay buffer; use it with sac")
        trainer |= _ppo(values) | {"collector": arguments.collector or "sync"}
        warmup = _STEADY_ROLLOUTS * values["n_envs"] * values["n_steps"]
        counted = f"rollout of {values['n_envs'] * values['n_steps']:,} steps"
    else:
        for name in ("n_steps", "collector"):
            if getattr(arguments, name) is not None:
                option = "--" + name.replace("_", "-")
                raise UsageError(
                    f"{option} {getattr(arguments, name)}: SAC has none; use it with ppo"
                )
        trainer |= _sac(values) | {"prioritized": arguments.prioritized}
        warmup, counted = LEARNING_STARTS + _STEADY_UPDATES * values["n_envs"], "step"
    if arguments.enable or arguments.disable:
        trainer["optimizations"] = _optimizations(project, arguments.enable, arguments.disable)
    _check_threads(arguments.threads)
    _check_env(algo, values["env_id"], trainer)
    _check_device(arguments.device)
    return Spec(
        child=str(_CHILD),
        mode="plain",
        algo=algo,
        env_id=values["env_id"],
        total_timesteps=values["total_timesteps"],
        seed=arguments.seed,
        device=arguments.device,
        threads=arguments.threads,
        warmup_steps=warmup,
        seconds=0.0,
        folder="",
        trainer=trainer,
        update="gradient_update",
        crossings_per=counted,
    )


def _optimizations(project: Project, enable: frozenset[str], disable: frozenset[str]) -> list[str]:
    """Ids of the training loop: those that are accepted, with some and without others."""
    known = [card for card in cards.load(project) if not card.in_build]
    ids = [card.id for card in known]
    settings = {card.id for card in known if card.seam.kind == "setting"}
    for option, asked in (("--enable", enable), ("--disable", disable)):
        if unknown := sorted(asked.difference(ids)):
            raise UsageError(
                f"{option} {','.join(unknown).lower()}: is no optimisation of the training loop; "
                f"there are {', '.join(ids).lower()}"
            )
        if asked & settings:
            raise UsageError(
                f"{option} {','.join(sorted(asked & settings)).lower()}: is a setting; use "
                "--n-envs for r6 and r11, --device for r10"
            )
    if both := sorted(enable & disable):
        raise UsageError(f"--disable {','.join(both).lower()}: is enabled, too; leave one out")
    accepted = {card.id for card in known if card.status in ("accepted", "graduated")}
    return [id_ for id_ in ids if id_ in (accepted | enable) - disable]


def _ppo(values: dict[str, Any]) -> dict[str, Any]:
    n_envs, n_steps, total = values["n_envs"], values["n_steps"], values["total_timesteps"]
    rollout = n_envs * n_steps
    if total < rollout:
        raise UsageError(
            f"--total-timesteps {total}: less than one rollout of {n_envs} x {n_steps} = "
            f"{rollout} steps; use {rollout} or more, or a smaller --n-envs or --n-steps"
        )
    if rollout < BATCH_SIZE:
        raise UsageError(
            f"--n-steps {n_steps}: a rollout of {n_envs} x {n_steps} = {rollout} steps is smaller "
            f"than a minibatch of {BATCH_SIZE}; use {-(-BATCH_SIZE // n_envs)} or more"
        )
    return {"n_steps": n_steps, "batch_size": BATCH_SIZE, "n_epochs": 4}


def _sac(values: dict[str, Any]) -> dict[str, Any]:
    least = LEARNING_STARTS + _STEADY_UPDATES * values["n_envs"]
    if values["total_timesteps"] < least:
        raise UsageError(
            f"--total-timesteps {values['total_timesteps']}: SAC learns only after "
            f"{LEARNING_STARTS} random steps; use {least} or more"
        )
    return {"learning_starts": LEARNING_STARTS}


def _check_env(algo: str, env_id: str, trainer: dict[str, Any]) -> None:
    """The environment can be made, and the algorithm can act and see in it."""
    import gymnasium as gym
    from gymnasium import spaces

    option = f"--env-id {env_id}"
    try:
        env = gym.make(env_id)
    except gym.error.UnregisteredEnv:
        near = difflib.get_close_matches(env_id, gym.registry, 3, cutoff=0.5)
        would_do = (
            f"did you mean {' or '.join(near)}?" if near else "see gymnasium.pprint_registry()"
        )
        raise UsageError(f"{option}: no such environment; {would_do}") from None
    # What an environment's own constructor raises is not ours to foresee.
    except Exception as error:
        raise UsageError(f"{option}: cannot be made: {_one_line(error)}") from None
    observations, actions = env.observation_space, env.action_space
    env.close()
    if not isinstance(observations, spaces.Box | spaces.Discrete):
        raise UsageError(
            f"{option}: observations are {_one_line(observations)}; use one whose "
            "observations are a Box or Discrete"
        )
    if algo == "sac" and not (isinstance(actions, spaces.Box) and actions.is_bounded()):
        raise UsageError(
            f"{option}: actions are {_one_line(actions)}, and SAC acts in a bounded Box; use ppo, "
            "or an environment such as Pendulum-v1"
        )
    if not isinstance(actions, spaces.Box | spaces.Discrete):
        raise UsageError(
            f"{option}: actions are {_one_line(actions)}; use one whose actions are a Box or "
            "Discrete"
        )
    if trainer.get("collector") == "async":
        from rlox.env.native_backend import ENV_IDS

        if env_id not in ENV_IDS:
            raise UsageError(
                f"--collector async: {env_id} is not native; use sync, or {' or '.join(ENV_IDS)}"
            )


def _check_device(device: str) -> None:
    if device == "cpu":
        return
    if not re.fullmatch(r"cuda(:\d+)?", device):
        raise UsageError(f"--device {device}: no such device; use cpu, cuda or cuda:N")
    import torch

    n, index = torch.cuda.device_count(), int(device.partition(":")[2] or 0)
    if index >= n:
        raise UsageError(f"--device {device}: torch sees {n} CUDA devices here; use cpu")


def _check_threads(threads: int) -> None:
    cores = len(os.sched_getaffinity(0))
    if threads > cores:
        raise UsageError(f"--threads {threads}: more than the cores; use 1 to {cores}")


def _ids(text: str) -> frozenset[str]:
    return frozenset(id_.strip().upper() for id_ in text.split(","))


def _one_line(value: object) -> str:
    return " ".join(str(value).split())
