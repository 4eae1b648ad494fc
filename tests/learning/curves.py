"""Learning curves as a picture: the mean over seeds of each trainer, with its 95 % interval."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 940, 420, 70, 190, 44, 44
_COLOURS = (
    "#5d6269", "#d0622f", "#3b62c8", "#56ad74", "#8f7be0", "#e2b33b", "#37a3c4", "#d5679a",
    "#a3bf45", "#7a4fb3",
)  # fmt: skip
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #222 } .dim { fill: #666; font-size: 12px }
.axis { stroke: #ddd } path { fill: none; stroke-width: 2 } polygon { opacity: 0.13 }
@media (prefers-color-scheme: dark) {
  svg { background: #16181c } text { fill: #e6e6e6 } .dim { fill: #a0a0a0 } .axis { stroke: #333 }
}
"""


def picture(result: Mapping[str, Any]) -> str:
    """An SVG file of `result["curves"]`: by trainer, a list of returns or None for each seed.
    Trainers with equal curves share a line."""
    job, bands = result["job"], {}
    arms = result["curves"]
    for first, curves in arms.items():
        equal = [name for name, others in arms.items() if others == curves]
        if equal[0] != first:
            continue
        # A place counts where every seed has had an episode.
        runs = np.array([[np.nan if y is None else y for y in curve] for curve in curves])
        mean = runs.mean(axis=0)
        spread = runs.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros_like(mean)
        bands[", ".join(equal)] = mean, 1.96 * spread / np.sqrt(len(runs))
    low = min(float(np.nanmin(mean - half)) for mean, half in bands.values())
    high = max(float(np.nanmax(mean + half)) for mean, half in bands.values())
    step = _step(max(high - low, 1.0) / 4)
    ticks = step * np.arange(np.floor(low / step), np.ceil(high / step) + 1)
    low, room = ticks[0], ticks[-1] - ticks[0]

    def x(place: int, places: int) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * (place + 1) / places, 1)

    def y(value: float) -> float:
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value - low) / room, 1)

    title = f"{job['algo'].upper()} on {job['env_id']}: return of the latest 50 episodes"
    parts = [f'<text x="12" y="22" font-weight="600">{escape(title)}</text>']
    for value in ticks:
        parts.append(
            f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value)}" '
            f'y2="{y(value)}"/><text class="dim" x="{_LEFT - 8}" y="{y(value) + 4}" '
            f'text-anchor="end">{value:,g}</text>'
        )
    for share in (0.25, 0.5, 0.75, 1.0):
        at = _LEFT + (_WIDTH - _LEFT - _RIGHT) * share
        parts.append(
            f'<text class="dim" x="{at}" y="{_HEIGHT - 16}" text-anchor="middle">'
            f"{job['total_timesteps'] * share:,.0f}{' steps' * (share == 1)}</text>"
        )
    for number, (name, (mean, half)) in enumerate(bands.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        there = np.flatnonzero(~np.isnan(mean)).tolist()
        line = [f"{x(i, len(mean))},{y(mean[i])}" for i in there]
        above = [f"{x(i, len(mean))},{y(mean[i] + half[i])}" for i in there]
        below = [f"{x(i, len(mean))},{y(mean[i] - half[i])}" for i in reversed(there)]
        beside = _TOP + 20 * number + 10
        parts.append(
            f'<polygon fill="{colour}" points="{" ".join(above + below)}"/>'
            f'<path stroke="{colour}" d="M{" L".join(line)}"/>'
            f'<line x1="{_WIDTH - _RIGHT + 14}" x2="{_WIDTH - _RIGHT + 34}" y1="{beside - 4}" '
            f'y2="{beside - 4}" stroke="{colour}" stroke-width="3"/>'
            f'<text x="{_WIDTH - _RIGHT + 42}" y="{beside}">{escape(name)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"<style>{_STYLE}</style>" + "\n".join(parts) + "</svg>\n"
    )


def _step(least: float) -> float:
    """The next of 1, 2, 5, 10, …"""
    power = 10.0 ** np.floor(np.log10(least))
    return next(float(n * power) for n in (1, 2, 5, 10) if n * power >= least)
