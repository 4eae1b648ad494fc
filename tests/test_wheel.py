"""What pip installs: the wheels of the library and of the workbench, built from the sources, hold
what they should and nothing else, and work in a folder that is no checkout."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = {"rlox-rl": ROOT, "rlox-opt": ROOT / "workbench"}
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
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of both distributions, built with the tools of this environment from the sources as they
    are."""
    found = {}
    for name, source in SOURCES.items():
        folder = tmp_path_factory.mktemp("wheel")
        built = ("build", "--offline", "--wheel", "--no-build-isolation", "--out-dir", folder)
        uv(*built, source, "--python", sys.executable)
        (found[name],) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders that pip would have put them into, each alone; what they need is this
    environment's."""
    folders = {}
    for name, wheel in wheels.items():
        folders[name] = tmp_path_factory.mktemp("installed")
        uv("pip", "install", "--offline", "--no-deps", "--python", sys.executable,
           "--target", folders[name], wheel)  # fmt: skip
    return folders


def uv(*words: object) -> None:
    command = [str(Path(sys.executable).with_name("uv")), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(installed: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(installed)}
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)


def tracked(root: Path, folder: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", folder], cwd=root, capture_output=True, text=True, check=True
    )
    return {*listed.stdout.splitlines()}


@pytest.mark.slow  # compiles the extension as it ships
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("name", "package", "more"),
    [("rlox-rl", "rlox", ["rlox/_core."]), ("rlox-opt", "rlox_opt", [])],
)
def test_it_holds_every_file_of_its_package_and_nothing_else(
    wheels: dict[str, Path], name: str, package: str, more: list[str]
) -> None:
    project = tomllib.loads((SOURCES[name] / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(wheels[name]) as held:
        names = [name for name in held.namelist() if ".dist-info/" not in name]
        (metadata,) = [name for name in held.namelist() if name.endswith(".dist-info/METADATA")]
        about = importlib.metadata.PathDistribution(
            zipfile.Path(held, str(Path(metadata).parent) + "/")
        )
        assert about.metadata["Name"] == name
        extras = about.metadata.get_all("Provides-Extra")
        assert {*extras} == {*project["optional-dependencies"]}
        starts = {of.name: of.value for of in about.entry_points}
    assert starts == project.get("scripts", {})
    files = tracked(SOURCES[name], package)
    assert [of[: of.index(".") + 1] for of in {*names} - files] == more
    assert files - {*names} == set()
    assert len(names) == len({*names})


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_library_trains_where_there_is_no_checkout(
    installed: dict[str, Path], tmp_path: Path
) -> None:
    folder = installed["rlox-rl"]
    done = run(folder, sys.executable, "-c", TRAINS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert Path(told["at"]).is_relative_to(folder)
    assert (told["steps"], told["finite"]) == (64, True)
    core = tomllib.loads((ROOT / "crates/rlox-core/Cargo.toml").read_text())["features"]
    assert {*core["accepted"]} <= {*told["features"]}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_workbench_starts_without_the_library_where_there_is_no_checkout(
    installed: dict[str, Path], tmp_path: Path
) -> None:
    folder = installed["rlox-opt"]
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['rlox'] = None\n")

    def rlox_opt(*words: str) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(folder)])}
        command = [str(folder / "bin" / "rlox-opt"), *words]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)

    version = importlib.metadata.version("rlox-opt")
    assert rlox_opt("--version").stdout == f"rlox-opt {version}\n"
    (tmp_path / "program.py").write_text("import time\ntime.sleep(0.2)\n")
    done = rlox_opt("profile", "program.py", "--sampler", "none", "--json", "--out", "report")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == 0
    for words in (("list",), ("diff", "HEAD"), ("cmp", "p5"), ("regressions",)):
        done = rlox_opt(*words)
        assert done.returncode == 2, words
        assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_workbenchs_own_tests_pass_where_only_the_workbench_is_installed(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    """In a new environment: the wheel, what it declares, and what runs its tests. No compiler is on
    PATH. The tests are some of its folders, which take a minute; all take five."""
    python = tmp_path / "environment" / "bin" / "python"
    uv("venv", "--python", sys.executable, tmp_path / "environment")
    tools = ("pytest>=8.4", "pytest-timeout>=2.4", "pytest-xdist>=3.8", "hypothesis>=6.150")
    uv("pip", "install", "--python", python, wheels["rlox-opt"], *tools)
    shutil.copytree(SOURCES["rlox-opt"] / "tests", tmp_path / "tests")
    shutil.copy(SOURCES["rlox-opt"] / "pyproject.toml", tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    compilers = re.compile(r"cc|[cg]\+\+|.*(gcc|g\+\+|clang|rustc|cargo).*")
    (programs / "git").symlink_to(str(shutil.which("git")))  # the one that all tests take
    for program in Path("/usr/bin").iterdir():
        if program.name != "git" and not compilers.fullmatch(program.name):
            (programs / program.name).symlink_to(program)
    env = {"HOME": str(tmp_path), "LANG": "C.UTF-8", "PATH": str(programs)}
    wanted = ("rlox", "torch", "gymnasium")
    asked = [python, "-c", f"import importlib.util as of; print([*filter(of.find_spec, {wanted})])"]
    assert subprocess.check_output(asked, cwd=tmp_path, env=env, text=True) == "[]\n"
    parts = [f"tests/{part}" for part in ("stats", "history", "project", "cli/test_exits.py")]
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *parts],
        cwd=tmp_path, env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
