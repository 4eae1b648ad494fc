"""The folder that a run leaves: whole files, the report as it was given, readable stacks."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.sampling.spans import SpanLog
from rlox_opt.views.folded import folded
from rlox_opt.views.report_folder import write


def test_a_run_leaves_its_files_and_nothing_else(
    tmp_path: Path, report: dict[str, Any], samples: dict[str, Samples], spans: SpanLog
) -> None:
    written = write(tmp_path / "new", report, samples, spans)
    names = [
        "report.json",
        "report.md",
        "report.html",
        "trace.json",
        "py-spy.folded",
        "perf.folded",
    ]
    assert [path.name for path in written] == names
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(names)
    assert json.loads(written[0].read_text(encoding="utf-8")) == report


def test_a_report_of_a_run_cut_short_is_written_too(tmp_path: Path) -> None:
    report = {"algo": "sac", "env_id": "Pendulum-v1", "incomplete": ["It was interrupted."]}
    for path in write(tmp_path, report):
        assert path.stat().st_size
    for name in ("report.md", "report.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        top = text[: len(text) // 2] if name.endswith(".md") else text.split("<main")[0]
        assert "This report is incomplete" in top
        assert "It was interrupted." in top
        assert "no tool took samples" in top


def test_a_failed_write_leaves_the_old_file_and_no_half_one(tmp_path: Path) -> None:
    write(tmp_path, {"algo": "ppo", "env_id": "CartPole-v1"})
    before = (tmp_path / "report.json").read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path, {"algo": "ppo", "env_id": "CartPole-v1", "sps": float("nan")})
    assert (tmp_path / "report.json").read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_folded_stacks_are_phases_then_frames_then_microseconds() -> None:
    call, inner = Frame("call; of (a)", "m"), Frame("inner", "m")
    found = Samples(
        "perf",
        [
            Sample((call, inner), "gradient_update/backward", "rust", 0.01, MAIN_THREAD),
            Sample((call, inner), "gradient_update/backward", "rust", 0.005, MAIN_THREAD),
            Sample((), "", "python", 0.01, MAIN_THREAD),
        ],
    )
    assert folded(found).splitlines() == [
        "(unknown) 10000",
        "gradient_update;backward;call, of (a);inner 15000",
    ]


def test_folded_stacks_keep_all_of_the_time(samples: dict[str, Samples]) -> None:
    for found in samples.values():
        lines = folded(found).splitlines()
        assert all(re.fullmatch(r".+ \d+", line) for line in lines)
        total = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
        assert total == pytest.approx(1e6 * sum(s.weight for s in found.samples), rel=1e-3)
