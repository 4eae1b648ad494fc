"""What CI runs: without a Chromium it fails before anything else, and says what would do."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A checkout of .ci/run alone, where each program notes what it is asked and does nothing;
    nobody can fetch a Chromium, and one is there where the folder `there` holds it."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    for folder in ("programs", "there", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    for program in ("bash", "env", "dirname", "touch"):
        (tmp_path / "programs" / program).symlink_to(str(shutil.which(program)))
    for path, body in {
        "programs/make": "",
        "programs/id": "echo 0",
        "programs/apt-get": "exit 1",
        "programs/sudo": "exit 1",
        ".venv/bin/pytest": 'echo "chromium: $RLOX_CHROMIUM" >> did',
        ".venv/bin/rlox-opt": "",
        ".venv/bin/playwright": "exit 1",
        ".venv/bin/python": "[ -e there/chromium ]",
    }.items():
        put(tmp_path / path, body)
    return tmp_path


def put(path: Path, body: str) -> None:
    path.write_text(f'#!{shutil.which("bash")}\necho "{path.name} $*" >> did\n{body}\n')
    path.chmod(0o755)


def run(bare: Path) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """What CI did, and the programs that it asked for something."""
    env = {"PATH": str(bare / "programs")}
    done = subprocess.run([str(bare / ".ci/run")], capture_output=True, text=True, env=env)
    return done, (bare / "did").read_text().splitlines()


def test_without_a_chromium_it_fails_first_and_names_the_remedy(bare: Path) -> None:
    done, did = run(bare)
    assert done.returncode == 1
    assert "no Chromium, which the page tests drive: apt-get install chromium, or" in done.stderr
    assert [line for line in did if line.startswith(("make", "pytest"))] == ["make setup"]
    assert "playwright install chromium" in did, "where apt has none, playwright may"


@pytest.mark.parametrize("brings", ["programs/apt-get", ".venv/bin/playwright"])
def test_one_that_can_be_fetched_is_and_no_page_test_may_be_skipped(
    bare: Path, brings: str
) -> None:
    put(bare / brings, "touch there/chromium")
    done, did = run(bare)
    assert done.returncode == 0, done.stderr
    assert {"make lint", "make test"} <= {*did}
    assert "chromium: needed" in did


def test_with_one_nothing_is_installed(bare: Path) -> None:
    (bare / "there" / "chromium").touch()
    done, did = run(bare)
    assert done.returncode == 0, done.stderr
    assert not [line for line in did if line.startswith(("apt-get", "sudo", "playwright"))]


@pytest.mark.parametrize(("needed", "outcome"), [("", "1 skipped"), ("needed", "1 error")])
def test_a_page_test_fails_in_ci_where_there_is_no_chromium(
    tmp_path: Path, needed: str, outcome: str
) -> None:
    for name in ("fixtures.py", "survivors.py"):
        shutil.copy(ROOT / "workbench" / "tests" / name, tmp_path)
    (tmp_path / "conftest.py").write_text("from fixtures import browser\n")
    (tmp_path / "chromium.py").write_text("def found():\n    return None\n")
    (tmp_path / "test_page.py").write_text("def test_page(browser):\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py"]
    env = os.environ | {"RLOX_CHROMIUM": needed, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert outcome in done.stdout


def test_a_chromium_that_does_not_start_is_none(tmp_path: Path) -> None:
    """As Ubuntu's, which only says where to get one."""
    put(tmp_path / "chromium", "exit 1")
    command = [sys.executable, str(ROOT / "workbench" / "tests" / "chromium.py")]
    empty = {"HOME": str(tmp_path), "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}
    env = os.environ | empty | {"PATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "no Chromium starts here\n")
    put(tmp_path / "google-chrome", "exit 0")
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'google-chrome'}\n")
