"""A rank that trains with a live worker, and notes on its own what it runs: for the benchmarks of switching and faults.

    python trained_live.py torch|mindspore RANK WORLD_SIZE ROOM

It trains until a file `stop` appears in ROOM, and leaves `ran-RANK.json` there: for each kind, when each range began
and ended (ns since the epoch, measured around the calls), and the times that steps took.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

CHECKPOINT_EVERY = 5
"""Steps between two checkpoints."""
WIDTH = 256
"""Of the layers: a step takes some milliseconds."""
MOST_EVENTS = 400_000


class Notes:
    """What this process has run, by kind."""

    def __init__(self) -> None:
        self.ran: dict[str, list[tuple[int, int]]] = {
            kind: [] for kind in ("step", "fp", "dataloader", "checkpoint", "communication")
        }

    def around(self, kind: str, call: Callable[[], Any]) -> Any:
        """Call a function, and note when."""
        start_ns = time.time_ns()
        result = call()
        self.ran[kind].append((start_ns, time.time_ns()))
        return result

    def write(self, file: Path, **more: Any) -> None:
        """Leave all that was noted."""
        file.write_text(json.dumps({"ran": self.ran, **more}))


def main() -> None:
    """Train."""
    framework, rank, world_size, room = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    notes = Notes()
    step = {"torch": torch_step, "mindspore": mindspore_step}[framework](rank, world_size, room, notes)
    if os.environ.get("WITH_WORKER", "1") == "1":
        from stepscope import live  # noqa: PLC0415 - not in the process without a worker

        assert live.start_worker(rank)
    (room / f"trains-{rank}").touch()
    number = 0
    while step(number) and len(notes.ran["step"]) < MOST_EVENTS:
        number += 1
    notes.write(room / f"ran-{rank}.json", steps=number, pid=os.getpid())


def torch_step(rank: int, world_size: int, room: Path, notes: Notes) -> Callable[[int], bool]:
    """One step of a data-parallel job over gloo; returns whether to go on."""
    import torch
    from torch import distributed, nn
    from torch.utils.data import DataLoader, Dataset

    class Samples(Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 10**6

        def __getitem__(self, index: int) -> Any:
            return torch.full((WIDTH,), index % 7 / 7)

    torch.set_num_threads(1)
    store = distributed.FileStore(str(room / "store"), world_size)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batches = iter(DataLoader(Samples(), batch_size=16))
    state = room / f"checkpoint-{rank}.pt"

    def step(number: int) -> bool:
        batch = notes.around("dataloader", lambda: next(batches))
        loss = notes.around("fp", lambda: model(batch)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for gradient in (model[0].weight.grad, model[0].bias.grad):
            notes.around("communication", partial(distributed.all_reduce, gradient))
        if number % CHECKPOINT_EVERY == 0:
            notes.around("checkpoint", lambda: torch.save(model[0].state_dict(), state))
        goes_on = torch.tensor([0 if rank == 0 and (room / "stop").exists() else 1])
        notes.around("communication", lambda: distributed.all_reduce(goes_on, op=distributed.ReduceOp.MIN))
        notes.around("step", optimizer.step)
        return bool(goes_on.item())

    return step


def mindspore_step(rank: int, world_size: int, room: Path, notes: Notes) -> Callable[[int], bool]:  # noqa: ARG001
    """One step of a process of its own, since MindSpore has no communication between processors."""
    import mindspore as ms
    import numpy as np  # noqa: PLC0415
    from mindspore import dataset, nn

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    net = nn.SequentialCell(*(nn.Dense(WIDTH, WIDTH) for _ in range(3)))
    optimizer = nn.Momentum(net.trainable_params(), 1e-4, 0.9)

    def forward(data: Any) -> Any:
        return net(data).square().mean()

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)
    samples = np.ones((4096, WIDTH), np.float32)
    source = dataset.NumpySlicesDataset(samples, ["data"], shuffle=False).batch(16).repeat(100_000)
    batches = source.create_tuple_iterator(num_epochs=1)
    state = str(room / f"checkpoint-{rank}.ckpt")

    def step(number: int) -> bool:
        (batch,) = notes.around("dataloader", lambda: next(batches))
        _, gradients = notes.around("fp", lambda: gradient(batch))
        if number % CHECKPOINT_EVERY == 0:
            notes.around("checkpoint", lambda: ms.save_checkpoint(net, state))
        notes.around("step", lambda: optimizer(gradients))
        return not (room / "stop").exists()

    return step


if __name__ == "__main__":
    main()
