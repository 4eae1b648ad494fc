"""The differential flamegraph of training, drawn by the profile report's script."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from rlox_opt.history.difference import Difference
from rlox_opt.views.pages import render


def flamegraph(differences: Mapping[str, Mapping[str, Difference]]) -> Markup:
    """Differences by title and profile, from which a reader chooses one; empty if none has stacks
    on both sides."""
    trees = {
        f"{name.upper()}, {title}": {"of": difference.of, **tree}
        for title, own in differences.items()
        for name, difference in own.items()
        if (tree := difference.tree())
    }
    if not trees:
        return Markup()
    return render(
        "flamegraph.html",
        explained="Stacks of training before and after. Widths are the mean of both; red takes "
        "more than before, blue takes less. Click or press Enter to zoom, Escape to go back, "
        "arrows to walk, / to search. The functions that changed most are listed above.",
        label="Differential flamegraph",
        options=[(title, title) for title in trees],
        chosen="",
        legend=(),
        titles={},
        tools=trees,
    )
