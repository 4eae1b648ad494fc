"""Settings of cargo and rustup that lie above the checkout, and so count for each commit."""

from dataclasses import replace
from pathlib import Path

import pytest
import small_projects
from small_projects import builds, of, own, repository

from rlox_opt.project.commits import Commits

CONFIG, TOOLCHAIN = ".cargo/config.toml", "rust-toolchain.toml"


def test_a_file_of_the_working_tree_that_counts_for_a_commit_without_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_projects.index(tmp_path / "index", monkeypatch)
    root = tmp_path / "thing"
    first, second, third = repository(
        root,
        own(),
        {CONFIG: "[build]\n", "rust-toolchain": "1.90\n"},
        {CONFIG: "[net]\n", TOOLCHAIN: "[toolchain]\n"},
    )
    (root / "rust-toolchain").unlink()
    project = builds(root)
    config, toolchain = project.build(of(first)).notes
    assert config.startswith(f"{CONFIG} of the working tree counts for {first[:10]}, which has no")
    assert 'cache = "FOLDER" under [tool.rlox-opt] of pyproject.toml, outside the' in config
    assert toolchain.startswith(f"{TOOLCHAIN} of the working tree counts for {first[:10]}, which")
    (other,) = project.build(of(second)).notes
    assert other.startswith(f"{CONFIG} of the working tree counts for {second[:10]}, which has ano")
    assert project.build(of(third)).notes == ()
    elsewhere = Commits(root, tmp_path / "cache" / "revisions")
    assert replace(project, commits=elsewhere).build(of(first)).notes == ()
