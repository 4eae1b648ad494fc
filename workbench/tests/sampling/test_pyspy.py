"""Beliefs about reading py-spy: real stacks, each with its phase and layer; a short live run."""

from collections import Counter
from pathlib import Path

import pytest
from toy_projects import CLASSIFIER, PROJECT

from rlox_opt.sampling import pyspy
from rlox_opt.sampling.layers import Classifier
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Samples

DATA = Path(__file__).parent / "data"


@pytest.fixture
def recorded(tmp_path: Path) -> Samples:
    source = tmp_path / "loop.py"
    source.write_text((DATA / "loop.py.txt").read_text())
    raw = (DATA / "pyspy_raw.txt").read_text().replace("{source}", str(source))
    (tmp_path / "pyspy.raw").write_text(raw)
    (tmp_path / "pyspy.log").write_text("py-spy> Wrote raw data. Samples: 664 Errors: 3\n")
    return pyspy.load(tmp_path, CLASSIFIER)


def test_each_stack_has_the_phase_of_its_lines_and_the_layer_of_its_leaf(
    recorded: Samples,
) -> None:
    main = Counter((s.phase, s.layer) for s in recorded.samples if s.thread == MAIN_THREAD)
    assert main == {
        ("policy_forward", "numpy"): 1,
        ("gradient_update/backward", "torch_backward"): 4 + 39 + 2,
        ("gradient_update/backward", "python"): 45,
        ("gradient_update/optimizer", "python"): 1,
        ("gradient_update/optimizer", "torch_optimizer"): 4,
        ("env_step", "idle"): 53,
        ("env_step", "kernel"): 10,
        ("env_step", "boundary"): 7,
    }


def test_other_threads_keep_their_names(recorded: Samples) -> None:
    others = {(s.thread, s.layer) for s in recorded.samples if s.thread != MAIN_THREAD}
    assert others == {("bgthread", "idle")}


def test_period_errors_and_weights_are_read(recorded: Samples) -> None:
    assert (recorded.tool, recorded.period_s, recorded.errors) == ("py-spy", 0.01, 3)
    assert {sample.weight for sample in recorded.samples} == {0.01}


def test_a_semicolon_inside_a_name_does_not_cut_the_stack(tmp_path: Path) -> None:
    (tmp_path / "pyspy.raw").write_text("thread (1): MainThread;f<[usize; 1]> (/a/lib.so) 2\n")
    (sample, _) = pyspy.load(tmp_path, CLASSIFIER).samples
    assert sample.frames == (Frame("f<[usize; 1]>", "lib.so"),)


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("f (/home/u/Dropbox (Work)/p/a.py:3)", Frame("f", "a.py", 3)),
        ("f(int) (/usr/lib/x.so)", Frame("f(int)", "x.so")),
        ("A::operator()(int) (/home/u/D (W)/x.so)", Frame("A::operator()(int)", "x.so")),
        ("<impl A for ([u8; 3], B)>::f (/a/x.so)", Frame("<impl A for ([u8; 3], B)>::f", "x.so")),
        ("<module> (<string>:1)", Frame("<module>", "<string>", 1)),
    ],
)
def test_names_and_paths_may_hold_parentheses(text: str, frame: Frame, tmp_path: Path) -> None:
    (tmp_path / "pyspy.raw").write_text(f"thread (1): MainThread;{text} 1\n")
    (sample,) = pyspy.load(tmp_path, CLASSIFIER).samples
    assert sample.frames == (frame,)


def test_the_name_of_a_process_is_no_frame_whatever_its_command_holds(tmp_path: Path) -> None:
    process = 'process 7:"python -c import a;a.main()"'
    (tmp_path / "pyspy.raw").write_text(f"{process};thread (7);f (/a/b.py:3) 2\n")
    (sample, _) = pyspy.load(tmp_path, CLASSIFIER).samples
    assert [frame.name for frame in sample.frames] == ["f"]
    assert sample.thread == "7"


def test_what_was_seen_while_the_sampler_settled_is_dropped(tmp_path: Path) -> None:
    function = f"child.Run.{pyspy.SETTLING} (child.py:160)"
    raw = f"main (a.py:1);{function};learn (b.py:2) 703\nmain (a.py:2);learn (b.py:2) 5\n"
    (tmp_path / "pyspy.raw").write_text(raw)
    assert len(pyspy.load(tmp_path, CLASSIFIER).samples) == 5


def test_a_run_that_left_nothing_says_what_the_tool_said(tmp_path: Path) -> None:
    (tmp_path / "pyspy.log").write_text("Error: Permission Denied\n")
    with pytest.raises(ValueError, match="Permission Denied"):
        pyspy.load(tmp_path, CLASSIFIER)


def test_a_script_is_python_whatever_its_name(tmp_path: Path) -> None:
    tool = "/home/me/tool"
    (tmp_path / "pyspy.raw").write_text(f"thread (1);<module> ({tool}:9);work ({tool}:3) 1\n")
    for scripts, layer in (([], "native"), ([tool], "python")):
        (sample,) = pyspy.load(tmp_path, Classifier(PROJECT.settings.layers, scripts)).samples
        assert sample.layer == layer
