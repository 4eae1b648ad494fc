"""Beliefs about the report of several processes: trees as text, tables, a page that reads alone."""

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.views import processes, terminal_processes
from rlox_opt.views.component_tree import tree_lines

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def phase(name: str, mean: float, low: float = 0.0, high: float = 0.0, who: str = "") -> Any:
    return {
        "name": name,
        "seconds": mean,
        "low": low or mean,
        "high": high or mean,
        "low_in": who,
        "high_in": who,
        "self_seconds": mean / 2,
        "calls": 3.0,
    }


def component(title: str, names: list[str], *phases: Any) -> Any:
    layer = {"name": "python", "seconds": 1.0, "low": 1.0, "high": 1.0}
    thread = {
        "name": "MainThread",
        "count": len(names),
        "seconds": 217.4,
        "samples": 4000,
        "phases": list(phases),
        "layers": [layer],
    }
    return {"title": title, "processes": names, "threads": [thread]}


FRAMES = Frame("<module>", "train.py", 30), Frame("step", "train.py", 12)
STEP = Sample(FRAMES, "main", "python", 1.0, MAIN_THREAD)
STACKS = Samples("perf", [STEP])

LEARNER = component(
    "Learner",
    ["Learner 0"],
    phase("train", 28.5942),
    phase("train/calculate_losses", 10.2242),
    phase("train/calculate_losses/bptt", 0.9616),
    phase("train/calculate_losses/tail", 0.3432),
    phase("train/epoch_init", 0.0037),
    phase("misc", 0.0024),
)
WORKERS = component(
    "env worker",
    ["env worker 0", "env worker 1"],
    phase("python_env", 170.0, 150.0, 190.0, "env worker 1"),
    phase("reset", 6.5, 6.4, 6.6, "env worker 0"),
)


def report(**more: Any) -> Any:
    row = {
        "rank": 1,
        "component": "env worker",
        "thread": "MainThread",
        "phase": "python_env",
        "layer": "env_python",
        "seconds": 340.0,
        "share": 0.9,
    }
    thread = {"name": "MainThread", "seconds": 217.0, "samples": 40, "layers": [
        {"name": "env_python", "seconds": 170.0, "share": 0.78},
        {"name": "unsampled", "seconds": 47.0, "share": 0.22},
    ]}  # fmt: skip
    process = {"title": "env worker 0", "pid": 7, "how": None, "begin_s": 0.5, "end_s": 217.5}
    return {
        "command": ["/home/me/bin/python3", "/home/me/train.py", "--lr", "<3>"],
        "incomplete": ["env worker 0 was killed."],
        "warnings": [],
        "wall_s": 217.4,
        "sampler": "perf",
        "machine": {"cpu": "a CPU", "cores": 2},
        "versions": {"python": "3.11"},
        "processes": [process | {"threads": [thread]}],
        "components": [LEARNER, WORKERS],
        "layers": [{"name": "env_python", "seconds": 340.0, "share": 0.9}],
        "ranking": [row],
        "startup_s": 3.25,
        "functions": [],
        "lines": [],
        "parts": [],
        "trace": {"clocks": [{"process": "a", "shift_us": 0, "error_us": 0, "seen_us": 3}]},
    } | more


ROW: dict[str, Any] = {"place": "train.py", "line": 12, "name": "step", "seconds": 300.0}
OWN: dict[str, Any] = {
    "functions": [ROW | {"line": 0, "share": 0.8, "layers": [["numpy", 0.7], ["python", 0.3]]}],
    "lines": [
        ROW | {"text": "x = f(<y>)" + " + 1" * 20, "share": 0.6, "layers": [["numpy", 0.96]]}
    ],
    "parts": [ROW | {"text": "a()", "share": 0.6}, ROW | {"line": 13, "text": "b()", "share": 0.3}],
}


@pytest.mark.parametrize("n", range(1, 20))
def test_a_long_command_is_cut_at_a_word(n: int) -> None:
    command = ["python", "train.py", *(f"--option{i}={i}" for i in range(n))]
    whole = " ".join(command[1:])
    found = processes.heading(report(command=command))
    assert len(found) <= 100
    if found != whole:
        assert len(whole) > 100
        assert found.endswith(" …")
        assert whole.startswith(found.removesuffix("…"))  # with the space after the word
    assert len(processes.heading(report(command=["a" * 300]))) == 100


def test_a_tree_has_first_what_has_no_parts_then_the_others() -> None:
    assert tree_lines(LEARNER) == [
        "Learner profile tree view (seconds of 217.4 s):",
        "misc: 0.0024",
        "train: 28.5942",
        "  epoch_init: 0.0037",
        "  calculate_losses: 10.2242",
        "    bptt: 0.9616, tail: 0.3432",
    ]


def test_equal_workers_are_one_tree_that_names_the_one_apart() -> None:
    first, second = tree_lines(WORKERS)
    assert first.startswith("env worker ×2 profile tree view")
    assert second == (
        "python_env: 170.0000 (150.0000–190.0000, highest in env worker 1), reset: 6.5000"
    )


def test_a_component_without_phases_has_no_tree() -> None:
    assert tree_lines(component("torchrun", ["torchrun"])) == []


def test_a_program_without_phases_is_not_told_that_all_of_it_lies_outside_of_them(
    tmp_path: Path,
) -> None:
    (row,) = report()["ranking"]
    never = report(ranking=[row | {"phase": ""}])
    some = report(ranking=[row, row | {"phase": "", "rank": 2}])
    for of, expected in ((never, False), (some, True)):
        console = Console(width=80, file=io.StringIO())
        console.print(terminal_processes.summary(of, tmp_path))
        told = console.file.getvalue()  # type: ignore[attr-defined]
        for text in (processes.render_markdown(of), " ".join(told.split())):
            assert ("outside all phases" in text) is expected


def test_names_are_whole_in_a_terminal_of_80_columns(tmp_path: Path) -> None:
    (row,) = report()["ranking"]
    long = row | {"thread": "ThreadPoolExecutor-*_*", "phase": "gradient_update/critic/backward",
                  "layer": "torch_backward"}  # fmt: skip
    console = Console(width=80, file=io.StringIO())
    console.print(terminal_processes.summary(report(ranking=[row, long]), tmp_path))
    told = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "340 s Environment (Python), env worker: python_env" in told
    assert (
        "340 s PyTorch training: backward, env worker [ThreadPoolExecutor-*_*]: "
        "gradient_update/critic/backward"
    ) in told


def test_the_page_and_the_text_tell_the_same_and_no_folder_of_the_machine() -> None:
    page, text = processes.render_html(report(), STACKS), processes.render_markdown(report())
    plain = re.sub(r"<[^>]*>", "", page)
    for figure in ("90.0 %", "170.0000", "env worker 0 was killed.", "highest in env worker 1"):
        assert figure in plain, figure
        assert figure in text, figure
    for folder in ("/home/me", "http://", "https://"):
        assert folder not in page
        assert folder not in text


def test_what_comes_from_the_program_is_escaped() -> None:
    page = processes.render_html(report(**OWN), STACKS)
    assert "<3>" not in page
    assert "<y>" not in page


def test_lines_of_its_own_stand_with_their_source_within_80_columns(tmp_path: Path) -> None:
    (ranked,) = report()["ranking"]
    of = report(ranking=[ranked | {"phase": ""}], **OWN)
    console = Console(width=80, file=io.StringIO())
    console.print(terminal_processes.summary(of, tmp_path))
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "60.0 %  train.py:12  x = f(<y>) + 1" in told
    assert all(len(line) <= 80 for line in told.splitlines() if str(tmp_path) not in line)
    text = processes.render_markdown(of)
    assert "NumPy 70 %, Python 30 %" in text
    assert "| NumPy |" in text.replace("  ", " ")  # of a line that is hardly anything else
    for said in (" ".join(told.split()), text):
        assert "train.py:12 (60.0 %), train.py:13 (30.0 %)." in said
        assert "3.25 s" in said


@pytest.mark.parametrize("sampler", ["perf", "py-spy"])
def test_lines_that_perf_does_not_see_are_said_to_be_less_exact(
    sampler: str, tmp_path: Path
) -> None:
    of = report(sampler=sampler, **OWN)
    console = Console(width=300, file=io.StringIO())
    console.print(terminal_processes.summary(of, tmp_path))
    for told in (processes.render_markdown(of), console.file.getvalue()):  # type: ignore[attr-defined]
        assert ("perf does not see them" in told) is (sampler == "perf")


def test_a_program_with_phases_is_not_told_which_lines_are_worth_one() -> None:
    assert processes.worth_a_span(report(**OWN)) == ""


def test_a_phase_is_proposed_with_the_library_that_it_takes() -> None:
    (row,) = report()["ranking"]
    told = processes.worth_a_span(report(ranking=[row | {"phase": ""}], **OWN))
    assert "`rlox.timing` in the library rlox-rl" in told


def test_one_process_has_no_equals_to_be_compared_with() -> None:
    assert len(report()["processes"]) == 1
    assert "Equal workers" not in processes.render_markdown(report())


def test_a_run_that_nothing_sampled_still_has_its_trees() -> None:
    empty = report(ranking=[], layers=[], sampler=None)
    assert "train: 28.5942" in processes.render_html(empty, Samples("", []))
    assert "nothing is ranked" in processes.render_markdown(empty)


def test_clocks_that_are_one_are_said_to_be_and_others_have_their_error() -> None:
    assert dict(processes.figures(report()))["Clocks aligned to"] == "one clock"
    clocks = {"clocks": [{"process": "a", "shift_us": 5e6, "error_us": 12.4, "seen_us": 5e6}]}
    assert dict(processes.figures(report(trace=clocks)))["Clocks aligned to"] == "± 12 µs"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page whose command is long."""
    file = tmp_path_factory.mktemp("page") / "report.html"
    command = ["python", "train.py", *(f"--option{n}={n}" for n in range(20))]
    file.write_text(processes.render_html(report(command=command, **OWN), STACKS))
    return file


@pytest.fixture(scope="module")
def tab(browser: "Browser") -> "Page":
    """The tab, offline, that it is loaded into: another takes longer than loading."""
    return browser.new_context(offline=True).new_page()


@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_fits_its_window_and_asks_for_nothing(tab: "Page", file: Path, width: int) -> None:
    said: list[str] = []
    tab.set_viewport_size({"width": width, "height": 900})
    url = f"{file.as_uri()}?{width}"
    tab.on("console", lambda message: said.append(message.text))
    tab.on("request", lambda r: said.append(r.url) if r.url != url else None)
    tab.goto(url)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.locator("#trees pre").inner_text().startswith("Learner profile tree view")
    assert tab.locator("#ranking tbody tr").count() == 1
    assert tab.locator("#flame").inner_text().split()[:2] == ["all", "threads"]
    lines = "h => h.clientHeight / parseFloat(getComputedStyle(h).lineHeight)"
    assert tab.locator("h1").evaluate(lines) <= 2.1
    assert said == []
