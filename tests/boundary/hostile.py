"""Wrong calls: every function of the extension, with arguments that should break it. Between them,
calls in odd orders that must work, whose results are compared with NumPy's.

`hostile_calls(seed, count)` makes so many calls in this process. As a program it limits the memory
first, and can call from several threads and from forked children. Only an `Exception` may be
raised: no crash, no hang, and none of Rust's panics, which are no `Exception`. Sizes are small or
absurd, so that a call takes microseconds.

    python tests/boundary/hostile.py --seed 1 --count 100000 --threads 3 --forks 20
"""

import argparse
import faulthandler
import json
import os
import resource
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

from hostile_calls import Calls
from valid_sequences import Sequences


class Hostile(Calls, Sequences):
    """Draws calls and makes them."""


def hostile_calls(seed: int, count: int, shared: Hostile | None = None) -> Hostile:
    """Make so many calls. `fatal` of the result names calls that raised anything but an
    `Exception`."""
    hostile = Hostile(seed, shared)
    while hostile.counts["calls"] < count:
        hostile.one()
    return hostile


def in_child(seed: int, count: int, shared: Hostile) -> str | None:
    """The fault of a forked child that continues with its parent's objects, or None."""
    said, say = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.register(signal.SIGALRM, chain=True)  # says where it waits
        signal.alarm(60)  # ends who waits for ever
        try:
            fatal = hostile_calls(seed, count, shared).fatal
            os.write(say, "; ".join(fatal).encode()[:4000])  # a pipe holds as much
            os._exit(bool(fatal))
        finally:
            os._exit(2)
    os.close(say)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(said) as pipe:
        fatal = pipe.read()
    return f"a child ended with {code}: {fatal}" if code else None


def main() -> None:
    """Run as the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000, help="calls, in all threads together")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--forks", type=int, default=0, help="children, of 100 calls each")
    parser.add_argument("--megabytes", type=int, default=600, help="that calls may take; 0: any")
    arguments = parser.parse_args()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + (arguments.megabytes << 20)
    if arguments.megabytes:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    shared, found = Hostile(arguments.seed), list[Hostile]()
    each = arguments.count // arguments.threads

    def work(thread: int) -> None:
        found.append(hostile_calls(arguments.seed * 1000 + thread, each, shared))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, arguments.threads)]
    fatal = list[str | None]()
    sys.unraisablehook = lambda what: fatal.append(
        None if isinstance(what.exc_value, Exception) else repr(what.exc_value)
    )
    for thread in threads:
        thread.start()
    for fork in range(arguments.forks):
        fatal.append(in_child(arguments.seed * 1000 + 500 + fork, 100, shared))
    work(0)
    for thread in threads:
        thread.join()
    counts = sum((hostile.counts for hostile in found), Counter[str]())
    counts["calls in children"] = 100 * arguments.forks
    wrong = [what for what in fatal if what] + [what for one in found for what in one.fatal]
    print(json.dumps({"counts": dict(sorted(counts.items())), "fatal": wrong}, indent=1))
    sys.stdout.flush()
    os._exit(bool(wrong))  # collectors that nobody closed may be at work


if __name__ == "__main__":
    main()
