"""The guide by which an optimisation is added leads to one: a test does what it says."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tutorial
from projects import ROOT
from tutorial import Command, File

PAGE = (ROOT / "docs" / "guides" / "adding-an-optimisation.md").read_text(encoding="utf-8")
STEPS = tutorial.steps(PAGE)
BIN = Path(sys.executable).parent


def test_it_goes_all_the_way() -> None:
    commands = [shlex.split(step.line) for step in STEPS if isinstance(step, Command)]
    verbs = [words[1] for words in commands if words[0] == "rlox-opt"]
    assert verbs == ["new", "predict", "test", "test", "cmp"]


def test_each_planted_bug_stands_in_a_file_that_the_guide_writes() -> None:
    files = {step.name: step.text for step in STEPS if isinstance(step, File)}
    (planted,) = [step for step in STEPS if isinstance(step, File) and step.more]
    for file, find in re.findall(r'^file = "(.*)"\nstory.*\nfind = "(.*)"$', planted.text, re.M):
        assert files[file].count(find) == 1


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """One after `make setup`, whose environment has the packages of this one; what is in no commit
    here is in it, too."""
    root = tmp_path / "rlox"
    subprocess.run(["git", "clone", "--quiet", ROOT, root], check=True)
    listed = ["git", "ls-files", "--modified", "--others", "--exclude-standard"]
    for path in subprocess.check_output(listed, cwd=ROOT, text=True).splitlines():
        if (ROOT / path).is_file():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, root / path)
    for words in (("add", "--all"), ("commit", "--quiet", "--allow-empty", "-m", "As it is")):
        subprocess.run(["git", *words], cwd=root, env=tutorial.environment(), check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    (packages,) = (root / ".venv" / "lib").glob("*/site-packages")
    there = next(of for of in sys.path if of.endswith("site-packages"))
    (packages / "shared.pth").write_text(f"{there}\n")
    (root / ".venv" / "bin" / "uv").symlink_to(BIN / "uv")
    (root / ".venv" / ".locked").touch()
    return root


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_following_it_to_the_letter_ends_with_a_measured_optimisation(clone: Path) -> None:
    """Every command of it succeeds, and prints what is shown."""
    own = tutorial.environment()
    path = os.pathsep.join([str(clone / ".venv" / "bin"), own["PATH"]])
    # What does not depend on the commit is compiled once, in this tree's own target folder; without
    # optimisation at link time, which takes minutes and makes the figures better, not the page.
    environment = own | {
        "PATH": path, "CARGO_TARGET_DIR": str(ROOT / "target" / "guide"),
        "CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    }  # fmt: skip
    printed = {}
    for step in STEPS:
        if isinstance(step, File):
            step.write(clone)
            continue
        done = subprocess.run(
            ["bash", "-c", step.line], cwd=clone, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, f"$ {step.line}\n{done.stdout}"
        tutorial.present(step, done.stdout)
        printed[step.line] = done.stdout
    assert [*(clone / "optimizations" / "record").glob("*/*_p26.json")], printed
