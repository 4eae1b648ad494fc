"""The functions of ours on a stack: by the line, where a tool's name is that of another."""

import pytest
from toy_projects import PROJECT

from rlox_opt.history.sides import installed
from rlox_opt.sampling.functions import enclosing, innermost, short
from rlox_opt.sampling.samples import Frame

PYTHON = Frame("step", "toy/env/vec_env.py", 107)
STD = Frame("exp", "library/std/src/f64.rs", 9)


text = installed(PROJECT)


def test_the_innermost_function_of_ours_is_found_below_what_works_for_it() -> None:
    rust = Frame("_core::llm::compute", "crates/toy-core/src/llm/ops.rs", None)
    assert innermost([PYTHON, rust, STD], text) == "crates/toy-core/src/llm/ops.rs:compute"
    assert innermost([PYTHON, STD], text) == "toy/env/vec_env.py:step"
    assert innermost([STD], text) is None


@pytest.mark.parametrize(
    "module",
    ["workbench/rlox_opt/harness/inside/rlox_opt_side.py", "workloads/child.py", "rloxx/a.py"],
)
def test_what_looks_on_is_not_ours(module: str) -> None:
    assert innermost([PYTHON, Frame("call", module, 1)], text) == "toy/env/vec_env.py:step"


def test_a_line_before_all_functions_has_none() -> None:
    assert enclosing("use a;\nfn one() {\n}\n", 1) is None
    assert enclosing("use a;\nfn one() {\n}\n", 3) == "one"
    assert enclosing("pub(super) const unsafe fn one() {\n", 1) == "one"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("step<f64, ndarray::Dim<[usize; 1]>>", "step"),
        ("<toy_core::CartPole as toy_core::RLEnv<I>>::step", "toy_core::CartPole::step"),
        ("at::native::(anonymous namespace)::add(at::Tensor const&)", "at::native::add"),
        ("_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault"),
        ("<lambda>", "?"),
    ],
)
def test_names_are_short(name: str, expected: str) -> None:
    assert short(name) == expected
