"""The settings `[tool.rlox-opt.layers]`: whose code is whose, and how reports name it.

layers.toml beside this file has what is the same in every project.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

import msgspec


class Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part that time is divided into: its id, its title, and its colour in CSS."""

    name: str
    title: str
    colour: str


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The owner of frames whose `module` (a source file or a library) and `function` match these
    patterns. Without a layer their code works for its caller."""

    module: str
    """A pattern of source files or libraries."""

    function: str = ""
    """A pattern of functions; "" for all."""

    layer: str | None = None
    """The owner: a layer, or an owner whose code roles divide into layers."""


class Role(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The layer of some owners' code under a condition: a `function` is on the stack, one of
    `phases` is open, or the work is one of the `parts` of torch's."""

    of: tuple[str, ...]
    """The owners of the code."""

    layer: str
    """The layer that their code then counts for."""

    function: str = ""
    """A pattern of functions on the stack."""

    phases: tuple[str, ...] = ()
    """Names of phases."""

    parts: tuple[str, ...] = ()
    """Parts of torch's work, such as backward."""


class Layers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[tool.rlox-opt.layers]`. All patterns are regular expressions that are searched for."""

    owners: tuple[Owner, ...] = ()
    roles: tuple[Role, ...] = ()

    graded: dict[str, str] = {}
    """The layer of an owner that no role fits, while gradients are recorded."""

    otherwise: dict[str, str] = {}
    """The layer of an owner that no role fits."""

    parallel: dict[str, str] = {}
    """By owner: functions or libraries in which a waiting thread waits for the owner's other
    threads, and is not idle, unless it is one of their pool."""

    homes: dict[str, str] = {}
    """By layer: modules whose frames decide where no frame has an owner."""

    calls: dict[str, str] = {}
    """By owner: the layer of the C functions of Python and NumPy that the owner calls."""

    extension: str = ""
    """The compiled library whose line tables are read."""

    own: str = ""
    """Source files whose functions may be named as causes."""

    folders: tuple[str, ...] = ()
    """Folders of the root. A path is shown from such a folder on."""

    startup: str = ""
    """Python files that mark a stack as start-up."""

    def __post_init__(self) -> None:
        told = [
            self.extension,
            self.own,
            self.startup,
            *self.parallel.values(),
            *self.homes.values(),
        ]
        told += [text for owner in self.owners for text in (owner.module, owner.function)]
        for text in (*told, *(role.function for role in self.roles)):
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"{text!r} is no regular expression: {error}") from None
        if type(self) is Layers:
            self._check_names()

    def _check_names(self) -> None:
        known = [layer.name for layer in everywhere().layers]
        cast = {"torch", *self.otherwise, *(of for role in self.roles for of in role.of)}
        owners = {*(owner.layer for owner in self.owners if owner.layer), *self.calls.values()}
        told = {*(role.layer for role in self.roles), *self.otherwise.values(), *self.homes}
        told |= {*self.graded.values()}
        if wrong := sorted((told | (owners - cast)) - set(known)):
            raise ValueError(f"no layer is named {wrong[0]!r}; there are {', '.join(known)}")

    def with_general(self) -> Layers:
        """These layers with those of every project: the project's owners come first, its roles
        last."""
        general = everywhere()
        return msgspec.structs.replace(
            self,
            owners=(*self.owners, *general.owners),
            roles=(*general.roles, *self.roles),
            graded=general.graded | self.graded,
            otherwise=general.otherwise | self.otherwise,
            parallel=general.parallel | self.parallel,
            homes=general.homes | self.homes,
            calls=general.calls | self.calls,
            startup="|".join(filter(None, (general.startup, self.startup))),
        )


class General(Layers, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """layers.toml."""

    layers: tuple[Layer, ...]
    """The layers in the order in which reports name them."""


@lru_cache(maxsize=1)
def everywhere() -> General:
    """What is the same in every project."""
    text = files("rlox_opt.project").joinpath("layers.toml").read_bytes()
    return msgspec.toml.decode(text, type=General)
