"""What a conda environment file (environment.yml) asks for, in the terms of asv's matrix: conda
packages by name and version, and pip's requirements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MOST = 1 << 16  # characters: ten times the longest known
# channel::name, with the version that follows after a space or a sign, or in brackets.
_ASKED = re.compile(r"(?:[^\s:]+(?:/[^\s:]+)?::?)?([\w.-]+)\s*(.*)", re.DOTALL)
_IN_BRACKETS = re.compile(r"\[.*?\bversion\s*=\s*['\"]?([^'\"\]]+).*\]|\[.*\]")
_PYTHON = re.compile(r"=*\s*(3\.\d+)(\.\*|\.\d+)?(\s*=.*)?")
# Packages that every environment has, or that have another name for uv.
_OF_THE_ENVIRONMENT = ("python", "pip", "wheel", "setuptools", "conda", "mamba", "nodefaults")


@dataclass(frozen=True)
class Asked:
    """Versions of conda's packages by name ("" is any), pip's requirements unchanged, and the
    version of Python if one is named."""

    conda: dict[str, str]
    pip: tuple[str, ...]
    python: str = ""


def parse(text: str) -> Asked:
    """Read such a file. Raises ValueError with a message of one line if it is not one."""
    import yaml  # slow to import, and most projects have no such file

    if len(text) > _MOST:
        raise ValueError(f"has {len(text)} characters, and such a file is never so long")
    try:
        table = yaml.safe_load(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"is no YAML: {' '.join(str(error).split())[:200]}") from None
    listed = table.get("dependencies") if isinstance(table, dict) else None
    if not isinstance(listed, list):
        raise ValueError("has no list of `dependencies`")
    conda = dict(_of_conda(listed))
    python = _PYTHON.fullmatch(conda.get("python", ""))
    kept = {name: of for name, of in conda.items() if name not in _OF_THE_ENVIRONMENT}
    return Asked(kept, tuple(_of_pip(listed)), python[1] if python else "")


def _of_conda(listed: list[Any]) -> Iterator[tuple[str, str]]:
    for text in listed:
        if isinstance(text, str) and (of := _ASKED.fullmatch(text.strip())):
            name, version = of[1].lower(), of[2].strip()
            if bracketed := _IN_BRACKETS.fullmatch(version):
                version = (bracketed[1] or "").strip()
            # `numpy 1.26 py311_0`: the last is a build.
            words = version.split() if re.match(r"[\d*]", version) else [version]
            yield name, words[0] if words and words[0] != "*" else ""


def _of_pip(listed: list[Any]) -> Iterator[str]:
    for of in listed:
        inner = of.get("pip") if isinstance(of, dict) else None
        if isinstance(inner, list):
            yield from (text.strip() for text in inner if isinstance(text, str))
