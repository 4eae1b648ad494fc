"""A script that trains a small CNN beside a loop in Python and a matrix in NumPy, while a second
thread hashes: torch's convolutions are compiled at run time, without symbols or unwind
information, and the hashes are made by a library that is neither Python nor torch."""

import hashlib
import os
import threading

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import torch
from _clock import Clock
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(64 * 8 * 8, 10),
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images, labels = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
matrix = np.random.default_rng(0).normal(size=(160, 160))
over = threading.Event()


def loop(n: int) -> int:
    total = 0
    for i in range(n):
        total += i * i % 7
        if total > 1_000_000:
            total -= 1_000_000
    return total


def numbers() -> float:
    return float(np.sqrt(np.abs(matrix @ matrix + np.sin(matrix))).sum())


def hashes() -> None:
    clock, block = Clock(), bytes(1 << 20)
    while not over.is_set():
        with clock.part("native"):
            for _ in range(8):
                hashlib.sha256(block).digest()
        with clock.waiting(0.04):
            over.wait(0.04)
    clock.tell()


def main() -> None:
    thread = threading.Thread(target=hashes, name="hasher")
    thread.start()
    clock = Clock()
    while clock.go_on():
        with clock.part("python"):
            loop(700_000)
        with clock.part("numpy"):
            for _ in range(16):
                numbers()
        with clock.part("torch_forward"):
            loss = nn.functional.cross_entropy(model(images), labels)
        with clock.part("torch_backward"):
            loss.backward()
        with clock.part("torch_optimizer"):
            optimizer.step()
            optimizer.zero_grad()
    over.set()
    thread.join()
    clock.tell()


if __name__ == "__main__":
    main()
