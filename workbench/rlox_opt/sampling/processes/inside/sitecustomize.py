"""Python imports a module of this name when it starts. This one starts the recorder, and then runs
the `sitecustomize` that Python would have imported otherwise."""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec


def _chain() -> None:
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  # pathlib is slow
    others = [entry for entry in sys.path if os.path.abspath(entry) != here]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    import rlox_opt_recorder

    rlox_opt_recorder.start()
except Exception as error:  # of whatever kind: the program goes on without being recorded
    sys.stderr.write(f"rlox-opt: process {os.getpid()} is not recorded: {error!r}\n")
_chain()
