"""A small job of real processes: a live tracker, and requests by standard input, answered on standard output."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch  # noqa: TID253 - a script of its own
from torch import distributed, nn  # noqa: TID253

from stepscope.live.capture import in_worker
from stepscope.live.messages import Message, line_of, to_worker
from stepscope.live.worker.tracker import LiveTracker
from stepscope.record.options import Options
from stepscope.record.process_facts import own_thread
from stepscope.record.torch.backend import TorchBackend


def main() -> None:
    """Train until standard input ends."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    directory = Path(sys.argv[1]) / str(rank)
    tracker, backend = LiveTracker(lambda: None), TorchBackend()
    backend.attach(tracker, Options(op_time=False, data_process=False))
    goes_on = [1.0]

    def listen() -> None:
        def send(message: Message) -> None:
            sys.stdout.buffer.write(line_of(message))
            sys.stdout.buffer.flush()

        for line in sys.stdin.buffer:
            in_worker.begin(to_worker(line), tracker, send, backend=backend, directory=directory)  # type: ignore[arg-type]
        goes_on[0] = 0.0

    own_thread(listen, "listen").start()
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    large = torch.ones(300, 300)
    flag = torch.ones(1)
    while flag.item():
        for _ in range(30 if rank == 1 else 2):
            torch.mm(large, large)
        model(torch.ones(8, 64)).sum().backward()
        distributed.all_reduce(model.weight.grad)
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)
        flag = torch.tensor([goes_on[0]])
        distributed.all_reduce(flag, distributed.ReduceOp.MIN)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
