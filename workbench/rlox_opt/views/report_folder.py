"""The files of a profile run: `report.json`, a page, Markdown, a trace, folded stacks.

The report is a plain dictionary, which is also the file `report.json`. In a run that was cut short,
keys may be missing besides those of every run (`schema algo env_id total_timesteps n_envs seed
commit dirty features machine versions sps init_s train_s wall_s mean_return`). A section without
data says so:

- `date`: ISO 8601. `settings`: the run's other options (`collector`, `prioritized`, `n_steps`, …).
- `incomplete`: sentences on what is missing and why; `warnings`: on what makes the figures
  doubtful. Both are shown first.
- `phases`: [{`name` "outer/inner", `seconds` (inner ones included), `share` of training, `calls`}].
- `layers`: [{`name`, `seconds`, `share`, `ci95`}] of the training thread, from tool `layer_source`.
- `tools`: {name: {`slowdown`, `samples`, `errors`, `layers`; `seconds`, the length of its window,
  and `why` it ended then; `half_width`, of the widest interval of a layer, as a part of the time;
  where it did not run: `reason`, `remedy`}}.
- `micro`: [{`group`, `name`, `us`, and `share` where the group is a breakdown}].
- `crossings`: [{`name`, `kind`, `per_iteration`, `bytes`, `us`}]; an iteration is
  `crossings_per` ("rollout", "step").
- `bottlenecks`, `cards`: from `rlox_opt.sampling.bottlenecks`.

The files are written into a folder, each completely or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.sampling.samples import Samples
from rlox_opt.sampling.spans import SpanLog
from rlox_opt.system import files
from rlox_opt.views import html, markdown
from rlox_opt.views.folded import folded
from rlox_opt.views.trace import trace

if TYPE_CHECKING:
    from rlox_opt.sampling.torch_profiler import Event


def write(
    folder: str | os.PathLike[str],
    report: Mapping[str, Any],
    samples: Mapping[str, Samples] | None = None,
    spans: SpanLog | None = None,
    torch_events: Iterable[Event] | None = None,
) -> list[Path]:
    """Write `report.json`, `report.md`, `report.html`, `trace.json` and `<tool>.folded`.

    Args:
        folder: made if it does not exist.
        report: the figures, under the keys listed in this module. What is missing is named in it.
        samples: by tool, for the flamegraphs and the folded stacks.
        spans: the plain run's, for the trace.
        torch_events: torch.profiler's, of its own run, for the trace.

    Returns:
        The paths written, `report.json` first.

    Raises:
        ValueError: the report contains NaN or an infinity, which JSON cannot express.
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
