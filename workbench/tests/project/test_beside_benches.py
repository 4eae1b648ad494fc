"""What benches take from outside their own files, in a workspace with a crate of benches."""

from pathlib import Path

import pytest
from test_bench_targets import CRITERION, PACKAGE, SOURCE, write

from rlox_opt.project import beside_benches

BENCH = '[[bench]]\nname = "area"\npath = "src/area.rs"\nharness = false\n'


def workspace(top: Path, thing: str = "") -> Path:
    """The crate `thing` is measured by `perf`; `cases` is for its tests, and for benches."""
    both = 'cases = { path = "../cases" }\nthing = { workspace = true }\n'
    shared = '[workspace]\n[workspace.dependencies]\nthing = { path = "thing" }\n'
    crates = {
        "thing": f'{thing}[dev-dependencies]\ncases = {{ path = "../cases" }}\n',
        "cases": '[dependencies]\nthing = { path = "../thing" }\n',
        "perf": f"[dependencies]\n{both}{CRITERION}{BENCH}",
    }
    manifests = {
        f"{name}/Cargo.toml": PACKAGE.format(name=name) + more for name, more in crates.items()
    }
    sources = {"perf/src/area.rs": SOURCE, "perf/src/lib.rs": "", "thing/src/lib.rs": ""}
    return write(top, **{"Cargo.toml": shared}, **manifests, **sources)


@pytest.mark.parametrize("thing", ["", 'description = "It can be published."\n'])
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("cases/src/lib.rs", "cases, which only benches and tests use, differs between the sides"),
        ("perf/src/utils.rs", "perf/src differs between the sides, beside the benches in it"),
        ("perf/src/area.rs", ""),
        ("thing/src/lib.rs", ""),
    ],
)
def test_what_is_neither_measured_nor_of_the_suite_is_told(
    path: str, told: str, thing: str, tmp_path: Path
) -> None:
    top = workspace(tmp_path, thing)
    base, head = ([f"100644 blob {of}\t{path}", "100644 blob 1\tsame"] for of in (2, 3))
    notes = beside_benches.differing({top / "perf": {"area"}}, top, base, head)
    assert [note.partition(":")[0] for note in notes] == [told] * bool(told)


def test_a_crate_that_is_built_into_another_is_no_helper_of_benches(tmp_path: Path) -> None:
    top = workspace(tmp_path)
    more = PACKAGE.format(name="more") + '[dependencies]\ncases = { path = "../cases" }\n'
    write(top, **{"more/Cargo.toml": more})
    rows = (["100644 blob 2\tcases/src/lib.rs"], ["100644 blob 3\tcases/src/lib.rs"])
    assert beside_benches.differing({top / "perf": {"area"}}, top, *rows) == []


def test_a_crate_that_measures_another_and_is_not_published_has_benches_alone(
    tmp_path: Path,
) -> None:
    top = workspace(tmp_path, 'description = "It can be published."\n')
    assert beside_benches.alone(top / "perf", top)
    assert not beside_benches.alone(top / "thing", top)
