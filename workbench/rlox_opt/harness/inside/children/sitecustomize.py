"""What each Python that a test starts runs first. With `-c` and `-m` the working folder comes
before PYTHONPATH, and the sources beside the tests would be found there."""
# ruff: noqa: PTH120 - pathlib is slow to import, and a benchmark may be the start of a Python

import os
import sys

_here = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.dirname(_here))
import rlox_opt_built  # noqa: E402

sys.path[:] = [of for of in sys.path[1:] if os.path.realpath(of) != _here]
if rlox_opt_built.VARIABLE in os.environ:
    sys.meta_path.insert(0, rlox_opt_built.of_parent())

# The environment may have another module of this name, which this one stands before.
_own = sys.modules.pop(__name__)
try:
    import sitecustomize  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != __name__:
        raise
    sys.modules[__name__] = _own
