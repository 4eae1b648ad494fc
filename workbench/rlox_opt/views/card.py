"""An optimisation's card and records in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rlox_opt.system.moments import moment
from rlox_opt.views import units
from rlox_opt.views.chart import RatioPoint, TextAxis
from rlox_opt.views.grid import VERDICTS, Grid, console

_MOST_OTHERS = 5
_WIDEST = 100  # of the page: prose and charts beyond it are no easier to read
_NARROWEST_CHART, _WIDEST_CHART = 20, 48
_INDENT = 2
_LEGEND = "baseline time / optimised time, over 1× is faster; ├●┤ 95 % interval"


def show(detail: Mapping[str, Any]) -> None:
    """Print the card to stdout."""
    to = console()
    to.width = min(to.width, _WIDEST)
    to.print(page(detail, to.width))


def page(detail: Mapping[str, Any], width: int) -> Group:
    """The card on a page of `width` characters: `detail` is `show.detail_of`'s."""
    parts: list[RenderableType] = [_headline(detail)]
    for title, part in _sections(detail, width):
        parts += ["", Text(title, "bold"), Padding(part, (0, 0, 0, _INDENT), expand=False)]
    return Group(*parts)


def _headline(detail: Mapping[str, Any]) -> Text:
    state = detail["feature"]
    if detail["seam"]["kind"] in ("function", "type", "build"):
        state += f" is {'on' if detail['active'] else 'off'} in this build"
    needs = f" · needs {', '.join(detail['needs'])}" if detail["needs"] else ""
    below = f"{detail['status']} · {detail['layer']} · {state}{needs}"
    indent = " " * (len(detail["id"]) + 2)
    return Text.assemble(
        (f"{detail['id']}  {detail['title']}", "bold"), "\n", indent, (below, "dim")
    )


def _sections(detail: Mapping[str, Any], width: int) -> Iterator[tuple[str, RenderableType]]:
    yield "Claim", _prose(detail["claim"])
    prediction = detail["prediction"]
    if prediction:
        at = f"{prediction['workload']} at {size(prediction['size'])}"
        if not prediction["size"]:
            at = f"{prediction['workload']} workloads"
        yield (
            f"Prediction: {units.band(prediction['ratio'])} for {at}",
            _prose(prediction["why"]),
        )
    for title in ("note", "finding"):
        if detail[title]:
            yield title.capitalize(), _prose(detail[title])
    seam = detail["seam"]
    yield f"Seam: {seam['kind']}", _files(seam)
    if detail["also_measured"]:
        yield "Also measured", Text(", ".join(detail["also_measured"]))
    found = {record["path"]: record for record in detail["records"]}
    record = found.pop(detail["shown"], None)
    if record is None:
        how = f": rlox-opt cmp {detail['id'].lower()}" if detail["id"][0] == "P" else ""
        yield "Measured", Text(f"not yet{how}")
        return
    yield f"Measured {_when(record)} on {record['machine_slug']}", _origin(detail, record)
    if record["results"]:
        yield f"Ratios ({_LEGEND})", _ratios(record, prediction, width - _INDENT)
        yield "One call", _calls(record)
    if found:
        yield f"Other records ({len(found)})", _others(list(found.values()), prediction)


def _prose(text: str) -> Text:
    return Text(" ".join(text.split()))


def _files(seam: Mapping[str, Any]) -> RenderableType:
    if not seam["files"]:
        return Text(f"{seam['address']}: not there yet")
    return Grid(("", ""), [(file["path"], f"{file['lines']:,} lines") for file in seam["files"]])


def _origin(detail: Mapping[str, Any], record: Mapping[str, Any]) -> Text:
    commit = (record["commit"] or "unknown")[:10] + (" with changes" if record["dirty"] else "")
    build = record["build"]
    features = ", ".join(build.get("features", ())) or "baseline"
    restarts = sorted({result["restarts"] for result in record["results"]}) or [0]
    often = "–".join(map(str, restarts if len(restarts) == 1 else (restarts[0], restarts[-1])))
    where = (
        f"commit {commit} · {build.get('profile', '?')}, {features} · {often} restarts, "
        f"{units.seconds(record['seconds'])}\n{record['path']}"
    )
    prediction = detail["prediction"]
    result = prediction and _at(record, prediction)
    if not result:
        return Text(where, "dim")
    low, high = prediction["ratio"]
    ratio = result["ratio"]
    held = "as" if low <= ratio <= high else "less than" if ratio < low else "more than"
    told = f"{units.estimate(ratio, result['ci95'])}, {held} predicted"
    return Text.assemble((told, "bold"), "\n", (where, "dim"))


def _ratios(
    record: Mapping[str, Any], prediction: Mapping[str, Any] | None, width: int
) -> RenderableType:
    """A line a size, with the figures beside the chart."""
    rows = []
    for result in record["results"]:
        predicted = prediction is not None and result is _at(record, prediction)
        band = prediction["ratio"] if prediction and predicted else None
        point = RatioPoint(result["ratio"], tuple(result["ci95"]), tuple(band) if band else None)
        figure = units.estimate(result["ratio"], result["ci95"])
        rows.append((result, point, figure))
    labels = max(len(text) for r, *_ in rows for text in (size(r["size"]), r["workload"]))
    beside = max(len(figure) for *_, figure in rows) + max(map(len, VERDICTS)) + 3 * 2
    room = width - labels - beside
    axis = TextAxis(
        [point for _, point, _ in rows], max(_NARROWEST_CHART, min(room, _WIDEST_CHART))
    )
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for _ in range(4):
        table.add_column(no_wrap=True)
    for workload, group in groupby(rows, key=lambda row: str(row[0]["workload"])):
        table.add_row(Text(workload, "italic"))
        for result, point, figure in group:
            verdict = result["verdict"]
            table.add_row(
                size(result["size"]),
                axis.row(point),
                figure,
                Text(verdict, VERDICTS.get(verdict, "")),
            )
    line, ticks = axis.scale()
    table.add_row("", Text(line, "dim"))
    banded = any(point.band for _, point, _ in rows)
    table.add_row("", Text(ticks, "dim"), Text("░ predicted" if banded else "", "dim"))
    return table


def _calls(record: Mapping[str, Any]) -> Grid:
    headings = ("", "baseline", "optimised", "instructions", "allocations", "A/A")
    rows: list[tuple[str, ...]] = []
    for workload, group in groupby(record["results"], key=lambda result: str(result["workload"])):
        rows.append((workload, *[""] * (len(headings) - 1)))
        for result in group:
            aa = result["aa"]
            rows.append(
                (
                    size(result["size"]),
                    units.seconds(result["baseline_s"]),
                    units.seconds(result["optimized_s"]),
                    _fewer(result["instructions"]),
                    change(result["allocations"]),
                    units.factor(aa["ratio"]) if aa else units.MISSING,
                )
            )
    return Grid(headings, rows, heading="dim")


def _fewer(counts: Mapping[str, float] | None) -> str:
    """How many times fewer of them the optimised twin needs."""
    if not counts or not counts["optimized"]:
        return units.MISSING
    return units.factor(counts["baseline"] / counts["optimized"])


def change(counts: Mapping[str, float] | None) -> str:
    """The two counts, since the second is often 0 and so has no ratio."""
    if not counts:
        return units.MISSING
    return f"{units.count(counts['baseline'])} → {units.count(counts['optimized'])}"


def _others(found: list[Mapping[str, Any]], prediction: Mapping[str, Any] | None) -> RenderableType:
    rows = []
    for record in found[:_MOST_OTHERS]:
        result = _at(record, prediction) if prediction else None
        if result:
            figure, verdict = units.estimate(result["ratio"], result["ci95"]), result["verdict"]
        else:
            figure, verdict = f"{len(record['results'])} results of other sizes", ""
        rows.append((_when(record), record["machine_slug"], figure, verdict))
    return Grid([""] * 4, rows, left=4, styles=VERDICTS)


def _at(record: Mapping[str, Any], prediction: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The result that checks the prediction."""
    wanted = prediction["workload"], prediction["size"]
    for result in record["results"]:
        if (result["workload"], result["size"]) == wanted:
            found: Mapping[str, Any] = result
            return found
    return None


def _when(record: Mapping[str, Any]) -> str:
    return f"{moment(record['date']):%Y-%m-%d %H:%M}"


def size(numbers: Mapping[str, int]) -> str:
    """A size in words: "n=1,000,000"."""
    return " ".join(f"{name}={number:,}" for name, number in numbers.items()) or units.MISSING
