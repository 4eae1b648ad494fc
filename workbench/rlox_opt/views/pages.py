"""Writes pages and pictures by Jinja2, from the files in `templates/`.

Values are escaped in templates, unless they are `Markup`. A template that names a value which it
was not given is an error.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rlox_opt.views import units
from rlox_opt.views.titles import layer_title


def digest(text: str) -> str:
    """The digest of a script or a style sheet, for a content security policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


_FILTERS = (
    *(units.seconds, units.fine_seconds, units.percent, units.interval, units.count, units.size),
    *(layer_title, digest),
)


def render(template: str, **values: object) -> Markup:
    """The text of a template, named from `templates/`, with these values."""
    return Markup(environment().get_template(template).render(values))


@cache
def environment() -> Environment:
    """Jinja2's environment of all templates. A part with further needs derives one from it."""
    made = Environment(
        loader=PackageLoader("rlox_opt.views"),
        auto_reload=False,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    made.filters |= {of.__name__: of for of in _FILTERS}
    return made
