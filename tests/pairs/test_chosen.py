"""`cargo test --features opt-p5` tests P5's optimised form with the baseline at every other
seam: a bug in that form shows in tests of what the features choose, and without the feature does
not."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import projects
import pytest
from rlox_opt.plan.testing import planted

ROOT = projects.ROOT


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A copy of the crates with a bug in P5's optimised form."""
    shutil.copytree(ROOT / "crates", tmp_path / "crates")
    for file in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / file, tmp_path)
    bugs = planted.load(Path(__file__).with_name("planted.toml"))
    bug = next(bug for bug in bugs if (bug.id, bug.twin) == ("P5", "optimized"))
    file = tmp_path / bug.file
    file.write_text(planted.planted_in(file.read_text(), bug))
    return tmp_path


def failed(tree: Path, *features: str) -> set[str]:
    """The wirings of which a test of the core fails."""
    done = subprocess.run(
        ["cargo", "test", "--offline", "--locked", "--no-fail-fast", "-p", "rlox-core", *features],
        capture_output=True,
        text=True,
        cwd=tree,
        env=os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target" / "chosen")},
    )
    ran = re.findall(r"^test (\S+) \.\.\. (\w+)", done.stdout, re.MULTILINE)
    assert ran, done.stderr
    tests = {name for name, word in ran if word == "FAILED"}
    wirings = {part for name in tests for part in name.split("::")}
    return wirings & {"all_before", "shipped", "chosen"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_feature_chooses_the_form_that_tests_of_chosen_run(wrong: Path) -> None:
    if not shutil.which("cargo"):
        pytest.skip("cargo is not installed")
    assert failed(wrong, "--features", "opt-p5") == {"shipped", "chosen"}
    assert failed(wrong) == {"shipped"}
