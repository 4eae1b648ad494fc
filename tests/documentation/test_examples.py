"""Each program of examples/ runs, and does what its first lines say."""

import json
import os
import re
import runpy
import sys
from pathlib import Path

import pytest
import strangers
import users_repository
from command_line import rlox_opt
from projects import ROOT

EXAMPLES = ROOT / "examples"


def test_each_example_is_told_of() -> None:
    told = {*re.findall(r"^- `([\w./]+?)/?`", (EXAMPLES / "README.md").read_text(), re.M)}
    there = {path.name for path in EXAMPLES.iterdir()} - {"README.md", "__pycache__"}
    assert told == there


def test_training_ends_when_the_callback_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], one_thread: None
) -> None:
    """In this process, which may have imported torch already."""
    program = str(EXAMPLES / "train_with_callback.py")
    monkeypatch.setattr(sys, "argv", [program, "--goal", "30", "--steps", "100000"])
    runpy.run_path(program, run_name="__main__")
    said = capsys.readouterr().out
    found = re.fullmatch(r"mean return (\d+) after (\d+) steps\n", said)
    assert found, said
    assert int(found[1]) >= 30
    assert int(found[2]) < 50_000, "it ended early"


def test_the_program_to_profile_shows_its_phases(tmp_path: Path) -> None:
    asks = ("profile", str(EXAMPLES / "count_words.py"), "--out", "report", "--json")
    done = strangers.rlox_opt(tmp_path, *asks, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    text = json.dumps(json.loads(done.stdout))
    assert "make the text" in text
    assert (tmp_path / "report" / "report.html").is_file()


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """The project with a suite, in a repository of its own: as it is, and a slower commit."""
    project = EXAMPLES / "words"
    paths = [*project.glob("*.py"), *project.glob("*.toml"), *project.glob("benchmarks/*.py")]
    files = {str(path.relative_to(project)): path.read_text() for path in paths}
    line = "        found[word] = found.get(word, 0) + 1\n"
    assert line in files["words.py"]
    slower = files["words.py"].replace(line, f"        word = ''.join(sorted(word))\n{line}")
    folder = tmp_path / "words"
    users_repository.make(folder, (files, {"words.py": slower}))
    return folder


def test_two_commits_of_the_project_are_compared(
    words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(words)
    found = rlox_opt("init", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["lacking"] == []
    # With the network, from which its back end comes.
    sources = {name: of for name, of in os.environ.items() if name.startswith(("UV_", "PIP_"))}
    online = {"UV_OFFLINE": "0", **sources}
    asks = ("diff", "HEAD~1", "HEAD", "--no-counts", "--no-why")
    told = strangers.asked(words, *asks, **online)
    assert {row["benchmark"]: row["verdict"] for row in told["results"]} == {
        "counting.Count.time_count(100)": "slower",
        "counting.Count.time_count(10000)": "slower",
    }
