"""`make verify`: its list of steps is complete, and its record says what came of each."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from rlox_opt.system import plugins
from steps import ROOT, STEPS, Step

CI = (ROOT / ".ci" / "run").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
# Targets of the Makefile that tell nobody whether anything is wrong, or that only start others.
NO_GUARDS = {
    "help", "setup", "learning", "profile", "format", "docs", "bench", "lock", "peers-lock",
    "test-slow", "verify",
}  # fmt: skip


def test_every_slow_test_is_in_one_step() -> None:
    roots = (ROOT / "tests", ROOT / "workbench" / "tests")
    files = {path for root in roots for path in root.rglob("test_*.py")} - {Path(__file__)}
    slow = [path for path in files if "mark.slow" in path.read_text()]
    assert len(slow) > 10
    held = [(folder, step.name) for step in STEPS for folder in step.tests]
    for path in slow:
        own = [step for folder, step in held if path.is_relative_to(ROOT / folder)]
        assert len(own) == 1, f"{path}: name it in one step of tests/verify/steps.py, not in {own}"
    for folder, step in held:
        assert any(path.is_relative_to(ROOT / folder) for path in slow), f"{step}: {folder}"


def test_every_target_that_guards_is_in_a_step_or_in_ci() -> None:
    targets = {*re.findall(r"^([a-z-]+):", MAKEFILE, re.M)}
    (phony,) = re.findall(r"^\.PHONY: (.*)", MAKEFILE, re.M)
    assert targets == {*phony.split()}
    of_steps = {step.command[1] for step in STEPS if step.command[:1] == ("make",)}
    in_ci = {*re.findall(r"^make ([a-z-]+)", CI, re.M)} - {"setup"}
    parts = {"test-rust", "test-python"} if "test" in in_ci else set()
    assert of_steps | in_ci | parts | NO_GUARDS == targets
    assert not (of_steps | in_ci) & NO_GUARDS


def test_what_ci_runs_of_the_slow_tests_is_there_and_slow() -> None:
    (arguments,) = re.findall(r"pytest -m slow (.*)", CI)
    found = re.findall(r"\S+\.py", arguments)
    assert "tests/test_wheel.py" in found
    for path in found:
        assert "mark.slow" in (ROOT / path).read_text()


def test_the_weekly_workflow_runs_each_step_and_keeps_its_record() -> None:
    flow = yaml.safe_load((ROOT / ".github/workflows/verify.yml").read_text())
    (when,) = flow[True]["schedule"]  # YAML takes `on` for a truth
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", when["cron"]), "once a week"
    lists, runs = (flow["jobs"][name] for name in ("steps", "verify"))
    assert lists["outputs"] == {"names": "${{ steps.list.outputs.names }}"}
    (asks,) = [step["run"] for step in lists["steps"] if step.get("id") == "list"]
    assert "names=$(python tests/verify --list --json)" in asks
    assert runs["strategy"]["matrix"] == {"step": "${{ fromJSON(needs.steps.outputs.names) }}"}
    assert not runs["strategy"]["fail-fast"]
    (verify,) = [step for step in runs["steps"] if "make verify" in step.get("run", "")]
    assert verify == {"run": 'make verify STEPS="${{ matrix.step }}"'}
    (kept,) = [step for step in runs["steps"] if "upload" in step.get("uses", "")]
    assert kept["if"] == "always()"
    assert "tests/verify/record" in kept["with"]["path"]
    assert max(step.limit_s for step in STEPS) / 60 < runs["timeout-minutes"]


def test_the_steps_are_listed_without_an_environment() -> None:
    command = [sys.executable, "-I", "-S", str(ROOT / "tests/verify"), "--list", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [step.name for step in STEPS]
    assert len({step.name for step in STEPS}) == len(STEPS)


@pytest.fixture
def verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command's module, with records and logs in the test's own folder."""
    module = plugins.load(ROOT / "tests" / "verify" / "__main__.py")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the toys' pytest starts sooner
    monkeypatch.setattr(module, "RECORDS", tmp_path / "record")
    monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    clean = {"date": "2026-11-23T00:00:00Z", "commit": "a" * 40, "dirty": False}
    monkeypatch.setattr(module, "_where", lambda: clean | {"machine": {"cpu": "Toy", "cores": 2}})
    return module


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


def slow_tests(folder: Path, text: str) -> tuple[str, ...]:
    """What a step names: a file, and that none of our settings are its."""
    folder.mkdir()
    (folder / "test_toy.py").write_text(f"import pytest\n\n{text}")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    return (str(folder), f"--config-file={folder / 'pytest.ini'}")


SLOW = "@pytest.mark.slow\ndef test_{name}():\n    {body}\n"


def records(verify: Any) -> list[dict[str, Any]]:
    """All there are, the newest last."""
    paths = sorted(verify.RECORDS.glob("*/*.json"), key=lambda path: path.stat().st_mtime_ns)
    found = [json.loads(path.read_text()) for path in paths]
    for path, record in zip(paths, found, strict=True):
        assert path.with_suffix(".md").read_text() == verify.table(record)
    return found


def test_the_record_says_of_each_step_whether_it_passed_and_why_not(
    verify: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    passes = SLOW.format(name="passes", body="pass")
    skips = SLOW.format(name="skips", body="pytest.skip('no such machine')")
    fails = SLOW.format(name="fails", body="assert 1 == 2")
    steps = [
        Step("good", "g", command=python("print('fine')")),
        Step("bad", "b", command=python("import sys; print('the reason'); sys.exit(4)")),
        Step("slow", "s", command=python("import time; time.sleep(60)"), limit_s=0.3),
        Step("bare", "r", command=python(""), needs={"no-such-program": "apt-get install it"}),
        Step("tests", "t", tests=slow_tests(tmp_path / "tests", passes + skips)),
        Step("failing", "f", tests=slow_tests(tmp_path / "failing", passes + fails)),
        Step("skipped", "k", tests=slow_tests(tmp_path / "skipped", skips)),
        Step("none", "n", tests=slow_tests(tmp_path / "none", "")),
    ]
    monkeypatch.setattr(verify, "STEPS", steps)
    assert verify.main([]) == verify.FAILED
    (record,) = records(verify)
    rows = {row["step"]: row for row in record["steps"]}
    assert {name: row["result"] for name, row in rows.items()} == {
        "good": "passed", "bad": "failed", "slow": "too late", "bare": "could not run",
        "tests": "passed", "failing": "failed", "skipped": "could not run", "none": "failed",
    }  # fmt: skip
    assert record["failed"] == ["bad", "slow", "bare", "failing", "skipped", "none"]
    assert (record["complete"], record["not_run"]) == (True, [])
    assert (rows["bad"]["exit"], rows["bad"]["why"]) == (4, "the reason")
    assert rows["bare"]["why"] == "no-such-program is not installed: apt-get install it"
    assert [name.rpartition("::")[2] for name in rows["failing"]["failures"]] == ["test_fails"]
    assert rows["failing"]["tests"] == 2
    (skipped,) = rows["tests"]["skipped"]
    assert skipped.endswith("test_skips: no such machine")
    assert rows["slow"]["seconds"] >= 0.3
    told = capsys.readouterr()
    assert "Not passed: bad, slow, bare, failing, skipped, none. Not run: none." in told.out
    assert "| bad | b | failed |" in told.out
    assert "2/8 bad: failed" in told.err


def test_what_could_not_be_run_is_neither_passed_nor_failed(
    verify: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [Step("bare", "", command=python(""), needs={"no-such-program": "apt-get"})]
    monkeypatch.setattr(verify, "STEPS", steps)
    assert verify.main([]) == verify.CANNOT_TELL


def test_resumed_it_runs_what_has_not_passed_at_this_commit(
    verify: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, ready = tmp_path / "noted", tmp_path / "ready"
    note = f"open({str(noted)!r}, 'a').write('%s ')"
    steps = [
        Step("one", "", command=python(note % "one")),
        Step("two", "", command=python(note % "two" + f"; open({str(ready)!r})")),
        Step("three", "", command=python(note % "three")),
    ]
    monkeypatch.setattr(verify, "STEPS", steps)
    assert verify.main(["one", "two"]) == verify.FAILED
    (first,) = records(verify)
    assert (first["complete"], first["failed"], first["not_run"]) == (False, ["two"], ["three"])
    ready.touch()
    assert verify.main(["--resume"]) == verify.GOOD
    assert noted.read_text().split() == ["one", "two", "two", "three"]
    record = records(verify)[-1]
    assert [row["step"] for row in record["steps"]] == ["one", "two", "three"]
    assert (record["complete"], record["failed"], record["not_run"]) == (True, [], [])
    assert verify.main(["one"]) == verify.GOOD  # unless told to resume, it runs what is asked for
    where = verify._where() | {"commit": "b" * 40}
    monkeypatch.setattr(verify, "_where", lambda: where)
    assert verify.main(["one", "--resume"]) == verify.GOOD  # another commit's do not count
    where["dirty"] = True
    assert verify.main(["one", "--resume"]) == verify.GOOD  # nor those from before a change
    where["commit"] = "c" * 40
    assert verify.main(["one"]) == verify.GOOD
    where["dirty"] = False
    assert verify.main(["one", "--resume"]) == verify.GOOD  # nor those of a change that is gone
    assert noted.read_text().split()[4:] == ["one"] * 5


def test_ctrl_c_ends_the_step_and_leaves_what_is_known(
    verify: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step interrupts once it is waited for: on a busy machine it may be far on before that."""
    pid, waited_for = tmp_path / "pid", tmp_path / "waited for"
    interrupts = f"""
import os, pathlib, signal, time
pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))
while not pathlib.Path({str(waited_for)!r}).exists():
    time.sleep(0.01)
os.kill({os.getpid()}, signal.SIGINT)
time.sleep(60)
"""
    steps = [
        Step("good", "", command=python("")),
        Step("cut", "", command=python(interrupts)),
        Step("never", "", command=python("")),
    ]
    tell = verify._tell

    def told(line: str) -> None:
        if "min of at most" in line and pid.exists():
            waited_for.touch()
        tell(line)

    monkeypatch.setattr(verify, "STEPS", steps)
    monkeypatch.setattr(verify, "_TOLD_EVERY_S", 0.05)
    monkeypatch.setattr(verify, "_tell", told)
    assert verify.main([]) == verify.INTERRUPTED
    (record,) = records(verify)
    assert [row["step"] for row in record["steps"]] == ["good"]
    assert (record["complete"], record["not_run"]) == (False, ["cut", "never"])
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_an_unknown_step_is_named_with_those_that_exist(
    verify: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        verify.main(["sanitise"])
    assert ended.value.code == verify.CANNOT_TELL
    assert "STEP: is 'sanitise', expected some of compiled, torchrun, " in capsys.readouterr().err
