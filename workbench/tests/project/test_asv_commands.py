"""Builds by the commands of an asv.conf.json."""

from pathlib import Path
from typing import NamedTuple

import pytest
import small_projects
from small_projects import ASKS, builds, of, own, repository, said

from rlox_opt.project.builders import asv_command, pep517, wheels
from rlox_opt.project.builds import NotBuiltError
from rlox_opt.project.commits import Revision
from rlox_opt.project.interpreters import running
from rlox_opt.system.usage import UsageError

ZIPS = """
import pathlib, sys
sys.path.insert(0, "backend")
import inner
assert inner.build_wheel(sys.argv[1])
"""


class Thing(NamedTuple):
    """A repository and its only commit."""

    root: Path
    commit: str


@pytest.fixture(autouse=True)
def nothing_from_outside(
    tmp_path: Path, machine: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what asv installs wherever it builds."""
    index = small_projects.index(tmp_path / "index", monkeypatch)
    for name in ("pip", "build"):
        small_projects.wheel(index, name, "1.0")
    cache, compilers = machine
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    monkeypatch.setattr(wheels, "compilers", lambda _: compilers)


@pytest.fixture(scope="module")
def thing(tmp_path_factory: pytest.TempPathFactory) -> Thing:
    """One that each test builds in its own way, so that none takes another's wheel; the
    environments to build in are the same."""
    root = tmp_path_factory.mktemp("one") / "thing"
    (first,) = repository(root, own(**{"zips.py": ZIPS}))
    return Thing(root, first)


@pytest.fixture(scope="module")
def telling(tmp_path_factory: pytest.TempPathFactory) -> Thing:
    """One whose wheel tells which versions pip is told of builds apart."""
    tells = 'told = os.environ["PIP_BUILD_CONSTRAINT"]; '
    tells += 'files["told.py"] = f"TOLD = {told!r}".encode()'
    root = tmp_path_factory.mktemp("telling") / "thing"
    (first,) = repository(root, own(more=tells, **{"zips.py": ZIPS}))
    return Thing(root, first)


def test_asvs_commands_make_the_wheel_with_its_placeholders_and_prefixes(tmp_path: Path) -> None:
    told = (
        "files[\"told.py\"] = f\"TOLD = {os.environ['TOLD'], os.environ['ASV_COMMIT']}\".encode()"
    )
    (first,) = repository(tmp_path / "thing", own(more=told, **{"zips.py": ZIPS}))
    commands = (
        "return-code=3 python -c 'raise SystemExit(3)'",
        'in-dir={env_dir} TOLD={project} python -c \'import os; os.chdir("{build_dir}"); '
        'import runpy, sys; sys.argv = ["", "{build_cache_dir}"]; runpy.run_path("zips.py")\'',
    )
    project = builds(tmp_path / "thing", build_command=commands)
    built = project.build(of(first))
    assert said(built, "import told; print(*told.TOLD)") == f"thing {first}"
    assert built.made["builder"] == "the commands of asv.conf.json"
    assert project.build(of(first)).folder == built.folder


def test_asvs_commands_build_with_the_versions_of_the_other_side_also_apart(tmp_path: Path) -> None:
    # As pip does in an environment of its own, for what is asked for besides.
    reads = 'told = open(os.environ["PIP_CONSTRAINT"]).read(); '
    reads += 'files["told.py"] = f"TOLD = {told!r}".encode()'
    text = small_projects.backend(reads) + ASKS.format('"alpha"')
    files = own(**{"zips.py": ZIPS}) | {"backend/inner.py": text}
    first, second = repository(tmp_path / "thing", files, {"thing.py": "ONE = 2\n"})
    project = builds(tmp_path / "thing", build_command=("python zips.py {build_cache_dir}",))
    base = project.build(of(first))
    small_projects.wheel(tmp_path / "index", "alpha", "3.0")
    head = project.build(of(second), base)
    told = [said(side, "import told; print(told.TOLD)").splitlines() for side in (base, head)]
    assert told[0] == told[1] == base.made["build environment"].splitlines()
    assert "alpha==2.0" in told[0]


@pytest.mark.parametrize(
    ("before", "after", "apart"),
    [
        ("", "", True),
        ("", " --no-build-isolation", False),
        ("PIP_NO_BUILD_ISOLATION=False ", "", False),  # pip turns the variable's meaning around
        ("PIP_NO_BUILD_ISOLATION=1 ", "", True),
    ],
)
def test_pip_is_told_no_versions_of_a_build_apart_that_it_is_to_do_without(
    before: str, after: str, apart: bool, telling: Thing
) -> None:
    command = f"{before}python zips.py {{build_cache_dir}}{after}"
    built = builds(telling.root, build_command=(command,)).build(of(telling.commit))
    assert bool(said(built, "import told; print(told.TOLD)")) is apart


def test_commits_share_the_folder_into_which_their_back_end_compiles_rust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    small_projects.wheel(tmp_path / "index", "maturin", "1.0")
    tells = 'told = os.environ["CARGO_TARGET_DIR"]; files["told.py"] = f"TOLD = {told!r}".encode()'
    table = small_projects.PYPROJECT.replace("requires = []", 'requires = ["maturin"]')
    files = own(more=tells, **{"setup.py": ZIPS, "pyproject.toml": table})
    (first,) = repository(tmp_path / "thing", files)
    project = builds(tmp_path / "thing", build_command=("python setup.py {build_cache_dir}",))
    built = project.build(of(first))
    folder = project.folder / f"target-{running().abi}"
    assert said(built, "import told; print(told.TOLD)") == str(folder)


@pytest.mark.parametrize(
    ("requires", "command", "shared"),
    [
        ("setuptools-rust", "pip wheel .", True),
        ("maturin", "python -mpip wheel .", True),
        ("maturin", "make wheel", False),
        ("setuptools", "pip wheel .", False),
        ("maturin", "cargo build --release", False),
        ("maturin", "cp target/wheels/thing.whl {build_cache_dir}", False),
    ],
)
def test_they_share_none_where_commands_may_look_for_it_in_the_checkout(
    requires: str, command: str, shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = pep517.Asked(requires=(requires,))
    for own_one in ("", "/own"):
        monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
        if own_one:
            monkeypatch.setenv("CARGO_TARGET_DIR", own_one)
        told = asv_command.variables((command,), asked, tmp_path / "given", tmp_path)
        assert ("CARGO_TARGET_DIR" in told) is (shared and not own_one)


def test_asvs_commands_that_only_install_leave_what_they_installed(tmp_path: Path) -> None:
    (first,) = repository(tmp_path / "thing", own())
    copies = "import shutil, sysconfig as s; to = s.get_path('purelib'); "
    copies += "shutil.copy('{build_dir}/thing.py', to); "
    copies += "shutil.copytree('{conf_dir}/thing.dist-info', to + '/thing-1.dist-info')"
    metadata = {"thing.dist-info/METADATA": "Metadata-Version: 2.1\nName: thing\nVersion: 1\n"}
    (second,) = repository(tmp_path / "thing", metadata)
    assert first != second
    project = builds(tmp_path / "thing", install_command=(f'python -c "{copies}"',))
    built = project.build(of(second))
    assert (built.folder / "thing.py").is_file()
    assert built.packages == ("thing",)


@pytest.mark.parametrize("name", ["Thing", ""])  # without one, that of the package counts
def test_of_several_wheels_the_one_of_the_project_is_taken(thing: Thing, name: str) -> None:
    wheels = [f"{{build_cache_dir}}/{of}-1-py3-none-any.whl" for of in ("thing", "a_part")]
    copies = f"import shutil; shutil.copy({wheels[0]!r}, {wheels[1]!r})"
    commands = ("python zips.py {build_cache_dir}", f'python -c "{copies}"')
    project = builds(thing.root, build_command=commands, distribution=name)
    assert project.build(of(thing.commit)).packages == ("thing",)
    other = builds(thing.root, build_command=commands, distribution="another")
    told = r"left a_part-1\S*, thing-1\S*; let it leave one alone, as `pip wheel --no-deps` does"
    with pytest.raises(NotBuiltError, match=told):
        other.build(of(thing.commit))


def test_extras_that_asv_installs_are_installed(tmp_path: Path) -> None:
    needs = "requires = \"Requires-Dist: alpha<2; extra == 'all'\\n"
    needs += "Requires-Dist: thing[all]; extra == 'most'\\n\""
    (first,) = repository(tmp_path / "thing", own(more=needs))
    for extras, environment in (((), ""), (("most",), "alpha==1.5")):
        commands = ("python -c pass", "pip install {wheel_file}")
        built = builds(tmp_path / "thing", extras=extras, install_command=commands).build(of(first))
        assert built.made["environment"] == environment
        assert built.made["builder"] == "PEP 517, inner"


def test_a_version_that_cannot_be_had_for_the_build_gives_way_and_is_told(thing: Thing) -> None:
    root, first = thing
    command = ("python zips.py {build_cache_dir}",)
    outdated = builds(root, build_command=command, requirements=("alpha==0.1",))
    built = outdated.build(of(first))
    (note,) = built.notes
    assert "alpha==0.1 cannot be had with Python" in note
    assert "and what the package requires, and is asked for without a version; --with" in note
    asked = ["alpha==2.0", "build==1.0", "pip==1.0"]
    assert built.made["build environment"].splitlines() == asked
    given = outdated.build(Revision(first[:10], first, extra=("alpha==1.0",)))
    assert given.made["build environment"].splitlines() == ["alpha==1.0", *asked[1:]]
    assert given.notes == ()
    remedy = r"for want of .*delta.*; --python VERSION takes another .*, and --with NAME==VERSION"
    with pytest.raises(NotBuiltError, match=remedy):
        builds(root, build_command=command, requirements=("delta",)).build(of(first))


def test_what_only_conda_names_is_not_there_for_the_build_either(thing: Thing) -> None:
    names = ("alpha", "beta")
    asks = {"requirements": names, "not_pip": names, "environment_type": "conda"}
    commands = ("python zips.py {build_cache_dir} alpha",)  # which names it as well
    built = builds(thing.root, build_command=commands, **asks).build(of(thing.commit))
    asked = ["alpha==2.0", "build==1.0", "pip==1.0"]
    assert built.made["build environment"].splitlines() == asked


def test_what_asv_always_installs_is_there_to_run_with_where_conda_names_it(thing: Thing) -> None:
    command = ("python zips.py {build_cache_dir}",)
    asks = {"requirements": ("build",), "not_pip": ("build",), "environment_type": "conda"}
    built = builds(thing.root, build_command=command, **asks).build(of(thing.commit))
    assert built.made["environment"] == "build==1.0"
    assert built.notes == ()


@pytest.mark.parametrize(
    ("command", "error", "told"),
    [
        ("python -c 'raise SystemExit(3)'", NotBuiltError, "does not build"),
        ("python -c pass", NotBuiltError, "should leave one wheel, and left none"),
        ("no-such-program", UsageError, "'no-such-program', which a command starts with, is nei"),
    ],
)
def test_asvs_commands_that_fail_are_told(
    thing: Thing, command: str, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        builds(thing.root, build_command=(command,)).build(of(thing.commit))


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("python {no_such}", r"names \{no_such\}, which there is not; there are \{build_cache"),
        ("python {wheel_file}", r"names \{wheel_file\}, and no wheel is in \{build_cache_dir\}"),
        ("A=1", "names no program to run"),
        ("python 'x", "is no command: No closing quotation"),
    ],
)
def test_what_is_wrong_with_a_command_shows_before_anything_is_made(
    thing: Thing, command: str, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        builds(thing.root, build_command=(command,)).check(of(thing.commit))


def test_versions_reach_pip_also_where_the_path_has_spaces(tmp_path: Path) -> None:
    reads = 'told = os.environ["PIP_CONSTRAINT"]; '
    reads += 'files["told.py"] = f"WHERE, TOLD = {told!r}, {open(told).read()!r}".encode()'
    text = small_projects.backend(reads) + ASKS.format('"alpha"')
    files = own(**{"zips.py": ZIPS}) | {"backend/inner.py": text}
    (first,) = repository(tmp_path / "my thing", files)
    project = builds(tmp_path / "my thing", build_command=("python zips.py {build_cache_dir}",))
    built = project.build(of(first))
    assert " " not in said(built, "import told; print(told.WHERE)")
    assert "alpha==2.0" in said(built, "import told; print(told.TOLD)")


@pytest.mark.parametrize("commands", [(), ("python zips.py {build_cache_dir}",)])
def test_the_user_s_module_path_does_not_reach_builds(
    commands: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tells = 'told = os.environ.get("PYTHONPATH"); files["told.py"] = f"TOLD = {told!r}".encode()'
    (first,) = repository(tmp_path / "thing", own(more=tells, **{"zips.py": ZIPS}))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    built = builds(tmp_path / "thing", build_command=commands).build(of(first))
    assert said(built, "import told; print(told.TOLD or '')") == ""


def test_a_command_that_cannot_be_started_is_a_build_that_fails(tmp_path: Path) -> None:
    (first,) = repository(tmp_path / "thing", own(**{"made.sh": "#!/no/such/shell\n"}))
    commands = ("chmod +x {build_dir}/made.sh", "{build_dir}/made.sh")
    with pytest.raises(NotBuiltError, match=r"made\.sh: No such file or directory"):
        builds(tmp_path / "thing", build_command=commands).build(of(first))
