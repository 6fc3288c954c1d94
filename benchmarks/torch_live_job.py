"""One rank of a real data-parallel job on CPU (torch, gloo) with a live worker, that becomes slow in some way.

Most of its work is sleeping, as if an accelerator did it, since the ranks share few cores; the jitter of processes,
loaders and collectives is real.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import stepscope.live

FORWARD_S, BACKWARD_S = 0.04, 0.06
NOISE = 0.04
WIDTH = 64


class Works:
    """How long the work of a step takes."""

    def __init__(self, options: argparse.Namespace, rank: int) -> None:
        self.options, self.step = options, 0
        self.guilty = rank in options.ranks
        self.draw = random.Random(rank + options.seed)

    def is_slow(self, kind: str) -> bool:
        """Whether this rank is slow in this step."""
        chosen = self.options
        late = self.step >= chosen.first and (self.step - chosen.first) % chosen.every == 0
        return self.guilty and chosen.kind == kind and late

    def sleep(self, seconds: float) -> None:
        """Work for about so long."""
        factor = self.options.factor if self.is_slow("compute") else 1.0
        time.sleep(seconds * factor * math.exp(self.draw.gauss(0, NOISE)))


class Slowed(torch.autograd.Function):  # type: ignore[misc] # untyped base
    """Takes time forward and backward."""

    @staticmethod
    def forward(context: Any, values: Any, works: Works) -> Any:
        context.works = works
        works.sleep(FORWARD_S)
        return values.view_as(values)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        context.works.sleep(BACKWARD_S)
        return gradient, None


class Layer(nn.Module):  # type: ignore[misc] # untyped base
    """A layer that takes time."""

    def __init__(self, works: Works) -> None:
        super().__init__()
        self.works = works

    def forward(self, values: Any) -> Any:
        """The values unchanged."""
        return Slowed.apply(values, self.works)


class Batches(torch.utils.data.Dataset):  # type: ignore[misc] # untyped base
    """Batches, some of which come late."""

    def __init__(self, works: Works) -> None:
        self.works = works

    def __len__(self) -> int:
        return int(self.works.options.steps)

    def __getitem__(self, index: int) -> Any:
        self.works.step = index + 1
        if self.works.is_slow("data"):
            time.sleep((self.works.options.factor - 1) * (FORWARD_S + BACKWARD_S))
        return torch.randn(8, WIDTH)


def main() -> None:
    """Train one rank."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="compute", choices=("compute", "data", "checkpoint", "none"))
    parser.add_argument("--factor", type=float, default=1.3)
    parser.add_argument("--ranks", type=int, nargs="*", default=[])
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--told", type=Path, help="file that rank 0 makes in the first slow step")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", rank=rank, world_size=size)
    stepscope.live.start_worker(rank)
    works = Works(options, rank)
    layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), Layer(works), nn.Linear(WIDTH, WIDTH))
    model = DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as room:
        for batch in torch.utils.data.DataLoader(Batches(works), batch_size=None):
            if rank == 0 and works.step == options.first and options.told:
                options.told.write_text(str(time.time()))
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if works.step % 10 == 0:
                torch.save(_Saved(works), Path(room) / "model.pt")
    dist.barrier()
    dist.destroy_process_group()


class _Saved:
    """Takes time to save."""

    def __init__(self, works: Works) -> None:
        self.works = works

    def __reduce__(self) -> Any:
        slow = self.works.guilty and self.works.options.kind == "checkpoint"
        slow = slow and self.works.step >= self.works.options.first
        time.sleep(0.1 * (self.works.options.factor if slow else 1.0))
        return str, ("saved",)


if __name__ == "__main__":
    main()
