"""A short profile of training, of this build or of another: seconds instead of minutes.

One child process trains undisturbed at first, which gives its speed and the seconds of its phases.
Then it trains under perf, or under py-spy where perf is not available, to see what the phases
consist of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rlox_opt.sampling import driver
from rlox_opt.sampling.driver import Progress
from rlox_opt.sampling.layers import Classifier
from rlox_opt.sampling.samples import Samples
from rlox_opt.sampling.spec import Spec
from rlox_opt.system.scratch import scratch

PLAIN_S = 3.0  # undisturbed
SAMPLED_S = {"perf": 3.0, "py-spy": 10.0}  # the better sampler first


@dataclass(frozen=True)
class Speed:
    """Training with no tool attached: `self_seconds` of each phase; outside all of them under
    ""."""

    steps_per_s: float
    self_seconds: Mapping[str, float]


def tool() -> str:
    """The better of the samplers that work here. Raises ValueError if none does."""
    for name in SAMPLED_S:
        if driver.SAMPLERS[name].unavailable() is None:
            return name
    raise ValueError("neither perf nor py-spy can be used here")


def speed(spec: Spec, package: Path | None, progress: Progress) -> Speed:
    """How fast training goes. Raises ChildError."""
    with scratch() as folder:
        spec = replace(spec, mode="attached", plain=PLAIN_S, folder=str(folder))
        with driver.child_of(spec, package) as child:
            for message in child.messages(driver.SILENCE_S):
                progress.note(message.get("doing", "training"))
                if message.get("ready"):
                    break
        return _speed(folder)


def profile(
    spec: Spec, package: Path | None, sampler: str, classifier: Classifier, progress: Progress
) -> tuple[Speed, Samples]:
    """How fast training goes, and the samples that `sampler` takes of it.

    Raises:
        ChildError: the child failed.
        ValueError: the sampler left nothing.
    """
    with scratch() as folder:
        spec = replace(spec, plain=PLAIN_S, seconds=SAMPLED_S[sampler], folder=str(folder))
        samples, _ = driver.sampled(spec, sampler, classifier, progress, package)
        return _speed(folder), samples


def _speed(folder: Path) -> Speed:
    plain = json.loads((folder / "plain.json").read_text(encoding="utf-8"))
    return Speed(plain["steps"] / plain["seconds"], plain["self_seconds"])
