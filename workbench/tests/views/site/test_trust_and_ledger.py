"""What stands on the pages of trust and of the optimisations, from records of known content."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import toy_projects

from rlox_opt.history import records
from rlox_opt.history.ledger import Line
from rlox_opt.project import cards
from rlox_opt.views.site import optimisations, trust

MACHINE = {"cpu": "Example CPU @ 2.80GHz", "cores": 2}


def text_of(page: str) -> str:
    """A page's words, a cell or paragraph a line."""
    return re.sub(r"<[^>]+>", "", re.sub(r"</(td|th|p|dd|dt|h2|div)>", "\n", page))


def row(text: str, start: str) -> list[str]:
    """The cells of the table's row that begins with `start`."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip() == start)
    return [unescape(line.strip()) for line in lines[at : at + 6]]


def write(folder: Path, name: str, record: Any) -> None:
    path = folder / "example-2.80ghz-2c" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))


def trial(percent: float, verdict: str, beside: str) -> dict[str, Any]:
    cells = {"slow": {"verdict": verdict}, "other": {"verdict": beside}}
    return {
        "what": "trial", "regression": "loop", "percent": percent, "truth": 1 + percent / 100,
        "beside": ["other"], "threshold": 1.0, "cells": {"diff": cells},
    }  # fmt: skip


def test_scores_count_what_was_found_and_what_was_flagged_for_nothing(tmp_path: Path) -> None:
    rows = [
        {"what": "probe"},
        trial(3, "slower", "same"),
        trial(3, "undecided", "faster"),
        trial(10, "slower", "same"),
        trial(0, "slower", "same"),
        trial(0, "same", "same"),
        trial(3, "slower", "same") | {"truth": 1.05},
    ]
    record = {"date": "2026-11-21T00:00:00Z", "commit": "f" * 40, "rows": rows}
    write(tmp_path, "2026-11-21T000000Z_injected-score.json", record)
    text = text_of(trust.trust(trust.read(tmp_path)).of("rlox"))
    assert "what is found is measured by adding slowdowns of known size." in text
    told = row(text, "diff, threshold 1 %")
    # 3 %, 10 %, where nothing changed, beside a change; the bounds are those of printed tables.
    assert told[1:5] == ["1 of 2", "1 of 1", "1 of 4 (< 75.1 %)", "1 of 4 (< 75.1 %)"]
    assert "Not counted, for their true size is another: loop at 3 % (truly 5.0 %)." in text
    assert "example-2.80ghz-2c, 2026-11-21, commit ffffffffff" in text


def test_a_tools_score_of_a_place_is_told_by_its_newest_record_alone(tmp_path: Path) -> None:
    def record(day: int, arm: str, *verdicts: str) -> None:
        rows = [{"what": "aa", "cells": {arm: {"of": {"verdict": v}}}} for v in verdicts]
        found = {"date": f"2026-11-{day}T00:00:00Z", "rows": rows}
        write(tmp_path, f"2026-11-{day}T000000Z_injected-aa.json", found)

    record(20, "diff", "slower")
    record(21, "diff", "same", "same")
    record(22, "asv", "slower", "same", "same")
    text = text_of(trust.trust(trust.read(tmp_path)).of("rlox"))
    assert row(text, "asv")[1] == "1 of 3 (< 86.5 %)"
    assert row(text, "diff")[1] == "0 of 2 (< 77.6 %)"
    assert "2026-11-20" not in text


def test_another_threshold_and_another_load_are_told_beside_the_newest(tmp_path: Path) -> None:
    for day, setting in enumerate(({"threshold": 1.0}, {"threshold": 3.0}, {"load": "make"}), 20):
        rows = [{"what": "aa", "cells": {"diff": {"of": {"verdict": "same"}}}, **setting}]
        found = {"date": f"2026-11-{day}T00:00:00Z", "rows": rows}
        write(tmp_path, f"2026-11-{day}T000000Z_injected-aa.json", found)
    text = text_of(trust.trust(trust.read(tmp_path)).of("rlox"))
    for told in ("diff, threshold 1 %", "diff, threshold 3 %", "diff, beside `make`"):
        assert row(text, told)[1] == "0 of 1 (< 95.0 %)"


def test_bisect_beside_a_load_is_told_beside_the_newest_in_quiet(tmp_path: Path) -> None:
    for day, load, outcome in ((20, "", "wrong"), (21, "", "right"), (22, "make", "undecided")):
        rows = [{"what": "bisect", "outcome": outcome, "load": load}]
        found = {"date": f"2026-11-{day}T00:00:00Z", "rows": rows}
        write(tmp_path, f"2026-11-{day}T000000Z_injected-bisect.json", found)
    text = text_of(trust.trust(trust.read(tmp_path)).of("rlox"))
    quiet, loaded = text.split("Histories with one slowdown")[1:]
    assert "2026-11-21, commit : bisect" in quiet
    assert row(quiet, "right")[1] == "1 of 1"
    assert "bisect, beside `make`" in loaded
    assert row(loaded, "undecided")[1] == "1 of 1"


def test_false_alarms_count_by_benchmark_and_by_run(tmp_path: Path) -> None:
    def run(*verdicts: str) -> dict[str, Any]:
        cells = {str(n): {"verdict": verdict} for n, verdict in enumerate(verdicts)}
        return {"what": "aa", "threshold": 1.0, "cells": {"diff": cells}}

    rows = [run("same", "slower"), run("same", "same"), run("faster", "slower")]
    record = {"date": "2026-11-21T00:00:00Z", "rows": rows}
    write(tmp_path, "2026-11-21T000000Z_injected-aa.json", record)
    told = row(text_of(trust.trust(trust.read(tmp_path)).of("rlox")), "diff, threshold 1 %")
    assert told[1:3] == ["3 of 6 (< 84.7 %)", "2 of 3 (< 98.3 %)"]


def test_the_newest_calibration_counts_and_older_ones_are_named(tmp_path: Path) -> None:
    for day, alarms in ((20, 0.11), (21, 0.02)):
        benchmarks = {
            "quiet": {"sd": 0.005, "alarms": 0.0, "detectable": 1.008},
            "noisy": {"sd": 0.1, "alarms": alarms, "detectable": 1.12},
        }
        rates = {"run_alarms": alarms, "cell_alarms": alarms / 2}
        record = {
            "date": f"2026-11-{day}T00:00:00Z", "commit": "f" * 40, "restarts": 40,
            **rates, "thresholds": {"1": rates, "3": {"run_alarms": 0.0, "cell_alarms": 0.0}},
            "benchmarks": benchmarks,
        }  # fmt: skip
        write(tmp_path, f"2026-11-{day}T000000Z_calibration.json", record)
    page = trust.trust(trust.read(tmp_path)).of("rlox")
    text = text_of(page)
    assert "2026-11-20: 11.0 %" in text
    assert "runs flagged at 1 %, nothing changed 2.0 %" in " ".join(text.split())
    assert "runs flagged at 3 %, nothing changed 0.0 %" in " ".join(text.split())
    assert "1 of 2" in text  # find 3 %
    assert re.search(r"noisy\s*12\.0 %", text)
    assert text.index("noisy") < text.index("quiet")  # the least trusted first


def card(**more: Any) -> cards.Card:
    found = next(card for card in cards.load(toy_projects.PROJECT) if card.id == "P5")
    return msgspec.structs.replace(found, **more)


def realised(folder: Path, ratio: float) -> Line:
    """P5 with a record of its prediction's workload and size."""
    of = card(record="", status="candidate")
    assert of.prediction is not None
    result = {
        "workload": of.prediction.workload, "size": dict(of.prediction.size), "ratio": ratio,
        "ci95": [0.9 * ratio, 1.1 * ratio], "verdict": "faster", "restarts": 10,
    }  # fmt: skip
    record = {
        "schema": 1, "id": "P5", "date": "2026-11-21T00:00:00Z", "commit": "f" * 40, "dirty": False,
        "machine": MACHINE, "build": {}, "seconds": 1.0, "complete": True, "results": [result],
    }  # fmt: skip
    records.append(record, folder)
    found = records.records("P5", folder)
    return Line(of, found, records.realised(of, found, folder=folder))


def test_a_prediction_came_true_or_did_not(tmp_path: Path) -> None:
    # P5 predicts 4.5 to 6.7.
    outcomes = [realised(tmp_path / str(r), r).outcome for r in (4.4, 4.5, 6.7, 6.8)]
    assert outcomes == ["below", "inside", "inside", "above"]
    assert Line(card(), [], None).outcome is None


def test_the_ledger_counts_what_came_true(tmp_path: Path) -> None:
    lines = [realised(tmp_path / str(ratio), ratio) for ratio in (5.0, 9.0)]
    page = optimisations.ledger_page([lines[0]], "optimizations").of("rlox")
    assert "1 of 1" in page
    assert "as predicted" in page
    assert "more than predicted" in optimisations.ledger_page([lines[1]], "optimizations").of(
        "rlox"
    )


def test_a_card_knows_the_benchmarks_of_its_pair() -> None:
    line = Line(card(), [], None)
    assert line.names("pairs.Pairs.time_ten_calls('P5 sample_256 n=1000', 'optimized')")
    assert not line.names("pairs.Pairs.time_ten_calls('P50 sample', 'optimized')")
    assert not line.names("data_plane.Gae.time_gae(5)")


def test_the_detectors_score_is_put_together_from_its_cells(tmp_path: Path) -> None:
    def cell(shape: str, **more: Any) -> dict[str, Any]:
        of = {"what": "whole", "noise": "gauss", "detector": "levels", "located": 0, "false": 0}
        return of | {"shape": shape, "histories": 100} | more

    cells = [
        cell("flat", false=1),
        cell("+3 % in the middle", located=90),
        cell("-3 % in the middle", located=100),
        cell("+5 % late", located=99),
        cell("flat", what="live", false=50),
    ]
    record = {"date": "2026-11-21T00:00:00Z", "near": 2, "cells": cells}
    write(tmp_path, "2026-11-21T000000Z_levels.json", record)
    told = row(text_of(trust.trust(trust.read(tmp_path)).of("rlox")), "gauss")
    assert told[1:5] == ["levels", "0.010", "0.950", "0.990"]


def test_a_detectors_score_is_the_newest_of_each_shape_with_counts_by_themselves(
    tmp_path: Path,
) -> None:
    def cell(noise: str, shape: str, located: int, false: int = 0) -> dict[str, Any]:
        of = {"what": "whole", "noise": noise, "detector": "levels", "histories": 100}
        return of | {"shape": shape, "located": located, "false": false}

    old = [cell("gauss", "+3 % late", 10), cell("recorded", "+14 % late", 20)]
    old.append(cell("recorded", "+3 % late", 5))
    new = [
        cell("recorded", "flat", 0, 3),
        cell("recorded", "+14 % late", 87),
        cell("recorded", "+14 % late, counted", 95),
        cell("recorded", "+8 % and +10 % late", 44),
    ]
    for day, cells in ((21, old), (22, new)):
        record = {"date": f"2026-11-{day}T00:00:00Z", "near": 2, "cells": cells}
        write(tmp_path, f"2026-11-{day}T000000Z_levels.json", record)
    text = text_of(trust.trust(trust.read(tmp_path)).of("rlox"))
    assert row(text, "gauss")[1:5] == ["levels", "–", "0.100", "–"]  # of 3 and of 14 %
    assert row(text, "recorded")[1:5] == ["levels", "0.030", "0.050", "0.870"]
    assert row(text, "recorded, counted")[1:5] == ["levels", "–", "–", "0.950"]


def test_attribution_counts_layers_and_functions(tmp_path: Path) -> None:
    rows = [
        {"what": "attribution", "percent": 10, "right": [True, False]},
        {"what": "attribution", "percent": 10, "right": [True, True]},
        {"what": "attribution", "percent": 20, "right": [False, False]},
    ]
    record = {"date": "2026-11-21T00:00:00Z", "rows": rows}
    write(tmp_path, "2026-11-21T000000Z_injected-attribute.json", record)
    text = text_of(trust.trust(trust.read(tmp_path)).of("rlox"))
    assert row(text, "10 %")[1:3] == ["2 of 2", "1 of 2"]
    assert row(text, "20 %")[1:3] == ["0 of 1", "0 of 1"]


def test_the_ledger_tells_how_often_intervals_held(tmp_path: Path) -> None:
    # P5 predicts 4.5 to 6.7: two inside, and one far outside, which widths of three cannot tell.
    lines = [realised(tmp_path / str(ratio), ratio) for ratio in (5.0, 5.5, 50.0)]
    text = text_of(optimisations.ledger_page(lines, "optimizations").of("rlox"))
    assert "On the cards 2 of 3 held." in text
    assert "earlier ones say, –." in text
    # Two more: of five, the widths of four others, one of which is far off, hold what was inside.
    lines += [realised(tmp_path / str(ratio), ratio) for ratio in (5.2, 5.6)]
    text = text_of(optimisations.ledger_page(lines, "optimizations").of("rlox"))
    assert "On the cards 4 of 5 held. As wide as the errors of all others say, 4 of 5" in text
    assert "How often" not in text_of(
        optimisations.ledger_page(lines[:1], "optimizations").of("rlox")
    )


def test_what_other_projects_reported_has_a_row_a_tool_also_where_it_failed(tmp_path: Path) -> None:
    def cell(verdict: str, ratio: float) -> dict[str, Any]:
        return {"verdict": verdict, "ratio": ratio, "ci99": [ratio - 0.25, ratio + 0.25]}

    pair = {"what": "pair", "project": "networkx", "head": "f50fc70b8c", "expected": "create",
            "reported": "2 ×", "source": "networkx#1"}  # fmt: skip
    cells = {"create": cell("slower", 2.0), "copy": cell("faster", 0.5), "add": cell("same", 1.0)}
    rows = [
        pair | {"tool": "diff", "cells": {"diff": cells, "base again": cells}, "seconds": 180.0,
                "parts": {"base": 30.0, "head": 30.0}},
        pair | {"tool": "asv", "failed": "no environment\nat all" + " of it" * 20},
        pair | {"tool": "diff", "expected": "other", "cells": {"diff": cells}, "seconds": 60.0},
        {"what": "why", "project": "networkx", "head": "f50fc70b8c", "expected": "create",
         "function": "Graph.__init__", "seconds": 60.0, "why": [
             {"benchmark": "create", "ratio": 2.0, "seconds": 14.0, "functions": [],
              "touched": [{"place": "graph.py", "name": "Graph.__init__", "low": 0.8}]},
             {"benchmark": "create more", "ratio": 2.0, "seconds": 14.0, "functions": [],
              "touched": [{"place": "graph.py", "name": "Graph.__init__", "low": -0.1}]}]},
        {"what": "unchanged", "project": "networkx",
         "cells": {"diff": {"a": cell("same", 1.0), "b": cell("same", 1.0)}}},
        {"what": "unchanged", "project": "networkx",
         "cells": {"asv": {"a": cell("undecided", 1.0)}}},
        {"what": "bisect", "project": "networkx", "commits": 36, "outcome": "right",
         "commit": "f50fc70b8c" + "0" * 30, "seconds": 150.0},
        {"what": "bisect", "project": "pest", "failed": "no cargo"},
    ]  # fmt: skip
    record = {"date": "2026-11-25T00:00:00Z", "commit": "f" * 40, "rows": rows}
    write(tmp_path, "2026-11-25T000000Z_elsewhere.json", record)
    text = text_of(trust.trust(trust.read(tmp_path)).of("rlox"))
    lines = [unescape(line.strip()) for line in text.splitlines()]
    counts = lines.index("diff")
    assert lines[counts : counts + 9] == [
        "diff", "1 of 1 (> 5.0 %)", "1 of 2 (> 2.5 %)", "0", "0", "1", "0",
        "3 of 5 (< 92.4 %)", "0 of 2 (< 77.6 %)",
    ]  # fmt: skip
    first = lines.index("networkx f50fc70b8c")
    assert lines[first : first + 8] == [
        "networkx f50fc70b8c", "2 × (networkx#1)", "diff", "found", "2.00 (1.75–2.25)", "1 of 2",
        "1.0 + 2.0", "1 of 2",
    ]  # fmt: skip
    assert "0 of 1 (< 95.0 %), 1 undecided" in lines
    found = lines.index("36")
    assert lines[found - 1 : found + 4] == ["networkx", "36", "right", "f50fc70b8c", "2.5"]
    assert "failed: no cargo" in lines
    assert "failed: no environment at all of it of …" in lines


def test_a_project_that_is_measured_again_counts_once_and_one_that_is_not_stays(
    tmp_path: Path,
) -> None:
    def search(project: str, outcome: str) -> dict[str, Any]:
        return {"what": "bisect", "project": project, "commits": 5, "outcome": outcome}

    old = [search("networkx", "undecided"), search("pest", "wrong")]
    for day, commit, rows in ((24, "e", old), (25, "f", [search("networkx", "right")])):
        record = {"date": f"2026-11-{day}T00:00:00Z", "commit": commit * 40, "rows": rows}
        write(tmp_path, f"2026-11-{day}T000000Z_elsewhere.json", record)
    text = text_of(trust.trust(trust.read(tmp_path)).of("rlox"))
    assert row(text, "networkx")[:3] == ["networkx", "5", "right"]
    assert row(text, "pest")[:3] == ["pest", "5", "wrong"]
    assert "undecided" not in text.partition("Search for the commit")[2]
    lines = [line.strip() for line in text.splitlines()]
    for day, commit, project in (("25", "f", "networkx"), ("24", "e", "pest")):
        at = lines.index(commit * 10)
        assert (lines[at - 1], lines[at + 1]) == (f"2026-11-{day}", project)
    assert "Reason named" not in text  # nobody looked for one
