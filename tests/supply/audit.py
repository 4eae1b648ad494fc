"""`python tests/supply/audit.py`: are the licences of our dependencies allowed, and have they known
vulnerabilities?

Licences are read from cargo's and Python's own metadata and compared with the list in deny.toml.
Advisories come from cargo-deny and pip-audit, which download them: without a network the answer is
not known.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
GOOD, FOUND, CANNOT_TELL = 0, 1, 2
PIP_AUDIT = "pip-audit==2.10.1"
_LIMIT_S = 600
_EXAMPLES = """\
examples:
  python tests/supply/audit.py --offline    licences alone: seconds
  python tests/supply/audit.py --list > LICENSES-third-party.md

exit codes:
  0  all licences are allowed, and no advisory is known
  1  one is not allowed, or an advisory is
  2  cannot tell, such as without a network, or asked wrongly
"""
# What older metadata say in words.
_WORDS = {
    "MIT License": "MIT", "BSD License": "BSD-3-Clause", "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0", "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0", "BSD-3-Clause": "BSD-3-Clause", "MIT": "MIT",
    "Apache-2.0": "Apache-2.0",
    "NVIDIA Proprietary Software": "LicenseRef-NVIDIA-Proprietary",
}  # fmt: skip
# What says nothing in its metadata, as its files have it.
_CLARIFIED = {
    "axe-playwright-python": "MIT", "cuda-toolkit": "LicenseRef-NVIDIA-Proprietary",
    "pyelftools": "Unlicense",
}  # fmt: skip


class Part(NamedTuple):
    """A crate or package, and its licence as an SPDX expression; "" if it is not known."""

    kind: str
    name: str
    version: str
    licence: str


class CannotTellError(Exception):
    """Why something cannot be found out."""


def crates() -> Iterator[Part]:
    """All crates of Cargo.lock but our own."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise CannotTellError(
            "cargo: is not on PATH; install Rust from https://rustup.rs"
        ) from None
    except subprocess.CalledProcessError as error:
        raise CannotTellError(f"cargo metadata: {error.stderr.strip()}") from None
    for package in json.loads(done.stdout)["packages"]:
        if package["source"]:
            licence = (package["license"] or "").replace("/", " OR ")
            yield Part("crate", package["name"], package["version"], licence)


def packages() -> Iterator[Part]:
    """The packages of requirements-dev.lock that are installed: all that apply to this machine."""
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    for name in re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE):
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        yield Part("package", name, found.version, _CLARIFIED.get(name) or _licence(found.metadata))


def _licence(of: metadata.PackageMetadata) -> str:
    told = of.get("License-Expression")
    if told:
        return str(told)
    words = [
        text.rpartition(":: ")[2] for text in of.get_all("Classifier", ()) if "License" in text
    ]
    words.append(str(of.get("License", "")))
    return next((_WORDS[word] for word in words if word in _WORDS), "")


def allowed(expression: str, licences: Collection[str]) -> bool:
    """Whether an SPDX expression can be met with these licences."""
    tokens = re.findall(r"[()]|[^\s()]+(?: WITH [^\s()]+)?", expression)

    def either() -> bool:
        found = both()
        while tokens[:1] == ["OR"]:
            tokens.pop(0)
            found = both() or found
        return found

    def both() -> bool:
        found = one()
        while tokens[:1] == ["AND"]:
            tokens.pop(0)
            found = one() and found
        return found

    def one() -> bool:
        token = tokens.pop(0) if tokens else ""
        if token != "(":
            return token in licences
        found = either()
        return bool(tokens) and tokens.pop(0) == ")" and found

    return either() and not tokens


def not_allowed(parts: Sequence[Part]) -> Iterator[str]:
    """A line for each part whose licence is not on the list."""
    table = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
    for part in parts:
        if not allowed(part.licence, table["licenses"]["allow"]):
            licence = part.licence or "no licence that its metadata name"
            yield f"{part.kind} {part.name} {part.version}: {licence}; deny.toml allows it not"


def advisories_of_crates() -> list[str]:
    """What cargo-deny knows of Cargo.lock. Raises CannotTellError."""
    words = ["cargo", "deny", "--format", "json", "check", "advisories", "bans", "sources"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=_LIMIT_S)
    rows = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    errors = [row["fields"] for row in rows if row["fields"].get("severity") == "error"]
    if errors or not done.returncode:
        return [f"crates: {fields['message']}" for fields in errors]
    if "no such command" in done.stderr:
        raise CannotTellError("cargo-deny is not installed: cargo install cargo-deny --locked")
    raise CannotTellError(f"cargo-deny: {_why(rows, done.stderr)}")


def _why(rows: Sequence[dict[str, dict[str, str]]], text: str) -> str:
    told = [row["fields"]["message"] for row in rows if row["fields"].get("level") == "ERROR"]
    return (told or text.strip().splitlines()[-1:] or ["says nothing"])[0].splitlines()[0]


def advisories_of_packages() -> list[str]:
    """What pip-audit knows of requirements-dev.lock. Raises CannotTellError."""
    uv = Path(sys.executable).with_name("uv")
    words = [str(uv), "tool", "run", PIP_AUDIT, "--format", "json", "--progress-spinner", "off",
             "--disable-pip", "--require-hashes", "-r", "requirements-dev.lock"]  # fmt: skip
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=_LIMIT_S)
        rows = json.loads(done.stdout)["dependencies"]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        said = error if isinstance(error, (OSError, subprocess.TimeoutExpired)) else done.stderr
        last = next(reversed(str(said).strip().splitlines()), "says nothing")
        raise CannotTellError(f"pip-audit: {last}") from None
    found = [f"package {row['name']}: {of['id']}" for row in rows for of in row.get("vulns", ())]
    skipped = [row["skip_reason"] for row in rows if "skip_reason" in row]
    if skipped and not found:  # it calls that "no known vulnerabilities"
        raise CannotTellError(f"pip-audit: {len(skipped)} of {len(rows)}: {skipped[0]}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Audit; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="audit.py", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--offline", action="store_true", help="no advisories")
    parser.add_argument("--list", action="store_true", help="print all licences, and stop")
    arguments = parser.parse_args(argv)
    try:
        parts = [*crates(), *packages()]
    except CannotTellError as error:
        print(f"audit: cannot tell: {error}", file=sys.stderr)
        return CANNOT_TELL
    if arguments.list:
        print("# Licences of what rlox is built on\n\n| | version | licence |\n|---|---|---|")
        for part in parts:
            print(f"| {part.kind} {part.name} | {part.version} | {part.licence} |")
        return GOOD
    found = [*not_allowed(parts)]
    print(f"audit: licences of {len(parts)} crates and packages: {len(found)} not allowed")
    unknown = []
    for ask in () if arguments.offline else (advisories_of_crates, advisories_of_packages):
        try:
            known = ask()
            found += known
            print(f"audit: {ask.__name__.replace('_', ' ')}: {len(known)}")
        except CannotTellError as error:
            unknown.append(f"{ask.__name__.replace('_', ' ')}: cannot tell: {error}")
    for line in (*found, *unknown):
        print(f"audit: {line}", file=sys.stderr)
    return FOUND if found else CANNOT_TELL if unknown else GOOD


if __name__ == "__main__":
    sys.exit(main())
