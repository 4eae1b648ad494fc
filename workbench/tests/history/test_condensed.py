"""A profile as it is kept: shares of the whole, and stacks that fit."""

import pytest

from rlox_opt.history import condensed
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples

RUST = Frame("inlined_into", "crates/toy-core/src/training/gae.rs", 3)
SOURCE = "use x;\npub(crate) fn advantages<T>(\n    n: usize,\n) {}\n"
TORCH = Frame("at::native::add<float>(at::Tensor const&)", "libtorch_cpu.so")


def samples(*of: tuple[tuple[Frame, ...], str, str]) -> Samples:
    seen = [Sample(frames, phase, layer, 0.01, MAIN_THREAD) for frames, phase, layer in of]
    return Samples("perf", seen)


def test_shares_are_those_of_the_run_that_nothing_disturbed() -> None:
    of = samples(
        ((RUST,), "gae", "rust"),
        ((TORCH,), "update/forward", "torch_forward"),
        ((TORCH,), "update/forward", "torch_forward"),
        ((), "", "python"),
    )
    found = condensed.profile(
        of, {"": 1.0, "gae": 3.0, "update/forward": 6.0}, {RUST.module: SOURCE}.get
    )
    assert found.samples == 4
    assert {k: v for k, v in found.layers.items() if v} == pytest.approx(
        {"rust": 0.3, "torch_forward": 0.6, "python": 0.1}
    )
    assert found.phases == pytest.approx(
        {"outside all phases": 0.1, "gae": 0.3, "update/forward": 0.6}
    )
    assert found.functions == pytest.approx(
        {
            "torch_forward:in update/forward": 0.6,
            "rust:crates/toy-core/src/training/gae.rs:advantages": 0.3,
            "python:?": 0.1,
        }
    )
    assert found.folded is not None
    assert "update;forward;at::native::add 600000\n" in found.folded
    counts = [int(line.rpartition(" ")[2]) for line in found.folded.splitlines()]
    assert sum(counts) == pytest.approx(1_000_000, abs=len(counts))


def test_stacks_that_do_not_fit_count_for_what_is_around_them() -> None:
    def stack(number: int) -> tuple[Frame, ...]:
        return tuple(Frame(f"function_{number}_{depth}", "lib.so") for depth in range(20))

    of = samples(*((stack(n % 97), "phase", "torch_forward") for n in range(2000)))
    tree = condensed.tree(of, {"": 0.0, "phase": 1.0})
    whole, cut = condensed.folded(tree, 10**9), condensed.folded(tree, 5_000)
    assert len(whole) > 20_000
    assert 0 < len(cut.encode()) <= 5_000
    for text in (whole, cut):
        counts = [int(line.rpartition(" ")[2]) for line in text.splitlines()]
        assert sum(counts) == pytest.approx(1_000_000, rel=0.01)
