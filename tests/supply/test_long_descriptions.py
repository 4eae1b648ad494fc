"""What PyPI shows of the two distributions: README.md and workbench/README.md, each of whose links
leads to a file of the release. Built from a copy of what the release builds from."""

import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import descriptions
import links
import pytest
import yaml

ROOT = descriptions.ROOT
ADDRESS, TAG = "https://github.example/someone/rlox", "v3.2.1"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
THERE = re.compile(rf"{re.escape(ADDRESS)}/(?:blob|raw)/{re.escape(TAG)}/([^#]+)")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the files that git has, as far as a description may link to them."""
    asked = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
    asked += ["*.md", "*.toml", "*.png", "docs", "workbench/rlox_opt"]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def made(copy: Path) -> subprocess.CompletedProcess[str]:
    """By the script of the copy, with Python's own library alone."""
    script = [sys.executable, "-S", copy / "docs" / "site" / "descriptions.py", ADDRESS, TAG]
    return subprocess.run(script, cwd=copy, capture_output=True, text=True)


def test_the_wheel_of_the_workbench_has_no_link_that_leads_nowhere_on_pypi(copy: Path) -> None:
    done = made(copy)
    assert done.returncode == 0, done.stderr
    build = "import flit_core.buildapi as api; print(api.build_wheel('.'))"
    command = [sys.executable, "-c", build]
    folder = copy / "workbench"
    name = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    with zipfile.ZipFile(folder / name.strip()) as wheel:
        (of,) = (of for of in wheel.namelist() if of.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(wheel.read(of).decode()).get_payload()
    assert told.strip() == (folder / "README.md").read_text().strip()
    assert f"({ADDRESS}/blob/{TAG}/docs/guides/pytest-benchmark.md)" in told
    assert f"({ADDRESS}/blob/{TAG}/workbench/README.md#crates-with-criterion)" in told


def test_each_link_of_both_descriptions_leads_to_a_file_of_the_release(copy: Path) -> None:
    assert descriptions.sources() == ["README.md", "workbench/README.md"]
    assert made(copy).returncode == 0
    for source in descriptions.sources():
        found = LINK.findall((copy / source).read_text())
        assert len(found) == len(LINK.findall((ROOT / source).read_text()))
        ours = [of for of in found if of.startswith(ADDRESS)]
        assert ours
        for of in found:
            assert of.startswith("https://"), of
        for of in ours:
            target = THERE.match(of)
            assert target, of
            assert (ROOT / target[1]).exists(), of
    pictures = re.findall(r"!\[[^\]]*\]\((\S+)\)", (copy / "README.md").read_text())
    assert pictures
    assert all(of.startswith(f"{ADDRESS}/raw/{TAG}/") for of in pictures)


def test_a_link_to_nothing_stops_the_release(copy: Path) -> None:
    readme = copy / "workbench" / "README.md"
    readme.write_text(readme.read_text() + "\n[Nothing](../nothing.md)\n")
    done = made(copy)
    assert (done.returncode, done.stdout) == (1, "")
    assert "workbench/README.md: ../nothing.md leads to no file" in done.stderr


def test_what_is_no_link_stays() -> None:
    text = "[a](https://b.example) and code:\n\n    [c](d)\n\n```\n[e](f)\n```\n"
    assert links.absolute(text, "README.md", ADDRESS, TAG, ROOT) == text


def test_the_workflow_does_so_before_it_builds() -> None:
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    steps = flow["jobs"]["build"]["steps"]
    (at,) = (n for n, step in enumerate(steps) if "descriptions.py" in step.get("run", ""))
    builds = [n for n, step in enumerate(steps) if re.search(r"maturin-action|-m build", f"{step}")]
    assert len(builds) == 3
    assert at < min(builds)
    words = '"$GITHUB_SERVER_URL/$GITHUB_REPOSITORY" "$GITHUB_REF_NAME"'
    assert steps[at]["run"] == f"python docs/site/descriptions.py {words}"
