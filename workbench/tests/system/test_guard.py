"""What a killed process started ends, wherever it went; nothing else does."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from survivors import bearing, none_left

from rlox_opt.system import guard

# Without the package around it, whose import takes longer than all the rest.
FOUND = f"""
import os, subprocess, sys, time
sys.path.append({str(Path(guard.__file__).parent)!r})
import guard
"""
BEGIN = f"{FOUND}\nfrom guard import guarded\n"
# In place of guard.py as the program that ends the rest: it searches for a shorter time, which does
# where all that is to be ended has begun.
SOON = f"{FOUND}\nguard._QUIET_S = 0.5\nguard.main(sys.argv[1])\n"


def running(program: str, *arguments: object) -> subprocess.Popen[str]:
    """The program, once it is ready."""
    command = [sys.executable, "-c", BEGIN + program, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


STARTS = """
with guarded():
    subprocess.Popen(["sleep", "600"])
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    subprocess.Popen(["sh", "-c", "(setsid sleep 600 &) ; exit"]).wait()
    subprocess.Popen(["sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done"])
    more = "while :; do sleep 0.01 & sleep 0.005; done"
    subprocess.Popen(["sh", "-c", more], start_new_session=True)
    subprocess.Popen([sys.executable, "-c", "import os, time; os.fork(); time.sleep(600)"])
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_all_that_a_killed_process_started_ends_with_it(mark: str, number: int) -> None:
    process = running(STARTS)
    while len(bearing(mark)) <= 8:  # those that its children start may not be there yet
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait() == -number
    assert none_left(mark)


def test_a_descendant_without_its_environment_ends_too(mark: str, tmp_path: Path) -> None:
    noted = shlex.quote(f"echo $$ > {shlex.quote(str(tmp_path / 'pid'))}; sleep 600; true")
    bare = f"env -i sh -c {noted}; true"
    process = running(f"""
with guarded():
    subprocess.Popen(["sh", "-c", {bare!r}])
    while not os.path.exists({str(tmp_path / "pid")!r}):
        time.sleep(0.01)
    print("ready", flush=True)
    time.sleep(600)
""")
    process.kill()
    assert none_left(mark)
    pid = int((tmp_path / "pid").read_text())
    assert (
        not Path(f"/proc/{pid}").exists() or b"sh" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    )


@pytest.mark.parametrize("after", [0.0, 0.002, 0.005])
def test_it_does_not_matter_when(mark: str, after: float) -> None:
    process = running("""
print("ready", flush=True)
with guarded():
    while True:
        subprocess.Popen(["sleep", "600"], start_new_session=True)
""")
    time.sleep(after)
    process.kill()
    process.wait()
    assert none_left(mark)


def test_shared_memory_of_what_was_killed_is_removed(mark: str) -> None:
    holds = (
        "from multiprocessing.shared_memory import SharedMemory; import time; "
        "print('ready', SharedMemory(create=True, size=4096).name, sep='\\n', flush=True); "
        "time.sleep(600)"
    )
    process = running(f"""
with guarded():
    subprocess.run([sys.executable, "-c", {holds!r}])
""")
    assert process.stdout is not None
    memory = Path("/dev/shm") / process.stdout.readline().strip()
    assert memory.exists()
    process.kill()
    assert none_left(mark)
    assert not memory.exists()


def test_others_are_left_alone(mark: str, tmp_path: Path) -> None:
    (tmp_path / "guard.py").write_text(SOON)
    other = subprocess.Popen(["sleep", "600"])
    process = running(f"""
guard.__file__ = {str(tmp_path / "guard.py")!r}
with guarded():
    subprocess.Popen(["sleep", "600"])
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    print("ready", flush=True)
    time.sleep(600)
""")
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while len(bearing(mark, "")) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert bearing(mark, "") == ["sleep 600 "]  # nor is there left what ended the rest
    other.kill()
    other.wait()


@pytest.mark.parametrize("how", ["pass", "raise SystemExit(3)", "raise KeyboardInterrupt"])
def test_what_it_leaves_on_purpose_at_its_end_goes_on(mark: str, how: str) -> None:
    process = running(f"""
with guarded():
    left = subprocess.Popen(["sleep", "600"], start_new_session=True)
    print("ready", flush=True)
    print(left.pid, flush=True)
    {how}
""")
    assert process.stdout is not None
    left = int(process.stdout.readline())
    process.wait()
    assert bearing(mark) == ["sleep 600 "]
    os.kill(left, signal.SIGKILL)
    assert none_left(mark)


def test_the_environment_is_as_it_was_afterwards() -> None:
    before = dict(os.environ)
    with guard.guarded():
        inside = os.environ.keys() - before.keys()
        with guard.guarded():
            assert os.environ.keys() > inside | before.keys()
    assert os.environ == before
    assert len(inside) == 1


def test_without_proc_processes_are_found_all_the_same(mark: str) -> None:
    if shutil.which("ps") is None:
        pytest.skip("no ps")
    bare = "env -i sh -c 'sleep 600; true'; true"
    process = subprocess.Popen(["sh", "-c", bare], env=os.environ | {"OTHER": f"x{mark}x"})
    program = "import guard, pathlib; guard._PROC = pathlib.Path('/not/there'); "
    program += "guard._PS = ('ps', 'axeww', '-o', 'pid=,ppid=,args='); "  # as it is asked on Linux
    program += f"guard._QUIET_S = 0.5; guard.main('x{mark}x')"
    subprocess.run([sys.executable, "-c", BEGIN + program], check=True)
    assert process.wait() == -signal.SIGKILL
    assert none_left(mark)
