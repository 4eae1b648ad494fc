"""What pip installs: built from the sources, it holds the library and the workbench and nothing
else, and works in a folder that is no checkout."""

import importlib.metadata
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TRAINS = """
import json, pathlib, sys
import numpy as np
import rlox
env = rlox.VecEnv("CartPole-v1", 2, seed=0)
env.reset()
for _ in range(100):
    obs, *_ = env.step(np.zeros(2, np.int64))
model = rlox.PPO("CartPole-v1", n_envs=2, n_steps=16, batch_size=16, seed=0).learn(64)
told = {"at": rlox.__file__, "steps": model.num_timesteps, "finite": bool(np.isfinite(obs).all())}
print(json.dumps(told | {"features": rlox.build_info()["features"]}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built with the tools of this environment, from the sources as they are."""
    folder = tmp_path_factory.mktemp("wheel")
    built = ("build", "--offline", "--wheel", "--no-build-isolation", "--out-dir", folder, ROOT)
    uv(*built, "--python", sys.executable)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pip would have put it into; what it needs is this environment's."""
    folder = tmp_path_factory.mktemp("installed")
    uv("pip", "install", "--offline", "--no-deps", "--python", sys.executable,
       "--target", folder, wheel)  # fmt: skip
    return folder


def uv(*words: object) -> None:
    command = [str(Path(sys.executable).with_name("uv")), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(installed: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(installed)}
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)


def tracked(*folders: str) -> Sequence[str]:
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return listed.stdout.splitlines()


@pytest.mark.slow  # compiles the extension as it ships
@pytest.mark.timeout(1200)
def test_it_holds_every_file_of_the_packages_the_extension_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as held:
        names = [name for name in held.namelist() if ".dist-info/" not in name]
        (metadata,) = [name for name in held.namelist() if name.endswith(".dist-info/METADATA")]
        about = importlib.metadata.PathDistribution(
            zipfile.Path(held, str(Path(metadata).parent) + "/")
        )
        assert about.metadata["Name"] == PROJECT["name"]
        assert set(about.metadata.get_all("Provides-Extra")) == {*PROJECT["optional-dependencies"]}
        starts = {of.name: of.value for of in about.entry_points}
    assert starts == PROJECT["scripts"]
    (extension,) = {*names} - {*tracked("rlox", "rlox_opt")}
    assert extension.startswith("rlox/_core.")
    assert {*tracked("rlox", "rlox_opt")} - {*names} == set()
    assert len(names) == len({*names})


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_it_trains_and_starts_where_there_is_no_checkout(installed: Path, tmp_path: Path) -> None:
    done = run(installed, sys.executable, "-c", TRAINS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert Path(told["at"]).is_relative_to(installed)
    assert (told["steps"], told["finite"]) == (64, True)
    core = tomllib.loads((ROOT / "crates/rlox-core/Cargo.toml").read_text())["features"]
    assert {*core["accepted"]} <= {*told["features"]}

    command = str(installed / "bin" / "rlox-opt")
    version = run(installed, command, "--version", cwd=tmp_path)
    assert version.stdout.startswith(f"rlox-opt {importlib.metadata.version('rlox-opt')} (release")
    (tmp_path / "program.py").write_text(
        "import time\nfrom rlox.timing import span\n"
        "for _ in range(20):\n    with span('turn'): time.sleep(0.01)\n"
    )
    words = ("profile", "program.py", "--sampler", "none", "--json", "--out", "report")
    profiled = run(installed, command, *words, cwd=tmp_path)
    assert profiled.returncode == 0, profiled.stderr
    phases = json.loads(profiled.stdout)["components"][0]["threads"][0]["phases"]
    assert [phase["name"] for phase in phases] == ["turn"]
    for words in (("list",), ("diff", "HEAD"), ("cmp", "p5"), ("regressions",)):
        done = run(installed, command, *words, cwd=tmp_path)
        assert done.returncode == 2, words
        assert done.stderr.count("\n") == 1, done.stderr
