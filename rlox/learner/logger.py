"""Shows the progress of training: the latest values, a progress bar, TensorBoard."""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from torch.utils.tensorboard import SummaryWriter

SHOWN = {
    "time/fps": "{:,.0f} steps/s",
    "rollout/ep_rew_mean": "return {:.1f}",
    "train/policy_gradient_loss": "policy loss {:.3f}",
    "train/actor_loss": "actor loss {:.2f}",
    "train/value_loss": "value loss {:.2f}",
    "train/critic_loss": "critic loss {:.3f}",
}


class Logger:
    """The latest value of each figure, in `values`, under the names of Stable-Baselines3. What was
    recorded since the last time is shown and written, each figure once.

    `tensorboard_log` is the folder in which each run gets a folder of event files, PPO_1, PPO_2, …;
    None writes none. With `verbose` figures are printed. `handed_to` is the logger given to a
    trainer's `set_logger`. It gets all figures too, and attributes that this class lacks are looked
    up there.
    """

    def __init__(self, tensorboard_log: str | Path | None = None, verbose: int = 0) -> None:
        self.values: dict[str, float] = {}
        self.begun_at = 0  # steps before the present run
        self._clock = time.perf_counter()
        self._fresh: set[str] = set()  # figures recorded since they were last shown
        self.verbose = verbose
        self.handed_to: Any = None
        self._means: dict[str, tuple[float, int]] = {}
        self._excluded: dict[str, tuple[str, ...]] = {}
        self._others: dict[str, Any] = {}  # pictures and the like, which TensorBoard gets once
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
        """Training goes from `num_timesteps` to `end`. A `new_run` gets a folder of its own;
        otherwise this trainer's run continues, or the last one in the folder."""
        self.begun_at, self._clock = num_timesteps, time.perf_counter()
        if self._folder is not None and (new_run or self._writer is None):
            if self._writer is not None:
                self._writer.close()
            self._writer = self._writer_in(str(_run(self._folder, name, new_run)))
        if progress_bar:
            self.show_progress(name, num_timesteps, end)

    def show_progress(self, name: str, num_timesteps: int, end: int) -> None:
        """Show a progress bar until training ends."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        # On stderr, since programs print their results to stdout.
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            Remaining(),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task(name, total=end, completed=num_timesteps, figures="")
        self._progress.start()

    def record(
        self,
        key: Mapping[str, Any] | str,
        value: Any = None,
        exclude: str | tuple[str, ...] | None = None,
    ) -> None:
        """Set the figures of a mapping, or the figure `key`. `exclude` names outputs that do not
        get it: "stdout", "tensorboard". Stable-Baselines3's `Figure`, `Image`, `Video` and
        `HParam`, and texts, are written to TensorBoard. So are arrays and tensors, as histograms;
        one that has a single number is a figure, too."""
        for name, one in (key if isinstance(key, Mapping) else {key: value}).items():
            excluded = (exclude,) if isinstance(exclude, str) else exclude
            self._excluded[name] = excluded or ()
            if self.handed_to is not None:
                self.handed_to.record(name, one, exclude)
            self._others.pop(name, None)
            try:
                self.values[name] = float(one.item() if _is_array(one) else one)
                self._fresh.add(name)
            except (RuntimeError, TypeError, ValueError):
                self._others[name] = one
            if _is_array(one):
                self._others[name] = one

    def record_mean(
        self, key: str, value: float | None, exclude: str | tuple[str, ...] | None = None
    ) -> None:
        """Set a figure to the mean of the values given for it since figures were last shown; None
        is no value."""
        if value is None:
            return
        total, n = self._means.get(key, (0.0, 0))
        self._means[key] = total + float(value), n + 1
        self.record(key, (total + float(value)) / (n + 1), exclude)

    def get_dir(self) -> str | None:
        """The folder in which this run is logged; None if there is none."""
        if self.handed_to is not None:
            return cast("str | None", self.handed_to.get_dir())
        return None if self._writer is None else self._writer.log_dir

    @property
    def dir(self) -> str | None:
        """As `get_dir`."""
        return self.get_dir()

    def log(self, *texts: Any, level: int = logging.INFO) -> None:
        """Print `texts` if figures are printed and `level` is INFO or above, or hand them on."""
        if self.handed_to is not None:
            self.handed_to.log(*texts, level=level)
        elif self.verbose and level >= logging.INFO:
            print(*texts)

    def debug(self, *texts: Any) -> None:
        """`log` at the level DEBUG."""
        self.log(*texts, level=logging.DEBUG)

    def info(self, *texts: Any) -> None:
        """`log` at the level INFO."""
        self.log(*texts)

    def warn(self, *texts: Any) -> None:
        """`log` at the level WARNING."""
        self.log(*texts, level=logging.WARNING)

    def error(self, *texts: Any) -> None:
        """`log` at the level ERROR."""
        self.log(*texts, level=logging.ERROR)

    @property
    def has_output(self) -> bool:
        """Whether figures are printed, written or handed on."""
        return bool(self.verbose) or self._writer is not None or self.handed_to is not None

    @property
    def name_to_value(self) -> dict[str, float]:
        """`values`, under Stable-Baselines3's name."""
        return self.values

    @property
    def output_formats(self) -> list[Any]:
        """Outputs as Stable-Baselines3 has them: those of the logger that was handed over, or its
        TensorBoard writer around ours."""
        if self.handed_to is not None:
            return list(self.handed_to.output_formats)
        if self._writer is None:
            return []
        from stable_baselines3.common.logger import TensorBoardOutputFormat

        output = TensorBoardOutputFormat.__new__(TensorBoardOutputFormat)
        output.writer = self._writer
        return [output]

    def __getattr__(self, name: str) -> Any:
        handed_to = self.__dict__.get("handed_to")
        if handed_to is None:
            raise AttributeError(f"the logger has no {name!r}; set_logger takes one that has")
        return getattr(handed_to, name)

    def advance(self, num_timesteps: int) -> None:
        """Move the progress bar."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=num_timesteps)

    def dump(self, step: int = 0) -> None:
        """Show and write the present figures; `step` is the number of environment steps so far."""
        elapsed = max(time.perf_counter() - self._clock, 1e-9)
        self.values["time/fps"] = (step - self.begun_at) / elapsed
        fresh = {key: self.values[key] for key in (*self._fresh, "time/fps")}
        if self._progress is not None and self._task is not None:
            shown = [form.format(self.values[k]) for k, form in SHOWN.items() if k in self.values]
            self._progress.update(self._task, completed=step, figures=", ".join(shown))
        if self._writer is not None:
            for key, value in fresh.items():
                is_histogram = key in self._others
                if not is_histogram and "tensorboard" not in self._excluded.get(key, ()):
                    self._writer.add_scalar(key, value, step)
            for key, other in self._others.items():
                if "tensorboard" not in self._excluded.get(key, ()):
                    _write_other(self._writer, key, other, step)
        self._others.clear()
        self._fresh.clear()
        self._means.clear()
        if self.handed_to is not None:
            self.handed_to.record("time/fps", int(self.values["time/fps"]))
            self.handed_to.record("time/time_elapsed", int(elapsed), exclude="tensorboard")
            self.handed_to.record("time/total_timesteps", step, exclude="tensorboard")
            self.handed_to.dump(step)
        elif self.verbose:
            times = {"time/time_elapsed": elapsed, "time/total_timesteps": step}
            self._print(fresh | times)

    def _print(self, figures: Mapping[str, float]) -> None:
        shown = {
            key: value
            for key, value in figures.items()
            if "stdout" not in self._excluded.get(key, ())
        }
        width = max(map(len, shown))
        rows = [f"| {key:<{width}} | {shown[key]:>12.6g} |" for key in sorted(shown)]
        line = "-" * len(rows[0])
        print("\n".join([line, *rows, line]))

    def stop(self) -> None:
        """End the progress bar and flush the event files."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
        if self._writer is not None:
            self._writer.flush()


def _run(folder: Path, name: str, new: bool) -> Path:
    """The folder of a run, numbered as in Stable-Baselines3. A `new` run comes after the last one,
    and its folder is made here so that no other process takes it; otherwise it is the last one, or
    the first if there is none. A `name` may contain folders."""
    folder, name = (folder / name).parent, Path(name).name
    folder.mkdir(parents=True, exist_ok=True)
    beginnings = (path.name.removeprefix(f"{name}_") for path in folder.glob(f"{name}_*"))
    last = max((int(number) for number in beginnings if number.isdecimal()), default=0)
    while new or last == 0:
        last += 1
        with suppress(FileExistsError):
            (folder / f"{name}_{last}").mkdir()
            break
    return folder / f"{name}_{last}"


def _is_array(value: Any) -> bool:
    """Whether TensorBoard gets a histogram of it: as in Stable-Baselines3 even of one number."""
    return isinstance(value, np.ndarray | torch.Tensor)


def _write_other(writer: "SummaryWriter", key: str, value: Any, step: int) -> None:
    """Write a value that is no number: an array, a text, or one of Stable-Baselines3's classes,
    which are recognised by their attributes."""
    if _is_array(value):
        writer.add_histogram(key, value, step)
    elif hasattr(value, "figure"):
        writer.add_figure(key, value.figure, step, close=value.close)
    elif hasattr(value, "frames"):
        writer.add_video(key, value.frames, step, value.fps)
    elif hasattr(value, "dataformats"):
        writer.add_image(key, value.image, step, dataformats=value.dataformats)
    elif hasattr(value, "hparam_dict"):
        from torch.utils.tensorboard.summary import hparams

        made: Any = hparams
        for summary in made(value.hparam_dict, metric_dict=value.metric_dict):
            file: Any = writer
            file._get_file_writer().add_summary(summary)
    else:
        writer.add_text(key, str(value), step)
