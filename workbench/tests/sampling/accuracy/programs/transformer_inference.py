"""A transformer that answers under `no_grad`, with tokens prepared in Python and scores in NumPy:
the same kernels as in training, none of which goes backward."""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import torch
from _clock import Clock
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, 3), nn.Linear(256, 64)).eval()
words = [f"word{i % 97}" for i in range(20_000)]
table = np.random.default_rng(0).normal(size=(400, 600))
buffer = np.empty_like(table)


def tokens() -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + len(word)
    return counts


def scores() -> float:
    np.exp(table, out=buffer)
    buffer.sort(axis=1)
    return float(buffer.sum())


@torch.no_grad()
def answer(batch: torch.Tensor) -> torch.Tensor:
    return model(batch).softmax(-1)


def main() -> None:
    clock, batch = Clock(), torch.randn(32, 64, 256)
    while clock.go_on():
        with clock.part("python"):
            for _ in range(12):
                tokens()
        with clock.part("numpy"):
            for _ in range(4):
                scores()
        with clock.part("torch_inference"):
            answer(batch)
    clock.tell()


if __name__ == "__main__":
    main()
