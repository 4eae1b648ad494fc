"""`rlox-opt diff` of crates with benches by criterion, which are compiled: they need a compiler of
Rust, and criterion from cargo's cache or the network."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import rlox_opt
from small_projects import repository

from rlox_opt.sampling import perf

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo"),
]

LIB = """
#[inline(never)]
pub fn work(n: u64) -> u64 { (0..n + MORE).fold(0u64, |a, b| a ^ a.rotate_left(5).wrapping_add(b)) }
const MORE: u64 = {more};
"""
ALLOCATOR = """
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};
    struct Counting;
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, l: Layout) -> *mut u8 { unsafe { System.alloc(l) } }
        unsafe fn dealloc(&self, p: *mut u8, l: Layout) { unsafe { System.dealloc(p, l) } }
    }
    #[global_allocator]
    static GLOBAL: Counting = Counting;
}
"""
# The crate of benches lies apart from the workspace, and so has a profile of its own.
TOP = '[workspace]\nmembers = ["thing"]\nexclude = ["perf"]\nresolver = "2"\n'
THING = '[package]\nname = "thing"\nversion = "1.0.0"\nedition = "2021"\n'
PERF = """
[package]
name = "perf"
version = "0.0.0"
edition = "2021"
[dependencies]
thing = { path = "../thing" }
[dev-dependencies]
criterion = { version = "0.8", default-features = false, features = ["cargo_bench_support"] }
[[bench]]
name = "sums"
harness = false
"""
SUMS = """
use criterion::{criterion_group, criterion_main, Criterion};
use std::hint::black_box;
fn steady(n: u64) -> u64 { (0..n).fold(1, |a, b| a ^ b.wrapping_add(a)) }
fn all(c: &mut Criterion) {
    let times: usize = std::fs::read_to_string("benches/data.txt").unwrap().trim().parse().unwrap();
    assert_eq!(times, 7);
    c.bench_function("work (short)", |b| b.iter(|| thing::work(black_box(300))));
    c.bench_function("steady", |b| b.iter(|| steady(black_box(500))));
    {more}
}
criterion_group!(benches, all);
criterion_main!(benches);
"""
NEW = 'c.bench_function("new", |b| b.iter(|| thing::work(black_box(1))));'
LACKING = 'c.bench_function("lacking", |b| b.iter(|| thing::later(black_box(1))));'


def commit(more: int, lib: str = "", benches: str = "") -> dict[str, str]:
    return {
        "Cargo.toml": TOP,
        "thing/Cargo.toml": THING,
        "thing/src/lib.rs": LIB.replace("{more}", str(more)) + lib,
        "perf/Cargo.toml": PERF,
        "perf/src/lib.rs": "",
        "perf/benches/sums.rs": SUMS.replace("{more}", benches),
        "perf/benches/data.txt": "7\n",
        "thing/benches/old.rs": "// #[bench]\n",
        ".gitignore": "target\n",
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four commits: the second is slower and drops an allocator, and brings a benchmark; the third
    has one that the others cannot compile; the fourth does not compile."""
    folder = tmp_path_factory.mktemp("benches") / "repo"
    later = "pub fn later(n: u64) -> u64 { n }"
    repository(
        folder,
        commit(0, ALLOCATOR),
        commit(100, benches=NEW),
        commit(100, later, NEW + LACKING),
        commit(100, "pub fn broken() -> u64 { nothing }", NEW + LACKING),
    )
    return folder


def diff(root: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> dict[str, Any]:
    monkeypatch.chdir(root)
    done = rlox_opt("diff", *arguments, "--json", "--budget", "60", "--restarts", "5")
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_both_sides_are_measured_by_the_suite_of_the_later(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = diff(root, monkeypatch, "HEAD~3", "HEAD~2")
    verdicts = {row["benchmark"]: row for row in said["results"]}
    assert set(verdicts) == {"sums::work (short)", "sums::steady", "sums::new"}, "one suite"
    assert verdicts["sums::work (short)"]["verdict"] == "slower"
    low, high = verdicts["sums::work (short)"]["ci99"]
    assert low < 4 / 3 * 1.1, "a third more work"
    assert high > 4 / 3 / 1.1
    assert verdicts["sums::steady"]["verdict"] not in ("slower", "faster")
    assert 1e-9 < verdicts["sums::work (short)"]["base"] < 1e-5, "seconds of a call"
    notes = "\n".join(said["notes"])
    assert "#[global_allocator] in its sources is Counting in thing/src/lib.rs in base" in notes
    assert "benches/old.rs of thing: is built with the harness of `#[bench]`" in notes
    assert not (root / "target").exists(), "the user's checkout is left alone"


@pytest.mark.skipif(bool(perf.unavailable()), reason="perf cannot be used here")
def test_the_function_that_the_change_slows_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = diff(root, monkeypatch, "HEAD~3", "HEAD~2", "--bench", "work", "--why")
    assert [row["verdict"] for row in said["results"]] == ["slower"]
    (why,) = said["why"]
    assert not why["missing"]
    assert why["layers"][0]["whose"] == "Rust"
    assert (why["native"][0]["place"], why["native"][0]["name"]) == ("thing/src/lib.rs", "work")
    assert "work" in {of["name"] for of in why["touched"]}


def test_where_the_suite_does_not_compile_each_side_has_its_own(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = diff(root, monkeypatch, "HEAD~2", "HEAD~1", "--bench", "new|lacking", "--anyway")
    assert {row["benchmark"] for row in said["results"]} == {"sums::new"}
    assert said["missing"] == [{"benchmark": "sums::lacking", "side": "base"}]
    assert "the suite cannot be compiled there (error[E0425]" in "\n".join(said["notes"])


def test_a_commit_that_does_not_compile_is_told_with_what_the_compiler_said(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    done = rlox_opt("diff", "HEAD~1", "HEAD")
    assert done.returncode == 2
    assert "perf of HEAD" in done.stderr
    assert "cannot find value `nothing`" in done.stderr


def test_what_no_benchmark_is_called_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    done = rlox_opt("diff", "HEAD~3", "HEAD~2", "--bench", "^sums::nothing")
    assert done.returncode == 2
    assert "matches no benchmark; there are 3, such as sums::work (short)" in done.stderr
