"""What the install commands of an asv.conf.json bring into an environment: extras of the project,
and requirements of pip's. The commands are read here, and not run."""

from __future__ import annotations

import argparse
import posixpath
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from rlox_opt.project import requirement_files

_PIP = re.compile(r"(\S*python[\d.]* -m ?)?(\S*/)?(uv )?pip[\d.]*")
_PREFIX = re.compile(r"([\w-]+)=(.*)", re.DOTALL)  # asv's: in-dir=, return-code=, NAME=

_OPTIONS = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
for _dest, _names in {  # pip's options that take a value
    "files": "-r --requirement",
    "editable": "-e --editable",
    "sources": "-i --index-url --extra-index-url -f --find-links -c --constraint",
    "other": "-t --target -C --config-settings --global-option --no-binary --only-binary --prefix "
    "--upgrade-strategy --trusted-host --timeout --retries --python --cache-dir --log --proxy",
}.items():
    _OPTIONS.add_argument(*_names.split(), dest=_dest, action="append", default=[])


@dataclass
class Installed:
    """`extras` of the project itself, `requirements` in pip's form, which need not be valid, and
    `notes` on what is left out."""

    extras: list[str] = field(default_factory=list)
    requirements: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read(
    commands: Sequence[str],
    path: PurePosixPath,
    project: PurePosixPath,
    beside: Callable[[PurePosixPath], str | None],
) -> Installed:
    """What the commands of the asv.conf.json at `path` install. `project` is the folder that is
    built, and `beside` gives the text of a file of the repository, or None if there is none."""
    found = Installed()

    def place(folder: str, named: str) -> str:
        """A path from the top of the repository, which is "/"."""
        for name, known in (("{build_dir}", project), ("{conf_dir}", path.parent)):
            folder = folder.replace(name, f"/{known}")
            named = named.replace(name, f"/{known}")
        return posixpath.normpath(posixpath.join("/", folder, named))

    def text(file: str) -> str:
        there = beside(PurePosixPath(file[1:]))
        if there is None:
            found.notes.append(
                f"{path}: `install_command` names {file[1:]}, which is not read; name what the "
                "suite needs of it by --with NAME"
            )
        return there or ""

    for command in commands:
        try:
            folder, asked, named = _parsed(command)
        except (ValueError, argparse.ArgumentError):
            found.notes.append(
                f"{path}: `{command[:60]}` of `install_command` brings nothing into the "
                "environment; --with NAME adds what it should"
            )
            continue
        for word in named:
            where, _, extras = word.partition("[")
            here = where[:1] in (".", "{", "/") and place(folder, where) == place("", "{build_dir}")
            if here or where == "{wheel_file}":
                found.extras += [of for of in re.split(r"[\s,\]]+", extras) if of]
            else:
                found.requirements.append(word)
        for file in asked.files:
            found.requirements += requirement_files.lines(place(folder, file), text)
        if asked.sources:
            found.notes.append(
                f"{path}: `install_command` has pip heed {', '.join(asked.sources)}, and uv does "
                "not; name them by UV_INDEX, UV_FIND_LINKS or UV_CONSTRAINT where they matter"
            )
    return found


def _parsed(command: str) -> tuple[str, argparse.Namespace, list[str]]:
    """The folder that pip runs in, its options, and what it is to install. Raises ValueError or
    ArgumentError if the command is another one."""
    words, folder = shlex.split(command), "{build_dir}"
    while words and (prefix := _PREFIX.fullmatch(words[0])):
        folder = prefix[2] if prefix[1] == "in-dir" else folder
        words = words[1:]
    at = words.index("install")
    if not _PIP.fullmatch(" ".join(words[:at])):
        raise ValueError(command)
    asked, rest = _OPTIONS.parse_known_args(words[at + 1 :])
    return folder, asked, [*asked.editable, *(word for word in rest if word[:1] != "-")]
