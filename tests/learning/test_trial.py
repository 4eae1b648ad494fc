"""The trial's figures and verdicts, on values whose answer is known."""

import json
import random
import sys
from pathlib import Path

import pytest
import seeds
import trial
from rlox_opt.race import environments as racing


def drawn(mean: float, spread: float, n: int, seed: int) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(mean, spread) for _ in range(n)]


def test_apart_is_told_as_a_share_of_what_the_reference_gains() -> None:
    """With a spread near none the bound is the difference itself."""
    ours, reference = [90.0, 90.001], [100.0, 100.001]
    assert trial.most_apart(ours, reference, 0.0, -1) == pytest.approx(0.1, abs=1e-3)
    assert trial.most_apart(ours, reference, 0.0, 1) == pytest.approx(-0.1, abs=1e-3)
    assert trial.most_apart(ours, reference, 50.0, -1) == pytest.approx(0.2, abs=1e-3)
    assert trial.most_apart(reference, ours, 50.0, 1) == pytest.approx(0.25, abs=1e-3)


def test_who_is_worse_by_the_margin_is_called_not_inferior_one_time_in_twenty() -> None:
    at_margin = 100 * (1 - trial.MARGIN)
    wrongly = sum(
        trial.most_apart(drawn(at_margin, 20, 60, 2 * i), drawn(100, 20, 60, 2 * i + 1), 0.0, -1)
        < trial.MARGIN
        for i in range(2_000)
    )
    assert 70 <= wrongly <= 130, "2,000 at 5 %, three deviations of 9.7 to either side"


def test_verdicts() -> None:
    assert trial.verdict(0.06, 0.0) == "not shown"
    assert trial.verdict(0.04, 0.06) == "not inferior"
    assert trial.verdict(0.04, 0.04) == "equivalent"


def test_until_an_episode_has_ended_the_curve_is_at_a_random_policy() -> None:
    assert trial.area([None, 10.0, 20.0], -30.0) == 0.0


def rows(n: int) -> list[trial.Row]:
    return [
        {"seed": trial.FIRST_SEED + i}
        | {name: {"final": x, "curve": [None, x]} for name, x in (("sb3", a), ("native", b))}
        for i, (a, b) in enumerate(zip(drawn(100, 4, n, 0), drawn(101, 4, n, 1), strict=True))
    ]


def test_a_task_has_a_verdict_when_all_its_pairs_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trial.PLAN, "ppo-cartpole", 60)
    part = trial.told("ppo-cartpole", rows(60)[1:], 0.0)
    assert all(line.endswith("|  | 59 of 60 |") for line in part)
    final, area = trial.told("ppo-cartpole", rows(60), 0.0)
    assert final.endswith("| equivalent | 60 |")
    assert "area under the training curve | 50." in area


def test_a_pair_that_is_there_is_not_trained_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Half a pair is not kept: both arms of a seed run on one machine."""
    monkeypatch.setitem(trial.PLAN, "ppo-cartpole", 2)
    trained: list[tuple[str, int]] = []

    def train(task: str, name: str, seed: int) -> trial.Row:
        trained.append((name, seed - trial.FIRST_SEED))
        if len(trained) == 4:
            raise KeyboardInterrupt
        return {"final": 1.0 + seed, "curve": [1.0 + seed]}

    monkeypatch.setattr(trial, "train", train)
    monkeypatch.setattr(trial, "commit", lambda: "a" * 40)
    argv = ["trial", "ppo-cartpole", "--out", str(tmp_path), "--at-once", "1"]
    monkeypatch.setattr(sys, "argv", argv)
    assert trial.main() == 130
    assert trial.main() == 0
    assert trained == [(name, seed) for seed in (0, 1, 1) for name in ("sb3", "native")]
    assert "| 2 |" in (tmp_path / "results.md").read_text()


def test_a_crash_is_noted_and_its_seed_is_run_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(trial.PLAN, "ppo-cartpole", 2)
    crashes = iter([True])

    def train(task: str, name: str, seed: int) -> trial.Row:
        if next(crashes, False):
            raise racing.PeerError("as planned")
        return {"final": 1.0 + seed, "curve": [1.0 + seed]}

    monkeypatch.setattr(trial, "train", train)
    trial.run(["ppo-cartpole"], tmp_path, 1, 60.0, "a" * 40)
    assert [row["seed"] for row in trial.rows_of("ppo-cartpole", tmp_path)] == [10_001]
    trial.run(["ppo-cartpole"], tmp_path, 1, 60.0, "a" * 40)
    assert [row["seed"] for row in trial.rows_of("ppo-cartpole", tmp_path)] == [10_000, 10_001]
    assert "were run again: 1." in trial.tell(tmp_path)


def test_a_seed_that_ran_on_two_machines_counts_once(tmp_path: Path) -> None:
    for row in [*rows(3), *rows(3)]:
        trial.add_row(row, tmp_path / "ppo-cartpole.jsonl")
    assert trial.rows_of("ppo-cartpole", tmp_path) == rows(3)


@pytest.mark.slow
@pytest.mark.parametrize("driver", trial.ARMS.values())
def test_a_driver_evaluates_the_policy_that_it_has_trained(driver: str, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    name = next(name for name, of in trial.ARMS.items() if of == driver)
    job = trial.seeds.job_of("ppo-cartpole") | {
        "seed": 1, "driver": driver, "total_timesteps": 2048,
    }  # fmt: skip
    form = "sb3" if name == "sb3" else "default"
    peer = racing.Peer(name, "", trial.HERE / "run_and_evaluate.py", form)
    outcome = racing.train(peer, Path(sys.executable), job, 120, tmp_path)
    returns = json.loads((tmp_path / "final.json").read_text())
    assert outcome.steps == 2048
    assert len(returns) == 100
    assert 5 < min(returns) < max(returns) <= 500


def test_what_a_task_needs_is_told_before_it_is_trained(monkeypatch):
    assert seeds.missing_for(["ppo-cartpole", "sac-pendulum"]) is None
    monkeypatch.setitem(sys.modules, "Box2D", None)  # an import of it fails
    said = seeds.missing_for(["ppo-cartpole", "ppo-lunarlander"])
    assert said.startswith("ppo-lunarlander: Box2D is not installed")
    assert said.endswith("`make learning` installs all that the tasks need")
