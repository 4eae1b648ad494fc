"""Whatever the extension is called with, an ordinary exception comes out, or a result."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import valid_sequences
from hostile import Hostile
from rlox_opt.system import plugins
from surface import surface

from rlox import _core

needs_limits = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no limits here")


@needs_limits
@pytest.mark.parametrize(
    ("count", "options"),
    [
        (3_000, []),
        (3_000, ["--threads", "3"]),
        (1_500, ["--forks", "8"]),
        (1_500, ["--threads", "3", "--forks", "6"]),
    ],
    ids=["alone", "threads", "forks", "both"],
)
def test_hostile_calls_end_in_exceptions(count: int, options: list[str]) -> None:
    program = [sys.executable, str(Path(__file__).with_name("hostile.py"))]
    done = subprocess.run(
        [*program, "--count", str(count), "--seed", "1", *options],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "RUST_BACKTRACE": "1"},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-2000:]
    found = json.loads(done.stdout)
    assert found["counts"]["calls"] >= count and not found["fatal"]
    returned = sum(n for name, n in found["counts"].items() if name.endswith(" returned"))
    assert count / 4 < returned < count, "most calls are meant to come far"


def test_every_function_and_method_is_called_and_comes_back() -> None:
    hostile, returned = Hostile(0), set[str]()
    while len(returned) < len(surface()) and hostile.counts["calls"] < 200_000:
        for _ in range(100):
            hostile.one()
        returned = {
            name.removesuffix(" returned") for name in hostile.counts if " returned" in name
        }
    assert not hostile.fatal
    assert returned == surface()


def test_the_surface_is_what_the_module_exports() -> None:
    names = {name.partition(".")[0] for name in surface()}
    assert names == {*_core.__all__} | {"pairs"}


@pytest.mark.parametrize(
    ("life", "breaks"),
    [
        ("several_of_advantages", "compute_gae"),
        ("several_of_advantages", "compute_token_kl"),
        ("several_of_a_buffer", "transitions"),
        ("several_of_collectors", "state"),
    ],
)
def test_a_result_that_is_not_the_expected_one_is_a_fault(
    life: str, breaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expected result is broken here, since the extension itself works."""
    hostile = Hostile(0)
    if breaks == "transitions":
        monkeypatch.setattr(hostile, breaks, lambda start, n, dims, dtype: (
            right := valid_sequences.Sequences.transitions(hostile, start, n, dims, dtype),
            right[3].__iadd__(1) if n > 1 else None,
        )[0])  # fmt: skip
    elif breaks == "state":
        monkeypatch.setattr(hostile, "environments", lambda n: (
            [_core.VecEnv("CartPole-v1", n, seed) for seed in (0, 1)], lambda: None
        ))  # fmt: skip
    else:
        right = getattr(valid_sequences.reference, breaks)
        wrong: Any = lambda *a: (  # noqa: E731
            right(*a) + 1 if breaks == "compute_token_kl" else tuple(x + 1 for x in right(*a))
        )
        monkeypatch.setattr(valid_sequences.reference, breaks, wrong)
    for _ in range(30):
        getattr(hostile, life)()
    assert hostile.fatal and "AssertionError" in hostile.fatal[0]


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`make hostile`, with records in the test's own folder and small batches."""
    module = plugins.load(Path(__file__).with_name("__main__.py"))
    monkeypatch.setattr(module, "RECORDS", tmp_path / "record")
    monkeypatch.setattr(module, "OF_A_BATCH", 500)
    return module


def recorded(campaign: Any) -> dict[str, Any]:
    (path,) = campaign.RECORDS.glob("*/*_hostile.json")
    record: dict[str, Any] = json.loads(path.read_text())
    assert path.with_suffix(".md").read_text() == campaign.table(record)
    return record


@needs_limits
def test_a_campaign_is_recorded_by_function_and_by_outcome(
    campaign: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert campaign.main(["--calls", "900", "--seed", "2", "--processes", "2", "--json"]) in (0, 1)
    record = recorded(campaign)
    assert json.loads(capsys.readouterr().out) == record
    assert (record["complete"], record["seeds"], record["faults"]) == (True, [2, 3], [])
    assert record["calls"] >= 900
    counts: Counter[str] = sum(map(Counter, record["functions"].values()), Counter())
    assert sum(counts.values()) == record["calls"]
    assert record["functions"]["VecEnv.step"]["returned"] > 0
    assert record["build"] == _core.build_info()


@needs_limits
def test_a_fault_is_told_with_the_command_that_repeats_it(
    campaign: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "hostile.py").write_text("import os\nos.abort()\n")
    monkeypatch.setattr(campaign, "HERE", tmp_path)
    assert campaign.main(["--calls", "500", "--seed", "7"]) == campaign.FAILED
    (fault,) = recorded(campaign)["faults"]
    assert fault.startswith("ended by SIGABRT")
    assert fault.endswith("tests/boundary/hostile.py --seed 7 --count 500 --threads 3 --forks 0]")
    assert fault in capsys.readouterr().err


@needs_limits
def test_ctrl_c_keeps_what_is_known_and_ends_what_runs(
    campaign: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
import json, os, sys, time
open({!r}, "a").write(f"{{os.getpid()}}\\n")
if sys.argv[sys.argv.index("--seed") + 1] != "0":
    time.sleep(60)
print(json.dumps({{"counts": {{"calls": 500, "VecEnv returned": 500}}, "fatal": []}}))
"""
    pids = tmp_path / "pids"
    (tmp_path / "hostile.py").write_text(program.format(str(pids)))
    monkeypatch.setattr(campaign, "HERE", tmp_path)
    tell, known = campaign._tell, threading.Event()

    def told(line: str) -> None:  # here of a batch that is done, or of the record
        known.set()
        tell(line)

    monkeypatch.setattr(campaign, "_tell", told)
    monkeypatch.setattr(campaign, "_TOLD_EVERY_S", -1.0)

    def interrupt() -> None:
        known.wait()
        while not pids.exists() or len(pids.read_text().splitlines()) < 2:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    assert campaign.main(["--calls", "1000", "--processes", "1"]) == campaign.INTERRUPTED
    record = recorded(campaign)
    assert (record["complete"], record["seeds"], record["calls"]) == (False, [0], 500)
    for pid in map(int, pids.read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
