"""The types that users read against the extension that they run."""

import subprocess
import sys
from pathlib import Path

import rlox._core


def test_the_stubs_are_those_of_the_binary(tmp_path: Path) -> None:
    # Without this, mypy reads everything that the package imports, Gymnasium included: five times
    # as long for the same answer.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nfollow_imports = skip\n[mypy-numpy.*]\nfollow_imports = normal\n")
    command = [sys.executable, "-m", "mypy.stubtest", "rlox._core", "--mypy-config-file", config]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_name_of_the_extension_says_what_it_does() -> None:
    names = [name for name in vars(rlox._core) if not name.startswith("_")]
    assert {"ReplayBuffer", "compute_gae"} <= set(names)
    assert not [name for name in names if not getattr(rlox._core, name).__doc__]
