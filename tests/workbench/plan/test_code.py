"""Which readings are of the same code, and may be taken together."""

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import projects
import pytest
from rlox_opt.plan.comparing import code, provenance
from rlox_opt.project.installed import Installed
from rlox_opt.project.project import Project
from rlox_opt.views.tables import built
from toy_projects import described, write

BUILT = {"profile": "release", "instructions": "avx512"}


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_what_is_edited_or_built_anew_is_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = described(tmp_path / "repository")
    (root / "driver.py").write_text("speed = 0\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "first")
    project = Project.find(root)

    def now() -> str:
        return repr(code(project, provenance(project, project.installed.build_info())))

    committed = now()
    (root / "driver.py").write_text("speed = 1\n")
    edited = now()
    (root / "driver.py").write_text("speed = 2\n")
    assert len({committed, edited, now()}) == 3
    (root / "driver.py").write_text("speed = 0\n")
    assert now() == committed
    built = tmp_path / "extension.so"
    built.write_bytes(b"another")
    monkeypatch.setattr(Installed, "extension", lambda self: built)
    assert now() != committed


def test_readings_with_fewer_instructions_are_not_taken_with_others() -> None:
    def of(build: dict[str, str]) -> tuple[list[Any], list[tuple[str, str]]]:
        where = provenance(projects.HERE, build)
        return code(projects.HERE, where), built(where)

    (best, told), (capped, of_capped) = of(BUILT), of(BUILT | {"instructions": "avx2"})
    assert best != capped
    assert told == [("Build", "release, avx512")]
    assert of_capped == [("Build", "release, avx2")]


def test_a_package_that_says_nothing_of_its_build_is_known_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "repository", 'package = "says_nothing"')
    module = root / "says_nothing.py"
    module.write_text("")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "first")
    monkeypatch.syspath_prepend(root)
    project = Project.find(root)
    where = provenance(project, project.installed.build_info())
    assert hashlib.sha256(b"").hexdigest() in code(project, where)
    assert built(where) == []
