"""A recorder that fails stops no program."""

import subprocess
import sys
from pathlib import Path

from recorded import calls, environment
from rlox_opt.sampling.processes.run import read_run


def complaining(program: Path) -> subprocess.CompletedProcess[str]:
    """A program that ends well, recorded in its folder, though the recorder may complain."""
    return subprocess.run(
        [sys.executable, str(program)],
        env=environment(program.parent),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def test_what_the_recorder_fails_at_is_said_once_and_the_rest_is_recorded(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import time\n"
        "import rlox_opt_recorder\n"
        "from rlox.timing import span\n"
        "recorder = rlox_opt_recorder.active()\n"
        "news, failed = recorder._news, []\n"
        "def fail():\n"
        "    failed.append(1)\n"
        "    raise RecursionError('too deep')\n"
        "recorder._news = fail\n"
        "while len(failed) < 2: time.sleep(0.01)\n"
        "recorder._news = news\n"
        "with span('after'): pass\n"
        "print(42)\n"
    )
    done = complaining(program)
    assert done.stdout == "42\n"
    assert done.stderr.count("rlox-opt: ") == 1
    assert "is not recorded: RecursionError('too deep')" in done.stderr
    (tmp_path / "run.json").write_text('{"schema": 1, "clock": [0, 0, 0]}')
    (process,) = read_run(tmp_path).processes
    assert calls(process) == {("MainThread", "after"): 1}
