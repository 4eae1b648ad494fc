"""No code of other people's files is run."""

import ast
import pickle
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import rlox

ROOT = Path(__file__).parents[2]
# Nothing of ours needs one of these.
RUNS_WHAT_IT_READS = {
    "pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib",
}  # fmt: skip
# What `setup_cache` of a benchmark returns is kept for the processes of the same comparison, as asv
# keeps it: they run the code of whoever wrote it anyway.
READS_ITS_OWN = {"workbench/rlox_opt/harness/inside/rlox_opt_suite.py"}
# The last names of calls that may read code.
CALLED = {"eval", "exec", "system", "popen", "load"}


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.canary,)


@pytest.mark.parametrize("algorithm", [rlox.PPO, rlox.SAC])
@pytest.mark.parametrize("form", ["torch", "torch of old", "pickle"])
def test_a_trainer_that_is_loaded_runs_nothing(
    algorithm: type[rlox.PPO | rlox.SAC], form: str, tmp_path: Path
) -> None:
    canary, path = tmp_path / "canary", tmp_path / "model.pt"
    saved = {"algorithm": algorithm.__name__, "env_id": "CartPole-v1", "arguments": Evil(canary)}
    if form == "pickle":
        path.write_bytes(pickle.dumps(saved))
    else:
        torch.save(saved, path, _use_new_zipfile_serialization=form == "torch")
    with pytest.raises(Exception, match=r"(?i)weights.only|unpickl|unsupported"):
        algorithm.load(path)
    assert not canary.exists()
    torch.load(path, weights_only=False) if form != "pickle" else pickle.loads(path.read_bytes())
    assert canary.exists(), "the file would have done harm"


def sources() -> Iterator[Path]:
    """Ours: folders that git ignores may have other people's."""
    listed = subprocess.check_output(["git", "-C", ROOT, "ls-files", "-z", "*.py"], text=True)
    for name in listed.rstrip("\0").split("\0"):
        if not name.startswith(("tests/", "workbench/tests/")) and name not in READS_ITS_OWN:
            yield ROOT / name


def may_read(call: ast.Call) -> bool:
    """Whether a call is worth a closer look, which takes long."""
    last = getattr(call.func, "attr", getattr(call.func, "id", ""))  # of a name with dots
    given = {of.arg for of in call.keywords}
    return last in CALLED or not given.isdisjoint(("shell", "allow_pickle"))


def wrong_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where code is read from data: by line."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            for name in [module or "", *(alias.name for alias in node.names)]:
                if name.split(".")[0] in RUNS_WHAT_IT_READS:
                    yield node.lineno, f"imports {name}"
        elif isinstance(node, ast.Call) and may_read(node):
            called = ast.unparse(node.func)
            given = {of.arg: ast.unparse(of.value) for of in node.keywords}
            if called in ("eval", "exec", "os.system", "os.popen") or given.get("shell") == "True":
                yield node.lineno, f"calls {called}"
            if called.endswith("yaml.load") or given.get("allow_pickle", "False") != "False":
                yield node.lineno, f"calls {called}, which may run what it reads"
            if called.endswith("torch.load") and given.get("weights_only") != "True":
                yield node.lineno, "calls torch.load without weights_only=True"


def test_no_source_reads_code_from_data() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in sources()
        for line, what in wrong_in(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from marshal import loads",
        "import a, dill.x",
        "eval(x)",
        "np.load(x, allow_pickle=True)",
        "numpy.load(x, allow_pickle=y)",
        "torch.load(x)",
        "torch.load(x, weights_only=False)",
        "yaml.load(x)",
        "subprocess.run(x, shell=True)",
    ],
)
def test_what_would_read_code_is_seen(text: str) -> None:
    assert [*wrong_in(ast.parse(text))]
