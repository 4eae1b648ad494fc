"""A transformer that is trained with Adam and evaluated without gradients in turns, so that the
same functions are inference, training and, in the optimiser, neither."""

import torch
from _clock import Clock
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(256, 4, 512, dropout=0.1, batch_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(256, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
batch, target = torch.randn(16, 64, 256), torch.randn(16, 64, 64)


def shuffled(n: int) -> list[int]:
    numbers = list(range(n))
    for i in range(n - 1):
        j = (i * 7919 + 13) % n
        numbers[i], numbers[j] = numbers[j], numbers[i]
    return numbers


def main() -> None:
    clock = Clock()
    while clock.go_on():
        with clock.part("python"):
            shuffled(120_000)
        with clock.part("torch_forward"):
            loss = nn.functional.mse_loss(model(batch), target)
        with clock.part("torch_backward"):
            loss.backward()
        with clock.part("torch_optimizer"):
            for _ in range(4):
                optimizer.step()
            optimizer.zero_grad()
        with clock.part("torch_inference"), torch.no_grad():
            nn.functional.mse_loss(model(batch), target)
    clock.tell()


if __name__ == "__main__":
    main()
