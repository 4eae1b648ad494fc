"""The script that follows the README does so to the letter, and says where it does not lead."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import from_readme
import pytest
from from_readme import NEW_ENVIRONMENT, STRANGERS, Line, Visit

README = (from_readme.ROOT / "README.md").read_text(encoding="utf-8")
PAGE = """
## Your own project

    pip install ./workbench            # a remark
    git clone https://github.com/networkx/networkx.git ../networkx
    cd ../networkx
    rlox-opt diff HEAD~1 HEAD --bench ^distance_measures --budget 120   # another
    rlox-opt profile script.py

## Next

    not this
"""


def test_lines_are_those_of_the_section_without_their_remarks() -> None:
    assert from_readme.told(PAGE) == [
        "pip install ./workbench",
        "git clone https://github.com/networkx/networkx.git ../networkx", "cd ../networkx",
        "rlox-opt diff HEAD~1 HEAD --bench ^distance_measures --budget 120",
        "rlox-opt profile script.py",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="has no commands under 'Your own project'"):
        from_readme.told(PAGE.replace("Your own", "My own"))


def test_the_readme_fits_every_stranger_and_nothing_else_of_it_is_changed() -> None:
    lines = from_readme.told(README)
    for stranger in STRANGERS.values():
        fitted = [*from_readme.fitted(lines, stranger)]
        there = [line for line in lines if "script.py" not in line or stranger.files]
        assert len(fitted) == len(there)
        for now, line in zip(fitted, there, strict=True):
            if from_readme.DIFF in line or line.startswith("cd "):
                continue
            if line.startswith("git clone "):
                assert now == f"git clone {stranger.url} ../{stranger.name}"
                continue
            assert now == line
    assert [*from_readme.fitted(lines, STRANGERS["networkx"])] == lines, "not even a word"


def test_words_that_the_readme_no_longer_has_are_named() -> None:
    stranger = replace(STRANGERS["chrono"], instead={"HEAD~7": "HEAD"})
    with pytest.raises(ValueError, match="no longer has 'HEAD~7'"):
        [*from_readme.fitted(from_readme.told(README), stranger)]


@pytest.mark.parametrize(
    ("printed", "status", "seconds", "lacks"),
    [
        ("a\n2 slower, 1 same, in 87 s.\nb", 0, 80.0, ""),
        ("2 same, in 87 s.", 0, 80.0, "nothing was found slower, which is known to be"),
        ("9 undecided, in 145 s.", 0, 80.0, "nothing was decided"),
        ("nothing measured, in 0 s.", 0, 80.0, "no verdict was reached"),
        ("2 slower, in 87 s.", 2, 80.0, "`rlox-opt diff` ended with 2"),
        ("2 slower, in 87 s.", 0, 601.0, "it took 601 s, not 600"),
    ],
)
def test_what_a_visit_lacks_is_told(printed: str, status: int, seconds: float, lacks: str) -> None:
    line = Line("rlox-opt diff", "chrono", printed, status, seconds)
    assert Visit("chrono", STRANGERS["chrono"], (line,)).lacks == lacks


def test_a_transcript_names_no_folder_of_this_machine_and_no_index(tmp_path: Path) -> None:
    text = f"at {tmp_path}/x and {Path.home()}/y\nfrom https://packages.example/simple/\n"
    told = from_readme.nameless(text, tmp_path)
    assert told == "at /home/you/x and /home/you/y\nfrom https://the-index/simple/\n"
    line = Line("pip install x", "rlox", f"Looking in links: /somewhere\n{told}kept", 0, 1.0)
    page = from_readme.transcript([Visit("chrono", STRANGERS["chrono"], (line,))], "now")
    assert "kept" in page
    assert "/somewhere" not in page


def test_the_environment_is_empty_but_for_programs_and_where_packages_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "https://packages.example/simple")
    found = from_readme.environment(tmp_path)
    assert "PYTHONPATH" not in found
    assert found["PIP_INDEX_URL"] == "https://packages.example/simple"
    assert found["HOME"] == str(tmp_path / "home")
    path = found["PATH"].split(os.pathsep)
    assert path[0] == str(tmp_path / "environment" / "bin")
    assert str(Path(sys.executable).parent) not in path


def test_a_line_runs_in_its_folder_and_its_status_is_kept(tmp_path: Path) -> None:
    here = tmp_path / "thing"
    here.mkdir()
    line = from_readme.run("pwd; exit 3", here, tmp_path)
    assert (line.printed, line.status, line.folder) == ("/home/you/thing\n", 3, "thing")


def test_a_visit_clones_by_the_readmes_own_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clone comes from a folder here, though the line names the project's address."""
    clones = tmp_path / "clones"
    subprocess.run(["git", "init", "--quiet", clones / "chrono"], check=True)
    commit = ["-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "--allow-empty"]
    subprocess.run(["git", "-C", clones / "chrono", *commit, "-m", "first"], check=True)
    stranger = replace(STRANGERS["chrono"], at="HEAD", files={"script.py": "print('ran')\n"})
    monkeypatch.setitem(STRANGERS, "chrono", replace(stranger, instead={}))
    # What is small stands for this repository, and nothing is installed: both would take seconds.
    monkeypatch.setattr(from_readme, "ROOT", clones / "chrono")
    monkeypatch.setattr(from_readme, "NEW_ENVIRONMENT", (*NEW_ENVIRONMENT, "--without-pip"))
    page = PAGE.replace("pip install ./workbench", "true")
    page = page.replace("rlox-opt diff", "git log --format=%s # ").replace(
        "rlox-opt profile", "python"
    )
    source = from_readme.source("chrono", clones)
    visit = from_readme.visit("chrono", source, tmp_path / "you", page)
    assert [line.status for line in visit.lines] == [0, 0, 0, 0]
    assert [line.printed for line in visit.lines[2:]] == ["first\n", "ran\n"]
    assert visit.lines[1].command == f"git clone {stranger.url} ../chrono"


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", STRANGERS)
def test_a_stranger_reaches_a_verdict_from_the_readme_alone(name: str, tmp_path: Path) -> None:
    """Clones are those in the folder that RLOX_CLONES names, or GitHub's."""
    source = from_readme.source(name, Path(os.environ.get("RLOX_CLONES", "/nowhere")))
    asked = ["git", "ls-remote", "--quiet", source, "HEAD"]
    if subprocess.run(asked, capture_output=True).returncode:
        pytest.skip(f"{source}: cannot be reached; RLOX_CLONES names a folder of clones")
    visit = from_readme.visit(name, source, tmp_path / "you", README)
    assert [line for line in visit.lines if line.status] == []
    assert visit.verdicts
