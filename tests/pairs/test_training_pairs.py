"""Every pair of the training loop: both forms agree, and are what the cards say."""

import contextlib
import warnings

import projects
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rlox_opt.project import cards

from rlox.learner import compiled, switchboard, torch_settings, update_pairs
from rlox.learner.pairing import Arm, Workload
from rlox.learner.pairs import PAIRS

CARDS = {card.id: card for card in cards.load(projects.HERE) if card.id.startswith("R")}
# Cases a test; 10 where nothing is said.
EXAMPLES = {
    "R1": 60, "R2": 2, "R3": 2, "R5": 60, "R6": 2, "R7": 60, "R8": 60, "R9": 5, "R10": 1, "R11": 1,
    "R14": 20, "R16": 2, "R17": 20, "R18": 5, "R19": 20, "R20": 5, "R21": 60, "R22": 5, "R23": 20,
    "R24": 20,
}  # fmt: skip
COMPILED = {id_: pytest.param(id_, marks=pytest.mark.slow) for id_ in ("R2", "R3", "R16")}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("id_", [COMPILED.get(id_, id_) for id_ in PAIRS])
def test_the_twins_agree(id_):
    missing = [why for workload in PAIRS[id_].workloads if (why := workload.missing())]
    if len(missing) == len(PAIRS[id_].workloads):
        pytest.skip("; ".join(missing))

    @settings(max_examples=EXAMPLES.get(id_, 10), database=None)
    @given(st.integers(0, 2**32 - 1))
    def agree(seed):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of a compiler that is not there, say
            PAIRS[id_].agree(seed)

    agree()


def test_every_optimisation_of_the_training_loop_has_a_pair():
    assert list(PAIRS) == list(CARDS) == list(switchboard.OPTIMIZATIONS)


@pytest.mark.parametrize("id_", PAIRS)
def test_a_card_names_the_workloads_the_sizes_and_the_tolerance_of_its_pair(id_):
    card, pair = CARDS[id_], PAIRS[id_]
    assert card.sizes == {of.name: list(of.sizes) for of in pair.workloads}
    assert card.tolerance == pair.tolerance
    assert card.prediction, f"{id_} has no prediction: write it before it is measured"
    assert card.prediction.size in card.sizes[card.prediction.workload]


def test_what_trainers_do_unasked_is_what_the_cards_accepted():
    accepted = {id_ for id_, card in CARDS.items() if card.status in ("accepted", "graduated")}
    assert accepted == switchboard.ACCEPTED


def test_twins_that_differ_are_noticed():
    """By more than the tolerance, in one element, in the second call alone."""
    calls = iter([0.0, 0.0, 0.0, 2e-5])
    pair = PAIRS["R1"]._replace(
        workloads=[Workload("act", [{}], lambda *_: Arm(lambda: [torch.tensor([1, next(calls)])]))]
    )
    with pytest.raises(AssertionError, match="not close"):
        pair.agree(0)


def test_products_in_bfloat16_would_be_noticed(monkeypatch):
    """Cases of R13 are large enough that its seam is reached, and its tolerance is small enough."""
    linear = torch.nn.functional.linear
    reached = []

    @contextlib.contextmanager
    def rounding(threads, precision, *others):
        with monkeypatch.context() as patch, torch_settings.torch_settings(threads, "highest"):
            if precision == "medium":
                reached.append(threads)
                patch.setattr(
                    torch.nn.functional,
                    "linear",
                    lambda x, weight, bias=None: linear(rounded(x), rounded(weight), bias),
                )
            yield

    def rounded(x):
        return x.bfloat16().float()

    monkeypatch.setattr(torch_settings, "why_not_onednn", lambda: None)
    monkeypatch.setattr(update_pairs, "torch_settings", rounding)
    (workload,) = PAIRS["R13"].workloads
    pair = PAIRS["R13"]._replace(workloads=[workload._replace(missing=lambda: None)])
    for seed in range(5):
        with pytest.raises(AssertionError, match="not close"):
            pair.agree(seed)
    assert len(reached) == 5


@pytest.mark.parametrize("id_", ["R2", COMPILED["R3"]])
def test_updates_traced_as_one_graph_agree_with_eager_ones(id_, monkeypatch):
    """What compiling begins with: all of it but the code that Inductor would write."""
    monkeypatch.setattr(compiled, "BACKEND", "eager")
    pair = PAIRS[id_]
    (workload,) = pair.workloads
    size = {"n_envs": 2, "n_steps": 8, "batch_size": 10}
    arms = pair.arms(workload, {name: size[name] for name in workload.sizes[0]}, 1)
    for _ in range(2):
        pair.compare(*(arm.outcome(arm.call()) for arm in arms))
