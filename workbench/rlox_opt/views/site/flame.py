"""The differential flamegraph of a commit, drawn by the script of the profile report."""

from __future__ import annotations

import json
from collections.abc import Mapping

from markupsafe import Markup

from rlox_opt.history.difference import Difference
from rlox_opt.views.pages import render


def flame(found: Mapping[str, Mapping[str, Difference]]) -> Markup:
    """The differences of a commit's recordings, by title and profile, of which a reader chooses
    one; nothing where none has stacks on both sides."""
    trees = {
        f"{name.upper()}, {title}": {"of": difference.of, **tree}
        for title, own in found.items()
        for name, difference in own.items()
        if (tree := difference.tree())
    }
    if not trees:
        return Markup()
    data = json.dumps({"titles": {}, "tools": trees}, separators=(",", ":"))
    # No text within JSON can end the script that holds it.
    held = Markup(data.replace("<", "\\u003c"))
    return render("site/flame.html", titles=list(trees), data=held)
