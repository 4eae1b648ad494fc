"""What the source of a suite tells."""

from pathlib import Path

from rlox_opt.project import suite_source
from rlox_opt.project.kinds.asv import Asv

LIGHT = "def time_light():\n    sorted([3, 2])\n"
HEAVY = """
class Of:
    graphs = [list(range(n)) for n in (10, 10_000)]

    def time_heavy(self):
        pass
"""


def test_what_takes_least_to_import_is_tried_first(tmp_path: Path) -> None:
    (tmp_path / "a_heavy.py").write_text(HEAVY)
    (tmp_path / "light.py").write_text(LIGHT)
    (tmp_path / "later.py").write_text(LIGHT)
    there = ["a_heavy.Of.time_heavy", "light.time_light", "later.time_light"]
    assert suite_source.lightest(tmp_path, there) == "light.time_light"
    assert suite_source.lightest(tmp_path, there[:1]) == there[0]
    (tmp_path / "__init__.py").write_text(f"{HEAVY}\ndef time_top():\n    pass\n")
    assert suite_source.lightest(tmp_path, ["time_top", *there[:2]]) == "light.time_light"


def test_what_a_decorator_may_take_away_is_tried_last(tmp_path: Path) -> None:
    marked = f"def wanted(of):\n    return None\n\n@wanted\n{LIGHT}"
    of_class = "@wanted\nclass Of:\n    def time_of(self):\n        pass\n"
    of_method = "class Plain:\n    @wanted\n    def time_of(self):\n        pass\n"
    (tmp_path / "__init__.py").write_text(f"{marked}\n{of_class}\n{of_method}")
    (tmp_path / "heavy.py").write_text(HEAVY)
    there = ["time_light", "Of.time_of", "Plain.time_of", "heavy.Of.time_heavy"]
    assert suite_source.lightest(tmp_path, there) == there[-1]
    assert suite_source.lightest(tmp_path, there[:-1]) == there[0]


def test_benchmarks_that_only_a_plug_in_of_asv_runs_are_told(tmp_path: Path) -> None:
    text = "class Work:\n    def tracemalloc_work(self):\n        pass\n"
    text += "    tracemalloc_work.number = 3\n\ndef tracemalloc_of(call):\n    pass\n\n"
    (tmp_path / "a.py").write_text(f"{text}def track_it():\n    return tracemalloc_of(print)\n")
    told = f"{tmp_path.name}: a plug-in of asv runs tracemalloc_work, and rlox-opt does not"
    assert Asv().uncovered(tmp_path) == [told]
