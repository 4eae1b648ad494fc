"""What the driver asks for is what the child does."""

import json
from pathlib import Path

import pytest
from rlox_opt.sampling.spec import Spec

from workloads.child import settings

SPEC = Spec(
    child="child_of.py",
    mode="plain",
    algo="ppo",
    env_id="CartPole-v1",
    total_timesteps=2048,
    seed=3,
    device="cpu",
    threads=1,
    warmup_steps=1024,
    seconds=2.5,
    folder="",
    trainer={"n_envs": 8, "collector": "sync"},
)


def test_a_spec_survives_its_file(tmp_path: Path) -> None:
    spec = Spec(**{**SPEC.__dict__, "folder": str(tmp_path / "new")})
    assert Spec.load(spec.save()) == spec


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="fast"):
        Spec(**{**SPEC.__dict__, "mode": "fast"})


def test_a_key_that_is_missing_or_unknown_is_named(tmp_path: Path) -> None:
    path = Spec(**{**SPEC.__dict__, "folder": str(tmp_path)}).save()
    values = json.loads(path.read_text())
    del values["seed"]
    path.write_text(json.dumps(values | {"sede": 1}))
    with pytest.raises(ValueError, match="sede, seed"):
        Spec.load(path)


def test_a_trainer_of_an_older_commit_is_not_told_of_threads() -> None:
    def older(env: str, *, n_envs: int, collector: str) -> None: ...

    def newer(env: str, *, n_envs: int, collector: str, threads: int) -> None: ...

    assert settings(older, SPEC) == {"n_envs": 8, "collector": "sync"}
    assert settings(newer, SPEC) == {"n_envs": 8, "collector": "sync", "threads": 1}
