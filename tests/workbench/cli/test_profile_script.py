"""`rlox-opt profile script.py`: any program, all its processes, in one report and one trace."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import projects
import pytest
from command_line import rlox_opt
from rlox_opt.cli import main as cli
from rlox_opt.cli import profile, profile_script
from rlox_opt.sampling.processes import launch

SCRIPT = """
import multiprocessing, os, signal, sys, time
from rlox.timing import Timing, span

timing = Timing("worker")

@span
def prepare(argument):
    assert argument == "--lr=3"

def work(number):
    left = 0.8
    while left > 0:
        began = time.perf_counter()
        with timing.add_time("spin"):
            sum(range(20_000))
        # Little of a pause that a busy machine makes: what comes before the kill is to be written.
        left -= min(time.perf_counter() - began, 0.02)
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    prepare(sys.argv[1])
    print("what the script prints")
    workers = [multiprocessing.Process(target=work, args=(n,)) for n in range(2)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rlox_opt.cli.main", "profile", *arguments]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("script")
    (folder / "train.py").write_text(SCRIPT)
    out = folder / "out"
    words = [str(folder / "train.py"), "--sampler", "none", "--json", "--out", str(out)]
    done = subprocess.run(command(*words, "--", "--lr=3"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr, json.loads(done.stdout), out


def test_json_is_the_report_and_what_the_script_prints_goes_elsewhere(profiled: Any) -> None:
    said, report, out = profiled
    assert json.loads((out / "report.json").read_text()) == report
    assert "what the script prints" in said


def test_equal_workers_are_one_component_and_the_killed_one_is_in_it(profiled: Any) -> None:
    _, report, _ = profiled
    found = {component["title"]: component for component in report["components"]}
    assert {"main", "work"} <= found.keys()
    (thread,) = (t for t in found["work"]["threads"] if t["name"] == "MainThread")
    (spin,) = thread["phases"]
    assert (spin["name"], thread["count"]) == ("spin", 2)
    assert 0.3 < spin["low"] <= spin["high"] < 5
    killed = [process["title"] for process in report["processes"] if process["how"] is None]
    assert killed == ["work 2"]
    assert any("work 2" in sentence for sentence in report["incomplete"])


def test_the_page_the_text_and_the_trace_lie_beside_it(profiled: Any) -> None:
    _, _, out = profiled
    assert "prepare" in (out / "report.html").read_text()
    assert "spin" in (out / "report.md").read_text()
    events = json.loads((out / "trace.json").read_text())["traceEvents"]
    assert {"spin", "prepare"} <= {event["name"] for event in events if event["ph"] == "X"}


def test_a_run_in_one_process_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import sys\nsys.exit(3 * ('--serial' in sys.argv))\n")
    monkeypatch.chdir(tmp_path)
    # Signals of this process stay as they are.
    monkeypatch.setattr(profile_script, "end_as_by_ctrl_c", lambda: None)
    words = ("train.py", "--sampler", "none", "--serial=--serial", "--out", "out")
    done = rlox_opt("profile", *words)
    assert done.returncode == 2, done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert "serial" not in report
    assert any(
        "failed in one process, with exit status 3" in sentence for sentence in report["incomplete"]
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["profile", "train.py", "--out", "x", "--", "--lr", "3"],
         (["profile", "script", "train.py", "--out", "x"], ["--lr", "3"])),
        (["profile", "train.py", "--", "ppo"], (["profile", "script", "train.py"], ["ppo"])),
        (["profile", "train.py", "--out", "ppo"],
         (["profile", "script", "train.py", "--out", "ppo"], [])),
        (["profile", "--peer", "sac", "train.py"],
         (["profile", "script", "--peer", "sac", "train.py"], [])),
        (["profile", "train.py", "--serial", "ppo"],
         (["profile", "script", "train.py", "--serial", "ppo"], [])),
        (["profile", "--json", "train.py", "--serial", "ppo"],
         (["profile", "script", "--json", "train.py", "--serial", "ppo"], [])),
        (["profile", "-m", "sac"], (["profile", "script", "-m", "sac"], [])),
        (["profile", "ppo", "--nproc", "2", "--serial"],
         (["profile", "train", "ppo", "--nproc", "2", "--serial"], [])),
        (["profile", "--out", "x", "ppo"], (["profile", "train", "--out", "x", "ppo"], [])),
        (["profile", "--serial", "ppo"], (["profile", "train", "--serial", "ppo"], [])),
        (["profile", "--seed", "3", "ppo"], (["profile", "train", "--seed", "3", "ppo"], [])),
        (["profile", "--help"], (["profile", "--help"], [])),
        (["profile", "diff", "--", "a", "b"], (["profile", "diff", "--", "a", "b"], [])),
        (["profile", "script", "train.py", "--", "--help", "--", "x"],
         (["profile", "script", "train.py"], ["--help", "--", "x"])),
        (["profile-script", "a.py", "--", "x"], (["profile", "script", "a.py"], ["x"])),
        (["profile-diff", "a", "b"], (["profile", "diff", "a", "b"], [])),
        (["profile"], (["profile"], [])),
        (["list", "x"], (["list", "x"], [])),
    ],
)  # fmt: skip
def test_what_is_no_trainer_is_a_script(words: list[str], expected: Any) -> None:
    assert profile.split(words, projects.HERE) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothere.py"], "script nothere.py: no such file"),
        (["ppo", "--nproc", "3"], "--nproc 3: the processes share 8 environments; use --n-envs 9"),
        (["sac", "--nproc", "2"], "--nproc 2: SAC trains in one; use ppo"),
        (
            ["ppo", "--nproc", "2", "--every", "0"],
            "--every: is '0', expected a whole number from 1 on",
        ),
        (["ppo", "--nproc", "2", "--for", "0.5"], "--for 0.5: keeps nothing; use 1 or more"),
        (["ppo", "--nproc", "0"], "--nproc 0: trains nowhere; use 1 or more"),
        (
            ["ppo", "--nproc", "2", "--serial", "--from", "3"],
            "--from 3: keeps a part of a run, and --serial compares whole runs; leave one",
        ),
        (
            [__file__, "--serial=--workers=0", "--for", "30"],
            "--for 30: keeps a part of a run, and --serial compares whole runs; leave one",
        ),
        (
            ["-m", "package/train.py"],
            "-m package/train.py: is a path; leave out -m, or name the module with dots",
        ),
        (
            [__file__, "--lr", "3e-4"],
            "unrecognized arguments: --lr 3e-4; the program's own arguments follow --",
        ),
        ([__file__, "--samp", "none"], "unrecognized arguments: --samp none"),
        (
            ["ppo", "--from", "3"],
            "--from: is of a profile of several processes; add --nproc or --vector",
        ),
        (
            ["ppo", "--torch", "2"],
            "--torch: is of a profile of several processes; add --nproc or --vector",
        ),
        (
            ["ppo", "--vector", "sync", "--seconds", "5"],
            "--seconds: is of a profile of one process; leave it out",
        ),
    ],
)
def test_mistakes_are_told_in_a_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["profile", *arguments])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("kind", ["script", "train"])
def test_the_help_says_what_does_not_go_together(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["profile", kind, "--help"])
    assert "not with --from or --for" in " ".join(capsys.readouterr().out.split())


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that does nothing, to be profiled in this process."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    (tmp_path / "train.py").touch()
    return tmp_path / "train.py"


def test_an_interpreter_that_cannot_be_started_leaves_nothing(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = script.with_name("out")
    with pytest.raises(SystemExit) as ended:
        cli.main(["profile", str(script), "--sampler", "none", "--python", "/not/there",
                  "--out", str(out)])  # fmt: skip
    assert ended.value.code == 2
    assert "--python /not/there: cannot be started" in capsys.readouterr().err
    assert list(script.parent.iterdir()) == [script]


def test_a_disk_that_is_full_does_not_lose_what_was_recorded(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(command: Any, folder: Path, *_: Any) -> Any:
        folder.mkdir()
        (folder / "7-1.0.jsonl").touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(launch, "launch", full)
    out = script.with_name("out")
    words = ["profile", str(script), "--sampler", "none", "--out", str(out)]
    assert cli.main(words) == 3
    (kept,) = script.parent.glob("unfinished/run/7-1.0.jsonl")
    said = capsys.readouterr().err
    assert "No space left on device; what was recorded is in" in said
    assert str(kept.parents[1]) in said


def test_what_nobody_foresaw_is_shown_and_does_not_lose_what_was_recorded(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError

    monkeypatch.setattr(launch, "launch", broken)
    monkeypatch.setattr("tempfile.tempdir", str(script.parent))
    words = ["profile", str(script), "--sampler", "none", "--out", str(script.with_name("o"))]
    assert cli.main(words) == 3
    (kept,) = script.parent.glob("unfinished")
    said = capsys.readouterr().err
    assert f"what was recorded is in {kept}\n" in said
    assert "an error of rlox-opt itself, ValueError; the traceback is in " in said


def test_without_what_it_needs_it_does_not_begin(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SystemExit) as ended:
        cli.main(["profile", str(script), "--sampler", "none"])
    assert ended.value.code == 2
    assert "rich is not installed" in capsys.readouterr().err
    assert list(script.parent.iterdir()) == [script]


ENDED = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN if "nohup" in sys.argv else signal.SIG_DFL)
from rlox_opt.cli.profile_script import end_as_by_ctrl_c
end_as_by_ctrl_c()
try:
    os.write(1, b"ready")
    sys.stdin.read()
except KeyboardInterrupt:
    print("kept", flush=True)
    os._exit(7)
"""


@pytest.mark.parametrize(
    ("words", "number", "status"),
    [([], signal.SIGHUP, 7), (["nohup"], signal.SIGHUP, 0)],
)
def test_a_terminal_that_goes_ends_it_as_ctrl_c_does(
    words: list[str], number: int, status: int
) -> None:
    ours, terminal = os.openpty()
    program = [sys.executable, "-c", ENDED, *words]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=terminal, stderr=terminal
    ) as process:
        os.close(terminal)
        assert b"ready" in os.read(ours, 100)
        os.close(ours)  # to write to the terminal fails from here on
        process.send_signal(number)
        if "nohup" in words:
            process.communicate(timeout=30)  # it goes on, to the end of its input
        assert process.wait(30) == status


def test_a_folder_that_appeared_meanwhile_is_left_alone(tmp_path: Path) -> None:
    part, out = tmp_path / ".writing-1", tmp_path / "out"
    for folder in (part, out):
        folder.mkdir()
        (folder / "report.json").write_text(folder.name)
    assert profile_script._place(part, out, "name") == tmp_path / "out-2"
    assert (out / "report.json").read_text() == "out"
    assert (tmp_path / "out-2" / "report.json").read_text() == ".writing-1"


def test_why_a_folder_cannot_be_put_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        profile_script._place(tmp_path / "gone", tmp_path / "out", "name")


@pytest.fixture(scope="module")
def no_text(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """A run with an argument, and into a folder, whose bytes are no text; and that folder."""
    folder, out = tmp_path_factory.mktemp("no-text"), os.fsdecode(b"out-\xff")
    (folder / "train.py").write_text("import sys\nassert len(sys.argv) == 2\n")
    words = ["train.py", "--sampler", "none", "--out", out, "--", os.fsdecode(b"--run=a\xff")]
    done = subprocess.run(command(*words), capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done, folder / out


def test_a_folder_whose_name_is_no_text_is_told_as_far_as_it_is(no_text: Any) -> None:
    done, out = no_text
    assert "out-?/report.html" in done.stdout
    assert (out / "report.json").is_file()


def test_an_argument_that_is_no_text_is_told_as_far_as_it_is(no_text: Any) -> None:
    _, out = no_text
    assert json.loads((out / "report.json").read_text())["command"][-1] == "--run=a?"


@pytest.mark.slow
def test_ctrl_c_ends_the_program_and_keeps_what_it_did(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(
        "import time\nfrom rlox.timing import span\n"
        "while True:\n    with span('turn'): time.sleep(0.01)\n"
    )
    out = tmp_path / "out"
    words = [str(tmp_path / "endless.py"), "--sampler", "none", "--out", str(out)]
    with subprocess.Popen(command(*words), stderr=subprocess.PIPE, cwd=tmp_path) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            files = [f.read_text() for f in tmp_path.glob(".rlox-making-*/made/run/*-*.jsonl")]
            if any('"spans"' in text for text in files):
                break
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
    report = json.loads((out / "report.json").read_text())
    assert any("interrupted" in sentence for sentence in report["incomplete"])
    assert report["components"][0]["threads"][0]["phases"][0]["name"] == "turn"


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["perf", "py-spy"])
def test_two_ranks_with_two_environment_workers_each(sampler: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["ppo", "--nproc", "2", "--vector", "async", "--n-envs", "4", "--n-steps", "128"]
    words += ["--total-timesteps", "8192", "--sampler", sampler, "--torch", "1", "--json"]
    done = subprocess.run(
        command(*words, "--out", str(out)), capture_output=True, text=True, cwd=projects.HERE.root
    )
    if "use" in done.stderr and done.returncode == 2:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    found = {c["title"]: len(c["processes"]) for c in report["components"]}
    assert (found["rank"], found["env worker"]) == (2, 4)
    assert sum(row["share"] for row in report["ranking"]) > 0.9
    layers = {row["layer"] for row in report["ranking"]}
    assert {"rust", "env_python", "python"} <= layers
    events = json.loads((out / "trace.json").read_text())["traceEvents"]
    kinds = {event.get("cat", "").split(",")[0] for event in events}
    assert {"phase", "wait", "send", "flow", "torch"} <= kinds
    assert any(event["ph"] == "C" and event["name"] == "env steps/s" for event in events)
