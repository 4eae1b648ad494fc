"""PPO in two processes is PPO in one: updates, counts, checkpoints; and what happens to the rest
when one is lost."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from workers import ROLLOUT, SETTINGS, SIZE, TARGET_KL, facts, ppo

import rlox
from rlox.learner.distributed import Workers
from rlox.learner.ppo import FIGURES, Rollout

pytestmark = pytest.mark.timeout(900)  # the first test waits for all scenes
HERE = Path(__file__).parent


def run(command: list[str], **settings: Any) -> "subprocess.CompletedProcess[str]":
    paths = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=env, capture_output=True, text=True, **settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workers")
    done = run([sys.executable, str(HERE / "workers.py"), str(folder)], timeout=800)
    assert done.returncode == 0, done.stderr
    return folder


def seen(folder: Path, scene: str) -> list[dict]:
    """What each worker that lived has seen of a scene."""
    paths = [folder / f"{scene}-{rank}.pt" for rank in range(SIZE)]
    return [torch.load(path, weights_only=False) for path in paths if path.exists()]


@pytest.mark.parametrize(
    ("scene", "path", "settings"),
    [
        ("one_update", "torch", {}),
        ("one_native_update", "native", {}),
        ("ended_early", "torch", {"target_kl": TARGET_KL}),
        ("ended_early_natively", "native", {"target_kl": TARGET_KL}),
    ],
)
def test_an_update_is_that_of_one_process_with_all_transitions(
    folder: Path, scene: str, path: str, settings: dict[str, float]
) -> None:
    first, second = seen(folder, scene)
    assert first["update"] == second["update"] == path
    half = SETTINGS["n_envs"] // SIZE
    joined = Rollout(
        *(
            torch.stack([ours.unflatten(0, (-1, half)), theirs.unflatten(0, (-1, half))], dim=1)
            .flatten(1, 2)
            .flatten(0, 1)
            for ours, theirs in zip(first["rollout"], second["rollout"], strict=True)
        )
    )
    alone = ppo(learning_rate=0.01, **settings)
    before = facts(alone)["weights"]
    alone.logger.start("PPO", 0, ROLLOUT, False)
    alone.train(joined)
    expected = facts(alone)
    every = SETTINGS["n_epochs"] * -(-ROLLOUT // SETTINGS["batch_size"])
    assert first["minibatches"] == second["minibatches"] == expected["minibatches"]
    assert (expected["minibatches"] < every) == bool(settings)
    for a, b, start in zip(first["weights"], expected["weights"], before, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        assert (b - start).abs().max() > 1e-3, "nothing was learnt, so nothing is shown"
    for name, value in expected["figures"].items():
        if name.startswith("train/"):
            assert first["figures"][name] == pytest.approx(value, rel=1e-4, abs=1e-5), name


def test_workers_stay_equal_to_the_bit(folder: Path) -> None:
    for scene in ("one_update", "one_native_update", "at_odds", "long_and_resumed", "native"):
        first, second = seen(folder, scene)
        assert first["moments"]
        for what in ("weights", "moments"):
            for a, b in zip(first[what], second[what], strict=True):
                assert torch.equal(a, b)
        assert first["returns"] == second["returns"] != []


def test_environments_are_those_of_one_process_and_noise_is_each_workers_own(folder: Path) -> None:
    rollouts = [Rollout(*found["rollout"]) for found in seen(folder, "one_update")]
    half = SETTINGS["n_envs"] // SIZE
    started = torch.cat([rollout.obs[:half] for rollout in rollouts])
    assert torch.equal(started, torch.from_numpy(ppo()._reset_env()))
    assert not torch.equal(*(rollout.actions for rollout in rollouts))


@pytest.mark.parametrize("scene", ["long_and_resumed", "native"])
def test_steps_are_counted_over_all_workers(folder: Path, scene: str) -> None:
    assert [found["steps"] for found in seen(folder, scene)] == [4 * ROLLOUT] * SIZE


def test_workers_collect_natively_where_one_process_would(folder: Path) -> None:
    assert {found["path"] for found in seen(folder, "native")} == {"native"}


@pytest.mark.parametrize("scene", ["long_and_resumed", "native"])
def test_a_resumed_job_does_what_it_would_have_done(folder: Path, scene: str) -> None:
    for found in seen(folder, scene):
        resumed = found["resumed"]
        assert resumed["steps"] == found["steps"]
        assert resumed["returns"] == found["returns"]
        for a, b in zip(found["weights"], resumed["weights"], strict=True):
            assert torch.equal(a, b)


def test_one_workers_callback_stops_all(folder: Path) -> None:
    assert [found["steps"] for found in seen(folder, "stopped")] == [2 * ROLLOUT] * SIZE


def test_all_workers_save_the_best_model_by_the_first_ones_evaluations(folder: Path) -> None:
    found = seen(folder, "evaluated")
    assert [one["steps"] for one in found] == [3 * ROLLOUT] * SIZE
    assert [one["best"] for one in found] == [25.0] * SIZE
    assert [one["wrote"] for one in found] == [True, False]
    assert rlox.PPO.load(folder / "best_model").num_timesteps == 3 * ROLLOUT


def test_a_lost_worker_ends_the_others_clearly_and_the_checkpoint_goes_on(folder: Path) -> None:
    (found,) = seen(folder, "lost")
    assert "worker 0 of 2: another one has ended or hangs; start again" in found["error"]
    resumed = rlox.PPO.load(folder / "last.pt")
    assert resumed.num_timesteps == 2 * ROLLOUT
    assert resumed.episode_returns == found["returns"][: len(resumed.episode_returns)]
    resumed.learn(ROLLOUT, reset_num_timesteps=False)
    assert resumed.num_timesteps == 3 * ROLLOUT
    assert not (folder / "last.pt.part").exists()


SCRIPT = """
import sys
from pathlib import Path
import rlox
from rlox.learner.callbacks import BaseCallback, Checkpoints

class Die(BaseCallback):
    def on_step(self):
        dies = not resumed and self.model._rank == 1 and self.num_timesteps > 256
        assert not dies, "as planned"

path = Path(sys.argv[1], "last.pt")
resumed = path.exists()
model = rlox.PPO.load(path) if resumed else rlox.PPO("CartPole-v1", n_envs=4, n_steps=32, seed=0)
model.learn(1024 - model.num_timesteps, [Checkpoints(path, 128), Die()], reset_num_timesteps=False)
model.save(Path(sys.argv[1], "end.pt"))
"""


@pytest.mark.slow
def test_torchrun_trains_with_the_same_script_and_resumes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*torchrun, "--nproc-per-node", "2", str(script), str(tmp_path)]
    lost = run(command, timeout=250)
    assert lost.returncode != 0
    assert "as planned" in lost.stderr
    done = run(command, timeout=250)
    assert done.returncode == 0, done.stderr
    assert rlox.PPO.load(tmp_path / "end.pt").num_timesteps == 1024


TWO_TASKS = """
import sys
import time
import gymnasium as gym
import rlox

class Slow(gym.Wrapper):
    def step(self, action):
        time.sleep(0.002)
        return super().step(action)

rlox.PPO("CartPole-v1", n_envs=4, n_steps=32, seed=0).learn(5 * 128)
print("its environment takes long:", file=sys.stderr, flush=True)
slow = [lambda: Slow(gym.make("CartPole-v1"))] * 4
rlox.PPO(slow, n_steps=32, seed=0).learn(5 * 128)
"""


@pytest.mark.slow
def test_torchrun_is_told_what_exchanges_cost_where_they_are_not_repaid(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(TWO_TASKS)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = run([*torchrun, "--nproc-per-node", "2", str(script)], timeout=250)
    assert done.returncode == 0, done.stderr
    short, long = done.stderr.split("its environment takes long:", 1)
    assert short.count("UserWarning: 2 processes train at most 0.") == 1
    assert "processes train at most" not in long


def test_estimating_what_exchanges_cost_changes_no_bit(folder: Path) -> None:
    for ours, theirs in zip(seen(folder, "native"), seen(folder, "not_estimated"), strict=True):
        assert ours["returns"] == theirs["returns"] != []
        for a, b in zip(ours["weights"], theirs["weights"], strict=True):
            assert torch.equal(a, b)


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if torchrun had started two workers, none of which need be met."""
    monkeypatch.setattr(Workers, "join", classmethod(lambda cls, device: cls(0, 2)))
    monkeypatch.setattr(Workers, "gathered", lambda self, value: [value] * self.size)


@pytest.mark.usefixtures("pretended")
def test_what_two_processes_cannot_do_is_refused() -> None:
    with pytest.raises(ValueError, match="SAC trains in one process"):
        rlox.SAC("Pendulum-v1")
    with pytest.raises(ValueError, match="n_envs must be a multiple of the 2 workers"):
        ppo(n_envs=3)
    late = gym.make_vec("CartPole-v1", 4, vectorization_mode="sync")
    for given in (lambda: ppo(env=late), lambda: ppo().set_env(late)):
        with pytest.raises(ValueError, match=r"env: resets in the step .* several processes"):
            given()


@pytest.mark.usefixtures("pretended")
def test_environments_that_are_given_are_not_shared() -> None:
    model = ppo(env=[lambda: gym.make("CartPole-v1")] * 4, n_envs=1)
    assert (model.n_envs, model._all_envs) == (4, 8)


def test_what_is_frozen_stands_still(folder: Path) -> None:
    for found in seen(folder, "frozen"):
        still = [torch.equal(a, b) for a, b in zip(found["weights"], found["was"], strict=True)]
        assert still == [True, True, *[False] * (len(still) - 2)]


def test_updates_are_torchs_in_all_workers_where_they_have_to_be_in_one(folder: Path) -> None:
    paths = [found["update"] for found in seen(folder, "at_odds")]
    assert paths == ["torch: another worker's has to be", "torch: the loss is replaced"]


def test_columns_of_any_type_and_shape_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_gather(told: list[torch.Tensor], packed: torch.Tensor) -> None:
        for one in told:
            one.copy_(packed)

    monkeypatch.setattr(torch.distributed, "all_gather", all_gather)
    columns = [
        torch.randn(15, 3),
        torch.arange(15),
        torch.arange(15).to(torch.uint8).view(15, 1, 1),
    ]
    for column, joined in zip(columns, Workers(0, 2)._joined(columns, n_envs=3), strict=True):
        steps = column.view(5, 3, *column.shape[1:])
        assert torch.equal(joined.view(5, 6, *column.shape[1:]), torch.cat([steps, steps], dim=1))


@pytest.mark.usefixtures("pretended")
def test_updates_of_several_processes_are_told_to_be_uncompiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Workers, "_all_say", lambda self, said, device: said)
    monkeypatch.setattr(Workers, "_train_in_torch", lambda *_: [torch.zeros(len(FIGURES))])
    model = ppo(optimizations=["R2"])
    model.logger.start("PPO", 0, 1, progress_bar=False)
    rollout = Rollout(*[torch.zeros(0)] * len(Rollout._fields))
    with pytest.warns(UserWarning, match="R2: not compiled.*several processes") as told:
        model.train(rollout)
        model.train(rollout)
    assert len(told) == 1
    assert model.compilations[0].given_up == "several processes train one model"


@pytest.mark.usefixtures("pretended")
def test_workers_that_round_differently_go_on_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one's update ends at another minibatch, as if by rounding."""
    monkeypatch.setattr(Workers, "_all_say", lambda self, said, device: said)
    monkeypatch.setattr(Workers, "_joined", lambda self, columns, n_envs: columns)
    told: list[torch.Tensor] = []
    differed: list[bool] = []

    def broadcast(tensor: torch.Tensor, _: int) -> None:
        if rank == 0:
            told.append(tensor.clone())
        else:
            differed.append(not torch.equal(tensor, told[len(differed)]))
            tensor.copy_(told[len(differed) - 1])

    monkeypatch.setattr(torch.distributed, "broadcast", broadcast)
    found = []
    for rank, target_kl in enumerate((1e9, 1e-9)):
        model = ppo(optimizations=["R9"], target_kl=target_kl)
        model._workers.rank = rank
        model.logger.start("PPO", 0, 1, progress_bar=False)
        model.train(model.collect_rollout())
        flat = model._native.flat
        found.append([*flat.tensors, flat.steps, model._shuffle_generator.get_state()])
    assert differed == [True] * len(found[0])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)
