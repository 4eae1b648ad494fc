"""`make anywhere`: instructions are capped indeed, and what fails is told."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from places import KINDS, Impossible
from rlox_opt.system import plugins
from suite import run, told

TESTS = """
import pytest
from rlox import _core

def test_our_kernels():
    assert _core.instructions() == "portable"

def test_numpys():
    from numpy._core._multiarray_umath import __cpu_features__ as has
    assert not has["X86_V3"]

def test_torchs():
    import torch
    assert torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "NO AVX")

def test_what_fails():
    assert False

@pytest.fixture
def broken():
    raise RuntimeError

def test_what_cannot_begin(broken):
    pass

@pytest.mark.skip
def test_what_is_skipped():
    pass
"""


def test_the_least_instructions_are_all_that_is_used_and_failures_are_named(tmp_path: Path) -> None:
    (tmp_path / "test_of_these.py").write_text(TESTS)
    row = run("sse", [str(tmp_path)])
    assert (row["passed"], row["skipped"]) == (3, 1)
    names = [name.rpartition("::")[2] for name in row["failures"]]
    assert names == ["test_what_fails", "test_what_cannot_begin"]
    assert "3 passed, 1 skipped, 2 failed in 9 s" in told(row | {"seconds": 9})


def test_tests_that_cannot_be_run_at_all_have_failed(tmp_path: Path) -> None:
    assert run("rlox-avx2", [str(tmp_path / "nothing"), "--no-such-option"])["failures"]


def test_what_tests_start_has_ascii_alone(tmp_path: Path) -> None:
    (tmp_path / "test_of_it.py").write_text(
        "import subprocess, sys\n"
        "def test_it():\n"
        "    command = [sys.executable, '-c', 'import sys; print(sys.stdout.encoding)']\n"
        "    told = subprocess.run(command, capture_output=True, text=True).stdout\n"
        "    assert told.strip() in ('ascii', 'ANSI_X3.4-1968', 'us-ascii')\n"
        "    assert sys.flags.utf8_mode\n"
    )
    row = run("locale", [str(tmp_path)])
    assert (row["passed"], row["failures"]) == (1, [])


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`python tests/anywhere`, of two kinds, whose records go to a folder of the test."""
    program = plugins.load(Path(__file__).with_name("__main__.py"))
    monkeypatch.setattr(program, "KINDS", {kind: KINDS[kind] for kind in ("sse", "user")})
    monkeypatch.setattr(program, "HERE", tmp_path)
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(program, "commit", lambda root: ("f" * 40, False))
    return program


def record_of(folder: Path) -> Any:
    (path,) = folder.glob("record/*/*.json")
    return json.loads(path.read_text())


def test_what_this_machine_cannot_try_counts_only_where_it_is_asked_for(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(kind: str, asked: list[str]) -> dict[str, Any]:
        if kind == "user":
            raise Impossible("only root can be another user")
        return {"passed": 2, "skipped": 0, "failures": []}

    monkeypatch.setattr(program, "run", run)
    assert program.main([]) == 0
    assert record_of(tmp_path)["kinds"]["user"]["not_tried"] == "only root can be another user"
    assert program.main(["--only", "user"]) == 2


def test_an_interrupted_run_keeps_what_is_known_and_says_so(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(kind: str, asked: list[str]) -> dict[str, Any]:
        if kind == "user":
            raise KeyboardInterrupt
        return {"passed": 2, "skipped": 0, "failures": []}

    monkeypatch.setattr(program, "run", run)
    assert program.main([]) == 130
    assert record_of(tmp_path)["complete"] is False
    assert [*record_of(tmp_path)["kinds"]] == ["sse"]
