"""Compiles an extension module for a program, or leaves the program out where nothing compiles."""

import importlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

NOT_HERE = 77  # the exit status of a program that cannot run here


def left_out(needs: str) -> None:
    """End the program, and say what it needs."""
    print(f"needs {needs}", file=sys.stderr)
    sys.exit(NOT_HERE)


def extension(name: str, source: Path, *flags: str) -> ModuleType:
    """The module of a C source, imported from the source's folder."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        left_out("a C compiler")
    assert compiler is not None
    include = sysconfig.get_paths()["include"]
    target = source.with_name(f"{name}.so")
    command = [compiler, "-O2", "-shared", "-fPIC", *flags, f"-I{include}", str(source)]
    subprocess.run([*command, "-o", str(target)], check=True)
    sys.path.insert(0, str(source.parent))
    return importlib.import_module(name)
