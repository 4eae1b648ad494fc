"""What training shows of itself: the latest values, a progress bar, TensorBoard."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from torch.utils.tensorboard import SummaryWriter

SHOWN = {
    "time/sps": "{:,.0f} steps/s",
    "rollout/ep_rew_mean": "return {:.1f}",
    "train/policy_gradient_loss": "policy loss {:.3f}",
    "train/actor_loss": "actor loss {:.2f}",
    "train/value_loss": "value loss {:.2f}",
    "train/critic_loss": "critic loss {:.3f}",
}


class Logger:
    """Latest value of each figure in `values`, under the names of Stable-Baselines3.

    `tensorboard_log` is the folder that gets a folder of event files for each run, as PPO_1, PPO_2;
    None writes none.
    """

    def __init__(self, tensorboard_log: str | Path | None = None) -> None:
        self.values: dict[str, float] = {}
        self._writer: SummaryWriter | None = None
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._folder = None if tensorboard_log is None else Path(tensorboard_log)
        if self._folder is not None:
            try:
                from torch.utils import tensorboard
            except ImportError as error:
                raise ImportError(
                    "tensorboard_log needs TensorBoard: pip install 'rlox-rl[tensorboard]'"
                ) from error
            self._writer_in = tensorboard.SummaryWriter

    def start(
        self, name: str, num_timesteps: int, end: int, progress_bar: bool, new_run: bool = True
    ) -> None:
        """Training goes on from `num_timesteps` to `end`; a `new_run` is one of its own, another
        goes on with this trainer's, or with the last there is."""
        self._start, self._clock = num_timesteps, time.perf_counter()
        if self._folder is not None and (new_run or self._writer is None):
            if self._writer is not None:
                self._writer.close()
            self._writer = self._writer_in(str(_run(self._folder, name, new_run)))
        if progress_bar:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
            from rich.progress import TimeRemainingColumn as Remaining

            # On stderr: stdout belongs to whoever prints a result.
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                Remaining(),
                TextColumn("{task.fields[figures]}"),
                console=Console(stderr=True),
            )
            self._task = self._progress.add_task(
                name, total=end, completed=num_timesteps, figures=""
            )
            self._progress.start()

    def record(self, figures: Mapping[str, Any] | str, value: Any = None) -> None:
        """Set figures, or the one of that name."""
        if isinstance(figures, str):
            figures = {figures: value}
        self.values |= {key: float(value) for key, value in figures.items()}

    def advance(self, num_timesteps: int) -> None:
        """Move the progress bar."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=num_timesteps)

    def dump(self, num_timesteps: int) -> None:
        """Show and write the figures as they stand."""
        elapsed = max(time.perf_counter() - self._clock, 1e-9)
        self.values["time/sps"] = (num_timesteps - self._start) / elapsed
        if self._progress is not None and self._task is not None:
            shown = [form.format(self.values[k]) for k, form in SHOWN.items() if k in self.values]
            self._progress.update(self._task, completed=num_timesteps, figures=", ".join(shown))
        if self._writer is not None:
            for key, value in self.values.items():
                self._writer.add_scalar(key, value, num_timesteps)

    def stop(self) -> None:
        """End the progress bar and bring what is written to the disk."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
        if self._writer is not None:
            self._writer.flush()


def _run(folder: Path, name: str, new: bool) -> Path:
    """The folder of a run, numbered as Stable-Baselines3 does: a `new` one after the last there
    is, made here so that no other process takes it; else the last, or the first."""
    folder.mkdir(parents=True, exist_ok=True)
    beginnings = (path.name.removeprefix(f"{name}_") for path in folder.glob(f"{name}_*"))
    last = max((int(number) for number in beginnings if number.isdecimal()), default=0)
    while new or last == 0:
        last += 1
        with suppress(FileExistsError):
            (folder / f"{name}_{last}").mkdir()
            break
    return folder / f"{name}_{last}"
