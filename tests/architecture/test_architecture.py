"""The shape of the tree: who may import whom, where optimisations are chosen, what needs torch."""

import ast
import functools
import graphlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Data flows left to right; a package imports from itself and from what stands before it.
# timing stands first because the trainers are written with its blocks.
LIBRARY = ["timing", "env", "buffer", "advantage", "learner"]
WORKBENCH = [
    "system", "stats", "harness", "project", "sampling", "history", "views", "plan", "race", "cli",
]  # fmt: skip
AROUND_NUMPY = [
    path
    for crate in ("rlox-laboratory", "rlox-python")
    for path in (ROOT / "crates" / crate / "src").rglob("*.rs")
]
FOLDERS = {"rlox": ROOT / "rlox", "rlox_opt": ROOT / "workbench" / "rlox_opt"}


@functools.cache
def imports(path: Path, lazy: bool = True) -> list[str]:
    """Dotted names that a Python file imports; unless `lazy`, only while it is imported itself."""

    def is_later(node: ast.AST) -> bool:
        """Whether what lies in it is run later, or never."""
        if isinstance(node, ast.If):
            return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)

    names: list[str] = []
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.stmt | ast.Module | ast.ExceptHandler | ast.match_case):
            inner = ast.iter_child_nodes(node)  # an expression holds no import
            waiting += (child for child in inner if lazy or not is_later(child))
    return names


@pytest.mark.parametrize(
    ("root", "part"), [("rlox", of) for of in LIBRARY] + [("rlox_opt", of) for of in WORKBENCH]
)
def test_imports_follow_the_flow_of_data(root: str, part: str) -> None:
    flow = LIBRARY if root == "rlox" else WORKBENCH
    assert {path.parent.name for path in FOLDERS[root].glob("*/*.py")} <= {*flow}
    downstream = flow[flow.index(part) + 1 :]
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (FOLDERS[root] / part).rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] == root and f"{name}.".split(".")[1] in downstream
    ]
    assert not wrong


@pytest.mark.parametrize(("root", "other"), [("rlox", "rlox_opt"), ("rlox_opt", "rlox")])
def test_library_and_workbench_do_not_import_each_other(root: str, other: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in FOLDERS[root].rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] == other
    ]
    assert not wrong


def test_the_workbench_and_its_tests_import_nothing_of_the_library_or_its_frameworks() -> None:
    theirs = {"rlox", "torch", "gymnasium", "workloads", "optimizations", "peers", "asv_bench"}
    # What runs inside a recorded program looks at the torch that the program has, and programs that
    # are profiled to see how near a profile comes are anybody's.
    inside = FOLDERS["rlox_opt"] / "sampling" / "processes" / "inside"
    profiled = ROOT / "workbench" / "tests" / "sampling" / "accuracy" / "programs"
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / "workbench").rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] in theirs
        and not any(path.is_relative_to(of) for of in (inside, profiled))
    ]
    assert not wrong


def test_the_workbenchs_tests_mirror_its_package() -> None:
    """Both roots name their test modules apart, for pytest takes a module by its name alone."""
    package, own = FOLDERS["rlox_opt"], ROOT / "workbench" / "tests"
    folders = {path.parent.relative_to(package) for path in package.rglob("*.py")}
    tests = [*own.rglob("test_*.py"), *(ROOT / "tests").rglob("test_*.py")]
    assert {path.parent.relative_to(own) for path in own.rglob("test_*.py")} <= folders
    assert len({path.name for path in tests}) == len(tests)


@pytest.mark.parametrize("root", FOLDERS)
def test_no_module_imports_in_a_circle(root: str) -> None:
    home = FOLDERS[root].parent
    paths = {
        ".".join(path.relative_to(home).with_suffix("").parts).removesuffix(".__init__"): path
        for path in FOLDERS[root].rglob("*.py")
    }
    graph = {
        module: {
            found
            for name in imports(path, lazy=False)
            if (found := name if name in paths else name.rpartition(".")[0]) in paths
        }
        - {module, root}  # `from rlox import _core` is of a module, whatever else the package has
        for module, path in paths.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_optimisation_features_are_named_in_the_switchboard_alone() -> None:
    named = re.compile(r'feature\s*=\s*"opt-')
    wrong = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "crates").rglob("*.rs")
        if named.search(path.read_text()) and path.name != "switchboard.rs"
    ]
    assert not wrong


def without_tests(source: str) -> str:
    """Rust without comments and without what only tests have."""
    source = re.sub(r"//.*", "", source)
    while at := re.search(r"#\[cfg\((?:test|false)\)\]\n", source):
        depth, end = 0, at.end()
        for end in range(at.end(), len(source)):  # to the end of the item
            depth += {"{": 1, "}": -1}.get(source[end], 0)
            if depth == 0 and source[end] in "};":
                break
        source = source[: at.start()] + source[end + 1 :]
    return source


def named_modules(source: str) -> set[str]:
    """The first names of the paths from the root of the crate, one by one or in braces."""
    found = set(re.findall(r"\bcrate::(\w+)", source))
    for braces in re.findall(r"\bcrate::\{((?:[^{}]|\{[^}]*\})*)\}", source):
        found |= set(re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^}]*\}", "", braces)))
    return found


def core_modules() -> dict[str, set[str]]:
    """The modules of the core, each with those that it names."""
    folder = ROOT / "crates/rlox-core/src"
    graph: dict[str, set[str]] = {}
    for path in folder.rglob("*.rs"):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts != ("lib",) and not {"tests", "interleavings"} & set(parts):
            graph.setdefault(parts[0], set()).update(named_modules(without_tests(path.read_text())))
    at_the_root = {"RloxError": "error", "Real": "real"}  # as lib.rs has them
    named = {module: {at_the_root.get(n, n) for n in names} for module, names in graph.items()}
    return {module: names & graph.keys() - {module} for module, names in named.items()}


def test_no_module_of_the_core_names_another_in_a_circle() -> None:
    graph = core_modules()
    assert {"buffer", "llm", "pipeline", "training"} <= graph["wiring"] | graph["switchboard"]
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_paths_are_read_as_rust_has_them() -> None:
    source = """use crate::{Real, a::{b, c}, d::e};
use crate::f::g; // crate::h
#[cfg(test)]
mod tests { use crate::i::j; fn k() {} }
let l = crate::m::n();
"""
    assert named_modules(without_tests(source)) == {"Real", "a", "d", "f", "m"}


def test_the_switchboard_is_for_the_extension_and_the_benchmarks() -> None:
    """Whatever it chooses, the core's other modules and the pairs are the same."""
    assert [module for module, names in core_modules().items() if "switchboard" in names] == []
    wrong = [
        str(path.relative_to(ROOT))
        for crate in ("rlox-bench", "rlox-laboratory")
        for path in (ROOT / "crates" / crate / "src").rglob("*.rs")
        if re.search(r"\bswitchboard\b", path.read_text())
    ]
    assert not wrong


def test_the_core_knows_nothing_of_python() -> None:
    manifest = (ROOT / "crates/rlox-core/Cargo.toml").read_text()
    assert "pyo3" not in manifest
    assert "numpy" not in manifest


def test_what_ships_does_not_depend_on_the_laboratory() -> None:
    """Twins that were refused, and what times twins, are not in the wheel."""
    waiting, found = ["rlox-python"], set[str]()
    while waiting:
        found.add(crate := waiting.pop())
        manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())
        waiting += {of for of in manifest["dependencies"] if of.startswith("rlox-")} - found
    assert found == {"rlox-python", "rlox-core"}


def test_the_memory_of_numpy_is_reached_in_one_module() -> None:
    """And nowhere else is anything unsafe, but where one function of Python's has no other name.
    Few files attach to Python by name, for the closure of a scope could run it so."""
    crates = ROOT / "crates"
    raw = re.compile(
        r"unsafe|npyffi|PyReadonlyArray|PyReadwriteArray|from_raw_parts|as_slice|as_array"
        r"|\.data\(|\.try_readonly|\.try_readwrite|\.readonly\(|\.readwrite\(|get_owned|PyBuffer|as_ptr"
    )
    attaches = re.compile(r"attach\(|assume_attached|with_gil")
    numbers, arrays = "rlox-python/src/numbers.rs", crates / "rlox-python/src/arrays"
    may_attach = ("rlox-python/src/pipeline/", "rlox-laboratory/src/numpy")
    found = {
        (str(path.relative_to(crates)), word)
        for path in AROUND_NUMPY
        if not path.is_relative_to(arrays)
        for word in raw.findall(path.read_text()) + attaches.findall(path.read_text())
    }
    wrong = {
        (path, word)
        for path, word in found
        if (path, word) not in {(numbers, "unsafe"), (numbers, "as_ptr")}
        and not (attaches.fullmatch(word) and path.startswith(may_attach))
    }
    assert not wrong
    assert (numbers, "unsafe") in found


def test_what_the_closure_of_a_scope_uses_is_borrowed() -> None:
    """One that owned an object could drop it, which may run a finaliser while slices are there."""
    scope = re.compile(r"\b(?:reading|writing|detaching)\((?:[^|]*?)(move )?\|")
    closures = [
        (path.name, moves)
        for path in AROUND_NUMPY
        for moves in scope.findall(re.sub(r"//.*", "", path.read_text()))
    ]
    assert len(closures) > 20
    assert [name for name, moves in closures if moves] == []


def test_the_data_plane_and_the_command_line_start_without_torch() -> None:
    program = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "rich"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
import numpy as np, rlox
from rlox_opt.cli.main import command_line
from rlox_opt.project.project import Project
command_line(Project.here())
env = rlox.VecEnv("CartPole-v1", 2, seed=0)
obs, _ = env.reset(seed=0)
next_obs, reward, terminated, truncated, _ = env.step(np.zeros(2, dtype=np.int64))
buffer = rlox.ReplayBuffer(8, 4, 1)
buffer.push_batch(obs, next_obs, np.zeros((2, 1), np.float32), reward.astype(np.float32),
                  terminated, truncated)
assert buffer.sample(4, seed=0)["obs"].shape == (4, 4)
advantages, _ = rlox.compute_gae(np.ones(3), np.zeros(3), np.zeros(3), 0.0, 0.99, 0.95)
assert advantages.shape == (3,)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_git_is_called_in_one_place() -> None:
    named = re.compile(r"""["']git["']""")
    calling = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS.values()
        for path in folder.rglob("*.py")
        if named.search(path.read_text())
    }
    assert calling == {"workbench/rlox_opt/system/git.py"}


def test_pages_and_pictures_are_written_in_templates() -> None:
    # Markdown has no other way to fold than <details>.
    tag = re.compile(r"</?(?!details|summary)[a-z][a-z0-9]*(\s[^<>]*)?/?>")

    def told(node: ast.AST) -> Iterator[str]:
        """Texts of a program, but not what it says about itself."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant) and isinstance(child.value, str):
                if not isinstance(node, ast.Expr):
                    yield child.value
            else:
                yield from told(child)

    wrong = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in (FOLDERS["rlox_opt"] / "views").rglob("*.py")
        for text in told(ast.parse(path.read_text()))
        if tag.search(text)
    ]
    assert not wrong


def test_no_source_file_is_longer_than_400_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for folder, pattern in (("crates", "*.rs"), ("rlox", "*.py"), ("workbench", "*.py"))
        for path in (ROOT / folder).rglob(pattern)
        if (lines := len(path.read_text().splitlines())) > 400
    }
    assert not long
