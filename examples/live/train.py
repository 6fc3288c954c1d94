"""A data-parallel job on CPU in which one rank becomes slow; started by demo.py, one process a rank.

The one line for stepscope is `stepscope.live.start_worker(rank)`.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import stepscope.live

WIDTH, BATCH = 64, 8
FORWARD_S = 0.02
"""How long a forward pass takes on every rank, as if an accelerator did it."""


class Slowed(nn.Module):  # type: ignore[misc] # untyped base
    """A layer that takes some time, and more of it on one rank from some step on.

    Args:
        slow_step: The first step that is slower; 0 for never.
        factor: How many times as long it takes then.
    """

    def __init__(self, slow_step: int, factor: float) -> None:
        super().__init__()
        self.slow_step, self.factor, self.step = slow_step, factor, 0

    def forward(self, values: Any) -> Any:
        """The values unchanged."""
        self.step += 1
        is_slow = 0 < self.slow_step <= self.step
        time.sleep(FORWARD_S * (self.factor if is_slow else 1.0))
        return values


def train(options: argparse.Namespace) -> None:
    """Train one rank."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", rank=rank, world_size=size)
    stepscope.live.start_worker(rank)

    slow_step = options.slow_step if rank == options.slow_rank else 0
    layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), Slowed(slow_step, options.factor), nn.Linear(WIDTH, WIDTH))
    model = DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = torch.utils.data.TensorDataset(torch.randn(BATCH * options.steps, WIDTH))
    for (batch,) in torch.utils.data.DataLoader(inputs, batch_size=BATCH):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    """Train as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--slow-rank", type=int, default=2, help="-1: no rank becomes slow")
    parser.add_argument("--slow-step", type=int, default=100, help="first step in which it is slow")
    parser.add_argument("--factor", type=float, default=2.0, help="how many times as long its forward pass takes then")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
