"""What to profile (`Job`), and the instructions for one child process (`Spec`, a JSON file)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

MODES = ("plain", "attached", "scalene", "torch_profiler")
# The first sampler of them that works ranks the layers, so the preciser one comes first.
TOOLS = ("perf", "py-spy", "scalene", "torch.profiler")


@dataclass(frozen=True)
class Spec:
    """The work of one child process.

    Args:
        child: the program that does the training: `python CHILD SPEC.json [PACKAGE]`, where PACKAGE
            is a folder with another build of the package.
        mode: one of `MODES`.
        algo: the name of the run.
        env_id: a registered Gymnasium environment.
        total_timesteps: steps of the plain run; in the other modes training ends with the window.
        seed: the seed of the trainer and the environments.
        device: the device on which torch computes.
        threads: torch's threads within one operation.
        trainer: keyword arguments of the trainer's class.
        warmup_steps: environment steps after which training is steady: imports done, updates begun.
        seconds: length of the tool's window.
        folder: where the child puts its results.
        settle: seconds of training before the window, in which the tool gets ready.
        plain: seconds of undisturbed training before those.
        update: the phase of a gradient step, which the report divides into its parts; "" for none.
        crossings_per: the unit of training that crossings of the boundary are counted per.
    """

    child: str
    mode: str
    algo: str
    env_id: str
    total_timesteps: int
    seed: int
    device: str
    threads: int
    warmup_steps: int
    seconds: float
    folder: str
    trainer: dict[str, Any] = field(default_factory=dict)
    settle: float = 0.0
    plain: float = 0.0
    update: str = ""
    crossings_per: str = "step"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is {self.mode!r}; it may be one of {', '.join(MODES)}")

    def save(self) -> Path:
        """Write `spec.json` into the folder, which is made; return its path."""
        path = Path(self.folder) / "spec.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> Spec:
        """Read what `save` wrote. ValueError for a key that is unknown or missing."""
        values = json.loads(path.read_text(encoding="utf-8"))
        names = {f.name for f in fields(cls)}
        if wrong := names ^ values.keys():
            raise ValueError(f"{path.name}: keys unknown or missing: {', '.join(sorted(wrong))}")
        return cls(**values)


@dataclass(frozen=True)
class Job:
    """What to profile: the plain run's `spec`, the `tools` in their order, and the `seconds` that
    each records (None: as many as `windows` plans)."""

    spec: Spec
    tools: tuple[str, ...] = TOOLS
    seconds: float | None = None
