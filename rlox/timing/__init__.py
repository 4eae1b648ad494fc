"""Timing: a tree of the seconds that named blocks of a program take, and a log of their spans."""

from rlox.timing.named import span
from rlox.timing.spans import Span, SpanLog
from rlox.timing.timing import Phase, Timing, measure_overhead

__all__ = ["Phase", "Span", "SpanLog", "Timing", "measure_overhead", "span"]
