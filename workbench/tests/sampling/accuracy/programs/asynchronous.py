"""asyncio: handlers that parse in Python and compress in a library, between waits."""

import asyncio
import re
import zlib

from _clock import Clock

TEXT = " ".join(f"key{i}={i * i % 1000};" for i in range(3_000))
PAIR = re.compile(r"(\w+)=(\d+);")
BLOCK = bytes(range(256)) * 1024
clock: Clock


def parse() -> int:
    return sum(int(value) for _, value in PAIR.findall(TEXT))


async def handle(queue: asyncio.Queue[int]) -> None:
    while (item := await queue.get()) >= 0:
        with clock.part("python"):
            for _ in range(3):
                parse()
        if item % 2:
            with clock.part("native"):
                for _ in range(2):
                    zlib.compress(BLOCK, 6)


async def serve() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue(maxsize=4)
    handlers = [asyncio.create_task(handle(queue)) for _ in range(4)]
    number = 0
    while clock.go_on():
        for _ in range(8):
            await queue.put(number)
            number += 1
        while not queue.empty():
            await asyncio.sleep(0)
        with clock.waiting():
            await asyncio.sleep(0.02)
    for _ in handlers:
        await queue.put(-1)
    await asyncio.gather(*handlers)


if __name__ == "__main__":
    clock = Clock()
    asyncio.run(serve())
    clock.tell()
