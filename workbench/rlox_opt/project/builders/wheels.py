"""Wheels that are kept as installed folders, with what is known of each."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from importlib import metadata
from pathlib import Path

import msgspec
from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rlox_opt.project.artefacts import NotBuiltError, digests_of_wheel, packages_in
from rlox_opt.project.environments import name_of
from rlox_opt.system import elf, files, schema
from rlox_opt.system.commands import Done, run
from rlox_opt.system.files import NotReadError
from rlox_opt.system.scratch import scratch
from rlox_opt.system.uv import reason, uv

_PACKAGE, _FACTS = "package", "installed.json"
_EXTRA = re.compile(r"extra == \"([^\"]*)\"")
_ALWAYS, _NEVER = 'python_version >= "3"', 'python_version < "3"'  # of a marker
# Variables that influence builds: those of compilers, and of the tools that call them.
_HEEDED = re.compile(
    r"(CC|CXX|CPP|FC|AR|LD|LDSHARED|LDCXXSHARED|ARCHFLAGS|MACOSX_DEPLOYMENT_TARGET|RUSTC\w*|"
    r"\w*FLAGS|(CARGO|MATURIN|PYO3|CYTHON|SETUPTOOLS|CMAKE|MESON|SKBUILD|NPY|PKG_CONFIG|HATCH|PDM|"
    r"FLIT|POETRY)_\w+|CYTHON\w*|\w+_CONFIG|(\w+_)?(USE|NO|WITH|WITHOUT|DISABLE|ENABLE)_\w+|"
    r"CPATH|\w*INCLUDE_PATH|LIBRARY_PATH|CUDA_\w+)"
)
# Variables without influence: where files are downloaded from and kept, the number of make's jobs;
# and secrets, which must not stand in a result.
_OF_NO_MATTER = re.compile(
    r"M(AKE)?FLAGS|(PIP|UV)_\w+|NO_(COLOR|PROXY)|"
    r"CARGO_(HOME|TARGET_DIR|TERM_\w+|NET_\w+|HTTP_\w+|REGISTR\w+)|"
    r"\w*(TOKEN|PASS|SECRET|CREDENTIAL|AUTH|KEY)\w*"
)


class Built(msgspec.Struct, frozen=True):
    """What is known of a wheel that is kept."""

    name: str
    version: str
    commit: str
    """The commit at which it was built. Another commit with the same sources may use it."""

    requirements: tuple[str, ...]
    """All that its own metadata requires, also with extras."""

    digests: dict[str, str]
    packages: tuple[str, ...]
    made: dict[str, str]
    found: dict[str, str]

    def needs(self, extras: Iterable[str] = ()) -> tuple[str, ...]:
        """What it needs to run with these extras, and with those of its own that they name."""
        own, on = name_of(self.name), {*map(canonicalize_name, extras)}
        while True:
            needed = [of for text in self.requirements if (of := _with_extras(text, on))]
            ours = [of for of in needed if name_of(of) == own]
            more = {canonicalize_name(of) for text in ours for of in Requirement(text).extras}
            if more <= on:
                return tuple(sorted({*needed} - {*ours}))
            on |= more


def kept(folder: Path) -> Built | None:
    """The wheel that is kept in `folder`, which is marked as used last; None without one."""
    try:
        built = schema.read(folder / _FACTS, Built)
    except NotReadError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    os.utime(folder)
    return built


def package(folder: Path) -> Path:
    """The folder of modules of the wheel that is kept in `folder`."""
    return folder / _PACKAGE


def keep(
    wheel: Path | str, python: Path, commit: str, made: Mapping[str, str], folder: Path, *how: str
) -> Built:
    """Install a wheel, or a release by its name, into `folder` for an interpreter: completely or
    not at all. `how` are options of uv. Raises NotBuiltError."""
    with scratch(folder.parent) as making:
        new = making / "new"
        target = new / _PACKAGE
        words = ("pip", "install", "--quiet", "--no-deps", "--python", python, "--target", target)
        # Compiled here once: every process that runs it loads a copy.
        done = uv(*words, "--compile-bytecode", *how, wheel, cwd=making)
        if done.status:
            name = wheel.name if isinstance(wheel, Path) else wheel
            raise NotBuiltError(f"{name} does not install: {reason(done)}")
        return described(new, commit, made, folder)


def described(new: Path, commit: str, made: Mapping[str, str], folder: Path) -> Built:
    """Write down what is known of the modules in `new`/package, and move them to `folder`. Raises
    NotBuiltError if there are none."""
    target = package(new)
    found = [*metadata.distributions(path=[str(target)])]
    if not found or not packages_in(target):
        raise NotBuiltError("what was built has no metadata, or no module at its top")
    of = found[0]
    libraries = [path for path in target.rglob("*") if ".so" in path.suffixes]
    built = Built(
        name=of.metadata["Name"],
        version=of.version,
        commit=commit,
        requirements=tuple(sorted({*(of.requires or [])})),
        digests=digests_of_wheel(target, of.version, commit),
        packages=packages_in(target),
        made={**made},
        found=elf.told(libraries),
    )
    files.write(new / _FACTS, json.dumps(msgspec.to_builtins(built), indent=1))
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    return built


def failed(title: str, done: Done, log: Path) -> NotBuiltError:
    """The error for a failed build: its last lines of output, all of which is kept in `log`."""
    files.write(log, done.output)
    late = f" within {done.seconds:.0f} s" if done.late else ""
    return NotBuiltError(f"{title} does not build{late} ({log}):\n{done.tail}")


def only_wheel(folder: Path, title: str, name: str = "") -> Path:
    """The one wheel in a folder; among several, the one of the distribution `name`. Raises
    NotBuiltError if there is none, or not one alone."""
    found = sorted(folder.glob("*.whl"))
    ours = [of for of in found if _distribution(of) == canonicalize_name(name)]
    if len(found) != 1 and len(ours) != 1:
        what = ", ".join(path.name for path in found) or "none"
        remedy = "; let it leave one alone, as `pip wheel --no-deps` does" if found else ""
        raise NotBuiltError(f"{title}: its build should leave one wheel, and left {what}{remedy}")
    return (ours or found)[0]


def _distribution(wheel: Path) -> str:
    return canonicalize_name(wheel.name.partition("-")[0])


def variables(also: Mapping[str, str]) -> tuple[str, ...]:
    """This process's variables that influence builds, and all of `also`: NAME=VALUE, by name."""
    fit = {name: value for name, value in os.environ.items() if _HEEDED.fullmatch(name)}
    told = {n: v for n, v in fit.items() if not _OF_NO_MATTER.fullmatch(n)} | {**also}
    return tuple(f"{name}={told[name]}" for name in sorted(told))


def outside(folder: Path) -> tuple[str, ...]:
    """What decides about a build in a folder beside its sources: compilers, and the variables that
    they and build tools read."""
    return compilers(folder), *variables({})


@functools.cache
def compilers(folder: Path) -> str:
    """The compilers that a build in a folder would call, with their versions."""
    said = []
    for variable, program in (("CC", "cc"), ("CXX", "c++"), ("FC", "gfortran"), ("RUSTC", "rustc")):
        words = os.environ.get(variable, program).split()
        if words and shutil.which(words[0]):
            first = run([*words, "--version"], folder, limit_s=60.0).output.splitlines()[:1]
            said += [f"{program}: {line.strip()}" for line in first]
    return "; ".join(said)


def _with_extras(requirement: str, on: Collection[str]) -> str:
    """A requirement of a package whose extras `on` are asked for; "" if it is another extra's."""
    try:
        of = Requirement(requirement)
    except InvalidRequirement:  # of an old package; uv will say what is wrong
        return requirement
    marker = str(of.marker or "")
    named = {*map(canonicalize_name, _EXTRA.findall(marker))}
    if of.marker is None or not named:
        return requirement
    if not (named & {*on} or of.marker.evaluate({"extra": ""})):
        return ""
    told = _EXTRA.sub(lambda each: _ALWAYS if canonicalize_name(each[1]) in on else _NEVER, marker)
    of.marker = None if told == _ALWAYS else Marker(told)
    return str(of)
