"""A project that was not written for the workbench: one module, which says nothing of its build."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import toy_history
from command_line import rlox_opt

_COPY = "import shutil, sys; shutil.copy('thing.py', sys.argv[1])"
TABLE = f"""
[tool.rlox-opt]
package = "thing"
suite = "benchmarks"
build = {{ by = "command", command = {json.dumps([sys.executable, "-c", _COPY, "{out}"])} }}
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits, of which the second takes forty times as long; its own folder is the current."""

    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "pyproject.toml").write_text(TABLE)
    (tmp_path / "benchmarks").mkdir()
    suite = "import thing\n\ndef time_work():\n    thing.work()\n"
    (tmp_path / "benchmarks" / "all.py").write_text(suite)
    git("init", "--quiet")
    for n in (1, 40):
        (tmp_path / "thing.py").write_text(f"def work():\n    return sum(range({n}_000))\n")
        git("add", "--all")
        git("commit", "--quiet", "-m", f"{n} thousand")
    monkeypatch.chdir(tmp_path)
    toy_history.quick(monkeypatch.setattr)
    return tmp_path


def test_its_commits_are_compared_recorded_and_published(checkout: Path) -> None:
    done = rlox_opt("gate", "HEAD~1", "HEAD", "--restarts", "10", "--no-counts", "--json")
    assert [row["verdict"] for row in json.loads(done.stdout)["results"]] == ["slower"]
    assert done.returncode == 1
    assert "has changes" not in done.stderr, "what is built is nothing that git would add"
    for words in (["record", "HEAD~1..HEAD"], ["regressions"], ["publish"]):
        done = rlox_opt(*words)
        assert done.returncode == 0, done.stderr
    assert (checkout / ".rlox-opt" / "pages" / "index.html").is_file()


def test_a_build_command_that_a_commit_lacks_is_a_build_that_fails(checkout: Path) -> None:
    table = TABLE.replace(json.dumps([sys.executable, "-c", _COPY, "{out}"]), '["./none.sh"]')
    (checkout / "pyproject.toml").write_text(table)
    done = rlox_opt("diff", "HEAD~1", "HEAD")
    assert done.returncode == 2
    assert "does not build:\n./none.sh: No such file or directory" in done.stderr
