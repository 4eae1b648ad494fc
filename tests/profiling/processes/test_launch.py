"""Starting a program under the recorder: its gate, and Ctrl-C."""

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlox.profiling.processes.launch import Options, launch, not_interrupted
from rlox.profiling.processes.run import keys

SILENT: Any = SimpleNamespace(note=lambda *_: None)


def test_a_script_may_start_python_more_than_once(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\n"{sys.executable}" -c pass\nexec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    outcome = launch([str(script), "-c", "pass"], tmp_path / "run", Options(), None, SILENT)
    assert (outcome.status, outcome.interrupted) == (0, False)
    assert len(keys(tmp_path / "run")) == 2


def test_a_second_ctrl_c_does_not_lose_what_the_first_one_kept() -> None:
    with not_interrupted():
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
