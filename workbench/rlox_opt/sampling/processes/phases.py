"""The phases of a recorded process: the blocks of all its `Timing`s and `span`s, one tree a
thread."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from rlox_opt.sampling.processes.format import PHASE, Triples
from rlox_opt.sampling.processes.run import RecordedProcess
from rlox_opt.sampling.spans import SpanLog, ThreadSpans


def log_of(process: RecordedProcess) -> SpanLog:
    """The phases of all threads, as `Timing` would have logged them with one tree.

    Where several `Timing`s were open at once, a block inside another one's block gets its path in
    front. A path whose outer block never closed, since the process was killed, is kept as it is.
    """
    by_thread: defaultdict[int, list[tuple[int, Triples]]] = defaultdict(list)
    # A renamed main thread has several numbers, but its blocks form one tree.
    main = [n for n, thread in process.threads.items() if thread.native_id == process.header.pid]
    first = dict.fromkeys(main, min(main, default=0))
    phases: defaultdict[int, list[int]] = defaultdict(list)
    for (source, index), name in process.names.items():
        if name.kind == PHASE:
            phases[source].append(index)
    for batch in process.spans():
        data = batch.data[np.isin(batch.data[:, 0], phases[batch.source])]
        if len(data):
            by_thread[first.get(batch.thread, batch.thread)].append((batch.source, data))
    log = SpanLog()
    log.pid = process.header.pid
    numbers: dict[str, int] = {}
    for number, blocks in sorted(by_thread.items()):
        thread = process.threads[number]
        words = _merged(process, blocks, numbers)
        log.threads.append(ThreadSpans(thread.name, thread.native_id, words))
    for path in list(numbers):  # outer blocks must exist, even if they never closed
        while path := path.rpartition("/")[0]:
            numbers.setdefault(path, len(numbers))
    log.paths = list(numbers)
    return log


def _merged(
    process: RecordedProcess, blocks: Sequence[tuple[int, Triples]], numbers: dict[str, int]
) -> array[int]:
    """One thread's blocks in the order of closing, with indices into `numbers`."""
    sources = np.concatenate([np.full(len(data), source) for source, data in blocks])
    data = np.concatenate([data for _, data in blocks])
    order = np.lexsort((-data[:, 1], data[:, 2]))  # by end; of equal ends the inner one comes first
    sources, data = sources[order], data[order]
    index = data[:, 0].copy()
    if len({source for source, _ in blocks}) == 1:
        source = int(sources[0])
        for old in np.unique(index):
            path = process.names[source, int(old)].path
            data[index == old, 0] = numbers.setdefault(path, len(numbers))
    else:
        own = [
            process.names[key].path for key in zip(sources.tolist(), index.tolist(), strict=True)
        ]
        full = _nested(sources.tolist(), own, data)
        data[:, 0] = [numbers.setdefault(path, len(numbers)) for path in full]
    words = array("q")
    words.frombytes(np.ascontiguousarray(data).tobytes())
    return words


def _nested(sources: Sequence[int], own: Sequence[str], data: Triples) -> list[str]:
    """The path of each block within the blocks of all sources."""
    full = list(own)
    open_: list[int] = []
    for i in np.lexsort((-data[:, 2], data[:, 1])).tolist():
        while open_ and data[open_[-1], 2] <= data[i, 1]:
            open_.pop()
        if open_:
            same = next((j for j in reversed(open_) if sources[j] == sources[i]), None)
            inner = own[i]
            if same is not None and inner.startswith(own[same] + "/"):
                inner = inner[len(own[same]) + 1 :]
            full[i] = f"{full[open_[-1]]}/{inner}"
        open_.append(i)
    return full
