"""Functions that a call enters are found in all threads, or the call is not looked into."""

import subprocess
from pathlib import Path

import pytest

from rlox_opt import harness
from rlox_opt.project.interpreters import installed

INSIDE = Path(harness.__file__).parent / "inside"
PROGRAM = """
import queue, threading
from rlox_opt_reached import reached

work, done = queue.Queue(), queue.Queue()

def of_a_living_thread():
    pass

def serve():
    while True:
        work.get()()
        done.put(None)

def call():
    work.put(of_a_living_thread)
    done.get()

threading.Thread(target=serve, daemon=True).start()
call()
of = {line for file, line in reached(call, FOLDER)}
assert of_a_living_thread.__code__.co_firstlineno in of
assert serve.__code__.co_firstlineno not in of  # it was entered before
"""
PYTHONS = {of.version: of.path for of in installed()}


@pytest.mark.parametrize("version", PYTHONS)
def test_a_thread_that_lives_is_looked_into_or_the_call_is_refused(
    version: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("FOLDER", repr(str(tmp_path))))
    done = subprocess.run(
        [PYTHONS[version], program], env={"PYTHONPATH": str(INSIDE)}, capture_output=True, text=True
    )
    if tuple(map(int, version.split(".")[:2])) >= (3, 12):
        assert done.returncode == 0, done.stderr
    else:
        assert "RuntimeError: threads that have begun cannot be looked into" in done.stderr
