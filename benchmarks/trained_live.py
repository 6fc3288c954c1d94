"""A rank that trains with a live worker, and notes on its own what it runs: for the benchmarks of switching and faults.

    python trained_live.py torch|mindspore RANK WORLD_SIZE ROOM

It trains until a file `stop` appears in ROOM, and leaves `ran-RANK.json` there: for each kind, when each range began
and ended (ns since the epoch, measured around the calls), how long steps took and were blocked, how long the hooks
took, and which switches it has applied last.
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
MOST_STEPS = 400_000


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


class Waits:
    """How long each step took, and for how much of it the training thread neither ran nor waited for a processor: what
    is left is time in which it was blocked by a lock (Python's own included), a pipe or a disk.

    With other programs on all processors, the live worker's thread may lose its processor while it holds Python's own
    lock. How long it waited for a processor, and ran, is therefore noted as well.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int, int]] = []
        """Of each: time, time blocked, time for which the worker's thread waited for a processor, and for which it ran,
        in ns."""
        self._own = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self._other: int | None = None

    def watch(self, thread: int) -> None:
        """The worker's thread."""
        self._other = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY)

    def around(self, call: Callable[[], Any]) -> Any:
        """Call a function that is one step."""
        before, start_ns = self._now(), time.perf_counter_ns()
        result = call()
        took_ns = time.perf_counter_ns() - start_ns
        after = self._now()
        own_ns, waited_ns, ran_ns = (now - then for now, then in zip(after, before, strict=True))
        self.steps.append((took_ns, max(0, took_ns - own_ns), waited_ns, ran_ns))
        return result

    def _now(self) -> tuple[int, int, int]:
        """Time for which this thread ran or waited to run, and for which the other one waited to run, and ran."""
        ran_ns, waited_ns = (0, 0) if self._other is None else _scheduled_ns(self._other)
        return time.thread_time_ns() + _scheduled_ns(self._own)[1], waited_ns, ran_ns


def _scheduled_ns(schedstat: int) -> tuple[int, int]:
    """How long a thread ran, as of the last tick, and waited for a processor."""
    ran_ns, waited_ns = os.pread(schedstat, 100, 0).split()[:2]
    return int(ran_ns), int(waited_ns)


class HookTimes:
    """How long the hooks of the live worker take on the training thread: all methods of its tracker that they call."""

    NAMES = ("activity", "enters", "mark", "passes", "backward_begins", "collected", "ended", "user_step")

    def __init__(self) -> None:
        self.calls = 0
        self.longest_cpu_ns = 0
        self.longest_ns = 0

    def install(self) -> None:
        """Measure from now on."""
        from stepscope.live.worker.tracker import LiveTracker  # noqa: PLC0415 - not in the process without a worker

        for name in self.NAMES:
            setattr(LiveTracker, name, self._timed(getattr(LiveTracker, name)))

    def _timed(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*words: Any, **more: Any) -> Any:
            start_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
            try:
                return hook(*words, **more)
            finally:
                self.longest_cpu_ns = max(self.longest_cpu_ns, time.thread_time_ns() - cpu_ns)
                self.longest_ns = max(self.longest_ns, time.perf_counter_ns() - start_ns)
                self.calls += 1

        return timed


def main() -> None:
    """Train."""
    framework, rank, world_size, room = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    with_worker, name = os.environ.get("WITH_WORKER", "1") == "1", os.environ.get("NOTES", f"ran-{rank}.json")
    notes, waits, hooks = Notes(), Waits(), HookTimes()
    step = {"torch": torch_step, "mindspore": mindspore_step}[framework](rank, world_size, room, notes)
    if with_worker:
        from stepscope import live  # noqa: PLC0415 - not in the process without a worker

        if os.environ.get("MEASURES_HOOKS"):
            hooks.install()
        assert live.start_worker(rank)
        waits.watch(_thread_of_worker())
    (room / f"trains-{name}").touch()
    number = 0
    while waits.around(partial(step, number)) and number < MOST_STEPS:
        number += 1
    content = {"ran": notes.ran, "steps": waits.steps, "hooks": vars(hooks), "pid": os.getpid()}
    if with_worker:
        from stepscope.live.worker.api import running  # noqa: PLC0415

        worker = running()
        assert worker is not None and worker.thread is not None
        content |= {"revision": worker.thread.revision, "switches": worker.thread.switches.as_names()}
    (room / name).write_text(json.dumps(content))


def _thread_of_worker() -> int:
    from stepscope.live.worker.api import running  # noqa: PLC0415 - not in the process without a worker

    worker = running()
    assert worker is not None and worker.thread is not None
    number = worker.thread._thread.native_id
    assert number is not None
    return number


def torch_step(rank: int, world_size: int, room: Path, notes: Notes) -> Callable[[int], bool]:
    """One step of a data-parallel job over gloo, alone without communication and checkpoints; False ends it."""
    import torch
    from torch import distributed, nn
    from torch.utils.data import DataLoader, Dataset

    class Samples(Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 10**9

        def __getitem__(self, index: int) -> Any:
            return torch.full((WIDTH,), index % 7 / 7)

    torch.set_num_threads(1)
    if world_size > 1:
        store = distributed.FileStore(str(room / "store"), world_size)
        distributed.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batches = iter(DataLoader(Samples(), batch_size=16 if world_size > 1 else 256))  # alone, a step of some 5 ms
    state = room / f"checkpoint-{rank}.pt"

    def step(number: int) -> bool:
        batch = notes.around("dataloader", lambda: next(batches))
        loss = notes.around("fp", lambda: model(batch)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if world_size == 1:  # no other process holds it up
            notes.around("step", optimizer.step)
            return not (room / "stop").exists()
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
