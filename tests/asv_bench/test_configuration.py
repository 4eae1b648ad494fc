"""asv.conf.json: what is typed at the root works from a fresh `make setup`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from asv.util import load_json
from rlox_opt.system.machine import machine, slug

ROOT = Path(__file__).parents[2]


def configuration(name: str) -> dict[str, Any]:
    return dict(load_json(str(ROOT / name), js_comments=True))


def test_its_pins_are_those_of_the_lock() -> None:
    lock = (ROOT / "requirements-dev.lock").read_text()
    for name, (version,) in configuration("asv.trainers.conf.json")["matrix"]["req"].items():
        assert re.search(rf"^{name}=={re.escape(version)}\b", lock, re.MULTILINE), name


def test_the_trainers_have_the_same_with_torch() -> None:
    plain, trainers = configuration("asv.conf.json"), configuration("asv.trainers.conf.json")
    del plain["matrix"]["env"], trainers["matrix"]["req"]["torch"]
    assert trainers == plain


def test_nothing_is_asked_for_before_the_first_run(tmp_path: Path) -> None:
    # A PATH without uv, and a home in which `asv machine` was never run.
    program = """
import json, os, sys
sys.path.insert(0, "asv_bench")
import plugin
plugin.setup()
from asv.machine import Machine
from asv.util import which
print(json.dumps([which("uv"), Machine.load().machine, "MATURIN_PEP517_ARGS" in os.environ]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"PATH": os.defpath, "HOME": str(tmp_path), "MATURIN_PEP517_ARGS": "--features="},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    uv, name, inherited = json.loads(done.stdout)
    assert Path(uv) == Path(sys.executable).parent / "uv"
    assert name == slug(machine())
    assert not inherited
    assert (tmp_path / ".asv-machine.json").exists()
