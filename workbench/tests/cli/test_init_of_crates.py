"""What `rlox-opt init` and `diff` say of a project in Rust, before anything is compiled."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from asv_projects import PYPROJECT
from command_line import rlox_opt
from small_projects import repository

from rlox_opt.cli.sides import builds_for
from rlox_opt.project.project import Project

SOURCE = """
use criterion::{criterion_group, criterion_main, Criterion};
fn all(c: &mut Criterion) { c.bench_function("one", |b| b.iter(|| 1)); }
criterion_group!(benches, all);
criterion_main!(benches);
"""
CRATE = """
[package]
name = "a-thing"
version = "1.0.0"
[dev-dependencies]
criterion = "0.5"
[[bench]]
name = "sums"
harness = false
"""
FILES = {
    "Cargo.toml": CRATE,
    "src/lib.rs": "",
    "benches/sums.rs": SOURCE,
    "benches/old.rs": "#[bench] fn old(b: &mut Bencher) {}",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "a crate"
    repository(folder, FILES, {**FILES, "src/lib.rs": "pub fn more() {}"})
    monkeypatch.chdir(folder / "src")
    return folder


def test_a_crate_is_found_with_its_benches_and_the_command_to_run(here: Path) -> None:
    done = rlox_opt("init")
    lines = {line[:13].strip(): line[13:] for line in done.stdout.splitlines()}
    assert lines["project"] == str(here)
    assert lines["package"] == "a_thing  (Cargo.toml, [package] name)"
    assert lines["build"] == "cargo bench --no-run, by the project's own profile  (Cargo.toml)"
    assert lines["suite"].startswith("., 1 benchmark function")
    assert lines["uncovered"].startswith("benches/old.rs of a-thing: is built with the harness")
    assert "rlox-opt diff HEAD~1 HEAD --bench '^sums::'" in done.stdout
    if shutil.which("cargo"):
        assert done.returncode == 0, done.stderr


def within(folder: str, files: Mapping[str, str] = FILES) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo")
def test_a_commit_that_changes_benches_or_other_crates_alone_is_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benches = {"Cargo.toml": f"{CRATE}# more\n", "benches/sums.rs": f"{SOURCE}// more\n"}
    _, changed, *_ = repository(
        tmp_path,
        within("core"),
        {"core/src/lib.rs": "pub fn more() {}"},
        within("core", benches),
        {"bindings/src/lib.rs": "pub fn other() {}"},
    )
    monkeypatch.chdir(tmp_path / "core")
    expected = f"rlox-opt diff {changed[:10]}~1 {changed[:10]} --bench '^sums::'"
    assert expected in rlox_opt("init").stdout


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo")
def test_in_a_crate_of_benches_a_change_of_what_they_measure_is_compared_and_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    depends = '[dependencies]\na-thing = { path = "../core" }\n[dev-dependencies]'
    manifest = CRATE.replace("a-thing", "perf").replace("[dev-dependencies]", depends)
    _, changed, *_ = repository(
        tmp_path,
        {
            "core/Cargo.toml": '[package]\nname = "a-thing"\nversion = "1.0.0"\n',
            "core/src/lib.rs": "",
            "perf/Cargo.toml": f'{manifest}path = "src/sums.rs"\n',
            "perf/src/sums.rs": SOURCE,
        },
        {"core/src/lib.rs": "pub fn more() {}"},
        {"perf/src/sums.rs": f"{SOURCE}// more\n"},
    )
    monkeypatch.chdir(tmp_path / "perf")
    expected = f"rlox-opt diff {changed[:10]}~1 {changed[:10]} --bench '^sums::'"
    assert expected in rlox_opt("init").stdout


def test_of_several_crates_with_benches_it_is_told_how_one_is_measured_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {**FILES, "Cargo.toml": CRATE.replace("a-thing", "compare")}
    repository(tmp_path, {**FILES, **within("compare", other)})
    monkeypatch.chdir(tmp_path)
    told = "the suite has benches of 2 crates: a-thing (benches), compare (compare); "
    assert f"{told}rlox-opt init --suite benches takes one" in rlox_opt("init").stdout
    assert "benches of 2 crates" not in rlox_opt("init", "--suite", "benches", "--dry-run").stdout


@pytest.mark.parametrize(
    ("bench", "begins"),
    [
        (re.compile("^sums::o"), "sums::o"),
        (re.compile("sums::o"), ""),
        ("sums::one", ""),  # may be a part of the name of more-sums::one
    ],
    ids=str,
)
def test_what_is_asked_for_says_which_bench_is_built(
    here: Path, bench: re.Pattern[str] | str, begins: str
) -> None:
    assert builds_for(Project.find(here), bench).beginning == begins


def test_above_several_projects_it_is_told_where_to_start_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = {"pyproject.toml": PYPROJECT, "tests/test_it.py": "def test_it(benchmark): ...\n"}
    repository(tmp_path, {**within("core"), **within("bindings", python)})
    monkeypatch.chdir(tmp_path)
    done = rlox_opt("init")
    assert done.returncode == 2
    assert done.stderr.endswith(": is no project; start rlox-opt in one of: bindings, core\n")
    assert done.stderr.count("\n") == 1
    done = rlox_opt("init", "--suite", "core")
    assert done.returncode == 2
    assert "no package to measure is known" in done.stderr
    assert "written" not in done.stdout
    assert not (tmp_path / "pyproject.toml").exists()


def test_without_cargo_it_is_told_before_anything_is_done(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = shutil.which("git")
    assert git
    (here / "bin").mkdir()
    (here / "bin" / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(here / "bin"))
    for verb in (("init",), ("diff", "HEAD~1", "HEAD")):
        done = rlox_opt(*verb)
        assert done.returncode == 2
        assert "cargo: is not on PATH; install Rust from https://rustup.rs" in done.stderr
    assert not (here / ".rlox-opt" / "cache" / "revisions" / "checkout").exists()


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo")
@pytest.mark.parametrize("option", [("--with", "numpy"), ("--python", "head:3.12")])
def test_what_is_python_is_refused(here: Path, option: tuple[str, str]) -> None:
    done = rlox_opt("diff", "HEAD~1", "HEAD", *option)
    assert done.returncode == 2
    assert "compiled by cargo" in done.stderr
