"""The action of this repository, on pull requests of a project of strangers: its steps in order, as
GitHub runs them, with a server in place of GitHub's."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import small_projects
import strangers
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
COMMENT = ROOT / ".github" / "action" / "comment.py"
MARKER = "<!-- rlox-opt gate -->"


class GitHub(ThreadingHTTPServer):
    """The comments of all pull requests by id, what was asked, and the status for who writes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.comments: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.refuses = 0

    @property
    def variables(self) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.server_port}"
        return {
            "GITHUB_API_URL": url, "GITHUB_REPOSITORY": "a/thing", "GITHUB_TOKEN": "secret",
            "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
        }  # fmt: skip


class _Answers(BaseHTTPRequestHandler):
    server: GitHub

    def _answer(self) -> None:
        github, path = self.server, self.path.partition("?")
        assert self.headers["Authorization"] == "Bearer secret"
        assert path[0].startswith("/repos/a/thing/issues/")
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        github.asked.append(self.command)
        answer: Any = {}
        if self.command == "GET":
            page = int(re.search(r"\bpage=(\d+)", path[2].replace("per_page", ""))[1])  # type: ignore[index]
            answer = github.comments[100 * (page - 1) : 100 * page]
        elif not github.refuses and self.command == "POST":
            github.comments.append({"id": len(github.comments), **body})
        elif not github.refuses:
            github.comments[int(path[0].rpartition("/")[2])].update(body)
        self.send_response(github.refuses if self.command != "GET" and github.refuses else 200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    do_GET = do_POST = do_PATCH = _answer

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()  # seconds of a poll
        yield server
        server.shutdown()


def told(github: GitHub, path: Path, text: str, title: str = "") -> str:
    """What the log has of a comment."""
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, COMMENT, "7", path, title], env={**os.environ, **github.variables},
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_there_is_one_comment_which_is_written_anew(github: GitHub, tmp_path: Path) -> None:
    github.comments = [{"id": n, "body": f"no {MARKER}"} for n in range(130)]
    assert told(github, tmp_path / "a.md", "first") == ""
    assert github.asked == ["GET", "GET", "POST"]
    assert told(github, tmp_path / "a.md", "x\n" * 70_000) == ""
    assert github.asked[3:] == ["GET", "GET", "PATCH"]
    body = github.comments[130]["body"]
    assert len(github.comments) == 131
    assert body.startswith(f"{MARKER}\nx\n")
    assert body.endswith("x\n\nThe rest is in the job's summary.")
    assert len(body) <= 65_536


def test_jobs_with_titles_have_a_comment_each(github: GitHub, tmp_path: Path) -> None:
    for text, title in (("a", ""), ("b", "3.11 --> old"), ("c", "3.12"), ("d", "3.11 --> old")):
        assert told(github, tmp_path / "a.md", text, title) == ""
    assert [of["body"] for of in github.comments] == [
        f"{MARKER}\na",
        "<!-- rlox-opt gate: 3.11 -- old -->\n## 3.11 --> old\n\nd",
        "<!-- rlox-opt gate: 3.12 -->\n## 3.12\n\nc",
    ]


@pytest.mark.parametrize("status", [403, 404])
def test_a_comment_that_is_refused_is_a_warning_with_its_remedy(
    status: int, github: GitHub, tmp_path: Path
) -> None:
    github.refuses = status
    said = told(github, tmp_path / "a.md", "first")
    assert said.startswith("::warning::rlox-opt: the pull request got no comment (HTTP Error ")
    assert "`permissions: pull-requests: write`" in said
    assert "secret" not in said


def test_no_name_can_become_part_of_a_script() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", ""), step["name"]
        assert ("run" in step) == (step.get("shell") == "bash")


def test_no_failure_is_hidden_by_the_command_around_it() -> None:
    for step in STEPS:
        assert not re.search(r'echo "[^"]*\$\(', step.get("run", "")), step["name"]


def test_builds_are_kept_by_system_architecture_and_processor() -> None:
    (cache,) = [step for step in STEPS if "uses" in step]
    assert cache["uses"].startswith("actions/cache@")
    assert cache["with"].keys() == {"path", "key", "restore-keys"}
    assert cache["with"]["key"].startswith(cache["with"]["restore-keys"])
    by = "${{ runner.os }}-${{ runner.arch }}-${{ steps.own.outputs.cpu }}-"
    assert cache["with"]["restore-keys"].endswith(by)
    (own,) = [step for step in STEPS if step.get("id") == "own"]
    assert "/proc/cpuinfo" in own["run"]
    assert 'echo "cpu=' in own["run"]


def test_the_gate_is_asked_in_the_folder_and_with_the_further_arguments(tmp_path: Path) -> None:
    (step,) = [step for step in STEPS if step.get("id") == "gate"]
    folder, program = tmp_path / "a project", tmp_path / "rlox-opt" / "bin" / "rlox-opt"
    for path in (folder, program.parent):
        path.mkdir(parents=True)
    program.write_text('#!/bin/sh\npwd\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    given = {"BASE": "one", "HEAD": "two", "BENCH": "", "THRESHOLD": "3", "BUDGET": "60"}
    given |= {"FOLDER": "a project", "ARGUMENTS": "--suite HEAD\n--with numpy<2 * $(touch x)"}
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=tmp_path,
        env={**os.environ, **given, **files, "RUNNER_TEMP": str(tmp_path)}, check=True,
    )  # fmt: skip
    assert step["env"].keys() == given.keys()
    where, *words = (tmp_path / "rlox-opt.md").read_text().splitlines()
    assert Path(where).resolve() == folder.resolve()
    further = ["--suite", "HEAD", "--with", "numpy<2", "*", "$(touch", "x)"]
    options = ["--threshold=3", "--budget=60", *further, "--hook", "--markdown"]
    assert words == ["gate", "one", "two", *options]


def value(expression: str, contexts: Mapping[str, Any]) -> Any:
    """Of one of GitHub's, as far as the action has them: names, texts, ==, != and &&."""

    def looked_up(name: re.Match[str]) -> str:
        found: Any = contexts
        for part in name[0].split("."):
            found = found.get(part, {})
        return repr(found or "")

    parts = re.split(r"('[^']*')", expression.replace("&&", " and "))
    parts[::2] = [re.sub(r"\b(?!and\b)[a-z][\w.-]*", looked_up, part) for part in parts[::2]]
    return eval("".join(parts))


def filled(text: str, contexts: Mapping[str, Any]) -> str:
    return re.sub(r"\$\{\{(.*?)\}\}", lambda of: str(value(of[1].strip(), contexts)), text)


def job(
    checkout: Path, temp: Path, github: GitHub, pull: Mapping[str, Any], **inputs: str
) -> tuple[int, str, str]:
    """The steps on a pull request: the status of the one that fails or 0, the log, the summary."""
    contexts: dict[str, Any] = {
        "inputs": {name: of["default"] for name, of in ACTION["inputs"].items()} | inputs,
        "github": {"event": {"pull_request": pull}, "token": "secret"},
        "runner": {"os": "Linux", "arch": "X64"},
        "steps": {},
    }
    contexts["inputs"]["token"] = filled(contexts["inputs"]["token"], contexts)
    temp.mkdir(exist_ok=True)
    files = {f"GITHUB_{of}": temp / of for of in ("ENV", "OUTPUT", "PATH", "STEP_SUMMARY")}
    for path in files.values():
        path.write_text("")
    # What the workbench needs is there already, so that nothing is fetched; also for `python -I`.
    there = next(of for of in sys.path if of.endswith("site-packages"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own_packages = temp / "rlox-opt" / "lib" / version / "site-packages"
    own_packages.mkdir(parents=True, exist_ok=True)
    (own_packages / "there.pth").write_text(f"{there}\n")
    variables = strangers.environment(
        PYTHONPATH=there, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        PIP_NO_INDEX="1", PIP_NO_DEPS="1", PIP_NO_BUILD_ISOLATION="0", GITHUB_ACTIONS="true",
        GITHUB_ACTION_PATH=str(ROOT), RUNNER_TEMP=str(temp), **github.variables,
        **{name: str(path) for name, path in files.items()},
    )  # fmt: skip
    del variables["GITHUB_TOKEN"]
    log = ""
    for step in STEPS:
        if "uses" in step or not value(step.get("if", "'always'"), contexts):
            continue
        own = {name: filled(str(of), contexts) for name, of in step.get("env", {}).items()}
        script = temp / "script.sh"
        script.write_text(step["run"])
        files["GITHUB_OUTPUT"].write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script], cwd=checkout,
            env=variables | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        log += done.stdout
        if done.returncode:
            return done.returncode, log, files["GITHUB_STEP_SUMMARY"].read_text()
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        outputs = dict(line.split("=", 1) for line in lines)
        contexts["steps"][step.get("id")] = {"outputs": outputs}
    return 0, log, files["GITHUB_STEP_SUMMARY"].read_text()


def test_a_base_that_is_not_there_is_told_as_branches_are_named(
    tmp_path: Path, github: GitHub
) -> None:
    small_projects.repository(tmp_path / "thing", {"a": "1\n"})
    code, log, _ = job(tmp_path / "thing", tmp_path / "temp", github, {}, base="trunk")
    assert code == 1
    assert "::error::rlox-opt: base is no commit that is checked out; " in log
    assert "name a branch as origin/NAME" in log


MEANT = """
[[acknowledged]]
benchmark = "work.*"
kind = "time"
ratio = 4
reason = "it checks its bounds now"
"""
SUITE = "import thing\n\n\ndef time_work():\n    thing.work(range(2000))\n"


@pytest.mark.slow
def test_pull_requests_of_a_strangers_project(tmp_path: Path, github: GitHub) -> None:
    """Slower fails, slower on purpose and faster pass; no comment is no failure."""
    root, remote = tmp_path / "thing", tmp_path / "remote.git"
    first = small_projects.own(strangers.thing(passes=10)) | {
        "asv.conf.json": strangers.ASV, "benchmarks/__init__.py": "", "benchmarks/work.py": SUITE,
    }  # fmt: skip
    small_projects.repository(root, first)
    slower = {"thing.py": strangers.thing(passes=20)}
    branches = {
        "slower": slower,
        "meant": slower | {".rlox-opt/acknowledged.toml": MEANT},
        "faster": {"thing.py": strangers.thing(passes=5)},
    }
    for branch, files in branches.items():
        small_projects.git(root, "checkout", "--quiet", "-b", branch, "main")
        small_projects.repository(root, files)
    small_projects.git(root, "checkout", "--quiet", "main")
    small_projects.repository(root, {"README.md": "main went on\n"})
    small_projects.git(root, "clone", "--quiet", "--bare", ".", str(remote))

    def opened(branch: str) -> tuple[int, str, str]:
        checkout = tmp_path / "checkout"
        if not checkout.exists():
            small_projects.git(tmp_path, "clone", "--quiet", str(remote), "checkout")
        small_projects.git(checkout, "checkout", "--quiet", f"origin/{branch}")
        shas = {of: small_projects.git(root, "rev-parse", of) for of in ("main", branch)}
        pull = {"number": 7, "base": {"sha": shas["main"]}, "head": {"sha": shas[branch]}}
        bench = "time_work$(touch injected)|time_work"
        done = job(checkout, tmp_path / "temp", github, pull, budget="20", bench=bench)
        assert not (checkout / "injected").exists()
        assert small_projects.git(checkout, "status", "--porcelain") == ""
        return done

    code, log, summary = opened("slower")
    assert code == 1, log
    assert "rlox-opt gate: regression: 1 slower or larger" in log
    assert "| `work.time_work` |" in summary
    assert [of["body"] for of in github.comments] == [f"{MARKER}\n{summary}"]

    code, log, summary = opened("meant")
    assert code == 0, log
    assert "| slower, acknowledged |" in summary
    assert "it checks its bounds now" in summary
    assert [of["body"] for of in github.comments] == [f"{MARKER}\n{summary}"]
    assert github.asked == ["GET", "POST", "GET", "PATCH"]

    github.refuses = 403
    code, log, summary = opened("faster")
    assert code == 0, log
    assert "| faster |" in summary
    assert "::warning::rlox-opt: the pull request got no comment (HTTP Error 403" in log
