"""The trainers learn, and not worse than Stable-Baselines3 with the same hyperparameters, by a
margin that is stated.

Slow: PPO takes half an hour, SAC an hour. `RLOX_LEARNING_OUT` names a folder that keeps the runs
and gets the tables; `seeds.py` does the same for more tasks, arms and seeds.
"""

import json
import os
import random
from pathlib import Path
from threading import Event
from xml.etree import ElementTree

import curves
import pytest
import seeds
import torch
from rlox_opt.race.environments import Peer, Training
from run_bfloat16 import Linear, rounded

# What counts as worse: to have learnt less than Stable-Baselines3 by this part of what it learnt
# over a random policy. PPO's 21 of 207 points are what one seed differs from the next by (22), so
# that who trains a seed or two cannot see them; SAC's 32 of 1,055 are twice its seeds' spread. A
# smaller difference is not looked for here: over 200 seeds of PPO it lay between -8 and +1.
MARGINS = {"ppo-cartpole": 0.10, "sac-pendulum": 0.03}
# With these, a trainer as good as ours was over 200 seeds passes in 99 of 100 runs, and one that is
# worse by the margin in 2 of 100 (a test below draws them); with twenty seeds it was 65 and 2.
SEEDS = {"ppo-cartpole": 60, "sac-pendulum": 10}


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("task", MARGINS)
def test_learns_not_worse_than_stable_baselines3(task: str, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    out = Path(os.environ.get("RLOX_LEARNING_OUT", tmp_path))
    result = seeds.compare(task, ("sb3", "baseline", "native"), SEEDS[task], out)
    print(seeds.table(result))
    seeds.write(result, out)
    returns = result["returns"]
    for name in ("baseline", "native"):
        loss = seeds.most_lost(returns[name], returns["sb3"], result["random"])
        print(f"{task}: {name} has lost at most {loss:.1%}, of {MARGINS[task]:.0%}")
        assert loss < MARGINS[task], f"{name} may learn worse"
    for name, (low, _) in result["intervals"].items():
        assert low > result["random"], f"{name} has not learnt"


def test_who_learns_as_ours_did_passes_and_who_is_worse_by_the_margin_does_not() -> None:
    """Drawn from the record of two hundred seeds."""
    record = json.loads((Path(__file__).parent / "200-seeds" / "ppo-cartpole.json").read_text())
    sb3, ours, none = record["returns"]["sb3"], record["returns"]["native"], record["random"]
    draw, task, runs = random.Random(0), "ppo-cartpole", 1_000
    worse_by = MARGINS[task] * (sum(sb3) / len(sb3) - none) + (sum(ours) - sum(sb3)) / len(sb3)

    def passing(shift: float) -> float:
        passed = 0
        for _ in range(runs):
            a, b = (draw.choices(of, k=SEEDS[task]) for of in (ours, sb3))
            passed += seeds.most_lost([x - shift for x in a], b, none) < MARGINS[task]
        return passed / runs

    assert passing(0.0) > 0.95
    assert passing(worse_by) < 0.05
    assert seeds.most_lost(ours, sb3, none) < 0.05, "all that is known"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Trainings of no time: an arm's returns rise to its own height, a seed's a little above."""
    trained: list[tuple[str, int]] = []

    def train(peer: Peer, job: dict) -> Training:
        trained.append((peer.name, job["seed"]))
        height = {"sb3": 100.0, "baseline": 100.0, "R1": 100.0, "R2": 60.0}[peer.name]
        # As a trainer whose updates are equal to the bit, R1 has the baseline's returns.
        top = height + job["seed"] * (2 if peer.name == "sb3" else 1)
        episodes = [(0.0, 10 * n, top * min(1.0, n / 500)) for n in range(1, 1001)]
        return Training(1.0, 0.0, 10_000, episodes)

    monkeypatch.setattr(seeds, "train", train)
    monkeypatch.setattr(seeds, "random_return", lambda env_id: 20.0)
    return trained


def test_finished_trainings_are_kept_and_more_seeds_add_to_them(
    quick: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seeds.compare("ppo-cartpole", ("sb3", "R2"), 2, tmp_path, total=10_000)
    assert sorted(quick) == [("R2", 0), ("R2", 1), ("sb3", 0), ("sb3", 1)]
    quick.clear()
    seeds.compare("ppo-cartpole", ("sb3", "R2"), 3, tmp_path, total=10_000)
    assert sorted(quick) == [("R2", 2), ("sb3", 2)]
    quick.clear()
    seeds.compare("ppo-cartpole", ("sb3",), 2, tmp_path, total=9_000)
    assert len(quick) == 2, "another task's runs do not count"
    quick.clear()
    monkeypatch.setattr(seeds, "code", lambda *_: ["another"])
    seeds.compare("ppo-cartpole", ("sb3", "R2"), 2, tmp_path, total=10_000)
    assert len(quick) == 4, "nor do another code's"


def test_a_training_that_ends_after_another_failed_is_kept(
    quick: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failed, quickly = Event(), seeds.train

    def train(peer: Peer, job: dict) -> Training:
        if peer.name == "R2":
            failed.set()
            raise RuntimeError("as planned")
        failed.wait(10)
        return quickly(peer, job)

    monkeypatch.setattr(seeds, "train", train)
    with pytest.raises(RuntimeError, match="as planned"):
        seeds.compare("ppo-cartpole", ("sb3", "R2"), 1, tmp_path, total=10_000)
    assert [row["arm"] for row in seeds.read_rows(tmp_path / "ppo-cartpole.jsonl")] == ["sb3"]


def test_a_worse_arm_shows_and_one_equal_to_the_bit_says_so(
    quick: list[tuple[str, int]], tmp_path: Path
) -> None:
    names = ("sb3", "baseline", "R1", "R2")
    result = seeds.compare("ppo-cartpole", names, 4, tmp_path, total=10_000)
    assert result["differences"]["R2"]["baseline"][1] < -30
    low, high = result["differences"]["baseline"]["sb3"]
    assert low < 0 < high
    rows = {line.split(" | ")[0]: line for line in seeds.table(result).splitlines()}
    assert " | = | " in rows["| R1"]
    assert " | = | " not in rows["| R2"]
    seeds.write(result, tmp_path)
    svg = ElementTree.fromstring((tmp_path / "ppo-cartpole.svg").read_text())
    assert len(svg.findall("{http://www.w3.org/2000/svg}path")) == 3
    assert "baseline, R1" in {text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")}


def test_a_curve_begins_where_every_seed_has_an_episode() -> None:
    job = {"algo": "ppo", "env_id": "E-v1", "total_timesteps": 40}
    drawn = curves.picture({"job": job, "curves": {"a": [[None, 1.0, 2.0], [0.0, 1.0, 4.0]]}})
    path = ElementTree.fromstring(drawn).find("{http://www.w3.org/2000/svg}path")
    assert path is not None
    assert path.attrib["d"].count("L") == 1  # two of three places


def test_welch_interval_of_a_known_example() -> None:
    found = seeds.welch_interval([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 3.0, 4.0, 5.0, 6.0])
    assert found == pytest.approx((-1 - 2.306, -1 + 2.306), abs=5e-3)


def test_a_layer_in_bfloat16_is_that_of_rounded_matrices() -> None:
    rng = torch.Generator().manual_seed(0)
    x, weight, bias, into = (
        torch.randn(*shape, generator=rng, requires_grad=True)
        for shape in ((7, 5), (3, 5), (3,), (7, 3))
    )
    x16, weight16, into16 = (rounded(value).detach().double() for value in (x, weight, into))
    out = Linear.apply(x, weight, bias)
    torch.testing.assert_close(out.double(), x16 @ weight16.t() + bias.double(), rtol=0, atol=1e-6)
    out.backward(into.detach())
    expected = into16 @ weight16, into16.t() @ x16, into.double().sum(dim=0)
    for value, gradient in zip((x, weight, bias), expected, strict=True):
        torch.testing.assert_close(value.grad.double(), gradient, rtol=0, atol=1e-6)
    assert not torch.allclose(out, torch.nn.functional.linear(x, weight, bias), atol=1e-5)
