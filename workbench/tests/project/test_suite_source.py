"""What the source of a suite tells."""

from pathlib import Path

from rlox_opt.project import suite_source

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
