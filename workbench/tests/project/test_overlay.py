"""One suite for both sides: head's benches in base's sources."""

from pathlib import Path

import msgspec
import pytest
from test_bench_targets import PACKAGE, SOURCE, crate, write

from rlox_opt.project.bench_targets import measured
from rlox_opt.project.builders.overlay import NotLaidOverError, lay_over, merged

BASE = """
# The manifest of base.
[package]
name = "thing"
version = "0.9.0"  # older

[dependencies]
log = "0.4"

[dev-dependencies]
criterion = "0.3"

[target.'cfg(unix)'.dev-dependencies]
nix = "0.20"

[[bench]]
name = "old"
harness = false

[profile.bench]
debug = true
[features]
default = ["std"]  # stays
std = []
"""
HEAD = """
[package]
name = "thing"
version = "1.0.0"

[dependencies]
log = "0.5"

[dev-dependencies.criterion]
version = "0.5"
features = [
    "html_reports",
]

[[bench]]
name = "sums"
harness = false
[[bench]]
name = "more"  # and another
harness = false
"""


def test_benches_and_what_only_they_need_come_over_and_all_else_stays() -> None:
    made = msgspec.toml.decode(merged(HEAD, BASE))
    base, head = msgspec.toml.decode(BASE), msgspec.toml.decode(HEAD)
    assert made["bench"] == head["bench"]
    assert made["dev-dependencies"] == head["dev-dependencies"]
    for kept in ("package", "dependencies", "profile", "features"):
        assert made[kept] == base[kept]
    assert "nix" not in str(made.get("target", {}))


def test_a_manifest_with_the_same_benches_is_left_as_it_is() -> None:
    text = HEAD.replace("0.5", "0.5").replace('version = "1.0.0"', 'version = "0.9"')
    assert merged(HEAD, text) == text


@pytest.mark.parametrize(
    ("theirs", "why"),
    [
        (BASE.replace('"thing"', '"other"'), "is other, and not thing"),
        ("[package", "cannot be read"),
        (BASE + '\n[dev-dependencies.tricky]\nversion = """\n[features]\n"""\n', "taken apart"),
    ],
)
def test_what_cannot_be_laid_over_is_told(theirs: str, why: str) -> None:
    with pytest.raises(NotLaidOverError, match=why):
        merged(HEAD, theirs)


def test_the_folder_of_benches_is_that_of_the_suite_with_nothing_left_of_the_other(
    tmp_path: Path,
) -> None:
    crate(tmp_path / "head", "thing", "sums")
    write(tmp_path / "head" / "benches", **{"inner/mod.rs": "// helps", "data.json": "{}"})
    base = crate(tmp_path / "base", "thing", "old")
    write(base / "benches", **{"gone/mod.rs": "", "data.json": "{}"})
    before = (base / "benches/data.json").stat().st_mtime_ns
    (of,) = measured(tmp_path / "head")
    lay_over(of, base)
    there = {str(p.relative_to(base)) for p in (base / "benches").rglob("*") if p.is_file()}
    assert there == {"benches/sums.rs", "benches/inner/mod.rs", "benches/data.json"}
    assert (base / "benches/sums.rs").read_text() == SOURCE
    assert [target.name for target in measured(base)[0].targets] == ["sums"]
    assert (base / "benches/data.json").stat().st_mtime_ns == before, "cargo would compile it again"


def test_a_source_that_lies_in_src_comes_alone(tmp_path: Path) -> None:
    more = '[[bench]]\nname = "in-src"\nharness = false\npath = "src/bench.rs"\n'
    head = crate(tmp_path / "head", "thing", more=more)
    write(head / "src", **{"bench.rs": SOURCE, "lib.rs": "// head's"})
    base = write(
        tmp_path / "base", **{"Cargo.toml": PACKAGE.format(name="thing"), "src/lib.rs": "// base's"}
    )
    lay_over(measured(head)[0], base)
    assert (base / "src/lib.rs").read_text() == "// base's"
    assert (base / "src/bench.rs").read_text() == SOURCE


def test_a_crate_that_is_not_there_is_told(tmp_path: Path) -> None:
    crate(tmp_path / "head", "thing", "sums")
    with pytest.raises(NotLaidOverError, match="has no thing"):
        lay_over(measured(tmp_path / "head")[0], tmp_path / "base")
