"""Builds by the back-ends that people use, which an index has: they need the network."""

import shutil
from pathlib import Path

import pytest
from small_projects import builds, git, of, repository, said

from rlox_opt.project import parity, releases
from rlox_opt.project.builds import same_parts

pytestmark = pytest.mark.slow

C = """
#include <Python.h>
static PyObject *one(PyObject *self, PyObject *none) { return PyLong_FromLong(1); }
static PyMethodDef methods[] = {{"one", one, METH_NOARGS, 0}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "thing_c", 0, -1, methods};
PyMODINIT_FUNC PyInit_thing_c(void) { return PyModule_Create(&module); }
"""
SETUP = "from setuptools import setup, Extension\nsetup(name='thing', py_modules=['thing']{more})\n"
PYX = "def one(n):\n    return sum(i for i in range(n)) * 0 + 1\n"
PROJECT = '[project]\nname = "thing"\nversion = "1"\n'


def system(back_end: str, *requires: str) -> str:
    listed = ", ".join(f'"{of}"' for of in requires)
    return f'[build-system]\nrequires = [{listed}]\nbuild-backend = "{back_end}"\n'


PROJECTS: dict[str, dict[str, str]] = {
    "setuptools by setup.py alone": {"setup.py": SETUP.format(more=", version='1'")},
    "setuptools, a C extension, setuptools_scm": {
        "setup.py": SETUP.format(
            more=", use_scm_version=True, ext_modules=[Extension('thing_c', ['thing_c.c'])]"
        ),
        "thing_c.c": C,
        "pyproject.toml": system("setuptools.build_meta", "setuptools", "setuptools_scm"),
    },
    "flit": {
        "thing.py": '"""A thing."""\n__version__ = "1"\n',
        "pyproject.toml": system("flit_core.buildapi", "flit_core")
        + '[project]\nname = "thing"\ndynamic = ["version", "description"]\n',
    },
    "hatchling, hatch-vcs": {
        "pyproject.toml": system("hatchling.build", "hatchling", "hatch-vcs")
        + '[project]\nname = "thing"\ndynamic = ["version"]\n[tool.hatch.version]\n'
        'source = "vcs"\n[tool.hatch.build]\ninclude = ["thing.py"]\n',
    },
    "meson-python": {
        "pyproject.toml": system("mesonpy", "meson-python") + PROJECT,
        "meson.build": "project('thing', 'c')\npy = import('python').find_installation()\n"
        "py.install_sources('thing.py')\n"
        "py.extension_module('thing_c', 'thing_c.c', install: true)\n",
        "thing_c.c": C,
    },
    "scikit-build-core": {
        "pyproject.toml": system("scikit_build_core.build", "scikit-build-core") + PROJECT,
        "CMakeLists.txt": "cmake_minimum_required(VERSION 3.15)\nproject(thing C)\n"
        "find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)\n"
        "python_add_library(thing_c MODULE thing_c.c WITH_SOABI)\n"
        "install(TARGETS thing_c DESTINATION .)\ninstall(FILES thing.py DESTINATION .)\n",
        "thing_c.c": C,
    },
}


@pytest.mark.parametrize("name", PROJECTS)
def test_two_commits_are_built_by_the_same_back_end(tmp_path: Path, name: str) -> None:
    files = {"thing.py": "", "README": "1\n"} | PROJECTS[name]
    first, second = repository(tmp_path / "thing", files, {"README": "2\n"})
    git(tmp_path / "thing", "tag", "v1.0", first)
    project = builds(tmp_path / "thing")
    base = project.build(of(first))
    head = project.build(of(second), base)
    module = "thing_c" if "thing_c.c" in files else "thing"
    for side in (base, head):
        assert said(side, f"import {module}; print({module}.__name__)") == module
    assert base.folder != head.folder
    assert same_parts(base, head) == [*base.digests], "they differ in the version alone"
    assert parity.findings(base, head) == []


@pytest.mark.parametrize("version", ["0.29.37", "3.0.12", ""])
def test_the_tracing_of_cython_is_found(tmp_path: Path, version: str) -> None:
    cython = f"Cython=={version}" if version else "Cython"
    more = (
        ", version='1', ext_modules=__import__('Cython.Build').Build.cythonize("
        "'fast.pyx', compiler_directives={'language_level': 3, 'profile': PROFILE})"
    )
    setup = f"PROFILE = False\n{SETUP.format(more=more)}"
    table = system("setuptools.build_meta", "setuptools", cython)
    plain = {"thing.py": "", "fast.pyx": PYX, "pyproject.toml": table, "setup.py": setup}
    traced = {"setup.py": setup.replace("False", "True")}
    first, second = repository(tmp_path / "thing", plain, traced)
    project = builds(tmp_path / "thing")
    base = project.build(of(first))
    head = project.build(of(second), base)
    assert said(head, "import fast; print(fast.one(3))") == "1"
    assert "Cython's tracing is on in head alone." in parity.findings(base, head)[0]


def test_both_sides_have_the_same_cython_unless_a_commit_asks_for_another(tmp_path: Path) -> None:
    table = system("setuptools.build_meta", "setuptools", "Cython{}")
    setup = SETUP.format(more=", version='1'")
    first, second, third = repository(
        tmp_path / "thing",
        {"thing.py": "", "setup.py": setup, "pyproject.toml": table.format("<3.1")},
        {"pyproject.toml": table.format("")},
        {"pyproject.toml": table.format(">=3.1")},
    )
    project = builds(tmp_path / "thing")
    base = project.build(of(first))
    same, other = (project.build(of(commit), base) for commit in (second, third))
    assert base.made["build environment"] == same.made["build environment"]
    assert parity.findings(base, same) == []
    (told,) = parity.findings(base, other)
    assert told.startswith("build requirement cython: 3.0.")
    assert told.endswith("as the commit's own metadata asks for.")


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo")
def test_features_of_a_maturin_project_are_those_asked_for(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": system("maturin", "maturin>=1,<2") + PROJECT,
        "Cargo.toml": '[package]\nname = "thing"\nversion = "1.0.0"\nedition = "2021"\n[lib]\n'
        'crate-type = ["cdylib"]\n[features]\nfast = []\n[dependencies]\n'
        'pyo3 = { version = "0.25", features = ["extension-module"] }\n',
        "src/lib.rs": "use pyo3::prelude::*;\n#[pymodule]\n"
        "fn thing(m: &Bound<'_, PyModule>) -> PyResult<()> {\n"
        '    m.add("FAST", cfg!(feature = "fast"))\n}\n',
    }
    (first,) = repository(tmp_path / "thing", files)
    project = builds(tmp_path / "thing")
    asks = "import thing; print(thing.FAST)"
    own = '[tool.maturin]\nfeatures = ["fast"]\n'
    (second,) = repository(tmp_path / "thing", {"pyproject.toml": files["pyproject.toml"] + own})
    built = [project.build(of(first, on)) for on in (None, ("fast",))]
    built += [project.build(of(second, on)) for on in (None, ())]
    assert [said(side, asks) for side in built] == ["False", "True", "True", "False"]
    assert [side.features for side in built] == [(), ("fast",), ("fast",), ()]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
def test_what_a_back_end_asks_for_while_it_builds_has_its_version_fixed(tmp_path: Path) -> None:
    table = PROJECTS["scikit-build-core"]["pyproject.toml"]
    fixed = table + '[tool.scikit-build]\ncmake.version = ">=3.99"\nninja.version = ">=1.12"\n'
    files = {"thing.py": ""} | PROJECTS["scikit-build-core"] | {"pyproject.toml": fixed}
    (first,) = repository(tmp_path / "thing", files)
    built = builds(tmp_path / "thing").build(of(first))
    assert "cmake" in built.made["build requirements"]
    assert "cmake==" in built.made["build environment"]


def test_a_release_runs_with_what_it_requires_and_may_be_built_here(tmp_path: Path) -> None:
    repository(tmp_path / "thing", {"thing.py": ""})
    project = builds(tmp_path / "thing", "toolz")
    base, head = (project.build(releases.resolve(f"pypi:toolz=={v}")) for v in ("0.12.0", "1.0.0"))
    assert said(base, "import toolz; print(toolz.__version__)") == "0.12.0"
    assert parity.findings(base, head) == []
    built = project.build(releases.resolve("pypi:docopt==0.6.2"))  # has no wheel
    assert built.made["builder"] == releases.FROM_SOURCES
    assert parity.findings(built, head)[0].startswith("how it is built: a release, built here from")
