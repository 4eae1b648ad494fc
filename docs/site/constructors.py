"""For griffe: classes of the compiled extension are made by `__new__`, of which a compiled class
tells no arguments. Here each gets those that the stubs name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import griffe


class Constructors(griffe.Extension):
    """Gives each class of the extension the `__init__` that its `__new__` in the stubs stands
    for."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Once the package is read."""
        core = pkg.members.get("_core")
        if not isinstance(core, griffe.Module) or not isinstance(pkg.filepath, Path):
            return
        path = pkg.filepath.with_name("_core.pyi")
        stubs = griffe.visit("_core", filepath=path, code=path.read_text(encoding="utf-8"))
        for name, stub in stubs.classes.items():
            made, real = stub.members.get("__new__"), core.members.get(name)
            if isinstance(made, griffe.Function) and isinstance(real, griffe.Class):
                own = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
                given = [one for one in made.parameters if one.name != "cls"]
                parameters = griffe.Parameters(own, *given)
                real.set_member("__init__", griffe.Function("__init__", parameters=parameters))
