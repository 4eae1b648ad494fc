"""Other work on the machine during a measurement."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from rlox_opt.system.process import end_group, tail_of
from rlox_opt.system.scratch import scratch

from asv_bench.injected.tools import ToolError


@contextmanager
def beside(command: str) -> Iterator[None]:
    """Run a shell command again and again until the block ends; "" runs nothing.

    Raises:
        ToolError: the command failed, so that the block was measured without it.
    """
    if not command:
        yield
        return
    with scratch() as folder:
        said = folder / "said.txt"
        with said.open("wb") as file:
            process = subprocess.Popen(
                ["/bin/sh", "-c", f"while {{ {command}\n}}; do :; done; exit 1"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        try:
            yield
            if process.poll() is not None:
                raise ToolError(f"--load: {command!r} failed: {tail_of(said) or 'it said nothing'}")
        finally:
            end_group(process)
