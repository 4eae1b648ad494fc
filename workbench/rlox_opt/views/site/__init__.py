"""The history as static pages, which work from files and without a network.

`publish` makes them. Text, tables and small pictures are plain HTML. uPlot draws the charts of
benchmarks and profiles from data in scripts, since a page from a file may not fetch JSON.
"""

from rlox_opt.views.site.publish import Published, publish

__all__ = ["Published", "publish"]
