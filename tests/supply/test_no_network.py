"""Nothing asks for a network when it runs: it all works where there is none, and nobody tries."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toy_entries import history, written

ROOT = Path(__file__).parents[2]
WATCHED = Path(__file__).with_name("watched")
_ALONE = next(
    (
        words
        for words in (["unshare", "-rn"], ["unshare", "-n"])
        if shutil.which("unshare")
        and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    ),
    [],
)
without_a_network = pytest.mark.skipif(
    not _ALONE, reason="no network namespace can be made here (unshare -rn)"
)
# Command lines, one after the other, each in a list of its words.
RLOX_OPT = """
import json, sys
from rlox_opt.cli.main import main
for words in json.loads(sys.argv[1]):
    code = main(words)
    assert not code, (words, code)
"""


def run(folder: Path, program: str, *words: str) -> str:
    """What a Python program prints that has no network, and does not try to have one."""
    noted = folder / "tried to connect"
    path = os.pathsep.join([str(WATCHED), str(ROOT)])
    done = subprocess.run(
        [*_ALONE, sys.executable, "-c", program, *words],
        cwd=ROOT,  # where the cards are
        env=os.environ | {"PYTHONPATH": path, "RLOX_WATCHED": str(noted)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not noted.exists(), noted.read_text()
    return done.stdout


@without_a_network
def test_training_needs_no_network(tmp_path: Path) -> None:
    program = """
import rlox
model = rlox.PPO("CartPole-v1", n_envs=2, n_steps=32, batch_size=64, seed=0).learn(64)
print(model.num_timesteps)
"""
    assert run(tmp_path, program) == "64\n"


@without_a_network
def test_verbs_need_no_network(tmp_path: Path) -> None:
    store = written(history({}, 3), tmp_path / "history")
    script = tmp_path / "script.py"
    script.write_text("sum(range(1_000_000))\n")
    asked = [
        ("list",),
        ("publish", str(tmp_path / "pages"), "--history", str(store)),
        ("profile", str(script), "--sampler", "none", "--out", str(tmp_path / "profile")),
    ]
    printed = run(tmp_path, RLOX_OPT, json.dumps(asked))
    for told in ("optimisations;", "3 commits", "script.py"):
        assert told in printed


def test_an_attempt_to_connect_would_be_noted(tmp_path: Path) -> None:
    program = """
import socket
for host in ("127.0.0.1", "192.0.2.1"):  # the second is nobody's
    try:
        socket.create_connection((host, 9), timeout=0.1)
    except OSError:
        pass
"""
    with pytest.raises(AssertionError, match=r"192\.0\.2\.1"):
        run(tmp_path, program)
