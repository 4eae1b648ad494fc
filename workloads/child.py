"""One training run in a process of its own: `python -m workloads.child SPEC.json`.

It says what it does in lines of JSON on stdout, writes its results into the spec's folder, and
trains until its window is over or its stdin is closed. Modes:

- plain: full length once, undisturbed: the true speed and phases; then, with the same trainer, the
  crossings of the boundary and the micro-benchmarks;
- attached: trains until told to stop, while a sampler looks on; where the spec's `plain` is more
  than 0, it first trains for so many seconds undisturbed, and notes how that went;
- scalene: the same for a number of seconds, under `python -m scalene run`;
- torch_profiler: some hundred updates under torch.profiler.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rlox_opt.sampling.samples import MAIN_THREAD
from rlox_opt.sampling.spec import Spec

from rlox.timing import SpanLog, measure_overhead

if TYPE_CHECKING:
    from rlox.learner.algorithm import Algorithm
    from rlox.learner.callbacks import BaseCallback
    from workloads.watch import Clock, Window

_NOT_SETTINGS = ("env", "seed", "device", "threads", "policy", "critic", "tensorboard_log")
RETURN_WINDOW = 50  # last episodes in `mean_return`
_RANDOM_SECONDS = 2.0
_RANDOM_EPISODES = 50


def main(argv: Sequence[str] | None = None) -> int:
    """Run the spec whose path is the argument."""
    (path,) = sys.argv[1:] if argv is None else argv
    Run(Spec.load(Path(path)), _messenger()).go()
    return 0


def _messenger() -> Callable[..., None]:
    """Writes messages to what was stdout; prints of an environment go to stderr from here on."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(**message: Any) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    return say


def settings(algorithm: Callable[..., Any], spec: Spec) -> dict[str, Any]:
    """What a trainer is told besides. One of an older commit trains with torch's threads alone."""
    takes_threads = "threads" in inspect.signature(algorithm).parameters
    return spec.trainer | ({"threads": spec.threads} if takes_threads else {})


class Run:
    """The child's one run: builds the trainer and trains it in the spec's mode."""

    def __init__(self, spec: Spec, say: Callable[..., None]) -> None:
        self.spec, self.say = spec, say
        self.folder = Path(spec.folder)

    def go(self) -> None:
        """Do what the spec says."""
        self.say(doing="importing")
        started = perf_counter()
        import torch
        import torch._dynamo  # the first optimiser would import it, and that takes seconds

        import rlox

        torch.set_num_threads(self.spec.threads)
        algorithm = {"ppo": rlox.PPO, "sac": rlox.SAC}[self.spec.algo]
        imported = perf_counter()
        self.trainer: Algorithm = algorithm(
            self.spec.env_id,
            seed=self.spec.seed,
            device=self.spec.device,
            **settings(algorithm, self.spec),
        )
        self.built = {"import_s": imported - started, "init_s": perf_counter() - imported}
        self.say(doing="training", pid=os.getpid())
        getattr(self, f"_{self.spec.mode}")()

    def _train(self, steps: int, *callbacks: BaseCallback, again: bool = False) -> Clock:
        """Train with the phases timed and the clock noted; returns the clock."""
        from rlox.learner.callbacks import TimingCallback
        from workloads.watch import Clock

        # Steps after the run that was asked for are nobody's progress.
        clock = Clock(_silent if again else self.say)
        # The window is last: it begins after the clock has seen the same step.
        self.trainer.learn(
            steps, [TimingCallback(), clock, *callbacks], reset_num_timesteps=not again
        )
        return clock

    def _plain(self) -> None:
        from workloads.watch import FOREVER, gradient_steps

        trainer = self.trainer
        trainer.timing.spans = spans = SpanLog()
        started = perf_counter()
        clock = self._train(self.spec.total_timesteps)
        train_s = perf_counter() - started
        trainer.timing.spans = None
        if clock.stopped:
            return
        spans.save(self.folder / "spans.bin")
        trees = trainer.timing.trees()
        returns = trainer.episode_returns
        self._write(
            "result.json",
            self.built
            | {
                "train_s": train_s,
                "steps": trainer.num_timesteps,
                "ticks": clock.ticks,
                "phases": [phase._asdict() for phase in trainer.timing.phases()],
                "threads": {name: [p._asdict() for p in tree] for name, tree in trees.items()},
                "episodes": len(returns),
                "mean_return": _mean(returns[-RETURN_WINDOW:]),
                "updates": gradient_steps(trainer),
                "span_ns": measure_overhead(logged=True),
                "spans": len(spans),
                "settings": self._settings(),
            },
        )
        self.say(doing="counting crossings")
        from workloads.crossings import Crossings

        counted = Crossings(self.spec.warmup_steps)
        self._train(FOREVER, counted, again=True)
        self._write("crossings.json", counted.table())
        self.say(doing="timing components")
        from workloads import micro

        self._write("micro.json", micro.run(trainer))
        self.say(doing="trying a random policy")
        self._write("random.json", random_return(self.spec.env_id, self.spec.seed))

    def _attached(self) -> None:
        from rlox_opt.sampling.pyspy import allow_ptrace

        from workloads.watch import FOREVER, Window

        run = self

        class Ready(Window):
            def begin(self) -> None:
                run.trainer.timing.spans = SpanLog()
                run.say(ready=True, pid=os.getpid())
                self.start = perf_counter()

            def over(self) -> bool:
                return perf_counter() - self.start >= run.spec.settle

        allow_ptrace()
        if self.spec.plain:
            self._write("plain.json", self._undisturbed())
        self.sampler_settles(Ready(self.spec.warmup_steps))
        self._write_ticks(self._train(FOREVER, again=True))

    def _undisturbed(self) -> dict[str, Any]:
        """Whole iterations after the warm-up: `steps`, `seconds`, and those of each phase alone."""
        from workloads.watch import FOREVER, Window

        run, trainer = self, self.trainer

        class Undisturbed(Window):
            def begin(self) -> None:
                trainer.timing.spans = SpanLog()
                self.start, self.first = perf_counter(), trainer.num_timesteps

            def over(self) -> bool:
                self.seconds = perf_counter() - self.start
                return self.seconds >= run.spec.plain

            def end(self) -> None:
                self.steps = trainer.num_timesteps - self.first

        window = Undisturbed(self.spec.warmup_steps)
        self._train(FOREVER, window)
        spans = trainer.timing.spans
        assert spans is not None
        return {
            "steps": window.steps,
            "seconds": window.seconds,
            "self_seconds": _alone(spans, window.start, window.seconds),
        }

    def sampler_settles(self, window: Window) -> None:
        """Train until the sampler is at its ease: its stacks inside this function do not count."""
        from workloads.watch import FOREVER

        self._train(FOREVER, window, again=bool(self.spec.plain))

    def _scalene(self) -> None:
        from scalene import scalene_profiler

        from workloads.watch import FOREVER, Window

        run = self

        class Sampled(Window):
            def begin(self) -> None:
                run.say(ready=True, pid=os.getpid())
                self.start = perf_counter()
                scalene_profiler.start()

            def over(self) -> bool:
                return perf_counter() - self.start >= run.spec.seconds

            def end(self) -> None:
                scalene_profiler.stop()

        window = Sampled(self.spec.warmup_steps)
        clock = self._train(FOREVER, window)
        # Scalene names native frames by address; where the libraries lie is known only here.
        self.folder.joinpath("maps.txt").write_bytes(Path("/proc/self/maps").read_bytes())
        self._write_ticks(clock, start_ns=round(window.start * 1e9))
        self.say(doing="writing scalene's profile")

    def _torch_profiler(self) -> None:
        from workloads.torch_recording import Recording
        from workloads.watch import FOREVER

        recording = Recording(self.spec.warmup_steps, self.spec.seconds)
        clock = self._train(FOREVER, recording)
        self.say(doing="reading torch's events")
        recording.save(self.folder)
        self._write_ticks(clock, start_ns=recording.start_ns, end_ns=recording.end_ns)

    def _settings(self) -> dict[str, Any]:
        """The trainer's hyperparameters, defaults included."""
        parameters = inspect.signature(type(self.trainer)).parameters
        defaults = {
            name: p.default
            for name, p in parameters.items()
            if name not in _NOT_SETTINGS and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        }
        return defaults | self.spec.trainer | {"optimizations": sorted(self.trainer.optimizations)}

    def _write_ticks(self, clock: Clock, **more: int) -> None:
        spans = self.trainer.timing.spans
        if spans is not None:
            spans.save(self.folder / "spans.bin")
        self._write("result.json", {"ticks": clock.ticks, "pid": os.getpid()} | more)

    def _write(self, name: str, value: object) -> None:
        """Write JSON so that the driver sees it whole or not at all."""
        path = self.folder / name
        part = path.with_suffix(".part")
        part.write_text(json.dumps(value), encoding="utf-8")
        part.replace(path)


def _silent(**_: Any) -> None:
    """Says nothing."""


def _alone(spans: SpanLog, start: float, seconds: float) -> dict[str, float]:
    """Seconds of the training thread in each phase and in none of its inner ones, of so many from
    `start` on; outside all phases under ""."""
    found = {"": seconds}
    for span in spans:
        if span.thread == MAIN_THREAD and span.end_ns <= (start + seconds) * 1e9:
            took = (span.end_ns - span.start_ns) / 1e9
            found[span.path] = found.get(span.path, 0.0) + took
            outer = span.path.rpartition("/")[0]
            found[outer] = found.get(outer, 0.0) - took
    return found


def random_return(env_id: str, seed: int) -> dict[str, Any]:
    """Mean return of uniformly random actions: what a policy that learnt nothing would show.

    Over at least 50 episodes, or what ends within two seconds; the mean is None if none ends.
    """
    import rlox

    env = rlox.VecEnv(env_id, 8)
    env.action_space.seed(seed)
    env.reset(seed=seed)
    returns: list[float] = []
    running = [0.0] * 8
    deadline = perf_counter() + _RANDOM_SECONDS
    while len(returns) < _RANDOM_EPISODES and perf_counter() < deadline:
        _, rewards, terminations, truncations, _ = env.step(env.action_space.sample())
        for index in range(8):
            running[index] += float(rewards[index])
            if terminations[index] or truncations[index]:
                returns.append(running[index])
                running[index] = 0.0
    env.close()
    return {"mean_return": _mean(returns), "episodes": len(returns)}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


if __name__ == "__main__":
    sys.exit(main())
