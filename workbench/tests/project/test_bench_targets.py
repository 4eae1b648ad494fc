"""Which benches of a checkout are by criterion, from its manifests and sources; and which suite a
project has."""

from pathlib import Path, PurePosixPath

import pytest
from small_projects import repository

from rlox_opt.project import bench_targets, kinds
from rlox_opt.project.builders.compiled_benches import files_of
from rlox_opt.project.project import Project
from rlox_opt.project.suites import Suites
from rlox_opt.system.usage import UsageError

PACKAGE = '[package]\nname = "{name}"\nversion = "1.0.0"\n'
CRITERION = '[dev-dependencies]\ncriterion = "0.5"\n'
BENCH = '[[bench]]\nname = "{name}"\nharness = false\n'
SOURCE = """
use criterion::{criterion_group, criterion_main, Criterion};
fn all(c: &mut Criterion) {
    c.bench_function("one", |b| b.iter(|| 1));
    c.bench_function("two words", |b| b.iter(|| 2));
}
criterion_group!(benches, all);
criterion_main!(benches);
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def crate(folder: Path, name: str = "thing", *benches: str, more: str = "") -> Path:
    manifest = PACKAGE.format(name=name) + CRITERION
    manifest += "".join(BENCH.format(name=bench) for bench in benches) + more
    files = {f"benches/{bench}.rs": SOURCE for bench in benches}
    return write(folder, **{"Cargo.toml": manifest, "src/lib.rs": "", **files})


def test_a_bench_with_criterion_and_without_the_harness_is_measured(tmp_path: Path) -> None:
    crate(tmp_path, "thing", "sums")
    (found,) = bench_targets.measured(tmp_path)
    assert [of.name for of in found.targets] == ["sums"]
    assert bench_targets.benchmarks([found]) == ["sums::one", "sums::two words"]


def test_codspeeds_criterion_is_criterion_by_another_name(tmp_path: Path) -> None:
    crate(tmp_path, "thing", "sums")
    manifest = tmp_path / "Cargo.toml"
    renamed = '{ package = "codspeed-criterion-compat", version = "2" }'
    manifest.write_text(manifest.read_text().replace('"0.5"', renamed))
    assert bench_targets.measured(tmp_path)
    manifest.write_text(
        manifest.read_text().replace(f"criterion = {renamed}", 'codspeed-criterion-compat = "2"')
    )
    (tmp_path / "benches/sums.rs").write_text(
        SOURCE.replace("use criterion", "use codspeed_criterion_compat")
    )
    assert bench_targets.measured(tmp_path)


def test_what_another_harness_runs_is_told_and_not_measured(tmp_path: Path) -> None:
    more = BENCH.format(name="other") + '[[bench]]\nname = "kept"\n'
    crate(tmp_path, "thing", "sums", more=more)
    write(
        tmp_path,
        **{
            "benches/other.rs": "fn main() { divan::main(); }",
            "benches/kept.rs": "#[bench] fn kept(b: &mut Bencher) {}",
            "benches/found.rs": "#[bench] fn found(b: &mut Bencher) {}",
        },
    )
    (found,) = bench_targets.measured(tmp_path)
    assert [of.name for of in found.targets] == ["sums"]
    told = "\n".join(found.uncovered)
    assert "benches/other.rs of thing: is by divan" in told
    assert "benches/kept.rs of thing: is built with the harness of `#[bench]`" in told
    assert "benches/found.rs of thing: is built with the harness of `#[bench]`" in told
    assert "sums" not in told


def test_all_crates_of_a_workspace_are_one_suite_and_one_crate_can_be_chosen(
    tmp_path: Path,
) -> None:
    write(tmp_path, **{"Cargo.toml": '[workspace]\nmembers = ["a", "b"]\nexclude = ["bench"]\n'})
    for name in ("a", "b", "bench"):
        crate(tmp_path / name, name, "sums")
    crate(tmp_path / "b", "b", "sums", "more")
    crate(tmp_path / "target" / "package" / "c", "c", "sums")  # a copy of cargo's
    every = bench_targets.measured(tmp_path)
    assert [of.name for of in every] == ["a", "b", "bench"]
    names = bench_targets.prefixes(every)
    assert names["a", "sums"] == "a/sums"
    assert names["b", "more"] == "more", "no other crate has one of that name"
    (one,) = bench_targets.measured(tmp_path / "b" / "benches" / "more.rs")
    assert [of.name for of in one.targets] == ["more"]
    (one,) = bench_targets.measured(tmp_path / "bench" / "benches")
    assert one.name == "bench"
    assert bench_targets.measured(tmp_path / "b" / "src") == []


def test_a_bench_may_lie_elsewhere_and_need_features(tmp_path: Path) -> None:
    more = BENCH.format(name="far") + 'path = "perf/far.rs"\nrequired-features = ["fast"]\n'
    crate(tmp_path, "thing", more=more + BENCH.format(name="own"))
    write(tmp_path, **{"perf/far.rs": SOURCE, "benches/own/main.rs": SOURCE})
    (found,) = bench_targets.measured(tmp_path)
    assert [(of.name, of.needs) for of in found.targets] == [("far", ("fast",)), ("own", ())]


def test_a_manifest_that_cannot_be_read_has_no_bench(tmp_path: Path) -> None:
    write(tmp_path, **{"Cargo.toml": "[package\n"})
    assert bench_targets.measured(tmp_path) == []


def test_a_project_without_python_is_its_crate(tmp_path: Path) -> None:
    repository(tmp_path / "repo", {"README": ""})
    root = crate(tmp_path / "repo", "a-thing", "sums")
    project = Project.find(root / "src")
    assert project.root == root
    assert project.package == "a_thing"
    assert project.configuration.kind == "criterion"
    assert project.suite == root


def test_asvs_suite_goes_before_criterions_unless_that_is_named(tmp_path: Path) -> None:
    root = crate(tmp_path, "thing", "sums")
    write(root, **{"asv.conf.json": "{}", "benchmarks/__init__.py": "def time_it(): pass"})
    assert kinds.chosen(root, PurePosixPath()).kind == "asv"
    found = kinds.chosen(root, PurePosixPath(), "benches")
    assert (found.kind, found.suite) == ("criterion", PurePosixPath("benches"))


def test_where_nothing_is_a_suite_the_message_says_so(tmp_path: Path) -> None:
    write(tmp_path, **{"Cargo.toml": PACKAGE.format(name="thing"), "src/lib.rs": ""})
    with pytest.raises(UsageError, match="no benchmarks are known"):
        kinds.chosen(tmp_path, PurePosixPath())


def test_in_a_crate_without_benches_it_is_told_where_crates_with_benches_are(
    tmp_path: Path,
) -> None:
    write(tmp_path / "thing", **{"Cargo.toml": PACKAGE.format(name="thing"), "src/lib.rs": ""})
    crate(tmp_path / "perf", "perf", "sums")
    told = r"no crate there has benches by criterion; .* have such benches: start in \.\./perf$"
    with pytest.raises(UsageError, match=told):
        kinds.chosen(tmp_path, PurePosixPath("thing"))


def test_what_is_to_be_run_before_is_said_by_the_manifest(tmp_path: Path) -> None:
    said = '[package.metadata.rlox-opt]\nbefore-build = ["cargo", "run", "a b"]\n'
    root = crate(tmp_path, "thing", "sums", more=said)
    found = kinds.chosen(root, PurePosixPath())
    assert found.build_command == ("cargo run 'a b'",)
    crate(tmp_path, "thing", "sums", more=said.replace('["cargo", "run", "a b"]', '"cargo run"'))
    with pytest.raises(UsageError, match=r"before-build is 'cargo run'; it takes a list of words"):
        kinds.chosen(root, PurePosixPath())


def manifest(more: str) -> str:
    return PACKAGE.format(name="thing") + CRITERION + BENCH.format(name="sums") + more


def test_a_commit_that_is_older_than_what_is_to_be_run_before_has_the_working_trees(
    tmp_path: Path,
) -> None:
    said = '[package.metadata.rlox-opt]\nbefore-build = ["make", "tables"]\n'
    files = {"src/lib.rs": "", "benches/sums.rs": SOURCE}
    silent, telling = ({**files, "Cargo.toml": manifest(more)} for more in ("", said))
    root = tmp_path / "repo"
    repository(root, silent, telling)
    write(root, **{"Cargo.toml": manifest(said.replace("tables", "others"))})
    project = Project.find(root)

    def run_before(name: str) -> tuple[str, ...]:
        return Suites(project).of(project.commits.resolve(name)).configuration.build_command

    assert run_before("HEAD~1") == ("make others",)
    assert run_before("HEAD") == ("make tables",), "what it says itself goes first"


def test_files_that_benches_share_are_theirs(tmp_path: Path) -> None:
    paths = "".join(
        f'[[bench]]\nname = "{name}"\npath = "benches/{name}/main.rs"\nharness = false\n'
        for name in ("a", "b")
    )
    sources = {f"benches/{name}/main.rs": SOURCE for name in ("a", "b")}
    crate(write(tmp_path, **sources, **{"benches/common/mod.rs": ""}), more=paths)
    (found,) = bench_targets.measured(tmp_path)
    files = [str(path.relative_to(tmp_path)) for path in files_of(found)]
    assert files == [
        "Cargo.toml", "benches/a/main.rs", "benches/b/main.rs", "benches/common/mod.rs"
    ]  # fmt: skip
