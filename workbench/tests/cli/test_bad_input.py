"""What a stranger's project and its user may get wrong: a line with the remedy each, before
anything long begins, and the rest goes on."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import small_projects
import strangers
import toy_history
from command_line import rlox_opt
from strangers import SHORT

SUITE = {"asv.conf.json": strangers.ASV, "benchmarks/__init__.py": ""}
ONE = "import thing\n\ndef time_one():\n    thing.work(range(100))\n"
Ask = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stranger's, which these tests share; none of them gets as far as to change it."""
    folder = tmp_path_factory.mktemp("asked") / "user"
    strangers.project(folder)
    return folder


@pytest.fixture
def there(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(project)
    with strangers.untouched(project):
        yield


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a project of commits that have these files, and goes there."""

    def of(*commits: Mapping[str, str]) -> Path:
        small_projects.repository(tmp_path / "own", *commits)
        monkeypatch.chdir(tmp_path / "own")
        toy_history.quick(monkeypatch.setattr)
        return tmp_path / "own"

    return of


def refused(done: CompletedProcess[str]) -> str:
    """The one line of a verb that could not do what was asked; before it there is but the note that
    the working tree has changes."""
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("note:")]
    assert len(lines) == 1, lines
    return lines[0]


def of_init(done: CompletedProcess[str]) -> str:
    """The one thing that is lacking."""
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("diff nowhere HEAD", "'nowhere': is no commit of this repository"),
        ("diff HEAD~1..HEAD", "'HEAD~1..HEAD': is a range, not a commit; write its ends, A B or"),
        ("bisect nowhere HEAD --bench x", "'nowhere': is no commit of this repository"),
        ("record nowhere", "'nowhere': is no commit of this repository"),
        ("diff HEAD HEAD --suite nowhere",
         "--suite nowhere: is no folder here, and 'nowhere': is no commit of this repository"),
        ("diff HEAD HEAD --python head:3.2",
         r"Python 3\.2 is not installed \(no interpreter is downloaded\); there are .*name one"),
        ("diff HEAD HEAD --python nowhere/python",
         "'nowhere/python' is no Python: write a version such as 3.11, or the path"),
        ("diff HEAD HEAD --python base:", "'base:' gives base nothing; write base:VALUE"),
        ("diff HEAD HEAD --with base:", "'base:' gives base nothing; write base:VALUE"),
        ("diff HEAD HEAD --features head:", "'head:' gives head nothing; write head:VALUE"),
        ("diff HEAD HEAD --with ==1", "--with '==1': is no requirement; write numpy, numpy==1.26"),
        ("diff HEAD HEAD --features head:fast",
         "'HEAD': features are cargo's, and this project is built by inner, which takes none"),
        ("diff HEAD+fast HEAD", r"'HEAD\+fast': features are cargo's, and this project is built"),
        ("diff HEAD HEAD --python base:3.11 --python 3.12",
         "--python: base is given 3.11 and 3.12; it takes one"),
        ("diff pypi:thing HEAD", "'pypi:thing' names no release: write one version of it, pypi:"),
        ("diff pypi:thing==1 pypi:thing==2 --suite pypi:thing==1", "--suite pypi:thing==1"),
        ("diff HEAD~8 HEAD --budget 0", "--budget: is '0', expected a number over 0"),
        ("diff HEAD HEAD --bench (", r"--bench: is '\(', no regular expression"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_refused_in_one_line_before_anything_is_built(
    words: str, says: str, there: None
) -> None:
    assert re.search(says, refused(rlox_opt(*words.split())))


def test_a_requirement_that_no_index_has_is_named_and_its_side(
    there: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    done = rlox_opt("diff", "HEAD", "HEAD", "--with", "head:no-such-thing==1")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("rlox-opt diff: --with no-such-thing==1: HEAD (")
    assert "Traceback" not in done.stderr


def test_a_commit_that_does_not_build_is_told_with_the_end_of_what_was_said(there: None) -> None:
    done = rlox_opt("diff", f"HEAD~{8 - strangers.NOT_BUILT}", "HEAD")
    assert done.returncode == 2
    told = done.stderr[done.stderr.index("rlox-opt diff: ") :]
    assert re.match(r"rlox-opt diff: HEAD~4 \(\w+\) does not build \(.*\.log\):\n", told)
    assert "error: no such header" in told
    assert "constraints" not in told


def test_a_project_without_a_suite(own: Callable[..., Path]) -> None:
    own(small_projects.own(strangers.thing()))
    for done in (rlox_opt("diff", "HEAD", "HEAD"), rlox_opt("calibrate"), rlox_opt("record")):
        line = refused(done)
        assert "no asv.conf.json" in line
        assert "--suite" in line
    assert "no asv.conf.json" in of_init(rlox_opt("init"))


def test_a_project_with_two_suites(own: Callable[..., Path]) -> None:
    two = {f"{of}/{name}": text for of in ("a", "b") for name, text in SUITE.items()}
    two |= {f"{of}/benchmarks/one.py": ONE for of in ("a", "b")}
    own(small_projects.own(strangers.thing()) | two)
    for done in (rlox_opt("init"), rlox_opt("diff", "HEAD", "HEAD")):
        line = done.stderr.splitlines()[-1]
        assert done.returncode == 2
        assert "a/asv.conf.json" in line
        assert "b/asv.conf.json" in line
        assert "--suite" in line


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("pyproject.toml", small_projects.PYPROJECT + "[tool.rlox-opt]\nsweet = 1\n", "sweet"),
        ("asv.conf.json", '{"repo": ', r"asv\.conf\.json"),
        ("asv.conf.json", '{"repo": ".", "benchmark_dir": 3}', "benchmark_dir"),
        ("asv.conf.json", '{"repo": ".", "benchmark_dir": "nowhere"}', "nowhere"),
    ],
)
def test_a_file_that_says_what_nobody_understands_is_named(
    name: str, text: str, says: str, own: Callable[..., Path]
) -> None:
    files = small_projects.own(strangers.thing()) | SUITE | {"benchmarks/one.py": ONE}
    own(files | {name: text})
    line = refused(rlox_opt("diff", "HEAD", "HEAD"))
    assert re.search(says, line)
    assert name in line


def test_a_key_of_asvs_that_is_new_to_us_is_no_hindrance(own: Callable[..., Path]) -> None:
    new = json.dumps(json.loads(strangers.ASV) | {"a_key_of_tomorrow": {"x": 1}})
    files = small_projects.own(strangers.thing()) | SUITE | {"benchmarks/one.py": ONE}
    own(files | {"asv.conf.json": new})
    done = rlox_opt("init")
    assert done.returncode == 0, done.stderr


HOSTILE = """
import os, sys, time
import thing

def time_prints():
    print("[1, 2", flush=True)
    os.write(1, b"{}\\n")

def time_forks():
    if os.fork() == 0:
        return
    os.wait()

def time_closes():
    os.close(1)
    os.dup2(2, 1)

def time_ends():
    os._exit(7)

def time_hangs():
    time.sleep(100)
time_hangs.timeout = 1

def time_fails_at_head():
    thing.work(range(10)) if thing.size(1) == 8 else thing.nothing()

def time_fine():
    thing.work(range(100))
"""
EFFECTS = """
import os, signal, sys, threading, time
print("imported", flush=True)
os.chdir("/")
sys.path[:] = ["/nowhere", *reversed(sys.path)]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, lambda *_: None)
threading.Thread(target=time.sleep, args=(1000,), daemon=False).start()
import thing

def time_after():
    thing.work(range(100))
"""


@pytest.mark.slow
def test_hostile_benchmarks_lose_their_own_results_alone(own: Callable[..., Path]) -> None:
    files = small_projects.own(strangers.thing()) | SUITE
    own(
        files | {"benchmarks/hostile.py": HOSTILE, "benchmarks/effects.py": EFFECTS},
        {"thing.py": strangers.thing(passes=5, size=9)},
    )
    done = rlox_opt("diff", "HEAD~1", "HEAD", *SHORT, "--json")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    found = json.loads(done.stdout)
    assert {row["benchmark"] for row in found["results"]} == {
        f"hostile.time_{of}" for of in ("prints", "forks", "closes", "fine")
    } | {"effects.time_after"}
    failed = {row["benchmark"]: (row["side"], row["reason"]) for row in found["failures"]}
    assert failed.keys() == {f"hostile.time_{of}" for of in ("ends", "hangs", "fails_at_head")}
    side, why = failed["hostile.time_fails_at_head"]
    assert (side, why) == ("head", "AttributeError: module 'thing' has no attribute 'nothing'")
    assert failed["hostile.time_ends"][1].startswith("the process ended (exit status 7)")
    # Of its timeout, which is one run's, an answer has that of six.
    assert failed["hostile.time_hangs"][1] == (
        "did not answer within 6 s; "
        "--bench can leave it out, and a longer `timeout` (asv, commands) waits for it"
    )
    done = rlox_opt("gate", "HEAD~1", "HEAD", "--bench", "fails_at_head", *SHORT)
    assert done.returncode == 2
    assert "hostile.time_fails_at_head: fails in head: AttributeError" in done.stdout
    for words in (["bisect", "HEAD~1", "HEAD", "--bench", "fails_at_head"],):
        done = rlox_opt(*words)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith(
            "rlox-opt bisect: hostile.time_fails_at_head: fails in head: AttributeError"
        )


def test_a_suite_that_cannot_be_imported_is_told_and_what_can_is_measured(
    own: Callable[..., Path],
) -> None:
    files = small_projects.own(strangers.thing()) | SUITE | {"benchmarks/one.py": ONE}
    broken = {"benchmarks/other.py": "import not_there\n\ndef time_two():\n    pass\n"}
    own(files | broken, {"thing.py": strangers.thing(passes=5)})
    done = rlox_opt("diff", "HEAD~1", "HEAD", *SHORT)
    assert done.returncode == 0
    assert "one.time_one" in done.stdout
    said = " ".join(done.stdout.split())
    assert "benchmarks.other: cannot be read in base and head: ModuleNotFoundError" in said
