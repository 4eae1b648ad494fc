"""The differential flamegraph of a commit, drawn by the script of the profile report."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rlox_opt.history.difference import Difference
from rlox_opt.views.site.layout import Html, join, paragraph, tag


def flame(found: Mapping[str, Mapping[str, Difference]]) -> Html:
    """The differences of a commit's recordings, by title and profile, of which a reader chooses
    one; nothing where none has stacks on both sides."""
    trees = {
        f"{name.upper()}, {title}": {"of": difference.of, **tree}
        for title, own in found.items()
        for name, difference in own.items()
        if (tree := difference.tree())
    }
    if not trees:
        return Html("")
    options = join(tag("option", title, value=title) for title in trees)
    data = json.dumps({"titles": {}, "tools": trees}, separators=(",", ":"))
    escaped = data.replace("<", "\\u003c")
    return Html(
        paragraph(
            "Stacks of training before and after. Widths are the mean of both; red takes more than "
            "before, blue takes less. Click or press Enter to zoom, Escape to go back, arrows to "
            "walk, / to search. The functions that changed most are listed above."
        )
        + '<div class="tools-bar"><label>Stacks of '
        f'<select id="flame-tool">{options}</select></label>'
        '<input id="flame-search" type="search" placeholder="Search frames" '
        'aria-label="Search frames">'
        '<button id="flame-reset" type="button">Reset</button></div>'
        '<div id="flame" role="tree" aria-label="Differential flamegraph"></div>'
        '<p id="flame-said" aria-live="polite"></p><div id="tip" role="tooltip" hidden></div>'
        "<noscript><p>The flamegraph needs JavaScript.</p></noscript>"
        f'<script type="application/json" id="flame-data">{escaped}</script>'
    )
