"""Programs of benches as they are built and kept; the cargo here is a stand-in, whose programs are
the sources that it was given."""

import dataclasses
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest
from python_scripts import script
from small_projects import repository

from rlox_opt.project.artefacts import NotBuiltError
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.builders.criterion import ByCriterion, own_benches
from rlox_opt.project.commits import Commits, Revision

CARGO = """
import json, os, pathlib, sys
words = sys.argv[1:]
asked = dict(zip(words, words[1:]))
manifest = pathlib.Path(asked.get("--manifest-path", "Cargo.toml"))
with open(os.environ["CARGO_NOTES"], "a") as notes:
    told = sorted(f"{{a}}={{b}}" for a, b in os.environ.items() if a.startswith("CARGO_PROFILE"))
    print(json.dumps(words + told), file=notes)
if words[0] == "locate-project":
    print(manifest)
elif words[0] == "bench":
    crate, lock = manifest.parent, manifest.with_name("Cargo.lock")
    if not lock.exists():
        version = pathlib.Path(os.environ["CARGO_NOTES"]).stat().st_size  # another each time
        lock.write_text(f'[[package]]\\nname = "dep"\\nversion = "{{version}}"\\nsource = "r"\\n')
    names = [b for a, b in zip(words, words[1:]) if a == "--bench"]
    for name in names:
        text = (crate / "benches" / f"{{name}}.rs").read_text()
        lib = (crate / "src" / "lib.rs").read_text()
        if "uses_new" in text and "fn uses_new" not in lib:
            sys.exit("warning: x\\nerror[E0425]: cannot find function `uses_new`\\n --> benches")
        if "panics" in lib:
            sys.exit("error: failed to run custom build command for `thing v1.0.0`")
        out = pathlib.Path(asked["--target-dir"], name)
        out.parent.mkdir(exist_ok=True)
        out.write_text(text + lib)
        target = {{"kind": ["bench"], "name": name}}
        print(json.dumps({{"executable": str(out), "target": target}}))
"""
CRATE = """
[package]
name = "thing"
version = "1.0.0"
[dev-dependencies]
criterion = "0.5"
[[bench]]
name = "sums"
harness = false
"""
BENCH = "use criterion::Criterion; // {0}\n"
MORE = {
    "Cargo.toml": CRATE.replace("[[bench]]", 'helps = { path = "helps" }\n[[bench]]'),
    "helps/Cargo.toml": '[package]\nname = "helps"\nversion = "1.0.0"\n',
    **dict.fromkeys(("helps/src/lib.rs", "data/big.txt", "more.rs"), ""),
}


def commit(lib: str, bench: str, **more: str) -> dict[str, str]:
    files = {"Cargo.toml": CRATE, "src/lib.rs": lib, "benches/sums.rs": BENCH.format(bench)}
    return {**files, "benches/data.txt": bench, **more}


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the stand-in is called with, a line each."""
    folder, path = tmp_path / "bin", tmp_path / "notes.txt"
    folder.mkdir()
    script(folder / "cargo", CARGO.format())
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CARGO_NOTES", str(path))
    return path


def builder(root: Path, *commits: Mapping[str, str], before: str = "") -> ByCriterion:
    """Of a repository; the suite is that of its working tree."""
    repository(root, *commits)
    asked = Configuration(
        PurePosixPath("Cargo.toml"), PurePosixPath(), PurePosixPath(), kind="criterion",
        build_command=(before,) if before else (),
    )  # fmt: skip
    return ByCriterion(Commits(root, root / ".kept" / "revisions"), root, asked, root / ".kept")


def resolved(by: ByCriterion, name: str) -> Revision:
    return by.commits.resolve(name)


def compiled(notes: Path) -> int:
    return sum(json.loads(line)[0] == "bench" for line in notes.read_text().splitlines())


def test_base_has_its_code_and_heads_benches_which_run_where_their_files_lie(
    tmp_path: Path,
) -> None:
    by = builder(tmp_path / "repo", commit("// old", "first"), commit("// new", "second"))
    built = by.build(resolved(by, "HEAD~1"), None)
    (bench,) = json.loads((built.folder / "benches.json").read_text())
    assert bench["name"] == "sums"
    assert (built.folder / bench["program"]).read_text() == BENCH.format("second") + "// old"
    assert Path(bench["folder"], "benches", "data.txt").read_text() == "second"
    assert Path(bench["folder"], "src", "lib.rs").read_text() == "// old"
    assert built.notes == ()
    assert built.made["builder"] == "cargo bench"


@pytest.mark.parametrize(
    ("profile", "variables"),
    [
        ("", ["CARGO_PROFILE_BENCH_DEBUG=1"]),
        ("[profile.release]\nlto = true\n", ["CARGO_PROFILE_BENCH_DEBUG=1"]),
        (
            "[profile.release]\nstrip = true\n",
            ["CARGO_PROFILE_BENCH_DEBUG=1", "CARGO_PROFILE_BENCH_STRIP=none"],
        ),
        ("[profile.release]\ndebug = false\n", []),
        ("[profile.bench]\ndebug = true\n", []),
    ],
)
def test_line_tables_are_added_unless_the_profile_says_how_much_is_told(
    profile: str, variables: list[str], tmp_path: Path, notes: Path
) -> None:
    files = commit("// lib", "first")
    by = builder(tmp_path / "repo", {**files, "Cargo.toml": CRATE + profile})
    by.build(resolved(by, "HEAD"), None)
    (words,) = [w for w in map(json.loads, notes.read_text().splitlines()) if w[0] == "bench"]
    assert [word for word in words if word.startswith("CARGO_PROFILE")] == variables


def test_line_tables_are_left_to_a_user_who_chose(
    tmp_path: Path, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGO_PROFILE_BENCH_DEBUG", "0")
    by = builder(tmp_path / "repo", commit("// lib", "first"))
    by.build(resolved(by, "HEAD"), None)
    assert '"CARGO_PROFILE_BENCH_DEBUG=0"' in notes.read_text()


def test_a_suite_from_elsewhere_is_laid_over_the_crate_of_its_name(tmp_path: Path) -> None:
    files = {f"crates/thing/{path}": text for path, text in commit("// code", "own").items()}
    by = builder(tmp_path / "repo", files)
    suite = tmp_path / "elsewhere" / "suites" / "thing"
    for path, text in commit("// not this", "theirs").items():
        (suite / path).parent.mkdir(parents=True, exist_ok=True)
        (suite / path).write_text(text)
    inner = PurePosixPath("suites/thing")
    asked = Configuration(inner / "Cargo.toml", inner, PurePosixPath(), kind="criterion")
    built = dataclasses.replace(by, suite=suite, configuration=asked).build(
        resolved(by, "HEAD"), None
    )
    assert (built.folder / "sums").read_text() == BENCH.format("theirs") + "// code"
    assert built.notes == ()


def test_where_heads_benches_do_not_compile_base_has_its_own_and_that_is_told(
    tmp_path: Path,
) -> None:
    new = commit("fn uses_new() {}", "uses_new")
    by = builder(tmp_path / "repo", commit("// old", "first"), new)
    built = by.build(resolved(by, "HEAD~1"), None)
    assert (built.folder / "sums").read_text() == BENCH.format("first") + "// old"
    (note,) = built.notes
    assert "(error[E0425]: cannot find function `uses_new`)" in note
    assert "has its own benches" in note
    assert by.build(resolved(by, "HEAD~1"), None).notes == built.notes, "also when it is kept"


def test_benches_of_their_own_are_told_from_the_suites_and_from_each_other(tmp_path: Path) -> None:
    released = commit("// old too", "first", **{"Cargo.toml": CRATE.replace("1.0.0", "1.0.1")})
    by = builder(
        tmp_path / "repo",
        commit("// older", "zeroth"),
        commit("// old", "first"),
        released,
        commit("fn uses_new() {}", "uses_new"),
    )
    built = [by.build(resolved(by, f"HEAD~{n}"), None) for n in (3, 2, 1, 0)]
    other, one, same, suites = map(own_benches, built)
    assert one == same != other
    assert one
    assert suites == ""


def test_what_does_not_compile_either_way_is_told_with_what_the_compiler_said(
    tmp_path: Path,
) -> None:
    by = builder(tmp_path / "repo", commit("// lacks it", "uses_new"))
    with pytest.raises(NotBuiltError, match=r"(?s)thing of HEAD .*cannot find function `uses_new`"):
        by.build(resolved(by, "HEAD"), None)


def test_what_is_built_is_kept_and_what_differs_is_built_anew(tmp_path: Path, notes: Path) -> None:
    by = builder(tmp_path / "repo", commit("// old", "first"), commit("// new", "first"))
    one = by.build(resolved(by, "HEAD"), None)
    assert by.build(resolved(by, "HEAD"), None).folder == one.folder
    assert compiled(notes) == 1
    other = by.build(resolved(by, "HEAD~1"), one)
    assert other.digests != one.digests
    assert compiled(notes) == 2


def test_the_bench_that_is_asked_for_is_compiled_alone_and_is_not_taken_for_all(
    tmp_path: Path,
) -> None:
    both = {"Cargo.toml": f'{CRATE}[[bench]]\nname = "more"\nharness = false\n'}
    files = commit("// lacks it", "first", **both, **{"benches/more.rs": BENCH.format("uses_new")})
    every = builder(tmp_path / "repo", files)
    for begin in ("sums::one", "su"):
        by = dataclasses.replace(every, beginning=begin)
        built = by.build(resolved(by, "HEAD"), None)
        (bench,) = json.loads((built.folder / "benches.json").read_text())
        assert bench["name"] == "sums"
    for begin in ("", "others::one"):
        by = dataclasses.replace(every, beginning=begin)
        with pytest.raises(NotBuiltError, match="cannot find function `uses_new`"):
            by.build(resolved(by, "HEAD"), None)


@pytest.mark.parametrize(
    ("bench", "path", "told"),
    [
        (
            "",
            "helps/src/lib.rs",
            ["helps, which only benches and tests use, differs between the sides"],
        ),
        (
            'include_str!("../data/big.txt")',
            "data/big.txt",
            ["data/big.txt, which benches include, differs between the sides"],
        ),
        (
            '#[path = "../more.rs"]',
            "more.rs",
            ["more.rs, which benches include, differs between the sides"],
        ),
        ("", "data/big.txt", []),
        ("", "src/lib.rs", []),
    ],
)
def test_what_benches_take_from_elsewhere_is_told_where_it_differs(
    bench: str, path: str, told: list[str], tmp_path: Path
) -> None:
    by = builder(tmp_path / "repo", commit("// lib", f"\n{bench}", **MORE), {path: "// other"})
    base = by.build(resolved(by, "HEAD~1"), None)
    head = by.build(resolved(by, "HEAD"), base)
    assert [note.partition(":")[0] for note in head.notes] == told
    assert base.notes == ()


def test_with_another_python_around_it_a_crate_is_built_anew(
    tmp_path: Path, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = builder(tmp_path / "repo", commit("// lib", "first"))
    by.build(resolved(by, "HEAD"), None)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    by.build(resolved(by, "HEAD"), None)
    assert compiled(notes) == 2


def test_a_side_without_a_lock_has_the_versions_of_the_other(tmp_path: Path) -> None:
    by = builder(tmp_path / "repo", commit("// old", "first"), commit("// new", "first"))
    base = by.build(resolved(by, "HEAD~1"), None)
    head = by.build(resolved(by, "HEAD"), base)
    assert base.made["environment"].startswith("dep==")
    assert head.made["environment"] == base.made["environment"]


def test_what_a_checkout_needs_before_is_run_in_it(tmp_path: Path) -> None:
    write = f'"{sys.executable}" -c \'open("src/lib.rs", "w").write("// made")\''
    by = builder(tmp_path / "repo", commit("// old", "first"), before=write)
    built = by.build(resolved(by, "HEAD"), None)
    assert (built.folder / "sums").read_text().endswith("// made")
    failing = builder(tmp_path / "other", commit("// old", "first"), before="false")
    with pytest.raises(NotBuiltError, match="by 'false' before its benches"):
        failing.build(resolved(failing, "HEAD"), None)


def test_where_a_build_script_fails_it_is_told_how_a_command_is_run_before(tmp_path: Path) -> None:
    by = builder(tmp_path / "repo", commit("// panics", "first"))
    with pytest.raises(NotBuiltError, match=r"(?s)custom build command.*before-build = \["):
        by.build(resolved(by, "HEAD"), None)


def test_where_one_of_several_crates_does_not_build_it_is_told_how_another_is_taken(
    tmp_path: Path,
) -> None:
    other = {f"compare/{path}": text for path, text in commit("// panics", "first").items()}
    other["compare/Cargo.toml"] = CRATE.replace("thing", "compare")
    by = builder(tmp_path / "repo", {**commit("// lib", "first"), **other})
    told = r"(?s)compare of HEAD .*: thing \(benches\), compare \(compare\); .* --suite benches "
    with pytest.raises(NotBuiltError, match=told):
        by.build(resolved(by, "HEAD"), None)
