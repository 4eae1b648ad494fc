"""The history in asv's own format: asv reads and publishes it, and what `asv run` left is kept."""

import itertools
import json
import math
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv import util
from asv.benchmarks import Benchmarks
from asv.commands.publish import Publish
from asv.results import Results
from rlox_opt.history import store
from rlox_opt.history.store import Cell, Entry

from asv_bench import from_history, plugin

MACHINE = {"cpu": "Toy CPU", "cores": 2, "memory_gib": 4.0, "os": "Toy OS", "arch": "x86_64"}
GAE = "data_plane.GaeBatched.time_gae_batched"
CELLS = (
    Cell("data_plane.Gae.time_gae(128)", "time", 1e-6, 1.1, (1.0, 1.2), 5),
    Cell("data_plane.Gae.time_gae(128)", "criterion", 5e-7),
    Cell("data_plane.Gae.time_gae(128)", "instructions", 1200.0),
    Cell("data_plane.Gae.time_gae(128)", "allocations", 2.0),
    Cell(f"{GAE}((8, 128), 'step_major')", "time", 2e-6),
    Cell(f"{GAE}((256, 2048), 'env_major')", "time", 3e-3),
    Cell("memory.FullBuffer.peakmem_full_buffer('ReplayBuffer')", "peak_memory", 1.6e8),
    Cell("data_plane.Prioritized.time_sample_256", "time", 9e-6),
    Cell("train.ppo", "steps", 10_000.0),
)


def entry(commit: str, *cells: Cell, features: tuple[str, ...] = ("shipped",)) -> Entry:
    return Entry(
        commit=commit,
        parent=None,
        subject="subject",
        committed=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        date=datetime(2026, 5, 6, tzinfo=UTC),
        machine=MACHINE,
        toolchain={"python": "3.11.2"},
        profile="release",
        features=features,
        control={"commit": commit, "features": []},
        seconds=1.0,
        complete=True,
        cells=cells,
    )


def read(results: Path, commit: str, environment: str = "recorded-shipped") -> Results:
    return Results.load(str(results / "toy-2c" / f"{commit[:8]}-{environment}.json"), "toy-2c")


def value(of: Results, known: Benchmarks, name: str, *parameters: str) -> Any:
    """What asv reads of one benchmark at some parameters."""
    values = of.get_result_value(name, known[name]["params"])
    return dict(zip(itertools.product(*known[name]["params"]), values, strict=True))[parameters]


def benchmarks(results: Path) -> Benchmarks:
    return Benchmarks.load(SimpleNamespace(results_dir=str(results), benchmark_dir=""))


def test_asv_reads_every_number_under_its_name(tmp_path: Path) -> None:
    assert from_history.write([entry("a" * 40, *CELLS)], tmp_path) == 1
    of, known = read(tmp_path, "a" * 40), benchmarks(tmp_path)
    assert of.get_result_keys(known) == known.keys()
    assert value(of, known, "data_plane.Gae.time_gae", "128") == 1e-6
    assert value(of, known, "criterion.data_plane.Gae.time_gae", "128") == 5e-7
    assert value(of, known, "instructions.data_plane.Gae.time_gae", "128") == 1200
    assert value(of, known, "allocations.data_plane.Gae.time_gae", "128") == 2
    assert value(of, known, GAE, "(256, 2048)", "'env_major'") == 3e-3
    assert math.isnan(value(of, known, GAE, "(8, 128)", "'env_major'"))  # was not measured
    assert value(of, known, "memory.FullBuffer.peakmem_full_buffer", "'ReplayBuffer'") == 1.6e8
    assert value(of, known, "data_plane.Prioritized.time_sample_256") == 9e-6
    assert value(of, known, "train.ppo.seconds_per_step") == 1e-4
    units = {name: b["unit"] for name, b in known.items()}
    assert units["instructions.data_plane.Gae.time_gae"] == "instructions"
    assert units["train.ppo.seconds_per_step"] == "seconds"
    assert (of.commit_hash, of.params["features"], of.params["python"]) == (
        "a" * 40,
        "shipped",
        "3.11",
    )
    assert of.date == 1767323045000  # of the commit, in JavaScript's milliseconds


def test_what_asv_run_left_is_kept_with_its_versions(tmp_path: Path) -> None:
    theirs = {
        "data_plane.Gae.time_gae": {
            "name": "data_plane.Gae.time_gae", "type": "time", "unit": "seconds", "version": "abc",
            "params": [["2048"]], "param_names": ["n_steps"], "code": "def time_gae",
        },
        "boundary.time_it": {
            "name": "boundary.time_it", "type": "time", "unit": "seconds", "version": "def",
            "params": [], "param_names": [], "code": "def time_it",
        },
    }  # fmt: skip
    util.write_json(str(tmp_path / "benchmarks.json"), theirs, Benchmarks.api_version)
    from_history.write([entry("a" * 40, *CELLS)], tmp_path)
    of, known = read(tmp_path, "a" * 40), benchmarks(tmp_path)
    assert "boundary.time_it" in known
    assert known["data_plane.Gae.time_gae"]["param_names"] == ["n_steps"]
    assert known["data_plane.Gae.time_gae"]["version"] == "abc"
    assert value(of, known, "data_plane.Gae.time_gae", "128") == 1e-6
    assert math.isnan(value(of, known, "data_plane.Gae.time_gae", "2048"))


def test_made_anew_it_holds_what_the_store_holds_and_leaves_others_alone(tmp_path: Path) -> None:
    both = [entry("a" * 40, *CELLS), entry("b" * 40, *CELLS, features=())]
    assert from_history.write(both, tmp_path) == 2
    other = tmp_path / "toy-2c" / "aaaaaaaa-uv-py3.11.json"
    other.write_text("{}")
    again = entry("b" * 40, Cell("data_plane.Prioritized.time_sample_256", "time", 7e-6))
    assert from_history.write([again], tmp_path) == 1
    assert {path.name for path in (tmp_path / "toy-2c").iterdir()} == {
        "machine.json", "aaaaaaaa-uv-py3.11.json", "bbbbbbbb-recorded-shipped.json",
    }  # fmt: skip
    name = "data_plane.Prioritized.time_sample_256"
    assert value(read(tmp_path, "b" * 40), benchmarks(tmp_path), name) == 7e-6


def test_asv_publish_draws_it(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    who = ("-c", "user.name=a", "-c", "user.email=a@b")

    def git(*arguments: str) -> str:
        command = ["git", *who, *arguments]
        done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    made = []
    for number in range(3):
        git("commit", "--quiet", "--allow-empty", "-m", f"number {number}")
        made.append(git("rev-parse", "HEAD"))
    from_history.write((entry(commit, *CELLS) for commit in made), tmp_path / "results")
    config = {
        "version": 1, "project": "toy", "repo": str(repository), "branches": ["main"],
        "environment_type": "virtualenv", "benchmark_dir": str(tmp_path),
        "results_dir": str(tmp_path / "results"), "html_dir": str(tmp_path / "html"),
    }  # fmt: skip
    (tmp_path / "asv.conf.json").write_text(json.dumps(config))
    command = ["--config", str(tmp_path / "asv.conf.json"), "publish", "--no-pull"]
    done = subprocess.run([sys.executable, "-m", "asv", *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    drawn = [*(tmp_path / "html" / "graphs").rglob("instructions.data_plane.Gae.time_gae.json")]
    points = [json.loads(path.read_text()) for path in drawn if "features-shipped" in str(path)]
    assert points == [[[0, [1200.0]], [1, [1200.0]], [2, [1200.0]]]]
    index = json.loads((tmp_path / "html" / "index.json").read_text())
    assert {*index["revision_to_hash"].values()} == {*made}


@pytest.mark.parametrize("pages", [False, True])
def test_asv_publish_takes_the_store_in_and_leads_to_our_pages(
    pages: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = []

    def run(conf: Any, range_spec: Any = None, pull: bool = True) -> str:
        files = [path.name for path in Path(conf.results_dir).glob("*/*.json")]
        published.append((files, conf.project_url, conf.show_commit_url))
        (tmp_path / "html").mkdir()
        return "as ever"

    if pages:
        (tmp_path / "pages").mkdir()
        (tmp_path / "pages" / "commits.html").write_text("ours")
    monkeypatch.setattr(plugin, "PAGES", tmp_path / "pages")
    monkeypatch.setattr(Publish, "run", run)
    here = Path("somewhere.json"), entry("a" * 40, *CELLS)
    monkeypatch.setattr(store, "entries", lambda folder: iter([here]))
    plugin.publish_the_history()
    arguments = SimpleNamespace(html_dir=None, range=None, no_pull=True)
    folders = {"results_dir": str(tmp_path / "results"), "html_dir": str(tmp_path / "html")}
    conf = SimpleNamespace(**folders, project_url="#", show_commit_url="#")
    assert Publish.run_from_conf_args(conf, arguments) == "as ever"
    ((files, *links),) = published
    assert "aaaaaaaa-recorded-shipped.json" in files
    assert links == (["history/index.html", "history/commits.html#"] if pages else ["#", "#"])
    assert (tmp_path / "html" / "history" / "commits.html").exists() is pages


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a.time_it", ["a.time_it"]),
        ("a.time_it(128)", ["a.time_it", "128"]),
        ("a.time_it((8, 128), 'x')", ["a.time_it", "(8, 128)", "'x'"]),
        ("a.time_it('P5 s n=1,m=2', 'x')", ["a.time_it", "'P5 s n=1,m=2'", "'x'"]),
    ],
)
def test_names_are_split_as_asv_joined_them(name: str, parts: list[str]) -> None:
    assert from_history.split(name) == parts
