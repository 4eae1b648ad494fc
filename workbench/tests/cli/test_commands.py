"""Whole programs as a suite: a package, and the commands that pyproject.toml names."""

import json
from pathlib import Path
from typing import Any

import pytest
import small_projects
import strangers
from strangers import QUICK, ROUGH, SPENT
from users_repository import git

pytestmark = pytest.mark.timeout(900)  # for a busy machine

THING = """
import subprocess, sys, time

def work():
    for _ in range({starts}):
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    time.sleep({seconds})

def main():
    work()
    with open("data/numbers.txt", "a") as file:  # each run has a copy of its own
        file.write("4\\n")
    assert len(open("data/numbers.txt").readlines()) == 4
    assert sys.stdin.read() == ""
"""
SCRIPT = (
    'files["thing-1.dist-info/entry_points.txt"] = b"[console_scripts]\\nthing-run = thing:main\\n"'
)
SUITE = """
[tool.rlox-opt.suite]
files = ["data"]
env = { KIND = "of the suite" }

[tool.rlox-opt.suite.commands]
script = "thing-run"
module = "python -c 'import thing, os; thing.work(); assert os.environ[\\"KIND\\"]'"
others = "sh -c 'python -c \\"import thing; thing.work()\\" & python -c pass'"
missing = "no-such-program --quickly"
failing = "python -c 'print(\\"first\\"); import thing; raise SystemExit(thing.CODE)'"
"""


def repository(folder: Path, suite: str = SUITE) -> list[str]:
    """A second commit that is slow on any machine: it starts nine times as many processes, and
    sleeps. Its package also fails another command."""
    files = small_projects.own(THING.format(starts=0, seconds=0.001) + "CODE = 0\n", SCRIPT)
    files |= {"pyproject.toml": small_projects.PYPROJECT + suite, "data/numbers.txt": "1\n2\n3\n"}
    return small_projects.repository(
        folder, files, {"thing.py": THING.format(starts=8, seconds=0.2) + "CODE = 3\n"}
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `diff` says of the two, by one run of each side in a restart: a run takes long."""
    root = tmp_path_factory.mktemp("commands") / "a user's thing"
    base, head = repository(root)
    done = strangers.rlox_opt(
        root, "diff", base, head, "--restarts", "40", "--threshold", "20", "--json",
        first=f"{QUICK}\n{ROUGH}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert git(root, "status", "--porcelain") == ""
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_programs_are_timed_with_all_that_they_start(found: dict[str, Any]) -> None:
    rows = {row["benchmark"]: row for row in found["results"]}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "script": "slower", "module": "slower", "others": "slower"
    }, found  # fmt: skip
    # What a Python takes to start, which is all that base does, is up to the machine.
    assert rows["script"]["head"] > max(0.2, 2 * rows["script"]["base"])


def test_one_that_fails_loses_its_own_result_and_is_told_with_its_last_lines(
    found: dict[str, Any],
) -> None:
    failures = {row["benchmark"]: row for row in found["failures"]}
    assert failures.keys() == {"missing", "failing"}
    assert failures["failing"]["side"] == "head"
    assert failures["failing"]["reason"] == "the command ends with exit status 3\nfirst"
    assert "no program no-such-program is on PATH" in failures["missing"]["reason"]


def test_init_lists_them_and_names_one_to_run(tmp_path: Path) -> None:
    suite = "[tool.rlox-opt.suite]\ncommands = ['python -c \"import thing; f(1)\"']\n"
    repository(tmp_path / "it", suite)
    done = strangers.here(tmp_path / "it", "init", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["benchmarks"] == ['python -c "import thing; f(1)"']
    assert said["known"]["suite"]["is"].startswith("pyproject.toml, 1 ")
    assert r"f\(1\)" in said["next"]


@pytest.mark.parametrize(
    ("suite", "why"),
    [
        ("commands = []", "commands: are none"),
        ("commands = ['a', 'a']", "'a' stands there twice"),
        ("commands = { it = 'a | b' }", "is run without a shell, which | is for; write sh -c '…'"),
        ('commands = { it = "a \'b" }', "'it': No closing quotation: a 'b"),
        ("commands = { it = '' }", "'it' has no command"),
        ("commands = ['a']\nfiles = ['../x']", "'../x' is no part of the project"),
        ("commands = ['a']\ntimeout = 0", "timeout: 0 is no time"),
        ("comands = ['a']", "`comands`"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_built(
    tmp_path: Path, suite: str, why: str
) -> None:
    repository(tmp_path / "it", f"[tool.rlox-opt.suite]\n{suite}\n")
    done = strangers.here(tmp_path / "it", "diff", "HEAD~1", "HEAD")
    assert done.returncode == 2
    assert why in done.stderr
    assert "pyproject.toml, line " in done.stderr


def test_a_commit_without_them_takes_those_of_the_working_tree(tmp_path: Path) -> None:
    root = tmp_path / "it"
    old, new = repository(root, "")
    (root / "pyproject.toml").write_text(
        small_projects.PYPROJECT + "[tool.rlox-opt.suite]\ncommands = { it = 'python -c pass' }\n"
    )
    asks = ("diff", old, new, *SPENT, "--json")
    done = strangers.here(root, *asks)
    assert done.returncode == 2
    assert "pyproject.toml: has no [tool.rlox-opt.suite]" in done.stderr
    assert "--suite . takes those of the working tree" in done.stderr
    done = strangers.here(root, *asks, "--suite", ".")
    assert done.returncode == 0, done.stderr
    assert [row["benchmark"] for row in json.loads(done.stdout)["results"]] == ["it"]
