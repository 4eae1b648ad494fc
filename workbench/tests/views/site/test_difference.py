"""Two profiles against each other: what grew, what only seems to, and what is noise."""

import json

import pytest

from rlox_opt.history.difference import Difference
from rlox_opt.history.store import Profile

BEFORE = Profile(
    samples=10_000,
    layers={"rust": 0.2, "python": 0.8},
    phases={"": 1.0},
    functions={"rust:step": 0.2, "python:learn": 0.5, "python:store": 0.3},
    folded="learn;step 20\nlearn;store 30\nlearn 50\n",
)
# Rust takes twice as long, Python as long as before: 1.2 times the time in all.
AFTER = Profile(
    samples=10_000,
    layers={"rust": 0.4 / 1.2, "python": 0.8 / 1.2},
    phases={"": 1.0},
    functions={"rust:step": 0.4 / 1.2, "python:learn": 0.5 / 1.2, "python:push": 0.3 / 1.2},
    folded="learn;step 40\nlearn;push 30\nlearn 50\n",
)


def test_relative_to_the_control_only_what_grew_has_grown() -> None:
    rust, python = sorted(Difference(BEFORE, AFTER, (1.0, 1.2)).layers(), key=lambda p: -p.change)
    assert (rust.name, rust.before, rust.after) == ("rust", 0.2, pytest.approx(0.4))
    assert rust.beyond_noise
    assert python.change == pytest.approx(0, abs=1e-12)
    assert not python.beyond_noise


def test_as_shares_what_did_not_grow_shrinks() -> None:
    changes = {part.name: part.change for part in Difference(BEFORE, AFTER).layers()}
    assert changes == {
        "rust": pytest.approx(0.1333, abs=1e-3),
        "python": pytest.approx(-0.1333, abs=1e-3),
    }


def test_noise_is_judged_by_the_number_of_samples() -> None:
    def part(samples: int) -> bool:
        one, other = (
            Profile(samples, {"rust": share, "python": 1 - share}, {}) for share in (0.20, 0.24)
        )
        return Difference(one, other).layers()[0].beyond_noise

    # The standard error of the difference of 0.04 is 0.058 for 100 samples, 0.0058 for 10,000.
    assert not part(100)
    assert part(10_000)


def test_functions_are_told_where_they_changed_the_largest_first() -> None:
    told = Difference(BEFORE, AFTER, (1.0, 1.2)).functions()
    assert [part.name for part in told] == ["python:store", "python:push", "rust:step"]
    assert [round(part.change, 3) for part in told] == [-0.3, 0.3, 0.2]


def test_the_tree_has_both_sides_and_what_is_gone() -> None:
    tree = Difference(BEFORE, AFTER, (1.0, 1.2)).tree()
    assert tree is not None
    names = [name for name, *_ in tree["names"]]
    found = {names[name]: (depth, before, after) for depth, name, before, after in tree["nodes"]}
    assert found["training"] == (0, 1.0, 1.2)
    assert found["learn"] == (1, 1.0, 1.2)
    assert found["step"] == (2, 0.2, 0.4)
    assert found["store"] == (2, 0.3, 0)
    assert found["push"] == (2, 0, 0.3)
    assert [depth for depth, *_ in tree["nodes"]] == [0, 1, 2, 2, 2]
    json.dumps(tree, allow_nan=False)


def test_a_frame_called_from_two_places_is_two_nodes() -> None:
    profile = Profile(10, {}, {}, {}, "a;x 1\nb;x 3\n")
    tree = Difference(profile, profile).tree()
    assert tree is not None
    x = [name for name, *_ in tree["names"]].index("x")
    assert sorted(before for _, name, before, _ in tree["nodes"] if name == x) == [0.25, 0.75]


def test_without_stacks_there_is_no_tree() -> None:
    bare = Profile(100, {"rust": 1.0}, {"": 1.0})
    assert Difference(bare, AFTER).tree() is None
