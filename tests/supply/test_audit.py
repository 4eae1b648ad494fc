"""Licences and advisories: what may not be used is found, and what nobody can tell is not called
good."""

import json
import subprocess
import sys
from subprocess import CompletedProcess

import audit
import pytest
from audit import CannotTellError, Part


def test_all_that_we_build_on_may_be_used() -> None:
    done = subprocess.run(
        [sys.executable, audit.__file__, "--offline"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "0 not allowed" in done.stdout


@pytest.mark.parametrize(
    ("expression", "may"),
    [
        ("MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR GPL-3.0-only) AND Zlib", True),
        ("GPL-3.0-only OR (MIT AND (Zlib OR GPL-3.0-only))", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("Apache-2.0 WITH other-exception", False),
        ("GPL-3.0-only", False),
        ("", False),
        ("MIT AND", False),
        ("MIT MIT", False),
        ("(MIT", False),
    ],
)
def test_an_expression_is_allowed_if_the_list_can_meet_it(expression: str, may: bool) -> None:
    licences = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"]
    assert audit.allowed(expression, licences) is may


def test_a_licence_that_is_not_on_the_list_is_named_with_its_part() -> None:
    parts = [Part("crate", "good", "1.0", "MIT"), Part("crate", "bad", "2.0", "GPL-3.0-only")]
    (line,) = audit.not_allowed([*parts])
    assert line.startswith("crate bad 2.0: GPL-3.0-only")


def said(monkeypatch: pytest.MonkeyPatch, code: int, out: str, err: str) -> None:
    def run(*_: object, **__: object) -> CompletedProcess[str]:
        return CompletedProcess([], code, out, err)

    monkeypatch.setattr(subprocess, "run", run)


def row(**fields: str) -> str:
    return json.dumps({"type": "diagnostic", "fields": fields})


def test_an_advisory_of_a_crate_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    said(monkeypatch, 1, "", row(severity="error", message="a hole"))
    assert audit.advisories_of_crates() == ["crates: a hole"]


@pytest.mark.parametrize(
    "err",
    [
        row(level="ERROR", message="failed to fetch advisory database"),
        "error: no such command: `deny`",
        "",
    ],
)
def test_crates_without_their_advisories_are_not_called_good(
    err: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(monkeypatch, 1, "", err)
    with pytest.raises(CannotTellError):
        audit.advisories_of_crates()


def test_an_advisory_of_a_package_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"name": "a", "vulns": [{"id": "CVE-1"}]}, {"name": "b", "skip_reason": "unknown"}]
    said(monkeypatch, 1, json.dumps({"dependencies": rows}), "")
    assert audit.advisories_of_packages() == ["package a: CVE-1"]


@pytest.mark.parametrize(
    "out",
    ["", json.dumps({"dependencies": [{"name": "a", "skip_reason": "not found"}]})],
)
def test_packages_that_were_not_asked_for_are_not_called_good(
    out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(monkeypatch, 0, out, "cannot connect")
    with pytest.raises(CannotTellError):
        audit.advisories_of_packages()


@pytest.mark.parametrize(
    ("crates", "packages", "code"),
    [([], [], 0), (["a hole"], [], 1), ([], None, 2), (["a hole"], None, 1)],
)
def test_the_exit_code_tells_none_from_some_and_from_unknown(
    crates: list[str], packages: list[str] | None, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> list[str]:
        raise CannotTellError("no network")

    def advisories_of_crates() -> list[str]:
        return crates

    def advisories_of_packages() -> list[str]:
        return unknown() if packages is None else packages

    monkeypatch.setattr(audit, "crates", list[Part])
    monkeypatch.setattr(audit, "packages", list[Part])
    monkeypatch.setattr(audit, "advisories_of_crates", advisories_of_crates)
    monkeypatch.setattr(audit, "advisories_of_packages", advisories_of_packages)
    assert audit.main([]) == code
    assert audit.main(["--offline"]) == 0


def test_every_licence_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert "| crate pyo3 |" in listed
    assert "| package numpy |" in listed
