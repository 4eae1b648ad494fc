"""What the install commands of an asv.conf.json bring into an environment."""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

from rlox_opt.project import asv_install
from rlox_opt.project.asv_configuration import parse
from rlox_opt.project.asv_install import Installed
from rlox_opt.project.builders.wheels import Built

FILE = PurePosixPath("bench/asv.conf.json")


def read(*commands: str, project: str = ".", files: Mapping[str, str] | None = None) -> Installed:
    there = files or {}
    return asv_install.read(commands, FILE, PurePosixPath(project), lambda of: there.get(str(of)))


@pytest.mark.parametrize(
    ("command", "extras", "requirements"),
    [
        ("in-dir={env_dir} python -mpip install {wheel_file}[all]", ["all"], []),
        ("python -m pip install {build_dir}[all,testing]", ["all", "testing"], []),
        ("pip install .[full]", ["full"], []),
        ("in-dir={build_dir} pip3 install -e '.[a, b]'", ["a", "b"], []),
        ("A=1 python3.11 -m pip install -U 'numpy>=1.26' {wheel_file}", [], ["numpy>=1.26"]),
        ("{env_dir}/bin/pip install --upgrade-strategy eager six", [], ["six"]),
        ("uv pip install git+https://host/x@v1 y[z]", [], ["git+https://host/x@v1", "y[z]"]),
        ("python -m pip install {wheel_file} --force-reinstall", [], []),
        ("in-dir={env_dir} pip install .[no]", [], [".[no]"]),
        ("pip install {build_dir}/tests[no]", [], ["{build_dir}/tests[no]"]),
    ],
)
def test_extras_of_the_project_and_requirements_are_read(
    command: str, extras: list[str], requirements: list[str]
) -> None:
    for project in (".", "python"):
        found = read(command, project=project)
        assert (found.extras, found.requirements) == (extras, requirements)
        assert found.notes == []


@pytest.mark.parametrize(
    "command",
    [
        "return-code=any python -c 'import shutil'",
        "make install",
        "conda install --yes six",
        "sh -c 'pip install six'",
        "pip install 'six",
        "pip install -r",
        "",
    ],
)
def test_any_other_command_is_told(command: str) -> None:
    found = read(command, "pip install alpha")
    assert found.requirements == ["alpha"]
    (note,) = found.notes
    assert note.startswith(f"bench/asv.conf.json: `{command}` of `install_command` brings nothing")
    assert note.endswith("--with NAME adds what it should")


def test_files_of_requirements_are_read_with_those_that_they_include() -> None:
    files = {
        "python/all.txt": "# all\n\nalpha>1  # why\n-r more/x.txt\nb==1 \\\n    --hash=sha256:0\n",
        "python/more/x.txt": "-r ../all.txt\ngamma\n-e .\n",
        "bench/own.txt": "delta\n",
    }
    command = "pip install -r all.txt --requirement={conf_dir}/own.txt -rgone.txt"
    found = read(command, project="python", files=files)
    assert found.requirements == ["alpha>1", "gamma", "-e .", "b==1", "delta"]
    (note,) = found.notes
    assert "`install_command` names python/gone.txt, which is not read; name what the" in note


def test_indexes_and_constraints_that_only_pip_would_heed_are_told() -> None:
    found = read("pip install -f https://x.example torch==2.0 -c limits.txt")
    assert found.requirements == ["torch==2.0"]
    (note,) = found.notes
    assert "has pip heed https://x.example, limits.txt, and uv does not; name them by" in note


def test_the_matrix_goes_before_and_what_uv_does_not_take_is_told() -> None:
    commands = ["pip install six seaborn /abs", "in-dir={env_dir} pip install {wheel_file}[x]"]
    keys = {"matrix": {"six": ["1.16"]}, "install_command": commands, "project": "My.Thing"}
    found = parse(json.dumps(keys), FILE)
    assert found.requirements == ("six==1.16", "seaborn")
    assert (found.extras, found.distribution) == (("x",), "My.Thing")
    assert "`/abs` is no requirement that uv takes" in found.notes[-1]
    assert not found.by_commands, "the wheel is the back-end's"
    assert parse(json.dumps({**keys, "build_command": "make"}), FILE).by_commands
    assert parse('{"install_command": "pip install ."}', FILE).by_commands
    assert parse('{"project": "My Thing"}', FILE).distribution == ""


def test_what_a_package_needs_is_that_of_the_extras_and_of_those_that_they_name() -> None:
    requirements = (
        "alpha",
        "beta>1; extra == 'all'",
        "gamma; python_version < '4' and extra == 'all'",
        "my-thing[all]; extra == 'a_few'",
        "delta; extra == 'other'",
        "epsilon; python_version < '4'",
    )
    built = Built("My.Thing", "1", "", requirements, {}, (), {}, {})
    own = ("alpha", "epsilon; python_version < '4'")
    more = ("beta>1", 'gamma; python_version < "4" and python_version >= "3"')
    assert built.needs() == own
    for extras in (["all"], ["A.Few"]):
        assert built.needs(extras) == tuple(sorted((*own, *more)))
    assert built.needs(["nothing"]) == own
