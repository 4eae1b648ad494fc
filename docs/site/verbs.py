"""Pages of the verbs of rlox-opt, made of the parser that reads its command line."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import tables
from rlox_opt.cli.main import command_line
from rlox_opt.project.project import Project
from rlox_opt.system import exits

# How the help says a default: in brackets with that word, at its beginning, or as the one word in
# brackets that it ends with.
_DEFAULT = re.compile(r"\s*\(default: ([^)]*)\)|^default: (\S+?),\s*|\s*\((\S+)\)$")
_SECTION = re.compile(r"^(\w[\w ]*):$", re.MULTILINE)


class Verb(NamedTuple):
    """A verb, or a kind of one: its words after `rlox-opt`, what it is for, its parser."""

    words: str
    help: str
    parser: argparse.ArgumentParser

    @property
    def slug(self) -> str:
        """The name of its page."""
        return self.words.replace(" ", "-")


def verbs(project: Project) -> list[Verb]:
    """All, in the order of `rlox-opt --help`; behind a verb come its kinds."""
    return [*_below(command_line(project), "")]


def _below(parser: argparse.ArgumentParser, before: str) -> Iterator[Verb]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            told = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, inner in action.choices.items():
                words = f"{before} {name}".strip()
                yield Verb(words, told.get(name, ""), inner)
                yield from _below(inner, words)


def overview(project: Project) -> str:
    """The page with a line for each verb."""
    rows = [f"| [`rlox-opt {verb.words}`]({verb.slug}.md) | {_cell(verb.help)} |"
            for verb in verbs(project)]  # fmt: skip
    return "\n".join([
        "# Verbs of rlox-opt", "",
        "These pages are made of the parser that reads the command line, so they list what "
        "`rlox-opt VERB --help` prints. Trainings, races and folders that a verb offers are those "
        "of this repository: another project names its own.", "",
        "| verb | what it is for |", "|---|---|", *rows, "",
        "Each verb ends with one of the [exit codes](../exit-codes.md), and its page says of what.",
    ]) + "\n"  # fmt: skip


def page(verb: Verb, root: Path) -> str:
    """The page of a verb: usage, arguments, examples, exit codes. Paths below `root` are told from
    there."""
    parser = verb.parser
    lines = [f"# rlox-opt {verb.words}", "", _sentences(parser.description or verb.help), ""]
    lines += ["```text", _usage(parser), "```", ""]
    for group in parser._action_groups:
        shown = [action for action in group._group_actions if not _is_help(action)]
        if not shown:
            continue
        if any(isinstance(action, argparse._SubParsersAction) for action in shown):
            lines += ["## Kinds", "", *_kinds(verb, shown), ""]
            continue
        titles = {"positional arguments": "Arguments", "options": "Options"}
        title = titles.get(group.title or "", (group.title or "").capitalize())
        titled = "argument" if title == "Arguments" else "option"
        lines += [f"## {title}", ""]
        cells = [_cells(parser, of) for of in shown]
        lines += [*tables.lines((titled, "default", "meaning"), cells, optional=1), ""]
    lines += _epilog(parser.epilog or "")
    return "\n".join(lines).replace(f"{root}/", "").rstrip() + "\n"


def exit_codes(project: Project) -> str:
    """The page with what each exit code means, of each verb."""
    every = [verb for verb in verbs(project) if "exit codes:" in (verb.parser.epilog or "")]
    own = {verb.words: _own_codes(verb.parser.epilog or "") for verb in every}
    codes = [code for code in exits.MEANINGS if any(of.get(code, "—") for of in own.values())]
    lines = ["# Exit codes", "", "A script or a job of CI asks the exit code. It means the same of "
             "every verb:", "", "| code | meaning |", "|---|---|"]  # fmt: skip
    lines += [f"| {code} | {_cell(meaning)} |" for code, meaning in exits.MEANINGS.items()]
    lines += ["", "The next table has what single verbs mean by a code beyond that. Codes of which "
              "no verb means more are left out. A dash means that the verb never ends with this "
              "code.", ""]  # fmt: skip
    lines += [f"| verb | {' | '.join(map(str, codes))} |", "|---" * (len(codes) + 1) + "|"]
    for verb in every:
        of = own[verb.words]
        cells = " | ".join(_cell(of[code]) if code in of else "—" for code in codes)
        lines.append(f"| [`{verb.words}`](verbs/{verb.slug}.md) | {cells} |")
    return "\n".join(lines) + "\n"


def _own_codes(epilog: str) -> dict[int, str]:
    """What a verb says of each code beyond what it means everywhere."""
    _, _, told = epilog.partition("exit codes:\n")
    found = {}
    for line in told.splitlines():
        code, _, words = line.strip().partition(" ")
        general = exits.MEANINGS[int(code)]
        found[int(code)] = words.strip().removeprefix(general).removeprefix(":").strip()
    return found


def _usage(parser: argparse.ArgumentParser) -> str:
    words = " ".join(parser.format_usage().removeprefix("usage: ").split())
    of = textwrap.TextWrapper(78, subsequent_indent="    ", break_on_hyphens=False)
    # An option and its value stay on one line.
    whole = re.sub(
        r"\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]", lambda m: m[0].replace(" ", "\0"), words
    )
    return of.fill(whole).replace("\0", " ")


def _is_help(action: argparse.Action) -> bool:
    return isinstance(action, argparse._HelpAction)


def _kinds(verb: Verb, shown: Sequence[argparse.Action]) -> Iterator[str]:
    yield "| kind | what it is for |"
    yield "|---|---|"
    for action in shown:
        assert isinstance(action, argparse._SubParsersAction)
        told = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name in action.choices:
            yield f"| [`{name}`]({verb.slug}-{name}.md) | {_cell(told.get(name, ''))} |"


def _cells(parser: argparse.ArgumentParser, action: argparse.Action) -> tuple[str, str, str]:
    """Name, default and meaning."""
    told = parser._get_formatter()._expand_help(action) if action.help else ""
    found = _DEFAULT.search(told)
    default = next(filter(None, found.groups())) if found else _plain(action)
    told = _DEFAULT.sub("", told, count=1).strip()
    word = default if " " in default or not default else f"`{default}`"
    return _name(action), _cell(word), _cell(told)


def _plain(action: argparse.Action) -> str:
    """The default where the help does not say it and a word can."""
    default = action.default
    nothing: tuple[object, ...] = (
        None,
        argparse.SUPPRESS,
        "",
        [],
        (),
        sys.executable,
    )  # which differs by machine
    if isinstance(default, bool) or default in nothing:
        return ""
    if isinstance(default, float):
        return f"{default:g}"
    return str(default) if isinstance(default, str | int) else ""


def _name(action: argparse.Action) -> str:
    of = str(action.metavar or "")
    if action.choices and not action.metavar:
        of = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return f"`{of or action.dest}`"
    takes = "" if action.nargs == 0 else of or action.dest.upper()
    return ", ".join(f"`{name}{' ' * bool(takes)}{takes}`" for name in action.option_strings)


def _epilog(epilog: str) -> Iterator[str]:
    """Examples and other indented parts as code, the rest as text, the exit codes as a table."""
    before, _, codes = epilog.partition("exit codes:\n")
    for block in re.split(r"\n{2,}", before.strip("\n")):
        head, *rest = block.split("\n")
        heading = _SECTION.fullmatch(head) if rest and rest[0].startswith("  ") else None
        if heading:
            yield from (f"## {heading[1].capitalize()}", "")
            head, *rest = rest
        words = [head, *rest]
        while words:
            code = words[0].startswith("  ")
            run = []
            while words and words[0].startswith("  ") == code:
                run.append(words.pop(0))
            yield from (["```text", *(line[2:] for line in run), "```", ""] if code
                        else [" ".join(map(_escaped, run)), ""])  # fmt: skip
    if codes:
        yield from ("## Exit codes", "", "| code | meaning |", "|---|---|")
        for line in codes.splitlines():
            code, _, words_ = line.strip().partition(" ")
            yield f"| {code} | {_cell(words_.strip())} |"


def _sentences(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _cell(text: str) -> str:
    """As the cell of a table."""
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    """What Markdown would take for markup, as it is; spans of code are left."""
    parts = text.split("`")
    of_text = [re.sub(r"([*_<>|\[\]])", r"\\\1", part) if n % 2 == 0 else part
               for n, part in enumerate(parts)]  # fmt: skip
    return "`".join(of_text)
