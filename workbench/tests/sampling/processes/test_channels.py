"""Beliefs about channels: what is sent meets what is received, each message once."""

from collections import Counter
from pathlib import Path

from recorded import run_program

from rlox_opt.sampling.processes.alignment import align
from rlox_opt.sampling.processes.flows import arrows

QUEUES = """
import queue

for kind in (queue.Queue, queue.PriorityQueue, queue.LifoQueue):
    things = kind()
    things.put(2)
    things.put(1)
    things.get()
    things.get()
"""


def test_messages_are_paired_only_where_they_come_in_order(tmp_path: Path) -> None:
    run = run_program(tmp_path, QUEUES)
    (process,) = run.processes
    gets = [name.channel for name in process.names.values() if name.kind == "wait"]
    assert sorted(channel.split()[0] for channel in gets) == ["queue", "unordered", "unordered"]
    found = list(arrows(run, {process.key: align(run, process)}, 0))
    assert [len(passages) for passages in found] == [2, 2]


QUEUES_IN_TURN = """
import queue

for _ in range(50):  # each is likely to lie where one before it lay
    things = queue.Queue()
    things.put(1)
    del things
"""


def test_a_queue_is_another_one_than_those_that_were_there_before(tmp_path: Path) -> None:
    (process,) = run_program(tmp_path, QUEUES_IN_TURN).processes
    assert len({name.channel for name in process.names.values() if name.kind == "send"}) == 50


FASTER_FIFO = """
import pickle
from queue import Empty

class Queue:
    shared = []  # what lies in shared memory

    def __init__(self):
        self.room = 1

    def dumps(self, x):
        return pickle.dumps(x)

    def put_many(self, xs, block=True, timeout=10.0):
        if not isinstance(xs, (list, tuple)):
            raise TypeError("a list or tuple")
        self.shared += [self.dumps(x) for x in xs]

    def put(self, x, block=True, timeout=10.0):
        return self.put_many([x], block, timeout)

    def get_many(self, block=True, timeout=10.0, max_messages_to_get=int(1e9)):
        if self.room < len(self.shared):
            self.room *= 2
            return self.get_many_nowait(max_messages_to_get)
        if not self.shared:
            raise Empty
        number = min(len(self.shared), max_messages_to_get)
        return self.parse_messages(number, 0, None)

    def get_many_nowait(self, max_messages_to_get=int(1e9)):
        return self.get_many(block=False, max_messages_to_get=max_messages_to_get)

    def get(self, block=True, timeout=10.0):
        return self.get_many(block=block, timeout=timeout, max_messages_to_get=1)[0]

    def parse_messages(self, number, total_bytes, buffer):
        found = [pickle.loads(self.shared.pop(0)) for _ in range(number)]
        return found
"""
AT_A_FASTER_FIFO = """
import pickle
from queue import Empty
from faster_fifo import Queue

things = Queue()
there = pickle.loads(pickle.dumps(things))
things.put_many([1, 2, 3])
things.put_many(())
things.put(4)
assert there.get() == 1
assert there.get_many() == [2, 3, 4]
try:
    there.get_many(timeout=0.001)
except Empty:
    pass
try:
    things.put_many(7)
except TypeError:
    pass
"""


def test_each_message_of_a_faster_fifo_is_put_once_and_got_once(tmp_path: Path) -> None:
    (tmp_path / "faster_fifo.py").write_text(FASTER_FIFO)
    run = run_program(tmp_path, AT_A_FASTER_FIFO)
    (process,) = run.processes
    assert len({name.channel for name in process.names.values()}) == 1
    spans = [(b.source, *span) for b in process.spans() for span in b.data.tolist()]
    found = Counter(process.names[source, index].path for source, index, _, _ in spans)
    assert found == {"queue: put": 4, "queue: get": 4, "queue: empty": 1}
    assert len(list(arrows(run, {process.key: align(run, process)}, 0))) == 4


COLLECTIVES = """
from types import SimpleNamespace
import rlox_opt_recorder, rlox_opt_waits

def all_reduce(tensor, op=None, group=None, async_op=False):
    pass

def barrier(group=None):
    pass

world, mine = SimpleNamespace(group_name="0"), SimpleNamespace(group_name="mine")
module = SimpleNamespace(
    all_reduce=all_reduce, barrier=barrier, group=SimpleNamespace(WORLD=world)
)
rlox_opt_waits.Waits(rlox_opt_recorder.active())._collectives(module)
module.all_reduce(1)
module.all_reduce(1, None, world)
module.all_reduce(1, None, mine)
module.barrier(mine)
"""


def test_a_collective_is_of_its_group_however_that_is_passed(tmp_path: Path) -> None:
    (process,) = run_program(tmp_path, COLLECTIVES).processes
    found = [(n.path.split()[-1], n.channel.split()[-1]) for n in process.names.values()]
    assert found == [("all_reduce", "world"), ("all_reduce", "mine"), ("barrier", "mine")]
