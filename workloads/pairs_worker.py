"""A process that times the pairs of the training loop: `python pairs_worker.py EXTENSION`.

Reads commands from stdin and answers on stdout, a JSON value a line each, as
`rlox_opt.harness.twins_worker` does for the data plane: `["contest", id, workload, size, seconds,
seed]`, and `["missing", id, workload]`, why it cannot be timed here (null where it can). On one
thread of torch.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Where the package lies, in place of this folder.
sys.path[0] = str(Path(__file__).resolve().parents[1])


def contest(id_: str, workload: str, size: dict[str, int], seconds: float, seed: int) -> Any:
    """Check that both twins return the same, then time them: `rlox_opt.harness.contest.contest`."""
    from rlox_opt.harness.contest import contest

    from rlox.learner import pairs

    pair, of = pairs.workload_of(id_, workload)
    before, after = pair.arms(of, size, seed=0)
    again, _ = pair.arms(of, size, seed=0)
    pair.compare(*(arm.outcome(arm.call()) for arm in (before, after)))
    again.call()
    return contest((before.call, after.call, again.call), seconds, seed)


def missing(id_: str, workload: str) -> str | None:
    """Why the workload cannot be timed here."""
    from rlox.learner import pairs

    return pairs.workload_of(id_, workload)[1].missing()


def main(extension: str) -> None:
    """Answer the commands on stdin until it ends."""
    # What a trainer prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch

    import rlox._core

    if not Path(extension).samefile(rlox._core.__file__ or ""):
        raise ImportError(f"rlox came with {rlox._core.__file__}, not with {extension}")
    torch.set_num_threads(1)
    commands: dict[str, Callable[..., Any]] = {"contest": contest, "missing": missing}
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = commands[name](*arguments)
        except (ValueError, KeyError, AssertionError) as error:
            answer = {"error": str(error), "differ": isinstance(error, AssertionError)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
