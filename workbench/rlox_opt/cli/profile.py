"""`rlox-opt profile train|script|bench|diff`: where does the time go?"""

from __future__ import annotations

from typing import Any

from rlox_opt.cli import profile_bench, profile_diff, profile_script, profile_train
from rlox_opt.project.project import Project
from rlox_opt.sampling import workloads
from rlox_opt.system import exits

_KINDS = {
    "train": profile_train,
    "script": profile_script,
    "bench": profile_bench,
    "diff": profile_diff,
}
_EXAMPLES = """\
examples:
  rlox-opt profile train NAME    one of the project's training runs
  rlox-opt profile script train.py -- --lr 3e-4  any program, with all its processes
  rlox-opt profile bench 'time_sum(2048)'    the calls of one benchmark
  rlox-opt profile diff main HEAD            two commits, or two reports

The kind may be left out: `profile NAME` means `profile train NAME` where NAME is a training run of
the project, and `profile train.py` means `profile script train.py`.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb, with its kinds, to the command line."""
    parser = verbs.add_parser(
        "profile",
        help="where the time goes: in training, in a program, in a benchmark, before and after",
        description="Record where a program spends its time, and rank the layers of code by it.",
        epilog=_EXAMPLES + exits.told(),
    )
    kinds = parser.add_subparsers(title="kinds", dest="kind", required=True, metavar="KIND")
    for kind in _KINDS.values():
        kind.add_to(kinds, project)


def split(words: list[str], project: Project) -> tuple[list[str], list[str]]:
    """The words of the command line with a kind after `profile`, whichever way it was said, and of
    a script its own arguments, which follow `--`."""
    if words and words[0] in ("profile-script", "profile-diff"):  # as they were called before
        words = ["profile", words[0].removeprefix("profile-"), *words[1:]]
    if words[:1] != ["profile"]:
        return words, []
    at = words.index("--") if "--" in words else len(words)
    if not {*words[1:2]} & {*_KINDS, "-h", "--help"} and words[1:]:
        runs = workloads.names(project)
        script = profile_script.named(words[:at], runs)
        words = ["profile", "script" if script else "train", *words[1:]]
        at += 1
    if words[1:2] != ["script"]:
        return words, []
    return words[:at], words[at + 1 :]
