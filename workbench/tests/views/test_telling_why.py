"""How the reason of a change is told, to people and to machines."""

import json
from types import SimpleNamespace
from typing import Any

from rlox_opt.project.explained import Told, Why
from rlox_opt.system.output import folded
from rlox_opt.views import why

INIT = Told("own Python", 0.94, 0.81, 1.08, "networkx/classes/graph.py", "Graph.__init__", 290,
            True, within=0.63)  # fmt: skip
ADJ = Told("own Python", 0.31, 0.23, 0.4, "networkx/classes/graph.py", "Graph.adj", 343, True,
           within=0.31)  # fmt: skip
GET = Told("Python's standard library", 0.32, 0.24, 0.41, "functools.py", "cached_property.__get__")
LINE = Told("own Python", 0.43, 0.34, 0.53, "networkx/classes/graph.py", "Graph.__init__", 334,
            True, 'if hasattr(self, "adj"):')  # fmt: skip
LIKELY = Told("NumPy", 0.4, -0.3, 1.1)


def found(**more: Any) -> Why:
    of = Why("classes.time_create", 1.626, samples={"perf": (600, 700), "python": (400, 395)})
    for name, value in more.items():
        setattr(of, name, value)
    return of


def compared(*of: Why, unexplained: tuple[str, ...] = ()) -> Any:
    return SimpleNamespace(why=of, unexplained=unexplained)


def test_it_is_told_within_the_width_of_a_terminal_with_what_the_change_touches_first() -> None:
    of = found(touched=[INIT, ADJ], functions=[GET, ADJ], lines=[LINE])
    told = [part for line in why.lines(compared(of)) for part in folded(line, 80)]
    assert max(map(len, told)) <= 80
    text = " ".join(" ".join(told).split())
    assert text.startswith("Why classes.time_create takes 1.63 times as long")
    assert (
        "through which runs what grew "
        "94 % (81–108) Graph.__init__ (networkx/classes/graph.py:290); 63 % but for the others "
        "here "
        "31 % (23–40) Graph.adj (networkx/classes/graph.py:343)"
    ) in text
    assert "32 % (24–41) cached_property.__get__ (functools.py, Python's standard library)" in text
    assert '43 % (34–53) + networkx/classes/graph.py:334 if hasattr(self, "adj"):' in text
    assert "by samples: 1300 by perf, 795 by py-spy without native stacks." in text


def test_what_the_samples_do_not_bear_is_not_named_but_as_the_likeliest() -> None:
    told = " ".join(why.lines(compared(found(layers=[LIKELY]))))
    assert "whose code grew" not in told
    assert "Not told: whose code" in told
    assert "the likeliest is NumPy (40 % (−30–110))" in told


def test_functions_that_the_change_does_not_touch_are_said_to_be_so() -> None:
    told = " ".join(why.lines(compared(found(functions=[GET]))))
    assert "No function of Python that the change touches is on the stacks" in told


def test_a_part_that_is_surely_more_than_the_whole_is_explained() -> None:
    for low, told in ((1.2, True), (0.9, False)):
        of = found(native=[Told("own native code", 7.3, low, 9.0, "_multidict.so", "_md_resize")])
        assert ("took back some of it" in " ".join(why.notes(of))) is told


def test_what_could_not_be_seen_and_what_no_time_was_left_for_is_told() -> None:
    of = found(missing=["the kernel's part: perf is away"])
    told = " ".join(why.lines(compared(of, unexplained=tuple("abcd"))))
    assert "Not seen: the kernel's part: perf is away." in told
    assert "No time was left to look why a, b, c and 1 more changed" in told


def test_markdown_and_json_hold_the_same() -> None:
    of = found(touched=[INIT], lines=[LINE])
    text = "\n".join(why.markdown(compared(of)))
    assert "**Why classes.time_create takes 1.63 times as long**" in text
    assert r"  - 94 % (81–108)  Graph.\_\_init\_\_" in text
    facts = json.loads(json.dumps(of.facts()))
    assert facts["touched"][0]["name"] == "Graph.__init__"
    assert facts["lines"][0] | {"line": 334, "in_diff": True} == facts["lines"][0]
    assert facts["samples"] == {"perf": [600, 700], "python": [400, 395]}
