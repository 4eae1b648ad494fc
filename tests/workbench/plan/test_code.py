"""Which readings are of the same code, and may be taken together."""

import subprocess
from pathlib import Path

import pytest
from rlox_opt.plan.comparing import code, provenance
from rlox_opt.project.installed import Installed
from rlox_opt.project.project import Project
from toy_projects import described


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
