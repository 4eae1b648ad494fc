"""A program to be profiled: a phase, and a process of its own."""

import subprocess
import sys
import time

from rlox.timing import Timing

timing = Timing("Toy")
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.3)"])
with timing.add_time("load"):
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        sum(range(1000))
other.wait()
