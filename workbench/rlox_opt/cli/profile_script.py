"""`rlox-opt profile script`: where the time of any Python program goes, in all the
processes that it starts."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rlox_opt.cli import profile_recording
from rlox_opt.cli.arguments import FOLDER, check_out
from rlox_opt.project.project import Project
from rlox_opt.sampling import workloads
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, GOOD, INTERRUPTED, OWN_ERROR
from rlox_opt.system.files import NotReadError, read_text, write
from rlox_opt.system.output import say
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.sampling.processes.launch import Exit, Options
    from rlox_opt.sampling.processes.samplers import Sampler

_NAMING = ("--out", "--python", "--peer", "--beside")  # whose value may be any word
_EXAMPLES = """\
examples:
  rlox-opt profile script train.py -- --lr 3e-4
      one report of all processes that the program starts
  rlox-opt profile script train.py --from 60 --for 30
      of a long run, the half minute that follows its first minute
  rlox-opt profile script train.py --torch 2
      records torch's operators, too, for two seconds
  rlox-opt profile script -m package.train -- --steps 1000
      runs a module, as python -m does
  rlox-opt profile script train.py --serial='--workers=0'
      runs the program once more in one process, to tell what its processes cost
  rlox-opt profile script train.py --python env/bin/python
      runs the program by the interpreter of another environment
  rlox-opt profile script filter.py < big.json
      gives the program an input
  rlox-opt profile script -m sf_examples.train_gym_env --peer sample-factory \\
    --beside train_dir/cartpole/sf_log.txt -- --env=CartPole-v1 \\
    --experiment=cartpole --train_for_env_steps=200000 --device=cpu
      shows the timing report in the program's own log beside this one

Phases of the program are shown where it marks them by `rlox.timing`, of the library rlox-rl:
`with span("load"):`, `@span("load")`, or `with timing.add_time("load"):`. Without that library the
report has layers, functions and lines. Ctrl-C ends the program; the report tells what it did until
then.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the kind to `profile`."""
    parser = verbs.add_parser(
        "script",
        help="any program, with all processes that it starts",
        usage="rlox-opt profile script [-m] SCRIPT [options] [-- ARGUMENTS]",
        description="Run a program as it is, and tell where its time goes in all its processes. "
        "ARGUMENTS are the program's own. It has rlox-opt's stdin, unless that is a terminal: then "
        "it reads nothing.",
        epilog=_EXAMPLES
        + exits.told(
            good="the report is written",
            cannot_tell="also where the program fails; its report is written",
            interrupted="the report is written",
        ),
    )
    parser.add_argument("script", metavar="SCRIPT", help="a Python file, or with -m a module")
    parser.add_argument("-m", action="store_true", dest="module", help="SCRIPT is a module's name")
    parser.add_argument(
        "--serial",
        type=shlex.split,
        metavar="ARGUMENTS",
        help="run the program a second time with these arguments added, which make it use one "
        "process, and tell what several processes cost; not with --from or --for",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--python",
        default=sys.executable,
        metavar="PATH",
        help="the interpreter that runs the program (default: the one that runs rlox-opt)",
    )
    which.add_argument(
        "--peer",
        metavar="NAME",
        help="run the program by the interpreter of a peer of `rlox-opt peers`; the peer's "
        "environment is made if it is not there",
    )
    parser.add_argument(
        "--beside",
        type=Path,
        metavar="FILE",
        help="a log with the program's own Timing report, to be shown beside this one",
    )
    profile_recording.add_to(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--out", type=Path, metavar="DIR", help="a new folder for the report")
    output.add_argument("--json", action="store_true", help="print report.json to stdout alone")
    parser.set_defaults(run=run, parser=parser)


def named(words: list[str], runs: Collection[str]) -> bool:
    """Whether `profile …`, without a kind, names a script, and not one of the training runs."""
    there = [
        word
        for before, word in pairwise(words)
        if not word.startswith("-") and before not in _NAMING
    ]
    if not there or "-m" in words:
        return bool(there)
    if there[0] == words[1]:  # no option precedes it whose value it could be
        return there[0] not in runs
    return any(word.endswith(".py") for word in there) or not set(runs).intersection(there)


def run(arguments: argparse.Namespace) -> int:
    """Profile the program; returns the exit code."""
    profile_recording.check(arguments)
    if arguments.module and "/" in arguments.script:
        raise UsageError(
            f"-m {arguments.script}: is a path; leave out -m, or name the module with dots"
        )
    if not arguments.module and not Path(arguments.script).is_file():
        runs = ", ".join(workloads.names(arguments.project))
        known = f"; the project's training runs: {runs}" if runs else ""
        raise UsageError(f"script {arguments.script}: no such file{known}")
    if importlib.util.find_spec("rich") is None:
        raise UsageError("rich is not installed: pip install rlox-opt")
    check_out(arguments.out)
    target = ["-m", arguments.script] if arguments.module else [arguments.script]
    python, arguments.versions = arguments.python, {}
    if arguments.peer is not None:
        python, arguments.versions = _of_peer(arguments.project, arguments.peer)
    command = [python, *target, *arguments.rest]
    name = Path(arguments.script).stem if not arguments.module else arguments.script
    serial = None if arguments.serial is None else [*command, *arguments.serial]
    return profile(command, name, arguments, serial=serial, stdin=_stdin(serial is not None))


def _stdin(twice: bool) -> int | None:
    """Where the program's stdin comes from, as `launch` takes it: from ours, if that is no
    terminal. Raises UsageError if it is to be read twice and cannot be."""
    if os.isatty(0):
        return subprocess.DEVNULL
    if not twice:
        return None
    with contextlib.suppress(OSError):
        os.lseek(0, 0, os.SEEK_CUR)
        return None
    ready = select.poll()
    ready.register(0, select.POLLIN)
    events = dict(ready.poll(0)).get(0, 0)
    if events & select.POLLIN or not events:  # it holds something, or may yet
        raise UsageError(
            "--serial: runs the program twice, and a pipe can be read once; write < FILE, or "
            "< /dev/null for none"
        )
    return subprocess.DEVNULL


def _of_peer(project: Project, name: str) -> tuple[str, dict[str, str]]:
    """The interpreter of a peer, and the version of what it is. Raises UsageError."""
    from rlox_opt.race import environments as racing

    every = [peer for race in racing.races(project) for peer in racing.load(project, race)[1]]
    known = {peer.name: peer for peer in every}
    if name not in known:
        raise UsageError(f"--peer {name}: is none; there are {', '.join(known)}")
    try:
        python = racing.python_of(known[name], racing.home(project))
    except racing.PeerError as error:
        raise UsageError(f"--peer {name}: {error}") from error
    version = racing.version(known[name], python).split()
    return str(python), dict([version]) if version else {}


def profile(
    command: Sequence[str],
    name: str,
    arguments: argparse.Namespace,
    environment: Mapping[str, str] | None = None,
    serial: Sequence[str] | None = None,
    stdin: int | None = subprocess.DEVNULL,
) -> int:
    """Run a command under the recorder and write its report; returns the exit code. With `serial`,
    a command that does the same in one process, the report says what the processes cost.
    `stdin` is what `launch` takes; both commands get it from where it is now.

    Raises:
        UsageError: the arguments do not fit each other or the machine.
    """
    from rlox_opt.sampling.processes import samplers
    from rlox_opt.sampling.processes.launch import Options

    try:
        sampler = samplers.choose(arguments.sampler)
    except ValueError as error:
        raise UsageError(f"--sampler {arguments.sampler}: {error}") from error
    if sampler is None and arguments.sampler is None and (why := samplers.why_none()):
        said = "rlox-opt profile: nothing can be sampled here, so layers will not be known"
        say(f"{said}. {why}", stderr=True)
    options = Options(
        from_s=arguments.from_s,
        for_s=arguments.for_s,
        every=arguments.every,
        torch_s=arguments.torch_s,
        ptrace=sampler is not None and sampler.name == "py-spy",
        frames=sampler is not None and sampler.name == "perf",
    )
    end_as_by_ctrl_c()
    home = FOLDER if arguments.out is None else arguments.out.parent
    with scratch(home) as part:
        try:
            text, folder, ended = _recorded(
                command, name, arguments, options, sampler, part, environment, serial, stdin
            )
        except UsageError:  # nothing is left
            raise
        except BaseException as error:  # such as a full disk
            if not part.exists():  # the report is in its place
                raise
            why = f"{error}; " if isinstance(error, OSError) else ""
            kept = _place(part, home / "unfinished", "")
            say(f"rlox-opt profile: {why}what was recorded is in {kept}", stderr=True)
            if isinstance(error, OSError):
                return OWN_ERROR
            raise
    if arguments.out not in (None, folder):
        say(f"--out {arguments.out}: is there by now; see {folder}", stderr=True)
    if arguments.json:
        print(json.dumps(json.loads(text), indent=1))
    else:
        from rlox_opt.views.terminal_processes import show

        show(json.loads(text), Path(_utf8(str(folder))))
    if any(each.interrupted for each in ended):
        return INTERRUPTED
    return CANNOT_TELL if any(each.status for each in ended) else GOOD


def end_as_by_ctrl_c() -> None:
    """From here on SIGTERM, and SIGHUP when the terminal goes, keep what is there as Ctrl-C does;
    but not SIGHUP under nohup."""
    terminals = [number for number in (1, 2) if os.isatty(number)]

    def hung_up(*_: object) -> NoReturn:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in terminals:  # to write to a terminal that is gone would raise
            os.dup2(nowhere, number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, hung_up)


def _recorded(
    command: Sequence[str],
    name: str,
    arguments: argparse.Namespace,
    options: Options,
    sampler: Sampler | None,
    part: Path,
    environment: Mapping[str, str] | None,
    serial: Sequence[str] | None,
    stdin: int | None,
) -> tuple[str, Path, list[Exit]]:
    """Run the command, or both, in the new folder `part`, and make that the report's: the text of
    report.json, the folder's place, how the runs ended.

    Raises:
        UsageError: the command cannot be started; nothing is left.
        OSError: anything else cannot be written or started; `part` is left as it is.
    """
    from rlox_opt.sampling.processes.launch import NotStartedError, launch
    from rlox_opt.sampling.processes.report import report
    from rlox_opt.sampling.processes.run import read_run
    from rlox_opt.sampling.processes.sampled import remove_spent
    from rlox_opt.system.ending import not_interrupted
    from rlox_opt.system.machine import slug
    from rlox_opt.system.progress import reporter
    from rlox_opt.views import processes as shown

    with reporter() as progress:
        progress.plan([("the program", 60.0), ("report", 10.0)])
        progress.begin("the program")
        output = sys.stderr if arguments.json else None
        at = os.lseek(0, 0, os.SEEK_CUR) if serial is not None and stdin is None else 0
        more = output, environment, stdin
        try:
            outcome = launch(command, part / "run", options, sampler, progress, *more)
        except NotStartedError as error:
            raise UsageError(f"--python {command[0]}: cannot be started ({error})") from error
        progress.end(f"exit status {outcome.status}")
        alone = None
        if serial is not None and not outcome.status and not outcome.interrupted:
            progress.begin("in one process")
            if stdin is None:
                os.lseek(0, at, os.SEEK_SET)
            alone = launch(serial, part / "serial", options, None, progress, *more)
            progress.end(f"exit status {alone.status}")
        progress.begin("report")
        with not_interrupted():
            recorded = read_run(part / "run")
            told, stacks = report(recorded, part / "trace.json", arguments.project)
            told["versions"] |= getattr(arguments, "versions", {})
            if alone is not None:
                _add_serial(told, part, alone)
            if (log := getattr(arguments, "beside", None)) is not None:
                told["own_timing"] = _own_timing(told, log)
            # An argument may hold bytes that are no text.
            text = _utf8(json.dumps(told, indent=1, ensure_ascii=False)) + "\n"
            told = json.loads(text)
            texts = {
                "report.json": text,
                "report.html": shown.render_html(told, stacks),
                "report.md": shown.render_markdown(told),
            }
            for file, content in texts.items():
                write(part / file, content)
            remove_spent(recorded)
            folder = _place(
                part, arguments.out, f"{told['date']}_{slug(told['machine'])}_{_utf8(name)}"
            )
        progress.end(_utf8(str(folder)))
    return text, folder, [outcome] if alone is None else [outcome, alone]


def _utf8(text: str) -> str:
    """The text with "?" for what UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _add_serial(told: dict[str, Any], part: Path, alone: Exit) -> None:
    """What the processes cost, or why that is not told."""
    from rlox_opt.sampling.processes.run import read_run
    from rlox_opt.sampling.processes.serial import cost

    why = "says no phases, or had none in one of its two runs"
    if alone.interrupted:
        why = "was interrupted in one process"
    elif alone.status:
        why = f"failed in one process, with exit status {alone.status}"
    elif (costs := cost(read_run(part / "run"), read_run(part / "serial"))) is not None:
        told["serial"] = costs
        return
    told["incomplete"].append(f"The program {why}, so what its processes cost is not told.")


def _own_timing(told: dict[str, Any], log: Path) -> list[dict[str, Any]]:
    from rlox_opt.sampling.processes.own_timing import beside

    try:
        rows = beside(told, read_text(log, "replace"))
    except NotReadError as error:
        told["incomplete"].append(f"--beside {error}")
        return []
    if not rows:
        told["incomplete"].append(f"--beside {log}: holds no Timing report")
    return rows


def _place(part: Path, out: Path | None, name: str) -> Path:
    """Move a finished folder to `out`, or to `name`; where that is taken, to the first of `name`-2,
    `name`-3, … that is free."""
    wanted = FOLDER / name if out is None else out
    for number in range(1, 1000):
        target = wanted if number == 1 else Path(f"{wanted}-{number}")
        try:
            return part.rename(target)
        except OSError:
            # Renaming fails on a file, and on a folder that is there and not empty.
            if not os.path.lexists(target):
                raise
    raise FileExistsError(f"{wanted}: is there a thousand times")
