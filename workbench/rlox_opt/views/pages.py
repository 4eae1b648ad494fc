"""Pages and pictures are written by Jinja2, from the files in `templates/`.

What is put into a template is escaped there, unless it is `Markup`. A template that names what it
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
    """The name of a script or a style sheet in a content security policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


_FILTERS = (
    *(units.seconds, units.fine_seconds, units.percent, units.interval, units.count, units.size),
    *(layer_title, digest),
)


def render(template: str, **values: object) -> Markup:
    """What a template, named from `templates/`, says of some values."""
    return Markup(environment().get_template(template).render(values))


@cache
def environment() -> Environment:
    """What templates are read in; those of a part may ask for more in one made of it."""
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
