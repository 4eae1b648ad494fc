"""The rivals in environments of their own, made from their locks: none is left out."""

import json
import subprocess
import sys

import projects
import pytest
from rlox_opt.race.primitives import cases

# The smallest of each family.
SMALL = (
    r"n=128$|vtrace/.*float64|tokens=128|groups=16|push/obs_dim=4$|push_batch/rows=8|sample/batch=32,"
    r"|per_sample|n_envs=8,n_steps=128,dtype=float64|env_step/n_envs=8$|rollout"
)


@pytest.mark.slow  # makes ten environments, which downloads
@pytest.mark.timeout(3600)
def test_every_rival_installs_and_computes_what_plain_numpy_does() -> None:
    words = ("peers", "primitives", "--runs", "1", "--no-record", "--json", "--case", SMALL)
    done = subprocess.run(
        [sys.executable, "-m", "rlox_opt.cli.main", *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["left_out"] == {}
    families, engines = cases.load(projects.HERE)
    assert {engine["name"] for engine in told["engines"]} == {engine.name for engine in engines}
    assert {case["family"] for case in told["cases"]} == {family.name for family in families}
