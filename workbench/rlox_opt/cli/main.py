"""`rlox-opt`: finds the verb and runs it. `exits` says what the exit codes mean."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from rlox_opt import Out
from rlox_opt.cli.help_text import HelpText
from rlox_opt.cli.own_errors import ended, one_line
from rlox_opt.harness.restarts import ContestError
from rlox_opt.project.builds import NotBuiltError
from rlox_opt.project.project import Project
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL
from rlox_opt.system.files import NotReadError, NotWrittenError
from rlox_opt.system.guard import guarded
from rlox_opt.system.output import say
from rlox_opt.system.usage import UsageError

VERBS = (
    "init", "profile", "list", "show", "test", "cmp", "ladder", "peers", "new", "predict",
    "diff", "gate", "bisect", "lint-suite", "calibrate", "record", "regressions", "publish",
    "claims",
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; `--help` has the rest. Options are written out: the beginning
    of one may be meant for the program that is measured. `of_program` is told where words are not
    known."""

    of_program = ""

    def __init__(self, prog: str | None = None, **options: Any) -> None:
        super().__init__(prog, **{"formatter_class": HelpText, "allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        more = self.of_program if message.startswith("unrecognized arguments") else ""
        say(f"{self.prog}: {one_line(message.removeprefix('argument '))}{more}", stderr=True)
        self.exit(CANNOT_TELL)


class _Version(argparse.Action):
    """`--version`: with that of the measured package, where it is installed, and how it was built;
    read only when asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib import metadata

        said = f"rlox-opt {metadata.version('rlox-opt')}"
        with contextlib.suppress(UsageError):
            project = Project.here()
            build = project.installed.build_info()
            if build:
                features = ", ".join(build["features"]) or "baseline"
                said += f", {project.package} {build['version']} ({build['profile']}, {features})"
        print(said)
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. No exception but SystemExit gets out of here."""
    words = sys.argv[1:] if argv is None else [*argv]
    prog = ["rlox-opt"]
    try:
        try:
            code = _run(words, prog)
        except SystemExit:  # --help, or asked wrongly
            _flush()
            raise
        _flush()
        return code
    except SystemExit:
        raise
    except BaseException as error:  # of whatever kind: nobody is shown a traceback
        return ended(error, prog[-1], words)


def command_line(project: Project, verbs: Sequence[str] = VERBS) -> Parser:
    """What reads the words of the command line, in a project; the reference of the documentation is
    made of it, too. The modules of all verbs are slow to import, so a caller that knows which verb
    is asked for names it alone."""
    parser = Parser(
        prog="rlox-opt",
        description="Measure a project, commit by commit, and its optimisations.",
        epilog=exits.told(difference="each verb's --help says of what").lstrip(),
    )
    parser.add_argument("--version", action=_Version)
    added = parser.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB")
    for verb in verbs:
        import_module(f"rlox_opt.cli.{verb.replace('-', '_')}").add_to(added, project)
    return parser


def _run(words: list[str], prog: list[str]) -> int:
    """Run the verb, whose name is added to `prog`."""
    project = Project.here()
    rest: list[str] = []
    if words and words[0].startswith("profile"):  # also as kinds were called before
        from rlox_opt.cli import profile

        words, rest = profile.split(words, project)
    parser = command_line(project, words[:1] if words and words[0] in VERBS else VERBS)
    if words[:2] == ["profile", "script"]:
        parser.of_program = "; the program's own arguments follow --"
    if any("\0" in word for word in words):
        parser.error("arguments: one holds a NUL character, which no name can")
    arguments = parser.parse_args(words)
    arguments.project, arguments.rest = project, rest
    prog.append(arguments.parser.prog)
    with guarded():
        try:
            code: int = arguments.run(arguments)
        except (UsageError, NotReadError) as problem:
            arguments.parser.error(str(problem))
        except (NotBuiltError, ContestError) as problem:  # with what the program said, in its lines
            say(f"{arguments.parser.prog}: {problem}", stderr=True)
            code = CANNOT_TELL
    return code


def _flush() -> None:
    """Raises NotWrittenError where stdout could not be written; what it should hold is kept."""
    sys.stdout.flush()
    if isinstance(sys.stdout, Out) and sys.stdout.failed:
        failed = NotWrittenError("standard output", sys.stdout.failed)
        raise failed.keeping("".join(sys.stdout.said), ".txt")


if __name__ == "__main__":
    from rlox_opt import main as door

    sys.exit(door())
