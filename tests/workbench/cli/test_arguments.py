"""A mistake on the command line is told in one line that names the argument, before training."""

from pathlib import Path

import in_python
import projects
import pytest
from command_line import rlox_opt
from rlox_opt.cli.arguments import job_of
from rlox_opt.cli.main import Parser
from rlox_opt.cli.profile_train import add_to
from rlox_opt.sampling.spec import TOOLS, Job
from rlox_opt.system.files import NotWrittenError
from rlox_opt.system.usage import UsageError


def job(*arguments: str) -> Job:
    parser = Parser("rlox-opt")
    parser.set_defaults(project=projects.HERE)
    add_to(parser.add_subparsers(), projects.HERE)
    return job_of(parser.parse_args(["train", *arguments]))


def test_the_defaults_are_the_reference_runs() -> None:
    ppo, sac = job("ppo").spec, job("sac").spec
    assert (ppo.env_id, ppo.total_timesteps) == ("CartPole-v1", 50_000)
    assert ppo.trainer == {
        "n_envs": 8,
        "n_steps": 128,
        "batch_size": 512,
        "n_epochs": 4,
        "collector": "sync",
    }
    assert (sac.env_id, sac.total_timesteps) == ("Pendulum-v1", 20_000)
    assert sac.trainer == {"n_envs": 1, "learning_starts": 1000, "prioritized": False}
    assert job("ppo").tools == TOOLS


def test_warm_up_ends_after_the_first_updates() -> None:
    assert job("ppo").spec.warmup_steps == 2 * 8 * 128
    assert job("sac", "--n-envs", "4").spec.warmup_steps > 1000 + 4


def test_tools_keep_their_order_and_a_window_overrides_theirs() -> None:
    asked = job("ppo", "--tools", "py-spy,perf", "--seconds", "7")
    assert asked.tools == ("perf", "py-spy")
    assert asked.seconds == 7
    assert job("ppo").seconds is None
    assert job("ppo", "--tools", "none").tools == ()


def test_optimisations_of_the_training_loop_are_switched() -> None:
    assert "optimizations" not in job("ppo").spec.trainer
    asked = job("ppo", "--enable", "r1,R8", "--disable", "r2").spec.trainer["optimizations"]
    assert {"R1", "R8"} <= set(asked)
    assert "R2" not in asked


def test_observations_may_be_numbers_of_a_choice() -> None:
    assert job("ppo", "--env-id", "FrozenLake-v1").spec.env_id == "FrozenLake-v1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ppo", "--enable", "r99"], ["--enable r99", "there are r1, r2, "]),
        (["ppo", "--disable", "p5"], ["--disable p5", "there are r1, r2, "]),
        (["ppo", "--enable", "r1,r2", "--disable", "r2"], ["--disable r2", "is enabled, too"]),
        (["sac", "--enable", "r6"], ["--enable r6: is a setting", "--n-envs"]),
        (["ppo", "--env-id", "CartPol-v1"], ["--env-id CartPol-v1", "CartPole-v1"]),
        (["ppo", "--env-id", "CartPole-v99"], ["--env-id CartPole-v99"]),
        (["sac", "--env-id", "CartPole-v1"], ["--env-id CartPole-v1", "Discrete(2)", "ppo"]),
        (["ppo", "--env-id", "Blackjack-v1"], ["--env-id Blackjack-v1", "Box"]),
        (["ppo", "--n-steps", "8"], ["--n-steps 8", "512", "use 64"]),
        (["ppo", "--total-timesteps", "100"], ["--total-timesteps 100", "1024"]),
        (["sac", "--total-timesteps", "900"], ["--total-timesteps 900", "1100"]),
        (["sac", "--n-steps", "64"], ["--n-steps 64", "ppo"]),
        (["sac", "--collector", "async"], ["--collector async", "ppo"]),
        (["ppo", "--prioritized"], ["--prioritized", "sac"]),
        (
            ["ppo", "--collector", "async", "--env-id", in_python.ACROBOT],
            ["--collector async", "sync"],
        ),
        (["ppo", "--device", "tpu"], ["--device tpu", "cpu"]),
        (["ppo", "--threads", "4096"], ["--threads 4096", "use 1"]),
    ],
)
def test_arguments_that_do_not_fit_say_what_would_do(arguments: list[str], says: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        job(*arguments)
    message = str(error.value)
    assert "\n" not in message
    for part in says:
        assert part in message


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["profile", "ppo", "--n-envs", "none"], ["--n-envs", "'none'", "whole number"]),
        (["profile", "ppo", "--seed", "-1"], ["--seed", "'-1'"]),
        (["profile", "ppo", "--tools", "pyspy"], ["--tools", "'pyspy'", "py-spy"]),
        (["profile", "ppo", "--seconds", "0"], ["--seconds", "'0'", "from 3"]),
        (["profile", "dqn"], ["dqn", "ppo", "sac"]),
        (["profile", "ppo", "--env-id", "CartPol-v1"], ["--env-id", "CartPole-v1"]),
    ],
)
def test_a_bad_value_exits_2_with_one_line(arguments: list[str], says: list[str]) -> None:
    done = rlox_opt(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    for part in says:
        assert part in done.stderr


def test_a_report_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        job("ppo", "--out", str(tmp_path))


def test_a_folder_that_cannot_be_made_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotWrittenError, match=r"cannot write .*file: Not a directory"):
        job("ppo", "--out", str(tmp_path / "file" / "run"))


def test_help_shows_every_option_and_examples() -> None:
    done = rlox_opt("profile", "train", "--help")
    assert done.returncode == 0
    for name in ["env-id", "total-timesteps", "n-envs", "n-steps", "seed", "device", "threads"]:
        assert f"--{name} " in done.stdout
    for name in ["collector", "prioritized", "tools", "seconds", "out", "json"]:
        assert f"--{name}" in done.stdout
    assert "examples:" in done.stdout


def test_the_version_says_how_the_extension_was_built() -> None:
    done = rlox_opt("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("rlox-opt 0.")
