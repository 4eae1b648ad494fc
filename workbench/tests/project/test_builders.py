"""Builds without a word of configuration, as PEP 517 says, and of releases."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest
import small_projects
from small_projects import ASKS, PYPROJECT, builds, git, of, own, repository, said

from rlox_opt.project import own_environment, parity, releases
from rlox_opt.project.builders import pep517, wheels
from rlox_opt.project.builds import Artefact, Builds, NotBuiltError, same_parts
from rlox_opt.project.commits import Revision
from rlox_opt.project.interpreters import running
from rlox_opt.system.usage import UsageError

COMPILES = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")

SAYS_VERSION = """
said = subprocess.run(["git", "describe", "--tags", "--long"], capture_output=True, text=True)
files["_version.py"] = f"version = {said.stdout.strip()!r}".encode()
"""
NEEDS = "requires = \"Requires-Dist: alpha\\nRequires-Dist: gamma; extra == 'more'\\n\""
TRACES = "extern void PyThreadState_EnterTracing(void *);\nvoid f(void *of) {{ {call} }}\n"


class Kept(NamedTuple):
    """A project, its only commit, and the build of it."""

    project: Builds
    commit: str
    built: Artefact


def apart(folder: Path, machine: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes from outside, but what is the same for all tests."""
    for name in ("CFLAGS", "CC"):
        monkeypatch.delenv(name, raising=False)
    small_projects.index(folder / "index", monkeypatch)
    cache, compilers = machine
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    monkeypatch.setattr(wheels, "compilers", lambda _: compilers)


@pytest.fixture(autouse=True)
def nothing_from_outside(
    tmp_path: Path, machine: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    apart(tmp_path, machine, monkeypatch)


@pytest.fixture(scope="module")
def kept(machine: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """One to which tests add builds; what is there already they leave as it is."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patched:
        apart(folder, machine, patched)
        (first,) = repository(folder / "thing", own())
        project = builds(folder / "thing")
        return Kept(project, first, project.build(of(first)))


def test_a_back_end_of_the_project_s_own_builds_each_commit(tmp_path: Path) -> None:
    first, second = repository(tmp_path / "a thing", own(), {"thing.py": "ONE = 2\n"})
    project = builds(tmp_path / "a thing")
    base = project.build(of(first))
    head = project.build(of(second), base)
    assert [said(side, "import thing; print(thing.ONE)") for side in (base, head)] == ["1", "2"]
    assert base.packages == ("thing",)
    assert base.python == head.python
    assert same_parts(base, head) == []
    assert parity.findings(base, head) == []
    assert git(project.commits.root, "status", "--porcelain") == "", "nothing of ours is in it"


def test_what_is_kept_is_not_built_again(kept: Kept) -> None:
    written = (kept.built.folder / "thing.py").stat().st_mtime_ns
    again = kept.project.build(of(kept.commit))
    assert again.folder == kept.built.folder
    assert (again.folder / "thing.py").stat().st_mtime_ns == written


def test_the_suite_is_no_part_of_what_is_built(tmp_path: Path) -> None:
    suite = {"benchmarks/a.py": "def time_a(): pass\n"}
    first, second, third = repository(tmp_path / "t", own(), suite, {"setup.cfg": "# new\n"})
    project = builds(tmp_path / "t")
    folders = [project.build(of(commit)).folder for commit in (first, second, third)]
    assert folders[0] == folders[1]
    assert folders[1] != folders[2]


def test_a_build_that_was_half_removed_is_made_anew(kept: Kept, tmp_path: Path) -> None:
    root = shutil.copytree(kept.project.commits.root, tmp_path / "thing", symlinks=True)
    place = root / kept.built.folder.relative_to(kept.project.commits.root)
    (place.parent / "installed.json").write_text("{")
    built = builds(root).build(of(kept.commit))
    assert built.folder == place
    assert said(built, "import thing; print(thing.ONE)") == "1"


def test_a_build_finds_git_with_its_tags(tmp_path: Path) -> None:
    first, second = repository(tmp_path / "thing", own(more=SAYS_VERSION), {"other": "1\n"})
    git(tmp_path / "thing", "tag", "v1.0", first)
    project = builds(tmp_path / "thing")
    base, head = (project.build(of(commit)) for commit in (first, second))
    tells = "import _version; print(_version.version)"
    assert [said(side, tells) for side in (base, head)] == [
        f"v1.0-0-g{first[:7]}",
        f"v1.0-1-g{second[:7]}",
    ]
    assert same_parts(base, head) == ["package"], "but for the version they are one"


def test_what_the_package_requires_is_installed_and_what_extras_do_is_not(tmp_path: Path) -> None:
    (first,) = repository(tmp_path / "thing", own(more=NEEDS))
    project = builds(tmp_path / "thing", requirements=("beta==1.0",))
    built = project.build(of(first))
    assert built.made["environment"].splitlines() == ["alpha==1.5", "beta==1.0"]
    other = Revision(first[:10], first, extra=("alpha==1.0",))
    assert project.build(other, built).made["environment"].splitlines()[0] == "alpha==1.0"
    with pytest.raises(UsageError, match=r"--with alpha==9: .* cannot have what it requires"):
        project.build(Revision(first[:10], first, extra=("alpha==9",)))


def test_a_version_in_the_matrix_that_cannot_be_had_gives_way_and_is_told(tmp_path: Path) -> None:
    (first,) = repository(tmp_path / "thing", own(more=NEEDS.replace("alpha", "alpha>1")))
    built = builds(tmp_path / "thing", requirements=("alpha==1.0", "beta==1.0")).build(of(first))
    assert built.made["environment"].splitlines() == ["alpha==1.5", "beta==1.0"]
    (note,) = built.notes
    assert f"alpha==1.0 cannot be had with Python {running().version} and what" in note


def test_a_version_of_condas_without_a_wheel_gives_way_and_its_package_stays(
    tmp_path: Path,
) -> None:
    for name in ("alpha-0.5", "beta-0.5"):
        (tmp_path / "index" / f"{name}.tar.gz").touch()
    suite = {"benchmarks/a.py": "import beta\ndef time_a(): pass\n"}
    (first,) = repository(tmp_path / "thing", own(more=NEEDS) | suite)
    asks = {"requirements": ("alpha==0.5", "beta==0.5"), "not_pip": ("alpha", "beta")}
    built = builds(tmp_path / "thing", **asks).build(of(first))
    assert built.made["environment"].splitlines() == ["alpha==2.0", "beta==2.0"]
    (note,) = built.notes
    assert "alpha==0.5, beta==0.5 cannot all be had with Python" in note


def test_variables_of_the_matrix_are_there_for_build_and_run(tmp_path: Path) -> None:
    told = 'files["told.py"] = f"TOLD = {os.environ.get(\'TOLD\')!r}".encode()'
    (first,) = repository(tmp_path / "thing", own(more=told))
    values = []
    for value in ("a", "b"):
        project = builds(tmp_path / "thing", build_env={"TOLD": value}, run_env={"RUN": value})
        built = project.build(of(first))
        values.append((said(built, "import told; print(told.TOLD)"), built.env["RUN"]))
    assert values == [("a", "a"), ("b", "b")]


@pytest.mark.parametrize(
    ("variable", "value"),
    [("CFLAGS", "-O0"), ("THING_NO_EXTENSIONS", "1"), ("DISABLE_THING_CEXT", "1"), ("CPATH", "/a")],
)
def test_a_variable_that_builds_heed_makes_another_build(
    variable: str, value: str, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    after = kept.project.build(of(kept.commit))
    assert kept.built.folder != after.folder
    said = rf"variables: none in base, {variable}={value} in head; run it"
    with pytest.raises(UsageError, match=said):
        parity.findings(kept.built, after)


def test_a_build_that_fails_is_told_by_its_last_lines_and_the_next_one_goes(
    tmp_path: Path,
) -> None:
    broken = own(more='raise SystemExit("no such compiler")')
    first, second = repository(tmp_path / "thing", broken, own())
    project = builds(tmp_path / "thing")
    with pytest.raises(NotBuiltError) as told:
        project.build(of(first))
    assert "does not build (" in str(told.value)
    assert "no such compiler" in str(told.value)
    (log,) = project.folder.glob("*.log")
    assert "the back-end is at work" in log.read_text()
    assert project.build(of(second)).packages == ("thing",)


def linked(folder: Path, files: dict[str, str]) -> str:
    """A commit of these files with a submodule that nobody can have; its hash."""
    nowhere = '[submodule "lib"]\npath = lib\nurl = /no/where\n'
    (first,) = repository(folder, {**files, ".gitmodules": nowhere})
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{first},lib")
    git(folder, "commit", "--quiet", "-m", "a commit")
    return git(folder, "rev-parse", "HEAD")


def test_a_build_that_fails_for_want_of_submodules_is_told_so(tmp_path: Path) -> None:
    head = linked(tmp_path / "thing", own(more='raise SystemExit("no such file")'))
    with pytest.raises(NotBuiltError, match=r"Not checked out:\nlib: cannot be fetched"):
        builds(tmp_path / "thing").build(of(head))


def test_a_submodule_that_is_missing_and_not_missed_is_told_on_both_sides(tmp_path: Path) -> None:
    head = linked(tmp_path / "thing", own())
    project = builds(tmp_path / "thing")
    base = project.build(of(head))
    (note,) = base.notes
    assert note.startswith("lib: cannot be fetched from /no/where: ")
    assert note.endswith("`git submodule update --init --recursive` in your clone brings it")
    written = (base.folder / "thing.py").stat().st_mtime_ns
    again = project.build(of(head), base)
    assert (again.folder / "thing.py").stat().st_mtime_ns == written, "it lacks no less than before"
    there = replace(again, made={**again.made, "not checked out": ""})
    with pytest.raises(UsageError, match=r"not checked out: lib: .* in base, none in head; run it"):
        parity.findings(base, there)


def test_a_build_that_hangs_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = repository(tmp_path / "thing", own(more="import time; time.sleep(300)"))
    monkeypatch.setattr(own_environment, "_LIMIT_S", 0.6)
    with pytest.raises(NotBuiltError, match="does not build within 1 s"):
        builds(tmp_path / "thing").build(of(first))


def test_a_commit_that_is_no_package_is_told(tmp_path: Path) -> None:
    (first,) = repository(tmp_path / "thing", {"README": "nothing\n"})
    with pytest.raises(NotBuiltError, match=r"has neither pyproject\.toml nor setup\.py in \."):
        builds(tmp_path / "thing").build(of(first))


def test_features_are_refused_where_no_cargo_is(tmp_path: Path) -> None:
    (first,) = repository(tmp_path / "thing", own())
    with pytest.raises(UsageError, match="this project is built by inner, which takes none from"):
        builds(tmp_path / "thing").build(of(first, ("fast",)))


def test_features_that_only_the_project_itself_can_name_are_refused_with_its_back_end(
    tmp_path: Path,
) -> None:
    table = '[build-system]\nrequires = ["setuptools", "setuptools_rust>=1.8"]\n'
    (first,) = repository(tmp_path / "thing", {"pyproject.toml": table, "setup.py": ""})
    told = r"built by setuptools\S* with setuptools-rust, which takes none .* diff HEAD \."
    with pytest.raises(UsageError, match=told):
        builds(tmp_path / "thing").check(of(first, ("fast",)))


@pytest.mark.parametrize("back_end", ["maturin", "inner"])
def test_features_are_told_to_maturin_also_where_another_back_end_calls_it(back_end: str) -> None:
    table = f"""[build-system]
    requires = ["maturin>=1,<2"]
    build-backend = "{back_end}"
    [tool.maturin]
    features = ["own"]
    """
    asked = pep517.asked(lambda name: table if name == "pyproject.toml" else "")
    env = {"MATURIN_PEP517_ARGS": "--locked"}
    for features, told in {
        None: None,
        ("own",): None,
        ("a", "b"): "--locked --features=a,b",
        (): "--locked --features=",
    }.items():
        variables = pep517.variables(asked, of("1" * 40, features), Path("/target"), env)
        assert variables.get("MATURIN_PEP517_ARGS") == told


def asking(for_: str) -> str:
    """The text of a back-end that asks for alpha while it builds, and tells which it has."""
    more = 'import alpha; files["told.py"] = f"ALPHA = {alpha.VERSION!r}".encode()'
    return small_projects.backend(more) + ASKS.format(f'"{for_}"')


def test_what_a_back_end_asks_for_besides_is_the_same_on_both_sides(tmp_path: Path) -> None:
    first, second, third = repository(
        tmp_path / "thing",
        own() | {"backend/inner.py": asking("alpha")},
        {"thing.py": "ONE = 2\n"},
        {"backend/inner.py": asking("alpha>2")},
    )
    project = builds(tmp_path / "thing")
    base = project.build(of(first))
    small_projects.wheel(tmp_path / "index", "alpha", "3.0")
    head, other = (project.build(of(commit), base) for commit in (second, third))
    tells = "import told; print(told.ALPHA)"
    assert [said(side, tells) for side in (base, head, other)] == ["2.0", "2.0", "3.0"]
    assert base.made["build environment"] == "alpha==2.0"
    assert parity.findings(base, head) == []
    assert parity.findings(base, other) == [
        "build requirement alpha: 2.0 in base, 3.0 in head, as the commit's own metadata asks for."
    ]


def test_what_the_suite_imports_and_only_a_group_names_is_told(tmp_path: Path) -> None:
    groups = '[project.optional-dependencies]\nmore = ["alpha>1", "gamma"]\n'
    groups += 'all = ["thing[more]"]\n'  # itself, which is there
    files = own() | {"benchmarks/a.py": "import thing\ndef time_a():\n    import alpha\n"}
    (first,) = repository(tmp_path / "thing", files | {"pyproject.toml": PYPROJECT + groups})
    project = builds(tmp_path / "thing")
    (note,) = project.build(of(first)).notes
    assert note.startswith("alpha is not in the environment: the suite imports it, and the project")
    assert note.endswith("in [project.optional-dependencies] more alone; --with 'alpha>1' adds it")
    assert project.build(Revision("main", first, extra=("alpha>1",))).notes == ()


def test_a_project_below_the_top_is_built_there(tmp_path: Path) -> None:
    files = {f"python/{name}": text for name, text in own().items()}
    (first,) = repository(tmp_path / "thing", files)
    project = builds(tmp_path / "thing", project=PurePosixPath("python"))
    assert said(project.build(of(first)), "import thing; print(thing.ONE)") == "1"


@COMPILES
def test_tracing_that_the_commit_turned_on_is_found_in_its_binary(tmp_path: Path) -> None:
    plain = own(**{"thing_c.c": TRACES.format(call="")})
    traced = {"thing_c.c": TRACES.format(call="PyThreadState_EnterTracing(of);")}
    first, second = repository(tmp_path / "thing", plain, traced)
    project = builds(tmp_path / "thing")
    base = project.build(of(first))
    head = project.build(of(second), base)
    assert parity.findings(base, head) == [
        "the commit changed how it is built: Cython's tracing is on in head alone."
    ]
    assert same_parts(base, head) == ["python"]


@COMPILES
def test_what_differs_in_debug_information_alone_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = repository(tmp_path / "t", own(**{"thing_c.c": "int f(void) { return 3; }\n"}))
    before = builds(tmp_path / "t").build(of(first))
    monkeypatch.setenv("CFLAGS", "-O2 -g")
    after = builds(tmp_path / "t").build(of(first))
    assert [side.found["debug information"] for side in (before, after)] == ["off", "on"]
    assert same_parts(before, after) == ["extension", "python"]


def test_what_nobody_may_read_comes_into_no_result(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CARGO_REGISTRY_TOKEN", "HATCH_INDEX_AUTH", "MATURIN_PYPI_TOKEN"):
        monkeypatch.setenv(name, "a secret")
    monkeypatch.setenv("MAKEFLAGS", "-j2 --jobserver-auth=3,4")  # make's word to its own makes
    monkeypatch.setenv("MATURIN_STRIP", "1")
    built = kept.project.build(of(kept.commit))
    assert built.made["variables"] == "MATURIN_STRIP=1"


def test_a_release_is_a_side_without_a_checkout(tmp_path: Path) -> None:
    repository(tmp_path / "thing", own())
    project = builds(tmp_path / "thing", "alpha")
    built = [project.build(releases.resolve(f"pypi:alpha=={v}")) for v in ("1.0", "2.0")]
    assert [said(side, "import alpha; print(alpha.VERSION)") for side in built] == ["1.0", "2.0"]
    assert built[0].made["builder"] == "a release, from its wheel"
    assert built[0].revision.title == "pypi:alpha==1.0"
    with pytest.raises(NotBuiltError, match=r"pypi:alpha==7: alpha==7 does not install"):
        project.build(releases.resolve("pypi:alpha==7"))
    for text in ("pypi:alpha", "pypi:alpha>1", "pypi:", "pypi:alpha==1.*"):
        with pytest.raises(UsageError, match="names no release: write one version of it"):
            releases.resolve(text)


def test_an_interpreter_that_was_asked_for_runs_it(tmp_path: Path) -> None:
    (first,) = repository(tmp_path / "thing", own())
    project = builds(tmp_path / "thing")
    with pytest.raises(UsageError, match=r"Python 3\.99 is not installed"):
        project.build(Revision(first[:10], first, python="3.99"))
    built = project.build(Revision(first[:10], first, python=sys.executable))
    assert said(built, "print(sys.version_info[:2])") == str(sys.version_info[:2])
