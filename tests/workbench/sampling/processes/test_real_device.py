"""A program on a real GPU, where there is one: the device's own clock and the report agree."""

import json
from typing import Any

import pytest
import torch
from command_line import rlox_opt

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no CUDA device here"
)

# Each turn launches products in "forward", a third as many in "backward", and waits for all of them
# in "log". At its end the program tells seconds of a turn, the median's: of the kernels of both
# phases by the device's clock, and those that it waited by its own.
PROGRAM = """\
import json, statistics, sys, time
import torch
from rlox.timing import Timing

timing = Timing()
a = torch.randn(4096, 4096, device="cuda")
out = torch.empty_like(a)
events = {"forward": [], "backward": []}


def products(phase, number):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with timing.add_time(phase):
        begin.record()
        for _ in range(number):
            torch.mm(a, a, out=out)
        end.record()
    events[phase].append((begin, end))


waited = []
until = time.monotonic() + 15  # of which torch.profiler needs some to begin
while time.monotonic() < until:
    products("forward", 9)
    products("backward", 3)
    with timing.add_time("log"):
        begin = time.monotonic()
        out[0, 0].item()
        waited.append(time.monotonic() - begin)
kernels = {
    phase: statistics.median(begin.elapsed_time(end) for begin, end in own) * 1e-3
    for phase, own in events.items()
}
with open(sys.argv[1], "w") as told:
    json.dump({**kernels, "log": statistics.median(waited)}, told)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], dict[str, Any]]:
    """What the program says of itself, and the report."""
    folder = tmp_path_factory.mktemp("device")
    script, truth, out = (folder / name for name in ("program.py", "truth.json", "report"))
    script.write_text(PROGRAM)
    done = rlox_opt("profile", "script", script, "--torch", 3, "--out", out, "--", truth)
    assert done.returncode == 0, done.stderr
    return json.loads(truth.read_text()), json.loads((out / "report.json").read_text())


def test_kernels_belong_to_the_phases_that_launched_them(
    told: tuple[dict[str, float], dict[str, Any]],
) -> None:
    truth, report = told
    found = {row["phase"]: row["kernels"] for row in report["device"]["phases"]}
    ours = found["forward"] / (found["forward"] + found["backward"])
    assert ours == pytest.approx(
        truth["forward"] / (truth["forward"] + truth["backward"]), abs=0.02
    )


def test_a_phase_that_waits_is_told_whose_kernels_it_waits_for(
    told: tuple[dict[str, float], dict[str, Any]],
) -> None:
    truth, report = told
    kernels = sum(row["kernels"] for row in report["device"]["phases"])
    waited = {
        row["launched"]: row["seconds"]
        for row in report["device"]["waited"]
        if row["waits"] == "log" and "gemm" in row["name"].lower()
    }
    waits = truth["log"] / (truth["forward"] + truth["backward"])
    assert sum(waited.values()) / kernels == pytest.approx(waits, abs=0.03)
    assert waited["forward"] > 2 * waited["backward"] > 0
