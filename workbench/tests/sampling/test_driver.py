"""Beliefs about a profile by several tools: neither a tool that cannot even be asked nor Ctrl-C
loses what there is."""

import contextlib
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import toy_projects

from rlox_opt.sampling import driver, perf, pyspy
from rlox_opt.sampling.spec import Job, Spec

SPEC = Spec(
    child="child_of.py",
    mode="plain",
    algo="ppo",
    env_id="CartPole-v1",
    total_timesteps=2048,
    seed=0,
    device="cpu",
    threads=1,
    warmup_steps=0,
    seconds=0,
    folder="",
    trainer={"n_envs": 8, "n_steps": 128},
)
SILENT: Any = SimpleNamespace(**dict.fromkeys(("plan", "begin", "note", "end"), lambda *_: None))
ERRORS = [PermissionError(13, "Permission denied"), subprocess.TimeoutExpired("probe", 60)]


def raising(error: BaseException) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


def profiled() -> dict[str, Any]:
    job = Job(SPEC, ("perf",))
    return driver.profile(toy_projects.PROJECT, job, SILENT).report


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("tool", [perf, pyspy])
def test_a_sampler_that_cannot_be_tried_is_unavailable(
    tool: Any, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setattr("subprocess.run", raising(error))
    assert f"fails here ({error})" in tool.unavailable.__wrapped__()


def test_a_tool_that_cannot_be_asked_does_not_lose_the_plain_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver, "_plain", lambda *_: "done")
    monkeypatch.setattr(perf, "unavailable", raising(ERRORS[0]))
    report = profiled()
    assert report["complete"]
    assert report["tools"]["perf"]["status"] == "failed"
    assert "Permission denied" in report["tools"]["perf"]["reason"]


def test_ctrl_c_before_the_first_run_is_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def interrupted() -> Iterator[None]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(driver, "scratch", interrupted)
    report = profiled()
    assert not report["complete"]
    assert report["incomplete"] == ["It was interrupted during: plain run."]
    assert report["tools"]["perf"]["status"] == "interrupted"
