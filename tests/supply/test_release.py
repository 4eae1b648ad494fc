"""A release is one version of both distributions, and its workflow does what it says."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import release
import yaml

ROOT = release.ROOT
FILE = ROOT / ".github" / "workflows" / "release.yml"
FLOW = yaml.safe_load(FILE.read_text())
BIN = Path(sys.executable).parent
STEPS = [step for job in FLOW["jobs"].values() for step in job["steps"]]
RUN = [line for step in STEPS for line in step.get("run", "").splitlines()]
# The maturin-action builds in another system than the runner's; its words are maturin's own.
MATURIN = [
    f"maturin {step['with'].get('command', 'build')} {step['with']['args']}"
    for step in STEPS
    if step.get("uses", "").startswith("PyO3/maturin-action@")
]


def test_cargo_the_workbench_and_the_changelog_have_one_version() -> None:
    assert len({*release.versions().values()}) == 1, release.versions()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What a release reads, as of version 3.2.1 on its day."""
    (tmp_path / "workbench").mkdir()
    (tmp_path / "Cargo.toml").write_text('[workspace.package]\nversion = "3.2.1"\n')
    (tmp_path / "workbench/pyproject.toml").write_text('[project]\nversion = "3.2.1"\n')
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 3.2.1 (2026-05-04)\n- A\n\n## 3.2.0 (2026-01-02)\n"
    )
    return tmp_path


def test_a_commit_may_be_released_as_its_own_version_alone(tree: Path) -> None:
    assert [*release.reasons_against("v3.2.1", tree)] == []
    for tag in ("3.2.1", "v3.2.0", "v3.2.1.post1"):
        told = [*release.reasons_against(tag, tree)]
        assert [reason.partition(":")[0] for reason in told] == [*release.versions(tree)]
        assert all(f"has version 3.2.1, and the tag is {tag}" in reason for reason in told)


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("Cargo.toml", "3.2.1", "3.2.2", "Cargo.toml: has version 3.2.2"),
        ("workbench/pyproject.toml", "3.2.1", "3.3", "workbench/pyproject.toml: has version 3.3"),
        ("CHANGELOG.md", "## 3.2.1", "## 3.2.2", "CHANGELOG.md: has version 3.2.2"),
        ("CHANGELOG.md", "2026-05-04", "unreleased", "write the day of the release"),
    ],
)
def test_what_differs_is_named(tree: Path, file: str, old: str, new: str, says: str) -> None:
    path = tree / file
    path.write_text(path.read_text().replace(old, new))
    (reason,) = release.reasons_against("v3.2.1", tree)
    assert says in reason


def test_a_changelog_without_a_version_on_top_is_refused(tree: Path) -> None:
    path = tree / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## 3.2.1 (2026-05-04)", "## Unreleased"))
    with pytest.raises(ValueError, match=r'begins with .*Unreleased.*write "## 1\.2\.3'):
        release.versions(tree)


def test_the_workflow_asks_before_anything_is_installed() -> None:
    asks = RUN.index('python tests/supply/release.py "$GITHUB_REF_NAME"')
    assert not [line for line in RUN[:asks] if "install" in line]
    for tag, code in (("v0.0.0", 1), ("", 1)):
        command = [sys.executable, "-I", "-S", ROOT / "tests/supply/release.py", tag]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/")
        assert done.returncode == code
        assert f"the tag is {tag}" in done.stderr


def commands() -> list[list[str]]:
    """Those of the workflow, without what a shell fills in."""
    return [shlex.split(line) for line in [*MATURIN, *RUN]]


def test_each_option_that_the_workflow_gives_a_program_is_one_of_its_own() -> None:
    asked = {
        "maturin build": [BIN / "maturin", "build", "--help"],
        "maturin sdist": [BIN / "maturin", "sdist", "--help"],
        "python -m build": [sys.executable, "-m", "build", "--help"],
    }
    for name, helps in asked.items():
        own = len(name.split())
        found = [words for words in commands() if words[:own] == name.split()]
        assert len(found) == 1, name
        told = subprocess.run(helps, capture_output=True, text=True, check=True).stdout
        options = [word for word in found[0][own:] if word.startswith("--")]
        assert options
        for option in options:
            assert re.search(rf"{option}\b", told), f"{name}: has no {option}"


# Stands for each program that a step calls: it notes its words, refuses a folder that nobody has
# made, and leaves what the program would.
STUB = """#!/bin/bash
echo "$(basename "$0") $*" >> "$TOLD"
case "$*" in
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$0" "$3/bin/rlox-opt" ;;
  "-m build --outdir "*) test -d "$4" && touch "$4/rlox_opt-1-py3-none-any.whl" ;;
esac
"""


def test_every_step_of_the_build_runs_as_bash_in_its_order(tmp_path: Path) -> None:
    """Of the actions the workflow cannot know more than where they write to."""
    programs, told = tmp_path / "programs", tmp_path / "told"
    work = tmp_path / "a workspace"
    for folder in (programs, work):
        folder.mkdir()
    (programs / "python").write_text(STUB)
    (programs / "python").chmod(0o755)
    env = {
        "PATH": f"{programs}:/usr/bin:/bin", "TOLD": str(told), "GITHUB_WORKSPACE": str(work),
        "GITHUB_REF_NAME": "v3.2.1", "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_REPOSITORY": "someone/rlox",
    }  # fmt: skip
    for step in FLOW["jobs"]["build"]["steps"]:
        if "run" in step:
            bash = ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", step["run"]]
            done = subprocess.run(bash, cwd=work, env=env, capture_output=True, text=True)
            assert done.returncode == 0, f"{step}\n{done.stderr}"
        elif words := step["with"].get("args", "").split():
            out = work / words[words.index("--out") + 1]
            assert out.is_dir(), f"the container of {step['uses']} would make {out.name} as root"
            (out / "rlox_rl-1-cp311-cp311-manylinux_2_28_x86_64.whl").touch()
    lines = told.read_text().splitlines()
    assert "python tests/supply/release.py v3.2.1" in lines
    assert "python docs/site/descriptions.py https://github.example/someone/rlox v3.2.1" in lines
    (installs,) = (line for line in lines if "pip install dist" in line)
    assert "rlox_opt-1-py3" in installs  # the pattern of the shell has found both
    assert "rlox_rl-1-cp311" in installs
    assert lines[-2:] == [
        "rlox-opt --version",
        "python -c import rlox; rlox.VecEnv('CartPole-v1', 2, seed=0).reset()",
    ]


def test_every_action_is_named_by_its_commit() -> None:
    uses = re.findall(r"uses: (\S+)(.*)", FILE.read_text())
    assert uses
    for action, remark in uses:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", remark), f"{action}: say which version it is"


def test_only_who_publishes_may_prove_who_it_is_and_it_runs_nothing_of_ours() -> None:
    build, publish = (FLOW["jobs"][name] for name in ("build", "publish"))
    assert FLOW["permissions"] == {}
    assert build["permissions"] == {"contents": "read"}
    assert publish["permissions"].keys() == {"attestations", "contents", "id-token"}
    assert not [step for step in publish["steps"] if "run" in step]
    assert "secrets." not in FILE.read_text()


def test_what_is_published_is_what_was_built_and_attested() -> None:
    publish = FLOW["jobs"]["publish"]
    made = {word for words in commands() for word in words if word.startswith("dist/")}
    for project in publish["strategy"]["matrix"]["project"]:
        assert f"dist/{project}" in made
    given = [step["with"] for step in publish["steps"]]
    assert [of.get("subject-path") or of.get("packages-dir") or of["path"] for of in given] == [
        "dist", "dist/${{ matrix.project }}/*", "dist/${{ matrix.project }}",
    ]  # fmt: skip


def schema(name: str, *files: Path) -> None:
    command = [BIN / "check-jsonschema", "--builtin-schema", f"vendor.{name}", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_what_github_reads_fits_its_schema() -> None:
    schema("github-workflows", *sorted(FILE.parent.glob("*.yml")))
    schema("github-actions", ROOT / "action.yml")
    schema("citation-file-format", ROOT / "CITATION.cff")


def test_zizmor_finds_nothing_that_could_be_abused(tmp_path: Path) -> None:
    """And would: a title of a pull request that becomes part of a script."""

    def found(path: Path) -> subprocess.CompletedProcess[str]:
        command = [BIN / "zizmor", "--offline", "--no-progress", path]
        return subprocess.run(command, capture_output=True, text=True)

    assert found(FILE).returncode == 0, found(FILE).stdout
    bad: dict[str, Any] = yaml.safe_load(FILE.read_text())
    bad["jobs"]["build"]["steps"].append({"run": "echo ${{ github.event.head_commit.message }}"})
    shutil.copytree(FILE.parent, tmp_path / ".github" / "workflows")
    path = tmp_path / ".github" / "workflows" / "release.yml"
    path.write_text(yaml.safe_dump(bad).replace("true:", "'on':", 1))
    assert "template-injection" in found(path).stdout
