"""The name by which a project is imported, from the files that say how it is built."""

from __future__ import annotations

import ast
import configparser
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlox_opt.system import schema
from rlox_opt.system.files import NotReadError, read_text
from rlox_opt.system.schema import within

_SOURCES = ("", "src", "python", "lib")  # where packages lie
_BESIDE = re.compile(
    r"(tests?|testing|docs?|benchmarks?|asv_bench\w*|examples?|tools?|scripts?|ci|setup|conftest|"
    r"noxfile|tasks|versioneer|build|dist)$"
)
_MANIFEST = "Cargo.toml"
_TABLES = {  # tables that describe the project, not settings of a tool
    "pyproject.toml": re.compile(r"(?m)^\s*\[\s*(project|build-system|tool\.poetry)\s*\]"),
    "setup.cfg": re.compile(r"(?m)^\[metadata\]"),
}


def is_project(folder: Path) -> bool:
    """Whether a folder has a file that says how it is built, and not only tools' settings."""
    if (folder / "setup.py").is_file():
        return True
    for name, table in _TABLES.items():
        path = folder / name
        with contextlib.suppress(NotReadError):  # the error is raised where the file is needed
            if not path.is_symlink() and table.search(read_text(path, errors="replace")):
                return True
    return False


def is_crate(folder: Path) -> bool:
    """Whether a folder has a Cargo.toml."""
    return (folder / _MANIFEST).is_file()


def found(root: Path) -> tuple[str, str] | None:
    """The name, and the file that has it; None if nothing says that this is a project.

    Raises:
        NotReadError: pyproject.toml cannot be read.
    """
    pyproject = root / "pyproject.toml"
    table = schema.read(pyproject, dict[str, Any]) if pyproject.exists() else {}
    for keys in (("maturin", "module-name"), ("flit", "module", "name")):
        if isinstance(name := within(table, "tool", *keys), str) and name:
            return name.partition(".")[
                0
            ], f"pyproject.toml, [tool.{'.'.join(keys[:-1])}] {keys[-1]}"
    if name := _of_library(root, table):
        return name, "Cargo.toml, [lib] name"
    for name, where in (
        (within(table, "project", "name"), "pyproject.toml, [project] name"),
        (within(table, "tool", "poetry", "name"), "pyproject.toml, [tool.poetry] name"),
        (_of_setup_cfg(root / "setup.cfg"), "setup.cfg, [metadata] name"),
        (_of_setup_py(root / "setup.py"), "setup.py"),
        (_of_cargo(root), "Cargo.toml, [package] name"),
        (root.name if is_project(root) or is_crate(root) or table else "", "the folder's name"),
    ):
        if isinstance(name, str) and name.strip():
            return _imported(root, name.strip(), where)
    return None


def places(root: Path, module: str) -> list[Path]:
    """Where a module lies in a project, from its root; empty where it lies in no usual folder."""
    return [path.relative_to(root) for name, path in _modules(root) if name == module]


def _imported(root: Path, name: str, where: str) -> tuple[str, str]:
    """The module of a project, whose name may differ from the project's."""
    asked = re.sub(r"[-.\s]+", "_", name)
    there = dict(_modules(root))
    for module in there:
        if module.lower() == asked.lower():
            return module, where
    packages = [module for module, path in there.items() if path.is_dir()]
    if len(packages) == 1:
        return packages[0], f"{there[packages[0]].relative_to(root)}/, the project's only package"
    return asked, where


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Modules and packages in the folders where packages usually lie."""
    for source in dict.fromkeys((*_SOURCES, *_of_maturin(root))):
        folder = root / source
        if not folder.is_dir() or (source and (folder / "__init__.py").exists()):
            continue
        for path in sorted(folder.iterdir()):
            there = (path / "__init__.py").is_file() or (path.suffix == ".py" and path.is_file())
            if there and path.stem.isidentifier() and not _BESIDE.match(path.stem.lower()):
                yield path.stem, path


def _of_maturin(root: Path) -> list[str]:
    """The folder from which maturin takes packages, where the project names it."""
    with contextlib.suppress(NotReadError):
        table = schema.read(root / "pyproject.toml", dict[str, Any])
        named = within(table, "tool", "maturin", "python-source")
        if isinstance(named, str) and not Path(named).is_absolute():
            return [named]
    return []


def _of_setup_cfg(path: Path) -> str:
    parser = configparser.ConfigParser(interpolation=None)
    with contextlib.suppress(NotReadError, configparser.Error):
        parser.read_string(read_text(path))
    return parser.get("metadata", "name", fallback="")


def _of_cargo(root: Path) -> str:
    """The crate's name, unless the project is a Python project."""
    if is_crate(root) and not is_project(root):
        with contextlib.suppress(NotReadError):
            return str(
                within(schema.read(root / _MANIFEST, dict[str, Any]), "package", "name") or ""
            )
    return ""


def _of_library(root: Path, table: dict[str, Any]) -> str:
    """The name of the crate's library, by which maturin's module is imported."""
    if within(table, "build-system", "build-backend") != "maturin":
        return ""
    manifest = root / str(within(table, "tool", "maturin", "manifest-path") or _MANIFEST)
    with contextlib.suppress(NotReadError):
        return str(within(schema.read(manifest, dict[str, Any]), "lib", "name") or "")
    return ""


def _of_setup_py(path: Path) -> str:
    """The literal name in a call of `setup`."""
    with contextlib.suppress(NotReadError, SyntaxError, ValueError, RecursionError):
        for node in ast.walk(ast.parse(read_text(path))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("setup"):
                for keyword in node.keywords:
                    value = keyword.value
                    if keyword.arg == "name" and isinstance(value, ast.Constant):
                        return str(value.value)
    return ""
