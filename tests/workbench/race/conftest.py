"""Made-up engines: real processes and the real server, but nothing to install."""

import shutil
from pathlib import Path

import projects
import pytest
from rlox_opt.race.primitives import cases

# GAE as `form` says: right, slow, compiled by its first call, wrong, crashing, not there, or there
# from the second start on.
FAKES = """
import os, time
from functools import partial
from pathlib import Path
import inputs
import numpy as np
from arm import FORM, function

if FORM == "broken":
    raise ImportError("no such library")
if FORM == "second":
    started = Path(__file__).with_name("started")
    if not started.exists():
        started.touch()
        raise ImportError("no room yet")

compiled = FORM != "compiles"

def scan(rewards, values, dones, last):
    global compiled
    if not compiled:
        time.sleep(0.2)
        compiled = True
    advantages, carried, following = np.zeros_like(rewards), 0.0, last
    for t in reversed(range(len(rewards))):
        alive = 1.0 - dones[t]
        delta = rewards[t] + inputs.GAMMA * following * alive - values[t]
        advantages[t] = carried = delta + inputs.GAMMA * inputs.GAE_LAMBDA * alive * carried
        following = values[t]
    if FORM == "slow":
        time.sleep(0.002)
    if FORM == "wrong":
        advantages[0] += 1e-5
    return advantages, advantages + values

if FORM != "lacks":
    def gae(n):
        if FORM == "crashes":
            os._exit(3)
        return function(partial(scan, *inputs.rollout(n)), "advantages", "returns")
"""
TOML = """
[[family]]
name = "gae"
what = "GAE of one trajectory"
p99 = true
cases = [{ n = 8 }, { n = 32 }]
pictures = [{ axis = "n", label = "steps" }]
growth = { axis = "n", from = 1, to = 100, touched = 40 }
"""
ENGINE = """
[[engine]]
name = "{name}"
what = "{name}, made up"
module = "fakes"
form = "{form}"
ours = {ours}
control = {control}
"""


def engine(name: str, form: str, ours: bool = False, control: bool = False) -> str:
    """An entry of primitives.toml."""
    flags = {"ours": str(ours).lower(), "control": str(control).lower()}
    return ENGINE.format(name=name, form=form, **flags)


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two engines of ours, one slower, and four that fail in different ways."""
    folder = tmp_path / "primitives"
    folder.mkdir()
    for name in ("serve.py", "arm.py", "inputs.py", "equations.py", "checks.py", "networks.py"):
        shutil.copy(cases.folder(projects.HERE) / name, folder)
    (folder / "fakes.py").write_text(FAKES)
    engines = [
        engine("rlox", "right", ours=True),
        engine("slow", "slow", control=True),
        engine("wrong", "wrong"),
        engine("crashes", "crashes"),
        engine("broken", "broken"),
        engine("lacks", "lacks"),
    ]
    (folder / "primitives.toml").write_text(TOML + "".join(engines))
    monkeypatch.chdir(projects.described(tmp_path, peers=".", cache="cache"))
    return tmp_path
