"""Beliefs about a program's own functions and lines: whose time is whose, and what divides it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlox_opt.project.layers import Layers
from rlox_opt.sampling.processes import hot as hot_module
from rlox_opt.sampling.processes.hot import Seen, hot, libraries, stacks_of
from rlox_opt.sampling.processes.inside.rlox_opt_segments import RECORDER
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples

RULES = Layers()
HOME = "/home/me/work"
TORCH = Frame("linear", "/env/lib/python3.11/site-packages/torch/nn/linear.py", 9)
JSON = Frame("loads", "/usr/lib/python3.11/json/__init__.py", 300)
MALLOC = Frame("malloc", "/usr/lib/libc.so.6")


def at(line: int, name: str = "<module>", file: str = f"{HOME}/train.py") -> Frame:
    return Frame(name, file, line)


def sample(*frames: Frame, s: float = 1.0, layer: str = "python", thread: str = MAIN_THREAD,
           phase: str = "") -> Sample:  # fmt: skip
    return Sample(frames, phase, layer, s, thread)


def seen(*samples: Sample) -> list[Seen]:
    return [Seen("main", Samples("perf", list(samples)))]


def test_what_a_line_calls_of_libraries_is_its_own_and_what_it_calls_of_ours_is_not() -> None:
    found = hot(
        seen(
            sample(at(3), at(7, "step"), TORCH, MALLOC, s=3.0, layer="torch_forward"),
            sample(at(3), at(7, "step"), s=1.0),
            sample(at(3), s=2.0),
            sample(at(4), JSON, s=2.0),
        ),
        RULES,
    )
    lines = {row["line"]: row for row in found["lines"]}
    assert {line: row["share"] for line, row in lines.items()} == {7: 0.5, 3: 0.25, 4: 0.25}
    assert lines[7]["layers"] == [["torch_forward", 0.75], ["python", 0.25]]
    assert {row["name"]: row["seconds"] for row in found["functions"]} == {
        "step": 4.0,
        "<module>": 4.0,
    }
    assert {row["place"] for row in found["lines"]} == {"train.py"}


def test_an_environment_in_the_programs_folder_is_a_library() -> None:
    inside = f"{HOME}/.venv/lib/python3.11/site-packages/torch/nn/linear.py"
    found = hot(seen(sample(at(7, "step"), at(9, "linear", inside))), RULES)
    assert [(row["place"], row["line"]) for row in found["lines"]] == [("train.py", 7)]


def test_what_records_a_program_is_none_of_its_lines() -> None:
    wrapper = at(70, "timed", f"{Path(hot_module.__file__).with_name('inside')}/rlox_opt_torch.py")
    stack = seen(sample(at(3), wrapper, TORCH, s=2.0, layer="torch_backward"))
    assert [row["line"] for row in hot(stack, RULES)["lines"]] == [3]
    (drawn,) = stacks_of(stack, RULES).samples
    assert [frame.name for frame in drawn.frames] == ["<module>", "linear"]


def test_what_waits_starts_up_or_is_the_recorders_is_no_time_of_the_program() -> None:
    found = hot(
        seen(
            sample(at(1)),
            sample(at(2), layer="idle"),
            sample(at(3), layer="startup"),
            sample(at(4), layer="gil"),
            sample(at(5), thread=RECORDER),
        ),
        RULES,
    )
    assert [(row["line"], row["share"]) for row in found["lines"]] == [(1, 1.0)]


def test_an_installed_program_is_its_own_package() -> None:
    site = "/env/lib/python3.11/site-packages"
    main, other = f"{site}/tool/__main__.py", f"{site}/tool/deep/run.py"
    run = Frame("_run_code", "<frozen runpy>", 88)
    stack = [run, at(5, file=main), at(9, "go", other)]
    found = hot(seen(sample(*stack, TORCH), sample(run, at(6, file=main))), RULES)
    assert {row["place"] for row in found["lines"]} == {"__main__.py", "deep/run.py"}


def test_a_script_without_an_ending_is_the_program() -> None:
    tool = f"{HOME}/tool"
    found = hot(seen(sample(at(3, file=tool), at(7, "step", tool), TORCH)), RULES)
    assert [(row["place"], row["line"]) for row in found["lines"]] == [("tool", 7)]


def test_a_console_script_is_the_package_that_it_calls(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    script, package = f"{tmp_path}/bin/tool", f"{tmp_path}/lib/python3.11/site-packages/tool"
    stack = [at(8, file=script), at(5, "main", f"{package}/cli.py")]
    run = at(9, "go", f"{package}/deep/run.py")
    found = hot(seen(sample(*stack, run, TORCH), sample(*stack)), RULES)
    assert {row["place"] for row in found["lines"]} == {"cli.py", "deep/run.py"}


def test_a_script_in_a_folder_called_bin_is_the_program() -> None:
    script, library = "/project/bin/train.py", "/env/lib/python3.11/site-packages/click/core.py"
    stack = [at(8, file=script), at(5, "main", library), at(3, "train", script)]
    found = hot(seen(sample(*stack, TORCH)), RULES)
    assert {row["place"] for row in found["lines"]} == {"train.py"}


def test_the_source_stands_beside_its_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n    x = 3  \n")
    (row,) = hot(seen(sample(at(2, file=str(script)))), RULES)["lines"]
    assert (row["place"], row["text"]) == ("train.py", "x = 3")
    (row,) = hot(seen(sample(at(9, file=str(script)))), RULES)["lines"]
    assert row["text"] == ""


def test_parts_are_lines_of_the_first_function_that_has_more_than_one() -> None:
    main = at(50), at(40, "main")
    loop = [
        sample(*main, at(10, "loop"), at(1, "load"), s=40.0),
        sample(*main, at(11, "loop"), TORCH, s=50.0),
        sample(*main, at(12, "loop"), s=2.0),
        sample(at(3), s=1.0),
    ]
    found = hot(seen(*loop), RULES)["parts"]
    assert [(row["line"], row["seconds"]) for row in found] == [(11, 50.0), (10, 40.0)]
    assert hot(seen(loop[1]), RULES)["parts"] == []  # one line is no division


def test_threads_and_their_phases_are_the_outer_frames_of_the_flamegraph() -> None:
    every = seen(
        sample(at(1), TORCH, phase="train/loss"),
        sample(at(2), thread="loader-3"),
        sample(at(3), layer="idle"),
    )
    found = stacks_of(every, RULES)
    assert [s.phase for s in found.samples] == ["main/train/loss", "main [loader-*]"]
    assert [f.module for f in found.samples[0].frames] == ["train.py", "torch/nn/linear.py"]
    assert libraries(every, RULES) == {"torch"}


Frames = st.lists(st.sampled_from([at(1), at(2), at(7, "f"), at(8, "f"), TORCH, JSON, MALLOC]))


@given(st.lists(st.tuples(Frames, st.floats(0.001, 10)), max_size=20))
def test_shares_are_of_one_whole(stacks: list[tuple[list[Frame], float]]) -> None:
    found = hot(seen(*(sample(*frames, s=s) for frames, s in stacks)), RULES)
    for kind in ("functions", "lines", "parts"):
        assert sum(row["share"] for row in found[kind]) <= 1 + 1e-9
    for row in (*found["functions"], *found["lines"]):
        assert sum(share for _, share in row["layers"]) == pytest.approx(1)
