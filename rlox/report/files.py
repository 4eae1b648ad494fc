"""Writes a report's files into its folder, each whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox import files
from rlox.profiling.samples import Samples
from rlox.report import html, markdown
from rlox.report.folded import folded
from rlox.report.trace import trace
from rlox.timing import SpanLog

if TYPE_CHECKING:
    from rlox.profiling.torch_profiler import Event


def write(
    folder: str | os.PathLike[str],
    report: Mapping[str, Any],
    samples: Mapping[str, Samples] | None = None,
    spans: SpanLog | None = None,
    torch_events: Iterable[Event] | None = None,
) -> list[Path]:
    """Write `report.json`, `report.md`, `report.html`, `trace.json` and `<tool>.folded`.

    Args:
        folder: made when it is not there.
        report: the figures; `rlox.report` lists its keys. What is missing is named in the report.
        samples: by tool; the flamegraphs and the folded stacks.
        spans: the plain run's, for the trace.
        torch_events: torch.profiler's, of its own run, for the trace.

    Returns:
        The paths written, `report.json` first.

    Raises:
        ValueError: the report holds NaN or an infinity, which JSON does not.
        NotWrittenError: one cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    samples = {tool: found for tool, found in (samples or {}).items() if found.samples}
    texts = {
        "report.json": json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        "report.md": markdown.render(report),
        "report.html": html.render(report, samples),
        "trace.json": json.dumps(
            trace(report, samples, spans, torch_events), separators=(",", ":")
        ),
    }
    texts |= {f"{tool}.folded": folded(found) for tool, found in samples.items()}
    return [files.write(folder / name, text) for name, text in texts.items()]
