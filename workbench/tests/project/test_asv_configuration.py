"""What an asv.conf.json says, by asv's rules; and what is told of one that says nothing."""

import json
import sys
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlox_opt.project.asv_configuration import Configuration, parse
from rlox_opt.system.usage import UsageError

FILE = PurePosixPath("bench/asv.conf.json")


def of(file: PurePosixPath = FILE, **keys: Any) -> Configuration:
    return parse(json.dumps({"version": 1, **keys}), file)


def test_comments_and_commas_at_the_end_are_taken_as_asv_takes_them() -> None:
    text = '\ufeff// a suite\n{\n "repo": "..", /* both */ "benchmark_dir": "of // it",\n}\n'
    found = parse(text, FILE)
    assert (found.suite, found.project) == (PurePosixPath("bench/of // it"), PurePosixPath("."))


def test_folders_are_named_from_the_file_and_told_from_the_repository() -> None:
    found = of(repo="..", repo_subdir="python", benchmark_dir="./suite/")
    assert found.suite == PurePosixPath("bench/suite")
    assert found.project == PurePosixPath("python")
    assert of(PurePosixPath("asv.conf.json"), repo=".").suite == PurePosixPath("benchmarks")
    assert of().project == PurePosixPath("."), "where nothing says so, it is the repository"
    assert of(benchmark_dir="..sub").suite == PurePosixPath("bench/..sub")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"benchmark_dir": "../../x"}, r"`benchmark_dir` is '../../x', outside .* from bench"),
        ({"benchmark_dir": "/tmp"}, "`benchmark_dir` is '/tmp', outside the repository"),
        ({"repo": "..", "repo_subdir": ".."}, "`repo_subdir` is '..', .* named from its top"),
        ({"benchmark_dir": 3}, "`benchmark_dir` is 3; it takes `str`"),
        ({"version": 2}, "`version` is 2; it takes 1"),
        ({"pythons": "3.12"}, "`pythons` is '3.12'; it takes `array`"),
        ({"matrix": ["numpy"]}, r"`matrix` is \['numpy'\]; it takes `object`"),
        ({"matrix": {"numpy": [["1.26"]]}}, "`matrix: numpy` has .* it takes texts, or null"),
        ({"matrix": {"req": {}, "numpy": []}}, "`matrix` has `numpy` beside req, env"),
        ({"matrix": {"env": {"A=B": ["1"]}}}, "`matrix: env` has 'A=B', which no variable"),
        ({"exclude": [{"python": "("}]}, r"`exclude: python` is '\(', no regular expression"),
        ({"include": [{"req": {}}]}, "a rule of `include` names no `python`"),
        ({"pythons": ["3.9"], "exclude": [{"python": "3.*"}]}, "`exclude` leaves no combination"),
    ],
)
def test_what_asv_would_not_take_is_told_with_the_key_and_what_would_do(
    keys: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=rf"^bench/asv\.conf\.json: {told}"):
        of(**keys)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "asv.conf.json: is no JSON as asv reads it: Empty"),
        ('{\n"version": 1\n"repo": "."}', "asv.conf.json, line 3: is no JSON as asv reads it: Un"),
        ("[]", "asv.conf.json: is no object of JSON"),
        ("[" * 100_000, "asv.conf.json: is nested too deeply"),
        ('{"version": ' + "9" * 5000 + "}", "asv.conf.json: is no JSON"),
        ('{"matrix": {"a": 1e999}}', "asv.conf.json: holds a number that is none of JSON"),
        (f'{{"project": "{"x" * (1 << 17)}"}}', "asv.conf.json: has 131087 characters"),
    ],
    ids=["empty", "comma", "list", "deep", "long number", "infinite", "huge"],
)
def test_a_file_that_is_broken_is_told_in_one_line(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as raised:
        parse(text, FILE)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("form", ["old", "new"])
def test_the_first_combination_is_taken_and_the_others_are_noted(form: str) -> None:
    req = {"numpy": ["1.26", "2.3"], "scipy": [], "pip+six": ["", None], "numba": None, "pd": 2}
    found = of(matrix=req if form == "old" else {"req": req, "env": {"FLAGS": ["-O2", "-O3"]}})
    assert found.requirements == ("numpy==1.26", "scipy", "six", "pd==2")
    assert found.build_env == ({} if form == "old" else {"FLAGS": "-O2"})
    (note,) = found.notes
    assert f"`matrix` has {4 if form == 'old' else 8} combinations; the first is taken: n" in note
    assert "--with NAME==VERSION" in note


def test_variables_that_builds_do_not_see_are_only_for_running() -> None:
    found = of(matrix={"env": {"A": ["1"], "B": [None]}, "env_nobuild": {"C": ["", "x"]}})
    assert found.build_env == {"A": "1"}
    assert found.run_env == {"A": "1", "C": ""}


@pytest.mark.parametrize(
    ("version", "requirement"),
    [
        (">=2,<3", "thing>=2,<3"),
        ("==1.0", "thing==1.0"),
        ("git+https://host/thing@main", "thing @ git+https://host/thing@main"),
        ("@ file:///x", "thing @ file:///x"),
    ],
)
def test_a_version_is_written_as_pip_writes_it(version: str, requirement: str) -> None:
    assert of(matrix={"thing": [version]}).requirements == (requirement,)


def test_what_is_asked_of_conda_is_looked_for_elsewhere_and_that_is_said() -> None:
    matrix = {"conda-forge::numpy": "1.26", "geos": [], "pip+six": "1.16", "mkl": "=2024.*=h1_0"}
    found = of(environment_type="conda", matrix=matrix, conda_environment_file="ci/env.yml")
    assert found.requirements == ("numpy==1.26.*", "geos", "six==1.16", "mkl==2024.*")
    assert found.not_pip == ("numpy", "geos", "mkl")
    assert "`environment_type` is conda; its packages are taken from PyPI by uv" in found.notes[0]
    assert "`conda_environment_file` is ci/env.yml, which is not read; name" in found.notes[1]
    assert of(environment_type="virtualenv", matrix=matrix).not_pip == ()


CONDA = """
name: thing
channels: [conda-forge]
dependencies:
  - python=3.12
  - pip
  - numpy>=1.26,<3
  - conda-forge::libgeos =3.12
  - scipy 1.11.*
  - pandas=2.1=py312_0
  - "pyarrow[version='>=10,<14']"
  - pip:
    - six>=1.16; python_version > "3"
    - NumPy<2
    - -r other.txt
"""


def test_what_condas_environment_file_names_is_asked_for_as_well() -> None:
    keys = {"environment_type": "mamba", "matrix": {"scipy": ["1.12"]}}
    files = {PurePosixPath("ci/env.yml"): CONDA, PurePosixPath("bench/environment.yml"): CONDA}
    named, default = (
        parse(json.dumps({**keys, **more}), FILE, files.get)
        for more in ({"conda_environment_file": "../ci/env.yml"}, {})
    )
    for found in (named, default):
        assert found.requirements == (
            "scipy==1.12.*",
            *("numpy>=1.26,<3", "libgeos==3.12.*", "pandas==2.1.*", "pyarrow>=10,<14"),
            *('six>=1.16; python_version > "3"', "NumPy<2"),
        )
        assert {*found.not_pip} == {"numpy", "libgeos", "scipy", "pandas", "pyarrow"}
        assert found.pythons == ("3.12",)
        assert "`-r other.txt` is no requirement that uv takes" in found.notes[-1]
    assert "ci/env.yml: what it names the suite has as well, from PyPI by uv" in named.notes
    ignored = parse(json.dumps({**keys, "conda_environment_file": "IGNORE"}), FILE, files.get)
    assert ignored.requirements == ("scipy==1.12.*",)
    plain = parse(json.dumps({**keys, "environment_type": "uv"}), FILE, files.get)
    assert plain.requirements == ("scipy==1.12",)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "is no YAML: while parsing"),
        ("name: x", "has no list of `dependencies`"),
        ("[" * 30_000, "is nested too deeply"),
        ("!!python/object/apply:os.getcwd []", "is no YAML: could not determine a constructor"),
        ("x" * (1 << 17), "has 131072 characters"),
    ],
    ids=["broken", "empty", "deep", "program", "huge"],
)
def test_an_environment_file_of_conda_that_is_none_is_told(text: str, told: str) -> None:
    found = parse('{"environment_type": "conda"}', FILE, lambda of: text)
    assert f"bench/environment.yml: {told}" in found.notes[-1]
    assert found.notes[-1].endswith("is not read; name what the suite needs of it by --with NAME")
    assert len(found.notes[-1].splitlines()) == 1


def test_options_of_pip_and_folders_are_left_out_with_a_note() -> None:
    found = of(matrix={"pip+-e ../other": [""], "pip+git+https://host/x": ["v1"], "y[z]": []})
    assert found.requirements == ("git+https://host/x@v1", "y[z]")
    assert "`pip+-e ../other` is no requirement that uv takes" in found.notes[0]


def test_rules_leave_combinations_and_versions_of_python_out() -> None:
    matrix = {"req": {"numpy": ["1.26", "2.3"], "six": [None, ""]}}
    rules = [{"python": "3.1[34]", "req": {"numpy": "1.*"}}, {"req": {"six": None}}]
    found = of(pythons=["3.12", "3.13", "3.14"], matrix=matrix, exclude=rules)
    assert found.requirements == ("numpy==1.26", "six")
    assert found.pythons == ("3.12",)
    found = of(pythons=["3.13", "3.12"], matrix=matrix, exclude=rules)
    assert found.requirements == ("numpy==2.3", "six")
    assert found.pythons == ("3.13", "3.12")


@pytest.mark.parametrize("kind", ["conda", "mamba", "virtualenv"])
def test_rules_for_conda_are_not_those_for_packages_of_pypi(kind: str) -> None:
    matrix = {"pytables": [None, ""], "tables": [None, ""]}
    rules: list[dict[str, Any]] = [
        {"environment_type": "conda", "tables": ""},
        {"environment_type": "conda", "pytables": None},
        {"environment_type": "(?!conda).*", "tables": None},
        {"environment_type": "(?!conda).*", "pytables": ""},
    ]
    assert of(environment_type=kind, matrix=matrix, exclude=rules).requirements == ("tables",)


def test_rules_that_leave_conda_alone_are_those_for_conda() -> None:
    rules = [{"environment_type": "(?!conda).*"}]
    found = of(environment_type="conda", matrix={"six": []}, exclude=rules)
    assert found.requirements == ("six",)


def test_where_all_is_left_out_the_first_that_is_included_here_is_taken() -> None:
    added = [
        {"python": "3.9", "sys_platform": "amiga", "req": {"a": "1"}},
        {"python": "3.10", "sys_platform": sys.platform, "req": {"b": "2", "c": None}},
    ]
    found = of(pythons=["3.12"], matrix={"x": []}, exclude=[{"python": ".*"}], include=added)
    assert (found.requirements, found.pythons) == (("b==2",), ("3.10",))


def test_a_matrix_of_more_combinations_than_atoms_takes_no_time() -> None:
    matrix = {f"p{n}": ["1", "2", "3"] for n in range(100)}
    assert "has millions of combinations" in of(matrix=matrix).notes[0]
    with pytest.raises(UsageError, match="of the first 10000; take a rule out"):
        of(matrix=matrix, exclude=[{"p0": ".*"}])


def test_commands_are_texts_or_lists_and_nothing_is_the_default() -> None:
    found = of(build_command="make {build_dir}", install_command=["a {wheel_file}", "b"])
    assert found.build_command == ("make {build_dir}",)
    assert found.install_command == ("a {wheel_file}", "b")
    assert of(build_command=None, install_command=[]).build_command == ()


def test_commands_for_environments_that_a_plug_in_makes_are_left_out_and_that_is_said() -> None:
    keys = {"build_command": "python {conf_dir}/install.py", "install_command": []}
    found = of(environment_type="delegated", **keys)
    assert not found.by_commands
    (note,) = found.notes
    assert "`environment_type` is delegated; environments are made by uv, and the project's" in note
    assert note.endswith("builds the package: `build_command` may need a plug-in of asv")
    for own in ("conda", "rattler", "virtualenv", "uv", "existing"):
        assert of(environment_type=own, **keys).by_commands
    assert "without" not in of(environment_type="delegated").notes[0]


@pytest.mark.parametrize(
    "repo",
    ["https://host/x.git", "git@host:x/y.git", "/home/me/x", "~/x", "ssh://host/x", "../../x"],
)
def test_another_repository_is_noted_and_kept(repo: str) -> None:
    found = of(repo=repo, repo_subdir="python")
    assert (found.elsewhere, found.project) == (repo, PurePosixPath("python"))
    assert f"`repo` is {repo}; what is built is the repository" in found.notes[0]


def test_a_key_that_asv_does_not_know_is_noted_with_the_nearest() -> None:
    found = of(benchmarks_dir="x", colour="red")
    assert found.notes == (
        "bench/asv.conf.json: `benchmarks_dir` is no setting of asv's, and is passed over; "
        "did you mean `benchmark_dir`?",
        "bench/asv.conf.json: `colour` is no setting of asv's, and is passed over",
    )


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_NAMES = st.sampled_from(["req", "env", "env_nobuild", "python", "numpy", "pip+x"]) | st.text(
    max_size=4
)
_ANY = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=12,
)
_READ = ("version", "repo", "repo_subdir", "benchmark_dir", "pythons", "environment_type", "matrix")
_KEYS = st.sampled_from([*_READ, "exclude", "include", "build_command", "install_command", "other"])


@given(
    _ANY
    | st.dictionaries(_KEYS, _ANY, max_size=5)
    | st.dictionaries(
        st.sampled_from(["matrix", "exclude", "include"]),
        st.dictionaries(_NAMES, _ANY, max_size=4)
        | st.lists(st.dictionaries(_NAMES, _LEAVES | st.dictionaries(_NAMES, _LEAVES)), max_size=3),
    )
)
@example({"benchmark_dir": "\0"})
@example({"matrix": {"req": {"\ud800": ["\ud800"]}}})
@settings(max_examples=300)
def test_any_json_is_a_configuration_or_told_in_one_line(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        try:
            found = parse(text, FILE)
        except UsageError as error:
            assert str(error).startswith("bench/asv.conf.json")
            assert len(str(error).splitlines()) == 1
        else:
            assert not found.suite.is_absolute()
            assert ".." not in found.suite.parts
            assert all(len(note.splitlines()) == 1 for note in found.notes)


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_any_text_is_a_configuration_or_told_in_one_line(text: str) -> None:
    try:
        parse(text, FILE)
    except UsageError as error:
        assert len(str(error).splitlines()) == 1
