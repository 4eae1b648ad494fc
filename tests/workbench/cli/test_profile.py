"""`rlox-opt profile` on a short run: what it prints, what it keeps, what it says is missing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import in_python
import pytest

REPORT_KEYS = {
    "complete",
    "versions",
    "n_envs",
    "tools",
    "mean_return",
    "commit",
    "bottlenecks",
    "dirty",
    "layers",
    "total_timesteps",
    "schema",
    "date",
    "crossings",
    "phases",
    "algo",
    "features",
    "machine",
    "wall_s",
    "settings",
    "train_s",
    "env_id",
    "sps",
    "init_s",
    "seed",
}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rlox_opt.cli.main", "profile", *arguments]


@pytest.fixture(scope="module")
def short_run(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any], Path]:
    return run(tmp_path_factory.mktemp("profiles") / "run")


@pytest.fixture(scope="module")
def torch_run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same where torch collects and learns."""
    return run(tmp_path_factory.mktemp("profiles") / "run", "--disable", "r4,r9")[1]


def run(
    out: Path, *arguments: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any], Path]:
    """2,048 steps of PPO, asked for perf where there is none."""
    asked = ("--total-timesteps", "2048", "--tools", "perf", "--json", "--out", str(out))
    done = subprocess.run(
        command("ppo", *asked, *arguments),
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done, json.loads(done.stdout), out


def test_json_is_the_report_and_nothing_else(short_run: Any) -> None:
    done, report, out = short_run
    assert done.stdout.startswith("{")
    assert json.loads((out / "report.json").read_text()) == report
    assert "plain run" in done.stderr


def test_the_report_has_every_key(short_run: Any) -> None:
    _, report, _ = short_run
    assert not REPORT_KEYS - report.keys()
    assert report["schema"] == 1
    assert report["complete"] is True


def test_the_plain_run_is_the_one_that_was_asked_for(short_run: Any) -> None:
    _, report, _ = short_run
    assert (report["algo"], report["env_id"], report["n_envs"]) == ("ppo", "CartPole-v1", 8)
    assert report["end_to_end"]["steps"] == 2048
    assert report["sps"] == pytest.approx(2048 / report["train_s"])
    assert report["wall_s"] == pytest.approx(report["init_s"] + report["train_s"])
    assert report["end_to_end"]["updates"] == 2 * 4 * 2
    assert report["settings"]["threads"] == 1


NATIVE = {"native_rollout", "gradient_update/native_update"}
TORCH = {"policy_forward", "env_step", "gae_compute", "gradient_update/backward"}


def assert_phases_hold_one_another(report: dict[str, Any], names: set[str]) -> None:
    """Phases are within training, and outer ones hold inner ones."""
    seconds = {phase["name"]: phase["seconds"] for phase in report["phases"]}
    assert names <= set(seconds)
    for name in seconds:
        inner = [n for n in seconds if n.rpartition("/")[0] == name]
        assert sum(seconds[n] for n in inner) <= seconds[name]
    assert sum(s for n, s in seconds.items() if "/" not in n) <= report["train_s"]


def test_phases_are_within_training_and_outer_ones_hold_inner_ones(short_run: Any) -> None:
    assert_phases_hold_one_another(short_run[1], NATIVE)


def test_the_boundary_is_crossed_once_a_rollout_and_once_an_update(short_run: Any) -> None:
    _, report, _ = short_run
    calls = {row["name"]: row["per_iteration"] for row in report["crossings"]}
    assert report["crossings_per"] == "rollout of 1,024 steps"
    assert calls["collect_rollout"] == calls["ppo_update"] == 1


@pytest.mark.slow
def test_torch_has_phases_of_its_own_and_crosses_it_once_a_step_and_once_for_gae(
    torch_run: Any,
) -> None:
    assert_phases_hold_one_another(torch_run, TORCH)
    assert torch_run["end_to_end"]["updates"] == 2 * 4 * 2
    calls = {row["name"]: row["per_iteration"] for row in torch_run["crossings"]}
    assert torch_run["crossings_per"] == "rollout of 1,024 steps"
    assert calls["compute_gae_batched"] == 1
    assert calls["VecEnv.step"] == 128
    assert calls["policy: action, log-prob"] == 128


def test_the_return_of_a_policy_that_learnt_nothing_is_bad(short_run: Any) -> None:
    _, report, _ = short_run
    assert 15 < report["random_return"] < 30  # Gymnasium's CartPole under random actions: 22
    assert report["mean_return"] < 60  # of 500, after two updates


def test_components_are_timed(short_run: Any) -> None:
    _, report, _ = short_run
    rows = {row["name"]: row for row in report["micro"]}
    assert rows["VecEnv.step (8 envs)"]["us"] > 0
    assert rows["ReplayBuffer.push (1)"]["low"] <= rows["ReplayBuffer.push (1)"]["us"]
    update = [row for row in report["micro"] if "share" in row]
    assert sum(row["share"] for row in update) == pytest.approx(1)


def test_a_missing_tool_is_reported_with_its_remedy_and_the_rest_runs(short_run: Any) -> None:
    _, report, _ = short_run
    perf = report["tools"]["perf"]
    assert perf["status"] == "unavailable"
    assert "not installed" in perf["reason"]
    assert "linux-perf" in perf["remedy"]
    assert report["layers"] == []


def test_the_report_names_no_folder_of_this_machine(short_run: Any) -> None:
    _, _, out = short_run
    text = (out / "report.json").read_text()
    assert str(Path.cwd()) not in text
    assert str(out) not in text


@pytest.fixture
def training(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A profile far from its end, whose plain run trains."""
    out = tmp_path / "run"
    with subprocess.Popen(
        command("ppo", "--total-timesteps", "100000000", "--tools", "none", "--out", str(out)),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        yield process, out
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_ctrl_c_leaves_a_readable_incomplete_report_and_no_child(
    training: tuple[subprocess.Popen[str], Path],
) -> None:
    process, out = training
    child = child_of(process.pid)
    # As the terminal does: to the whole foreground group, of which the children are no part.
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    report = json.loads((out / "report.json").read_text())
    assert report["complete"] is False
    assert "interrupted" in " ".join(report["incomplete"])
    assert report["sps"] is None
    assert (out / "report.md").exists()
    # One that Ctrl-C met while it was being started ends when it finds nobody to talk to.
    deadline = time.monotonic() + 120
    while running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(child)
    assert [path.name for path in out.parent.iterdir()] == ["run"]


def child_of(pid: int) -> int:
    """The process id of the profile's child, once there is one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        named = [c for c in children if b"child_of.py" in cmdline(int(c))]
        if named:
            return int(named[0])
        time.sleep(0.05)
    raise AssertionError("no child was started")


def running(pid: int) -> bool:
    """Whether the process is there, and not only its exit status."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "arguments",
    [
        ["ppo", "--total-timesteps", "8192"],
        ["ppo", "--total-timesteps", "8192", "--env-id", f"in_python:{in_python.ACROBOT}"],
        ["ppo", "--total-timesteps", "8192", "--collector", "async"],
        ["sac", "--total-timesteps", "1500"],
        ["sac", "--total-timesteps", "1500", "--env-id", f"in_python:{in_python.CAR}"],
        ["sac", "--total-timesteps", "1500", "--prioritized"],
    ],
)
def test_a_small_profile_with_all_tools(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(in_python.__file__).parent))
    out = tmp_path / "run"
    done = subprocess.run(
        command(*arguments, "--seconds", "8", "--json", "--out", str(out)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for name, tool in report["tools"].items():
        assert tool["status"] in ("ok", "unavailable"), (name, tool)
        if tool["status"] == "ok":
            assert tool["samples"] > 100
            # Some hundred updates of PPO in Rust are over before a clock has ticked.
            if name != "torch.profiler" or report["algo"] == "sac":
                assert tool["slowdown"] > 0.2
    assert sum(layer["share"] for layer in report["layers"]) == pytest.approx(1)
    assert report["bottlenecks"]
    native = "in_python" not in report["env_id"]
    names = {phase["name"] for phase in report["phases"]}
    assert ("env_step/python_env" in names) is not native
    share = {layer["name"]: layer["share"] for layer in report["layers"]}
    assert (share["env_python"] > 0) is not native
