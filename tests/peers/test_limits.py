"""`rlox-opt peers limits` and `threads`: what is counted is right, and no reading is lost."""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import projects
import pytest
import torch
from rich.console import Console
from rlox_opt.cli import main as cli
from rlox_opt.project.installed import Installed
from rlox_opt.system.progress import Lines
from rlox_opt.views import html, markdown
from rlox_opt.views.markdown import table_lines
from torch.utils.flop_counter import FlopCounterMode

from peers import limits_page, limits_worker, readings

QUIET = Lines(Console(quiet=True))
PEERS = Path(limits_worker.__file__).parent
WORKER = """
import json, sys
if sys.argv[1] == "fails":
    sys.exit("no such luck")
print("a line of its own")
print(json.dumps({"took": len(sys.argv[1])}))
print("a library's last words", file=sys.stderr)
if sys.argv[1] == "sleeps":
    import time
    time.sleep(60)
"""
LIMIT = {"what": "limit", "case": "copies", "threads": 1, "unit": "bytes", "rate": 5e10}
OPERATION = {"what": "operation", "case": "<GAE>", "threads": 1, "by": "bytes", "amount": 1e6}


def test_the_exponentials_are_right() -> None:
    n = 2048
    x, y = limits_worker._arrays(n)
    x[:] = np.linspace(-80, 80, n)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y)]
    limits_worker._library().exponentials(*pointers, ctypes.c_int64(n), ctypes.c_int64(1))
    np.testing.assert_allclose(y, np.exp(x.astype(np.float64)), rtol=5e-7)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("by", ["FLOP", "exponentials", "bytes"])
def test_a_limit_says_how_much_it_does(by: str, threads: int) -> None:
    call, one = limits_worker.limit(by, threads, 1e6)
    call()
    assert one > 0
    assert limits_worker.limit(by, 2 * threads, 2e6)[1] == 2 * one, "twice as much on twice as many"


def test_the_operations_of_ppos_update_are_those_of_its_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted by torch, which takes no gradient of the observations either."""
    monkeypatch.syspath_prepend(PEERS)  # as for a script there
    obs = torch.randn(4096, 4)
    with FlopCounterMode(display=False) as counted:
        for n_out in (2, 1):
            layers = [torch.nn.Linear(4, 64), torch.nn.Linear(64, 64), torch.nn.Linear(64, n_out)]
            torch.nn.Sequential(*layers)(obs).sum().backward()
    assert limits_worker._ppo(1).amount == counted.get_total_flops()


def test_lesser_instructions_are_held_to_their_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLOX_INSTRUCTIONS", "portable")
    command = [sys.executable, PEERS / "limits_worker.py", "KL of 32 × 2,048 tokens, float32"]
    done = subprocess.run([*command, "1", "0.1"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["level"] == "portable"
    assert found["by"] == "exponentials"
    assert found["amount"] == 32 * 2048


@pytest.fixture
def contest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)
    monkeypatch.setattr(readings.racing, "home", lambda _: tmp_path)

    def made(*names: str) -> readings.Readings:
        cases = [{"case": name, "threads": 1} for name in names]
        return readings.Readings(projects.HERE, "readings", worker, cases, asked, summary)

    return made


def asked(case: Mapping[str, Any]) -> list[str]:
    return [case["case"], str(case["threads"])]


def summary(rows: Any) -> dict[str, Any]:
    return {"took": [row["took"] for row in rows]}


def test_a_case_that_fails_is_told_and_the_others_go_on(contest: Any) -> None:
    one = contest("fails", "abc")
    one.time(2, QUIET)
    assert one.left_out() == ["fails, 1 fails: no such luck"] * 2
    assert one.record()["table"] == [{"case": "abc", "threads": 1, "took": [3, 3]}]


def test_a_case_that_does_not_end_is_told(contest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "_LIMIT_S", 1.0)
    one = contest("sleeps")
    one.time(1, QUIET)
    (told,) = one.left_out()
    assert told.startswith("sleeps, 1 did not end within 1 s: ")
    assert not one.timed()


def test_a_compiler_that_knows_too_little_is_told_before_anything_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "cc"
    old.write_text("#!/bin/sh\necho 'cc: error: bad value for -march=' >&2\nexit 1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["peers", "limits", "--no-record"])
    said = capfd.readouterr().err
    assert "bad value for -march=" in said
    assert "cc does not compile limits.c" in said


def test_readings_with_other_instructions_are_not_taken_together(
    contest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    contest("ab").time(1, QUIET)
    assert contest("ab").timed()
    monkeypatch.setattr(Installed, "build_info", lambda _: {"instructions": "portable"})
    assert not contest("ab").timed()


def test_readings_that_are_kept_are_not_taken_again(contest: Any) -> None:
    contest("ab", "abc").time(1, QUIET)
    again = contest("ab", "abc", "abcd")
    assert again.kept() == "2 readings are kept"
    again.time(1, QUIET)
    assert [row["took"] for row in again.record()["readings"]].count(4) == 1
    assert len(again.record()["readings"]) == 3
    again.forget()
    assert not contest("ab").timed()


def test_the_page_tells_shares_and_what_a_cycle_does() -> None:
    found = {
        "table": [
            LIMIT | {"hertz": 2.5e9, "level": "avx2"},
            OPERATION | {"call_s": 1e-4, "share": 0.8, "ci95": [0.75, 0.85], "level": "avx2"},
        ],
        "left_out": ["one fails: no such luck"],
        "date": "2026-01-01T00:00:00Z",
        "commit": "0" * 40,
        "dirty": False,
        "machine": {"cpu": "one", "cores": 2},
        "build": {"profile": "release", "features": ["opt-p2"]},
    }
    assert "| copies | 1 | 50.0 GB/s | 20.0 | 2.50 GHz |" in table_lines(limits_page.limits(found))
    document = limits_page.document(found)
    for text in (markdown.text(document), html.page(document)):
        assert "80 % (75 – 85)" in text
        assert "10.0 GB" in text
        assert "no such luck" in text
        assert "products: avx2" in text
    assert "&lt;GAE&gt;" in html.page(document)
