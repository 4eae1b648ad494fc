"""A wheel made by the commands in asv.conf.json, with asv's placeholders and prefixes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from rlox_opt.project.artefacts import NotBuiltError
from rlox_opt.project.builders import pep517, wheels
from rlox_opt.project.environments import named_in
from rlox_opt.system import git
from rlox_opt.system.commands import Done, attempt
from rlox_opt.system.usage import UsageError
from rlox_opt.system.uv import environment

ALWAYS = ("pip", "build")
"""The packages that asv installs in every environment in which it builds."""

_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_CODES = re.compile(r"return-code=(any|\d+(?:,\d+)*)")
_TOGETHER = "--no-build-isolation"
_FALSE = ("0", "false", "no", "off", "f", "n")  # as pip reads variables
# Variables by which pip and uv, which commands may call, get versions for isolated builds too.
_CONSTRAINTS = ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT", "UV_BUILD_CONSTRAINT")
_TARGET = "CARGO_TARGET_DIR"
_FRONT_END = re.compile(
    r"(?:^|[\s/])(?:pip3?|uv|maturin)\s|-m\s*(?:pip|build|uv|maturin)\b|\bsetup\.py\b"
)


class Names(NamedTuple):
    """The values of a command's placeholders, such as `{build_dir}`, under asv's names."""

    build_dir: str
    build_cache_dir: str
    env_dir: str
    env_name: str
    env_type: str
    conf_dir: str
    project: str
    commit: str


@dataclass(frozen=True)
class _Command:
    words: list[str]
    env: dict[str, str] = field(default_factory=dict)
    codes: frozenset[int] | None = frozenset({0})  # the exit codes of success; None: any
    folder: Path | None = None


def check(commands: Sequence[str]) -> None:
    """Raise UsageError if a command of a build has an error that shows without running it."""
    for command in commands:
        _parsed(command, dict.fromkeys(Names._fields, ""))


def variables(
    commands: Sequence[str], asked: pep517.Asked, constraints: Path, target: Path
) -> dict[str, str]:
    """The variables to run the commands of a build with: a file of `constraints`, and cargo's
    `target` folder, which all commits share so that each compiles only what it changed. This
    process's own one counts before it. Other commands than those of known front-ends may look into
    the checkout for what is compiled."""
    told = dict.fromkeys(_CONSTRAINTS, str(constraints))
    known = all(map(_FRONT_END.search, commands)) and not {"cargo", "target"} & named_in(*commands)
    if asked.of_rust and known and _TARGET not in os.environ:
        told[_TARGET] = str(target)
    return told


def build(
    commands: Sequence[str],
    install: Sequence[str],
    values: Names,
    virtual: Path,
    checkout: Path,
    env: Mapping[str, str],
    log: Path,
    limit_s: float,
) -> Path | None:
    """Run the commands of a build, with the programs of the environment `virtual` first on the
    path, and with `values` in place of the placeholders.

    Returns the wheel that they leave in `{build_cache_dir}`. If they leave none, the commands
    `install` are run as well, which install into `virtual`, and None is returned.

    Raises:
        NotBuiltError: a command fails, or leaves several wheels, and not one of {project}.
        UsageError: a command has an error.
    """
    names = values._asdict()
    told = {**environment(), **git.trusting(checkout), **env}
    told |= {f"ASV_{name.upper()}": value for name, value in names.items()} | {"ASV": "true"}
    told |= {"VIRTUAL_ENV": str(virtual), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    path = os.pathsep.join([str(virtual / "bin"), os.environ.get("PATH", os.defpath)])
    said: list[str] = []
    for command in commands:
        _run(_parsed(command, names), names, told, path, said, log, limit_s)
    cache = Path(names["build_cache_dir"])
    if any(cache.glob("*.whl")) or not install:
        return wheels.only_wheel(cache, names["commit"][:10], names["project"])
    for command in install:
        _run(_parsed(command, names), names, told, path, said, log, limit_s)
    return None


def _run(
    command: _Command,
    names: Mapping[str, str],
    env: Mapping[str, str],
    path: str,
    said: list[str],
    log: Path,
    limit_s: float,
) -> None:
    program = shutil.which(command.words[0], path=path)
    if program is None:
        raise UsageError(
            f"asv.conf.json: {command.words[0]!r}, which a command starts with, is neither in the "
            f"environment nor on PATH; add it to `matrix`, or install it"
        )
    folder = command.folder or Path(names["build_dir"])
    if not folder.is_dir():
        raise NotBuiltError(f"{names['commit'][:10]} does not build: it has no folder {folder}")
    told = {**env, "PATH": path, **command.env}
    # The variable has the option's name and the opposite meaning: a false one is the option.
    variable = {**os.environ, **told}.get("PIP_NO_BUILD_ISOLATION", "")
    if _TOGETHER in command.words or variable.lower() in _FALSE:
        told["PIP_BUILD_CONSTRAINT"] = ""  # pip refuses constraints for isolated builds with it
    done = attempt([program, *command.words[1:]], folder, told, limit_s)
    said.append(f"$ {shlex.join(command.words)}\n{done.output}")
    if done.late or (command.codes is not None and done.status not in command.codes):
        whole = Done(done.status, "".join(said), done.seconds, done.late)
        raise wheels.failed(names["commit"][:10], whole, log)


def _parsed(command: str, names: Mapping[str, str]) -> _Command:
    """Read a command as asv does. Words are split as a shell splits them, and placeholders are
    filled in. Before the program may stand variables, the accepted exit codes, and the folder to
    run it in."""
    try:
        words = [word.format(**names) for word in shlex.split(command)]
    except (KeyError, IndexError) as error:
        there = ", ".join(f"{{{name}}}" for name in sorted(names))
        why = f"which there is not; there are {there}"
        if error.args[0] == "wheel_file":
            why = "and no wheel is in {build_cache_dir}; let build_command leave one there"
        raise UsageError(f"asv.conf.json: {command!r} names {{{error.args[0]}}}, {why}") from None
    except ValueError as error:
        raise UsageError(f"asv.conf.json: {command!r} is no command: {error}") from None
    env: dict[str, str] = {}
    codes: frozenset[int] | None = frozenset({0})
    folder = None
    while words:
        if words[0].startswith("in-dir="):
            folder = Path(words[0].removeprefix("in-dir="))
        elif good := _CODES.fullmatch(words[0]):
            codes = None if good[1] == "any" else frozenset(map(int, good[1].split(",")))
        elif variable := _VARIABLE.fullmatch(words[0]):
            env[variable[1]] = variable[2]
        else:
            return _Command(words, env, codes, folder)
        words = words[1:]
    raise UsageError(f"asv.conf.json: {command!r} names no program to run")


def take_installed(virtual: Path, before: set[str], target: Path, title: str) -> None:
    """Copy to the folder `target` what was installed into an environment from its checkout, or
    otherwise all that is new there. `before` are the names that its site-packages had.

    Raises:
        NotBuiltError: nothing was installed, or only a link to the checkout.
    """
    (packages,) = virtual.glob("lib/python*/site-packages")
    new = [path for path in sorted(packages.iterdir()) if path.name not in before]
    of_its_own = [metadata.PathDistribution(p) for p in new if p.suffix == ".dist-info"]
    own = [of for of in of_its_own if of.read_text("direct_url.json")]
    if any('"editable": true' in (of.read_text("direct_url.json") or "") for of in own):
        raise NotBuiltError(
            f"{title}: the commands of asv.conf.json install a link to the checkout, which changes "
            f"with every commit; leave out the option for editable installs (-e)"
        )
    tops = {Path(str(file)).parts[0] for of in own for file in of.files or ()} - {
        "..",
        "__pycache__",
    }
    taken = [path for path in new if not own or path.name in tops]
    if not taken:
        raise NotBuiltError(f"{title}: the commands of asv.conf.json left no wheel in "
            f"{{build_cache_dir}}, and installed nothing")  # fmt: skip
    target.mkdir(parents=True)
    for path in taken:
        if path.is_dir():
            shutil.copytree(path, target / path.name)
        else:
            shutil.copy2(path, target / path.name)
