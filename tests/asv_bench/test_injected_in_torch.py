"""Injected regressions of torch: their extra work is in the phase that is named for it."""

import sys
from time import perf_counter_ns
from types import ModuleType
from typing import Any

import pytest
import torch
from projects import ROOT

import rlox
from asv_bench.injected.regressions import Regression, exchanged, load
from rlox.learner import compiled_ppo
from rlox.timing import SpanLog

OF_TORCH = [regression for regression in load() if regression.layer.startswith("torch")]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("regression", OF_TORCH, ids=lambda regression: regression.id)
def test_the_extra_work_is_done_in_its_phase_and_as_often_as_it_says(
    regression: Regression, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert regression.file == "rlox/learner/compiled_ppo.py"
    text = exchanged((ROOT / regression.file).read_text(), regression.find, regression.at(3), "")
    changed = ModuleType(compiled_ppo.__name__)
    exec(compile(text, regression.file, "exec"), vars(changed))
    update = changed.EagerMinibatch.__call__
    monkeypatch.setattr(compiled_ppo.EagerMinibatch, "__call__", update)
    extra: list[int] = []
    square = torch.Tensor.square

    def noted(tensor: torch.Tensor) -> Any:
        if sys._getframe(1).f_code.co_filename == regression.file:
            extra.append(perf_counter_ns())
        return square(tensor)

    monkeypatch.setattr(torch.Tensor, "square", noted)
    sizes = {"n_envs": 2, "n_steps": 8, "batch_size": 8, "n_epochs": 1}
    model = rlox.PPO("CartPole-v1", **sizes, optimizations=[])
    model.timing.enabled, model.timing.spans = True, (log := SpanLog())
    model.learn(16)
    phases = []
    for at in extra:
        around = [span for span in log if span.start_ns <= at <= span.end_ns]
        phases.append(min(around, key=lambda span: span.end_ns - span.start_ns).path)
    minibatches = 2
    assert len(phases) == 3 * minibatches
    assert all(regression.does(f"in {path}") for path in phases), phases
