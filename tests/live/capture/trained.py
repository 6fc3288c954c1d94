"""A small job of real processes for the tests: rank, a tracker with `after_step`, and requests by standard input."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
from torch import distributed, nn

from stepscope.live.capture import in_worker
from stepscope.live.messages import line_of, to_worker
from stepscope.record.marks import MarkBuffer
from stepscope.record.options import Options
from stepscope.record.process_facts import own_thread
from stepscope.record.steps import StepTracker
from stepscope.record.torch.backend import TorchBackend


class Tracker(StepTracker):
    """As much of a live worker's tracker as captures need."""

    def __init__(self) -> None:
        self.after_step: list = []
        super().__init__(MarkBuffer(), self._over, lambda *_: None, lambda: None)

    def _over(self, step: int, now_ns: int) -> None:
        for each in list(self.after_step):
            each(step, now_ns)


def main() -> None:
    """Train until standard input ends: `trained.py DIRECTORY [hang STEP]`."""
    torch.set_num_threads(1)
    directory = Path(sys.argv[1]) / os.environ.get("RANK", "0")
    hangs_at = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    if "RANK" in os.environ:
        distributed.init_process_group("gloo")
    tracker, backend = Tracker(), TorchBackend()
    backend.attach(tracker, Options(op_time=False, data_process=False))
    tracker.begin()
    goes_on = [True]

    def listen() -> None:
        def send(message) -> None:
            sys.stdout.buffer.write(line_of(message))
            sys.stdout.buffer.flush()

        for line in sys.stdin.buffer:
            in_worker.begin(to_worker(line), tracker, send, backend=backend, directory=directory)
        goes_on[0] = False

    own_thread(listen, "listen").start()
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    flag = torch.ones(1)
    while flag.item():
        loss = model(torch.ones(8, 64)).sum()
        loss.backward()
        if distributed.is_initialized():
            distributed.all_reduce(model.weight.grad)
        optimizer.step()
        optimizer.zero_grad()
        while hangs_at and tracker.number >= hangs_at and goes_on[0]:
            time.sleep(0.05)
        time.sleep(0.01)
        flag = torch.tensor([float(goes_on[0])])
        if distributed.is_initialized():
            distributed.all_reduce(flag, distributed.ReduceOp.MIN)
    if distributed.is_initialized():
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
