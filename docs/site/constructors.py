"""For griffe, which reads the docstrings: what it would not find, or misread, in the compiled
extension."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import griffe


class Constructors(griffe.Extension):
    """Classes of the extension are made by `__new__`, of which a compiled class tells no arguments:
    each gets those that the stubs name. Docstrings are Google's in Python and NumPy's in Rust.
    """

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Once the package is read."""
        core = pkg.members.get("_core")
        if not isinstance(core, griffe.Module) or not isinstance(pkg.filepath, Path):
            return
        _read(pkg, griffe.Parser.google)
        _read(core, griffe.Parser.numpy)
        path = pkg.filepath.with_name("_core.pyi")
        stubs = griffe.visit("_core", filepath=path, code=path.read_text(encoding="utf-8"))
        for name, stub in stubs.classes.items():
            made, real = stub.members.get("__new__"), core.members.get(name)
            if isinstance(made, griffe.Function) and isinstance(real, griffe.Class):
                own = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
                given = [one for one in made.parameters if one.name != "cls"]
                parameters = griffe.Parameters(own, *given)
                real.set_member("__init__", griffe.Function("__init__", parameters=parameters))


def _read(of: griffe.Object, style: griffe.Parser) -> None:
    """Give all docstrings below an object their style. Griffe would take the style of whichever
    page it made first for all of the package."""
    for member in of.members.values():
        if isinstance(member, griffe.Alias):
            continue
        if member.docstring:
            member.docstring.parser = style
            # griffe parses a type that is valid Python, and then prints the shape (n,) as (n).
            text = member.docstring.value
            member.docstring.value = text.replace("ndarray, shape (", "ndarray of shape (")
        _read(member, style)
