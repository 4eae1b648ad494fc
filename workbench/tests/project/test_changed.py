"""What differs between two builds, as stacks are asked for it."""

import inspect
from pathlib import Path

import pytest
import small_projects

from rlox_opt.project.changed import Changed, File, compiled
from rlox_opt.project.commits import Commits

BASE = """
class Graph:
    def __init__(self, data):
        self.data = data

    def size(self):
        '''How many.'''
        return len(self.data)

def gone():
    pass
"""
HEAD = """
from functools import cached_property

class Graph:
    def __init__(self, data):
        if hasattr(self, "size"):
            delattr(self, "size")
        self.data = data

    @cached_property
    def size(self):
        '''How many there are.'''
        return len(self.data)

def added():
    return [n for n in range(3)]
"""


def line_of(source: str, text: str) -> int:
    return next(n for n, line in enumerate(source.splitlines(), 1) if text in line)


def test_functions_are_touched_by_code_and_decorators_and_not_by_what_they_say_of_themselves() -> (
    None
):
    assert File(BASE, HEAD).touched == {"Graph.__init__", "Graph.size", "gone", "added"}
    assert not File(BASE, BASE.replace("How many.", "How many there are.")).touched
    assert not File(BASE, BASE).touched


@pytest.mark.parametrize(
    ("side", "text", "name"),
    [
        ("base", "return len", "Graph.size"),
        ("head", "return len", "Graph.size"),
        ("head", "@cached", "Graph.size"),  # where it begins, by its code
        ("head", "hasattr", "Graph.__init__"),
        ("head", "[n for n", "added"),
        ("head", "import", None),
    ],
)
def test_a_line_belongs_to_the_innermost_function_that_holds_it(
    side: str, text: str, name: str | None
) -> None:
    source = BASE if side == "base" else HEAD
    assert File(BASE, HEAD).function(side, line_of(source, text)) == name


def test_lines_of_base_are_found_in_head_and_others_are_new_or_gone() -> None:
    file = File(BASE, HEAD)
    same = "return len"
    assert file.in_head("base", line_of(BASE, same)) == line_of(HEAD, same)
    assert file.in_head("base", line_of(BASE, "def gone")) is None
    assert line_of(HEAD, "hasattr") in file.new
    assert line_of(HEAD, same) not in file.new
    assert file.text(line_of(HEAD, "hasattr")) == 'if hasattr(self, "size"):'


def test_a_file_that_one_side_lacks_is_all_new_or_gone(tmp_path: Path) -> None:
    for side, text in (("base", BASE), ("head", HEAD)):
        (tmp_path / side).mkdir()
        (tmp_path / side / f"of_{side}.py").write_text(text)
    differs = Changed(tmp_path / "base", tmp_path / "head")
    assert differs.file("of_head.py").touched == {"Graph.__init__", "Graph.size", "added"}
    assert "gone" in differs.file("of_base.py").touched


def test_compiled_functions_are_named_by_what_changes_in_them(tmp_path: Path) -> None:
    c = """
    #include <stdio.h>

    static double area(const double *x, int n)
    {
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += x[i];
        return sum;
    }

    int main(void) {
        return 0;
    }
    """
    rust = """
    impl Tree {
        pub fn set(&mut self, at: usize) {
            self.values[at] = 0.0;
        }
        fn get(&self) -> f64 {
            1.0
        }
    }
    """
    pyx = "cdef double total(double[:] x):\n    return x[0]\n\ndef other():\n    pass\n"
    files = {"a.c": inspect.cleandoc(c), "b.rs": inspect.cleandoc(rust), "c.pyx": pyx}
    slower = {
        "a.c": files["a.c"].replace("sum += x[i];", "sum += x[i] * 1.0;"),
        "b.rs": files["b.rs"].replace("= 0.0;", "= 1.0;"),
        "c.pyx": pyx.replace("x[0]", "x[1]"),
    }
    base, head = small_projects.repository(tmp_path / "of", files, slower)
    found = compiled(Commits(tmp_path / "of", tmp_path / "cache"), base, head)
    assert found == {"area", "set", "total"}
