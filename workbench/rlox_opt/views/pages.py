"""Pages and pictures are written by Jinja2, from the files in `templates/`.

What is put into a template is escaped there, unless it is `Markup`. A template that names what it
was not given is an error.
"""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rlox_opt.views import units
from rlox_opt.views.titles import layer_title

_FILTERS = (units.seconds, units.percent, units.interval, units.count, units.size, layer_title)


def render(template: str, **values: object) -> Markup:
    """What a template, named from `templates/`, says of some values."""
    return Markup(_environment().get_template(template).render(values))


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("rlox_opt.views"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {of.__name__: of for of in _FILTERS}
    return made
