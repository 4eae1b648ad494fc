"""What pip installs: the sdists of the library and of the workbench hold what they are built from,
the wheels built from them hold what they should and nothing else, and each works in an empty
environment in a folder that is no checkout, with what it declares and no more."""

import importlib.metadata
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import strangers
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
SOURCES = {"rlox-rl": ROOT, "rlox-opt": ROOT / "workbench"}
LIMIT_S = 1800  # compiles the extension as it ships
# What needs no torch: environments, both buffers, advantages.
WITHOUT_TORCH = """
import importlib.util, json
import numpy as np
import rlox
env = rlox.VecEnv("CartPole-v1", 2, seed=0)
buffer = rlox.ReplayBuffer(100, 4, 1, seed=0)
ranked = rlox.PrioritizedReplayBuffer(100, 4, 1, seed=0)
before, _ = env.reset()
for _ in range(50):
    actions = np.zeros(2, np.int64)
    after, rewards, ended, cut, _ = env.step(actions)
    stored = (before, after, actions[:, None].astype(np.float32), rewards.astype(np.float32))
    for each in (buffer, ranked):
        each.push_batch(*stored, ended, cut)
    before = after
ones = np.ones(3)
told = {"buffers": [len(buffer), len(ranked)], "sampled": len(buffer.sample(8)["obs"])}
told["advantages"] = rlox.compute_gae(ones, 0 * ones, 0 * ones, 0.0, 1.0, 1.0)[0].tolist()
told["finite"] = bool(np.isfinite(after).all())
told["torch"] = importlib.util.find_spec("torch") is not None
try:
    rlox.PPO
except ImportError as error:
    told["said"] = str(error)
print(json.dumps(told))
"""
TRAINS = """
import json
import rlox
model = rlox.PPO("CartPole-v1", n_envs=2, n_steps=16, batch_size=16, seed=0)
before = model.policy.state_dict()
before = {name: of.clone() for name, of in before.items()}
model.learn(64)
learned = [name for name, of in model.policy.state_dict().items() if (of != before[name]).any()]
told = {"at": rlox.__file__, "steps": model.num_timesteps, "learned": len(learned)}
print(json.dumps(told | {"of": len(before), "features": rlox.build_info()["features"]}))
"""


def run(*words: object, cwd: Path = ROOT, **more: str) -> str:
    """What a command prints; the variables of this process's environment stay outside, but for
    where packages come from."""
    kept = {
        name: of
        for name, of in os.environ.items()
        if name.startswith(("PIP_", "UV_", "CARGO_", "RUSTUP_", "SSL_")) or name.endswith("_proxy")
    }
    env = kept | {"HOME": str(Path.home()), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"} | more
    done = subprocess.run(
        [*map(str, words)], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


def uv(*words: object) -> None:
    run(BIN / "uv", *words)


@dataclass(frozen=True)
class Environment:
    """A new one, in a folder of its own beside which nothing lies."""

    folder: Path

    @classmethod
    def made(cls, folder: Path, *what: object) -> "Environment":
        """With what pip is told to install, and what that declares. Versions are those of the lock,
        which are at hand."""
        locked = (ROOT / "requirements.lock").read_text(encoding="utf-8")
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(re.findall(r"^[\w.-]+==[^\\\n]+", locked, re.M)))
        uv("venv", "--quiet", "--python", sys.executable, folder / "environment")
        python = folder / "environment" / "bin" / "python"
        uv("pip", "install", "--quiet", "--python", python, "--constraint", constraints, *what)
        return cls(folder)

    def __call__(self, program: str, *words: object, cwd: Path | None = None) -> str:
        """What one of its programs prints."""
        own = self.folder / "environment" / "bin"
        path = os.pathsep.join([str(own), "/usr/local/bin", "/usr/bin", "/bin"])
        return run(own / program, *words, cwd=cwd or self.folder, PATH=path)

    def holds(self) -> set[str]:
        """The distributions in it."""
        listed = run(BIN / "uv", "pip", "list", "--format", "json", "--python",
                     self.folder / "environment" / "bin" / "python")  # fmt: skip
        return {of["name"].lower().replace("_", "-") for of in json.loads(listed)}


@pytest.fixture(scope="module")
def sdists(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of both distributions, made with the tools of this environment from the sources as they
    are."""
    found = {}
    for name, source in SOURCES.items():
        folder = tmp_path_factory.mktemp("sdist")
        built = ("build", "--offline", "--sdist", "--no-build-isolation", "--out-dir", folder)
        uv(*built, source, "--python", sys.executable)
        (found[name],) = folder.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def unpacked(sdists: dict[str, Path]) -> dict[str, Path]:
    """The folders of the sdists; always the same ones, so that cargo's cache does not grow."""
    folders = {}
    for name, sdist in sdists.items():
        whole = ROOT / "target" / "sdist" / name
        shutil.rmtree(whole, ignore_errors=True)
        with tarfile.open(sdist) as held:
            held.extractall(whole, filter="data")
        (folders[name],) = whole.iterdir()
    return folders


def packed(source: Path, folder: Path, **more: str) -> Path:
    """The wheel that pip would build from an sdist's folder."""
    uv_build = (BIN / "uv", "build", "--offline", "--wheel", "--no-build-isolation")
    run(*uv_build, "--out-dir", folder, source, "--python", sys.executable, **more)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def workbench(unpacked: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workbench's wheel, built from its sdist."""
    return packed(unpacked["rlox-opt"], tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def library(unpacked: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library's wheel, built from its sdist by maturin, as a release does, which refuses a
    wheel that is not manylinux. Compiles the extension as it ships. Without --locked: the lock also
    names crates for development, which the sdist does not hold, and cargo would take them out."""
    folder = tmp_path_factory.mktemp("wheel")
    run(BIN / "maturin", "build", "--release", "--offline", "--auditwheel", "check",
        "--interpreter", sys.executable, "--out", folder,
        cwd=unpacked["rlox-rl"], CARGO_TARGET_DIR=str(ROOT / "target"))  # fmt: skip
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture
def wheel(name: str, request: pytest.FixtureRequest) -> Path:
    """That of the distribution `name`, so that what tests the workbench alone compiles nothing."""
    found: Path = request.getfixturevalue({"rlox-rl": "library", "rlox-opt": "workbench"}[name])
    return found


def tracked(root: Path, folder: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", folder], cwd=root, capture_output=True, text=True, check=True
    )
    return {*listed.stdout.splitlines()}


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize(
    ("name", "package", "more"),
    [("rlox-rl", "rlox", ["rlox/_core."]), ("rlox-opt", "rlox_opt", [])],
)
def test_it_holds_every_file_of_its_package_and_nothing_else(
    wheel: Path, name: str, package: str, more: list[str]
) -> None:
    project = tomllib.loads((SOURCES[name] / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(wheel) as held:
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
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", SOURCES)
def test_both_say_by_which_licence(sdists: dict[str, Path], wheel: Path, name: str) -> None:
    licence = (ROOT / "LICENSE").read_bytes()
    with zipfile.ZipFile(wheel) as held:
        (path,) = [path for path in held.namelist() if path.endswith(".dist-info/licenses/LICENSE")]
        assert held.read(path) == licence
    with tarfile.open(sdists[name]) as held_too:
        (of,) = [
            of
            for of in held_too.getmembers()
            if of.name.count("/") == 1 and of.name.endswith("LICENSE")
        ]
        found = held_too.extractfile(of)
        assert found
        assert found.read() == licence


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_pip_builds_the_librarys_sdist(
    unpacked: dict[str, Path], library: Path, tmp_path: Path
) -> None:
    """By its back-end, where there is no wheel for a machine. What it needs compiled is there."""
    built = packed(unpacked["rlox-rl"], tmp_path, CARGO_TARGET_DIR=str(ROOT / "target"))
    with zipfile.ZipFile(built) as one, zipfile.ZipFile(library) as other:
        assert {*one.namelist()} == {*other.namelist()}


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_the_extension_needs_no_newer_glibc_than_its_wheel_says(library: Path) -> None:
    """And nothing besides glibc: pip then takes the wheel only where it can be loaded."""
    tag = re.search(r"manylinux_2_(\d+)_x86_64", library.name)
    assert tag, library.name
    with zipfile.ZipFile(library) as held:
        (path,) = [name for name in held.namelist() if name.endswith(".so")]
        elf = ELFFile(io.BytesIO(held.read(path)))
    needed: dict[str, list[str]] = {}
    section = elf.get_section_by_name(".gnu.version_r")
    assert isinstance(section, GNUVerNeedSection)
    for library, versions in section.iter_versions():
        needed[library.name] = [version.name for version in versions]
    of_glibc = [
        int(version.removeprefix("GLIBC_2.").partition(".")[0])
        for versions in needed.values()
        for version in versions
        if version.startswith("GLIBC_2.")
    ]
    assert 0 < max(of_glibc) <= int(tag[1]), needed
    own = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libpthread.so.0"}
    assert needed.keys() <= own | {"libdl.so.2"}


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_the_library_without_extras_steps_stores_and_computes(
    library: Path, tmp_path: Path
) -> None:
    made = Environment.made(tmp_path, library)
    told = json.loads(made("python", "-c", WITHOUT_TORCH))
    assert told == {
        "buffers": [100, 100], "sampled": 8, "advantages": [3.0, 2.0, 1.0], "finite": True,
        "torch": False, "said": "rlox.PPO needs torch: pip install 'rlox-rl[train]'",
    }  # fmt: skip
    assert {"torch", "rich", "rlox-opt", "tensorboard"}.isdisjoint(made.holds())


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_the_library_with_its_extra_trains(library: Path, tmp_path: Path) -> None:
    made = Environment.made(tmp_path, f"{library}[train]")
    told = json.loads(made("python", "-c", TRAINS))
    assert Path(told["at"]).is_relative_to(tmp_path)
    assert (told["steps"], told["learned"]) == (64, told["of"])
    core = tomllib.loads((ROOT / "crates/rlox-core/Cargo.toml").read_text())["features"]
    assert {*core["accepted"]} <= {*told["features"]}


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_the_workbench_alone_gives_a_verdict_on_a_project_of_strangers(
    workbench: Path, tmp_path: Path
) -> None:
    made = Environment.made(tmp_path, workbench)
    assert {"scalene", "torch", "rlox-rl", "gymnasium"}.isdisjoint(made.holds())
    version = importlib.metadata.version("rlox-opt")
    assert made("rlox-opt", "--version") == f"rlox-opt {version}\n"
    assert made("rlox-opt", "--help").startswith("usage: rlox-opt ")
    root = tmp_path / "thing"
    commits = strangers.project(root)
    slower = commits[strangers.SLOWER]
    found = made("rlox-opt", "diff", f"{slower}~1", slower, "--bench", "time_work", "--budget",
                 "20", "--no-counts", "--json", cwd=root)  # fmt: skip
    verdicts = {of["benchmark"]: of["verdict"] for of in json.loads(found)["results"]}
    assert verdicts
    assert {*verdicts.values()} == {"slower"}, verdicts


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_the_workbench_with_its_extra_has_scalene_and_profiles_a_program(
    workbench: Path, tmp_path: Path
) -> None:
    made = Environment.made(tmp_path, f"{workbench}[profile]")
    (tmp_path / "program.py").write_text("total = 0\nfor n in range(40_000_000):\n    total += n\n")
    made("rlox-opt", "profile", "program.py", "--json", "--out", "report")
    report = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "program.py" in report
    assert "scalene" in made.holds()


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_the_workbench_says_in_a_line_what_it_lacks_where_there_is_no_project(
    workbench: Path, tmp_path: Path
) -> None:
    made = Environment.made(tmp_path, workbench)
    (tmp_path / "empty").mkdir()
    for words in (("list",), ("diff", "HEAD"), ("cmp", "p5"), ("regressions",)):
        done = subprocess.run(
            [made.folder / "environment" / "bin" / "rlox-opt", *words], cwd=tmp_path / "empty",
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 2, words
        assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_the_workbenchs_own_tests_pass_where_only_the_workbench_is_installed(
    workbench: Path, tmp_path: Path
) -> None:
    """In a new environment: the wheel, what it declares, and what runs its tests. No compiler is on
    PATH. The tests are some of its folders, which take a minute; all take five."""
    python = tmp_path / "environment" / "bin" / "python"
    uv("venv", "--python", sys.executable, tmp_path / "environment")
    tools = ("pytest>=8.4", "pytest-timeout>=2.4", "pytest-xdist>=3.8", "hypothesis>=6.150")
    uv("pip", "install", "--python", python, workbench, *tools)
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
