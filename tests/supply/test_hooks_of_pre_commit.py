"""The hooks for pre-commit: ours find what they are for, and those for others run in a repository
that is not ours. Nothing is fetched."""

import itertools
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import small_projects
import strangers
import yaml
from rlox_opt.project.commits import Commits, later

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CONFIG, MANIFEST = ROOT / ".pre-commit-config.yaml", ROOT / ".pre-commit-hooks.yaml"
DEFAULT = {CONFIG: "main", MANIFEST: "trunk"}  # branch
OURS = {
    hook["id"]: hook
    for repo in yaml.safe_load(CONFIG.read_text())["repos"]
    for hook in repo["hooks"]
}
BAD = {
    "ruff-format": ("a.py", "x = {  'a':1 }\n"),
    "ruff-check": ("a.py", "import os\n"),
    "rustfmt": ("a.rs", "fn main( ) { }\n"),
    "workflows": (".github/workflows/a.yml", "on: push\njobs:\n  a:\n    runs-on: []\n"),
}
GOOD = {
    "ruff-format": 'x = {"a": 1}\n',
    "ruff-check": "import os\n\nprint(os.sep)\n",
    "rustfmt": "fn main() {}\n",
    "workflows": "on: push\njobs:\n  a:\n    runs-on: x\n    steps: [{run: make}]\n",
}


def pre_commit(repository: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """In a repository, with a store of its own; the workbench is on PATH, where pip puts it."""
    env = strangers.environment(
        PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}",
        PRE_COMMIT_HOME=str(repository.parent / "store"), PIP_NO_INDEX="1",
    )  # fmt: skip
    command = [str(BIN / "pre-commit"), *map(str, words)]
    return subprocess.run(command, cwd=repository, env=env, capture_output=True, text=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A new one with our configuration, and our environment where the configuration has it."""
    root = tmp_path / "repository"
    shutil.copytree(ROOT / ".github" / "workflows", root / ".github" / "workflows")
    small_projects.repository(root, {".gitignore": ".venv\n", CONFIG.name: CONFIG.read_text()})
    (root / ".venv").mkdir()
    (root / ".venv" / "bin").symlink_to(BIN)
    return root


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A repository with our hooks for others, which need nothing else of ours."""
    small_projects.repository(tmp_path / "ours", {MANIFEST.name: MANIFEST.read_text()})
    return tmp_path / "ours"


def test_pre_commit_reads_both_files(tmp_path: Path) -> None:
    assert pre_commit(tmp_path, "validate-config", CONFIG).returncode == 0
    assert pre_commit(tmp_path, "validate-manifest", MANIFEST).returncode == 0
    bad = tmp_path / "hooks.yaml"
    bad.write_text(MANIFEST.read_text().replace("entry:", "entries:"))
    assert pre_commit(tmp_path, "validate-manifest", bad).returncode == 1


def test_each_hook_before_a_commit_has_a_fault_here_that_it_is_to_find() -> None:
    assert {*BAD} == {name for name, hook in OURS.items() if "stages" not in hook}


@pytest.mark.parametrize("hook", BAD)
def test_a_hook_stops_the_commit_of_its_fault_and_lets_the_good_pass(
    hook: str, repository: Path
) -> None:
    path, fault = BAD[hook]
    for text, code in ((GOOD[hook], 0), (fault, 1)):
        (repository / path).write_text(text)
        small_projects.git(repository, "add", path)
        done = pre_commit(repository, "run", hook)
        assert done.returncode == code, done.stdout
        assert ("Failed" if code else "Passed") in done.stdout


def test_another_repository_lints_its_suite(manifest: Path, tmp_path: Path) -> None:
    root = tmp_path / "thing"
    files = small_projects.own(strangers.thing()) | {
        "asv.conf.json": strangers.ASV, "benchmarks/__init__.py": "",
        "benchmarks/work.py": "import thing\n\n\ndef time_work():\n    thing.work(range(9))\n",
    }  # fmt: skip
    small_projects.repository(root, files)
    tried = ("try-repo", manifest, "rlox-opt-lint-suite", "--ref", "HEAD", "--all-files")
    done = pre_commit(root, *tried)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout
    never = "class Work:\n    def time_a(self):\n        {}\n\n    def test_b(self):\n        {}\n"
    small_projects.repository(root, {"benchmarks/more.py": never})
    done = pre_commit(root, *tried)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "test_b" in done.stdout


@pytest.mark.parametrize("file", [CONFIG, MANIFEST], ids=lambda path: path.name)
def test_before_a_push_the_branch_is_compared_with_where_it_left_main(
    file: Path, tmp_path: Path
) -> None:
    """And not with main as it is now, whose own changes the branch has no part in."""
    listed = yaml.safe_load(file.read_text())
    hooks = (
        [hook for repo in listed["repos"] for hook in repo["hooks"]] if file == CONFIG else listed
    )
    (hook,) = (of for of in hooks if of["id"] == "rlox-opt-gate")
    words = [*shlex.split(hook["entry"]), *hook.get("args", ())]
    base, *head = itertools.takewhile(
        lambda word: not word.startswith("-"), [of for of in words[2:] if of != "--hook"]
    )
    root = tmp_path / "thing"
    small_projects.repository(root, {"a": "1\n"})
    left = small_projects.git(root, "rev-parse", "HEAD")
    small_projects.repository(root, {"a": "of main\n"})
    # The default branch of others may have another name.
    branch, head_of = (f"refs/remotes/origin/{of}" for of in (DEFAULT[file], "HEAD"))
    small_projects.git(root, "update-ref", branch, "HEAD")
    small_projects.git(root, "symbolic-ref", head_of, branch)
    small_projects.git(root, "checkout", "--quiet", "-b", "branch", left)
    small_projects.repository(root, {"b": "of the branch\n"})
    assert Commits(root, tmp_path / "kept").resolve(base).commit == left
    assert (head or [later(base)]) == ["HEAD"]


def test_before_a_push_the_gate_says_what_it_lacks_and_lets_it_pass(
    manifest: Path, tmp_path: Path
) -> None:
    """No origin/HEAD is there to compare with."""
    root = tmp_path / "thing"
    small_projects.repository(root, {"README.md": "A thing.\n"})
    stage = ("--hook-stage", "pre-push", "--verbose")
    done = pre_commit(root, "try-repo", manifest, "rlox-opt-gate", "--ref", "HEAD", *stage)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rlox-opt gate:" in done.stdout
