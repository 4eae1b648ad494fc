"""What a project is: what its pyproject.toml says, what is found where that says nothing, and what
is told of a mistake."""

import re
import subprocess
import sys
from pathlib import Path

import asv_projects
import pytest
import toy_projects
from command_line import rlox_opt

from rlox_opt.plan.testing import agreement
from rlox_opt.project.builds import Command, NotBuiltError
from rlox_opt.project.commits import Revision
from rlox_opt.project.project import Project, Settings, Twins
from rlox_opt.system.usage import UsageError


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_a_project_is_found_from_any_folder_in_it(tmp_path: Path) -> None:
    root = write(tmp_path / "a project", '[tool.rlox-opt]\npackage = "it"\n')
    inner = write(root / "docs" / "deep", '[project]\nname = "docs"\n')  # without our table
    assert Project.find(inner).root == root
    assert Project.find(root).package == "it"
    nearer = write(inner / "another", "[tool.rlox-opt]\n")
    assert Project.find(nearer).root == nearer


def test_what_the_table_leaves_out_is_found(tmp_path: Path) -> None:
    write(tmp_path, '[project]\nname = "my-thing"\n')
    conf = '// asv has comments\n{\n  // here, too\n  "benchmark_dir": "bench/marks"\n}\n'
    (tmp_path / "asv.conf.json").write_text(conf)
    found = Project.find(tmp_path)
    assert found.root == tmp_path
    assert found.package == "my_thing"
    assert found.suite == tmp_path / "bench" / "marks"
    assert found.history == tmp_path / ".rlox-opt" / "history"
    assert found.revisions == tmp_path / ".rlox-opt" / "cache" / "revisions"
    write(tmp_path, '[project]\nname = "x"\n[tool.maturin]\nmodule-name = "y._core"\n')
    assert Project.find(tmp_path).package == "y"


def test_the_nearest_of_several_projects_in_a_repository_is_meant(tmp_path: Path) -> None:
    asv = asv_projects.conf(repo=".", repo_subdir="python/a", benchmark_dir="bench")
    one = asv_projects.PYPROJECT
    tools = "[tool.ruff]\nline-length = 100\n"
    top = asv_projects.make(
        tmp_path,
        {
            "asv.conf.json": asv,
            "bench/all.py": asv_projects.SUITE,
            "python/a/pyproject.toml": one,
            "python/a/docs/pyproject.toml": tools,
            "python/b/setup.py": "from setuptools import setup\nsetup(name='b-thing')\n",
        },
    )
    for start in (".", "bench", "python/a", "python/a/docs"):
        found = Project.find(top / start)
        assert (found.root, found.top) == (top / "python" / "a", top)
        assert found.suite == top / "bench"
    assert Project.find(top / "python" / "b").package == "b_thing"


MATURIN = "[build-system]\nbuild-backend = 'maturin'\n[project]\nname = 'a-thing'\n"


@pytest.mark.parametrize(
    ("files", "package", "where"),
    [
        ({"setup.cfg": "[metadata]\nname = My.Thing\n"}, "My_Thing", "setup.cfg, [metadata] name"),
        ({"setup.py": "setup(name='thing')"}, "thing", "setup.py"),
        (
            {
                "pyproject.toml": f"{MATURIN}[tool.maturin]\nmanifest-path = 'rust/Cargo.toml'\n",
                "rust/Cargo.toml": "[package]\nname = 'x-rs'\n[lib]\nname = 'fast_x'\n",
            },
            "fast_x",
            "Cargo.toml, [lib] name",
        ),
        (
            {"pyproject.toml": MATURIN, "Cargo.toml": "[lib]\ncrate-type = ['cdylib']\n"},
            "a_thing",
            "pyproject.toml, [project] name",
        ),
        ({"setup.py": "setup(name=NAME)", "src/PIL/__init__.py": ""}, "PIL", "src/PIL/, the pro"),
        ({"setup.py": "setup()", "thing.py": ""}, "a_folder", "the folder's name"),
        (
            {"pyproject.toml": "[tool.poetry]\nname = 'Thing'\n"},
            "Thing",
            "pyproject.toml, [tool.po",
        ),
        (
            {"pyproject.toml": "[tool.flit.module]\nname = 'x'\n"},
            "x",
            "pyproject.toml, [tool.flit.m",
        ),
        (
            {"pyproject.toml": "[project]\nname = 'PyYAML-x'\n", "lib/pyyaml_x/__init__.py": ""},
            "pyyaml_x",
            "pyproject.toml, [project] name",
        ),
        (
            {"setup.py": "setup(name='scikit-x')", "skx/__init__.py": "", "tests/__init__.py": ""},
            "skx",
            "skx/, the project's only package",
        ),
    ],
    ids=lambda of: of if isinstance(of, str) else "",
)
def test_a_package_is_named_by_what_builds_it(
    files: dict[str, str], package: str, where: str, tmp_path: Path
) -> None:
    root = asv_projects.write(tmp_path / "a-folder", files)
    named, told = Project.find(root).named
    assert (named, told[: len(where)]) == (package, where)


def test_a_table_that_is_only_written_of_is_none(tmp_path: Path) -> None:
    write(tmp_path, "# write [tool.rlox-opt] here\n[project]\nname = 'x'\n")
    assert Project.find(tmp_path) == Project(tmp_path, Settings())


def test_a_mistake_in_a_list_of_tables_alone_is_told_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, "[project]\nname = 'x'\n[[tool.rlox-opt.layers.owners]]\nmodul = 'x'\n")
    with pytest.raises(UsageError, match=r"line 4: \[tool\.rlox-opt\]: .*unknown field `modul`"):
        Project.find(tmp_path)


def test_what_cannot_be_found_is_asked_for(tmp_path: Path) -> None:
    found = Project.find(tmp_path)
    with pytest.raises(UsageError, match=r'no package to measure.* write package = "…" under'):
        _ = found.package
    with pytest.raises(UsageError, match=r'no asv\.conf\.json .* write suite = "…"'):
        _ = found.suite


@pytest.mark.parametrize(
    ("table", "line", "told"),
    [
        ("pakage = 'x'", 4, "unknown field `pakage`.*; there are package, suite"),
        ("package = 3", 4, r"Expected `str`, got `int` - at `\$\.package`"),
        ("cache = 'x'\nmeasured = ['a', 2]", 5, r"Expected `str`, got `int` - at `\$\.measured"),
        ("build.by = 'make'", 4, "Invalid value 'make' - at `\\$.build.by`"),
        ("[tool.rlox-opt.build]\nby = 'cargo'\ncrat = 'x'", 6, "unknown field `crat`"),
        ("layers.own = 'a('", 4, r"'a\(' is no regular expression"),
        ("left-out.compared = 'a('", 4, r"'a\(' is no regular expression"),
        ("layers.homes.rusty = 'a'", 4, "no layer is named 'rusty'; there are rust, torch_inf"),
        ("[[tool.rlox-opt.layers.owners]]\nmodul = 'x'", 5, "unknown field `modul`"),
        ("build = { by = 'command' }", 4, "missing required field `command`"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_would_do(
    table: str, line: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, f'[project]\nname = "x"\n[tool.rlox-opt]\n{table}\n')
    where = rf"pyproject\.toml, line {line}: \[tool\.rlox-opt\]: "
    with pytest.raises(UsageError, match=f"{where}.*{told}"):
        Project.find(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = rlox_opt("list")
    assert done.returncode == 2
    assert f"line {line}: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_no_toml_is_told_where_it_has_our_table(tmp_path: Path) -> None:
    write(tmp_path, "[tool.rlox-opt]\npackage = \n")
    with pytest.raises(UsageError, match=r"pyproject\.toml: is not TOML: .*line 2"):
        Project.find(tmp_path)
    write(tmp_path, "this = is no TOML\n")  # that is another tool's trouble
    assert Project.find(tmp_path) == Project(tmp_path, Settings())


def test_benchmarks_are_left_out_where_the_table_says_so(tmp_path: Path) -> None:
    write(tmp_path, "[tool.rlox-opt]\nleft-out = { compared = '^slow|huge' }\n")
    found = Project.find(tmp_path)
    names = ["slow.A", "not_slow.A", "quick.Huge", "quick.huge"]
    assert [name for name in names if found.compared.search(name)] == ["not_slow.A", "quick.Huge"]
    assert all(found.recorded.search(name) for name in names)


def repository(folder: Path, *packages: str) -> tuple[Path, list[str]]:
    """A checkout whose commits have the module `thing` with these texts."""
    who = ("-c", "user.name=a", "-c", "user.email=a@b")

    def git(*words: str) -> str:
        done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, check=True)
        return done.stdout.decode().strip()

    folder.mkdir()
    git("init", "--quiet")
    commits = []
    for text in packages:
        (folder / "thing.py").write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "-m", "a commit")
        commits.append(git("rev-parse", "HEAD"))
    return folder, commits


def test_a_command_builds_what_a_commit_has(tmp_path: Path) -> None:
    root, (first, second) = repository(tmp_path / "a thing", "ONE = 1\n", "TWO = 2\n")
    copies = "import shutil, sys; shutil.copy('thing.py', sys.argv[1] + '/thing.py')"
    by = Command((sys.executable, "-c", copies, "{out}"))
    project = Project(root, Settings(package="thing.py", suite=".", build=by))
    built = [project.builds.build(Revision(of, of)) for of in (first, second)]
    assert [(of.folder / "thing.py").read_text() for of in built] == ["ONE = 1\n", "TWO = 2\n"]
    assert built[0].digests != built[1].digests
    assert project.builds.build(Revision(first, first)).folder == built[0].folder


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("raise SystemExit('no compiler')", "does not build:\nno compiler"),
        ("pass", "left no thing in {out}"),
    ],
)
def test_a_command_that_fails_or_leaves_nothing_is_told(
    program: str, told: str, tmp_path: Path
) -> None:
    root, (commit,) = repository(tmp_path / "thing", "ONE = 1\n")
    by = Command((sys.executable, "-c", program, "{out}"))
    project = Project(root, Settings(package="thing", suite=".", build=by))
    with pytest.raises(NotBuiltError, match=told):
        project.builds.build(Revision(commit, commit))
    with pytest.raises(UsageError, match="features are cargo's; this project is built by"):
        project.builds.build(Revision(f"{commit}+x", commit, ("x",)))


def test_a_plug_in_that_does_not_load_is_named_by_the_verb_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_projects.write(tmp_path)
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "options.py").write_text("import no_such_module\n")
    monkeypatch.chdir(tmp_path)
    assert "does not load" not in rlox_opt("list").stderr
    done = rlox_opt("profile", "train", "run")
    assert done.returncode == 2
    assert "workloads/options.py: does not load: ModuleNotFoundError" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("list",), "holds no cards of optimisations"),
        (("cmp", "p1"), "holds no cards of optimisations"),
        (("show", "p1"), "holds no cards of optimisations; write one, a file NAME.toml, there"),
        (("predict", "all"), "holds no cards of optimisations"),
        (("test", "all"), "holds no cards of optimisations"),
        (("test", "--builds"), "holds no cards of optimisations"),
        (("cmp", "p1", "--end-to-end", "run"), "names no training runs: JOBS of .* would"),
        (("ladder", "run", "--rounds", "5"), "names no training runs: JOBS of .* would"),
        (("ladder",), "names no training runs: JOBS of .* would"),
        (("profile", "run"), r"script run: no such file\n"),
        (("profile", "train", "run", "--json"), "options.py would name .* training runs"),
        (("profile", "diff", "main", "HEAD"), "names no training runs; compare two reports"),
        (("peers",), r"peers\.toml, which says what is raced .* it is not there"),
        (("peers", "run", "--runs", "3"), r"peers\.toml, which says what is raced"),
        (("peers", "primitives"), r"primitives\.toml, which operations are timed"),
        (("calibrate",), "is no git checkout"),
        (("new", "p1", "a title"), "new.py would write the parts"),
        (("regressions",), "has no entries; `rlox-opt record`"),
        (("publish",), "holds no recordings; `rlox-opt record`"),
        (("claims",), "claims.toml"),
        (("record",), "is no git checkout"),
        (("diff", "HEAD"), "is no git checkout"),
    ],
    ids=lambda of: " ".join(of) if isinstance(of, tuple) else None,
)
def test_a_project_that_has_nothing_for_a_verb_is_told_so(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(toy_projects.write(tmp_path, 'package = "json"\nsuite = "."'))
    done = rlox_opt(*words)
    assert done.returncode == 2, done.stderr
    assert re.search(told, done.stderr), done.stderr
    assert done.stderr.count("rlox-opt ") <= 2  # its own name, and that of what would help
    assert [path.name for path in tmp_path.iterdir()] == ["pyproject.toml"]


def test_twins_of_which_no_program_is_named_are_asked_for(tmp_path: Path) -> None:
    found = toy_projects.of(tmp_path, twins=Twins())
    with pytest.raises(UsageError, match=r'worker = "…" under \[tool\.rlox-opt\.twins\]'):
        found.twins("worker")
    with pytest.raises(UsageError, match=r"R1: no tests are named; write tests\.R = "):
        agreement.python(found, ["R1"], lambda _: None)
