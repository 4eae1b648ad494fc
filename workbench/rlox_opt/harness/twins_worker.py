"""A process that times the pairs of one build of the extension: `python twins_worker.py EXTENSION`.

It reads commands from stdin and answers on stdout, one line of JSON each:
`["build"]`, `["contest", id, workload, size, seconds, seed]`, `["arm", id, workload, size, twin]`,
which makes one twin ready, `["time", calls]` and `["outcome"]` of the twin made ready last, and
`["share", id, workload, size, twin, seconds]`. An error is answered as `{"error": text, "differ":
bool}`; `differ` is true where the twins returned different things.

It is started as a file and not as a module, so that nothing but the extension is loaded.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
import time
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any


def load(path: str) -> Any:
    """Load the extension in the file `path`, whose name begins with the module's."""
    name = Path(path).name.partition(".")[0]
    loader = ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def share(arm: Any, seconds: float) -> float:
    """The part of its full speed that another Python thread has while this one calls `arm`."""
    count, stop = 0, False

    def work() -> None:
        nonlocal count
        while not stop:
            count += 1

    def rate(meanwhile: Callable[[], object]) -> float:
        start, before = time.perf_counter(), count
        # On a busy machine the other thread may get no turn for long.
        while time.perf_counter() - start < seconds or count == before:
            meanwhile()
        return (count - before) / (time.perf_counter() - start)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        time.sleep(0.05)
        alone = rate(lambda: time.sleep(0.02))
        return rate(lambda: arm.time(1)) / alone
    finally:
        stop = True
        thread.join()


def serve(extension: Any) -> None:
    """Answer the commands on stdin until it ends."""
    arm: Any = None
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        answer: Any = None
        try:
            if name == "build":
                answer = extension.build_info()
            elif name == "contest":
                answer = extension.pairs.contest(*arguments)
            elif name == "arm":
                arm = None  # releases the memory of the twin before
                arm = extension.pairs.Arm(*arguments)
            elif name == "time":
                answer = arm.time(*arguments)
            elif name == "outcome":
                answer = arm.outcome()
            elif name == "share":
                *of, seconds = arguments
                answer = share(extension.pairs.Arm(*of), seconds)
            else:
                raise ValueError(f"command: is {name!r}, which does not exist")
        except (ValueError, AssertionError) as error:
            answer = {"error": str(error), "differ": isinstance(error, AssertionError)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(load(sys.argv[1]))
