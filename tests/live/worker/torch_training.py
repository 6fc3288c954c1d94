"""A training that the tests trace: for each line on its input it does something and says so.

    torch_training.py HOW

HOW is `explicit` (it calls `start_worker`), `environment` (it does nothing), or `none`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from pathlib import Path

import torch  # noqa: TID253 - a script of its own
from torch import distributed  # noqa: TID253
from torch.utils.data import DataLoader, TensorDataset  # noqa: TID253

import stepscope.live

logging.basicConfig(level=logging.INFO, stream=sys.stderr)
torch.set_num_threads(1)
WORLD = int(os.environ.get("WORLD_SIZE", "1"))


def model() -> torch.nn.Module:
    made = torch.nn.Linear(8, 2)
    return torch.nn.parallel.DistributedDataParallel(made) if WORLD > 1 else made


def main() -> None:
    if WORLD > 1:
        distributed.init_process_group("gloo")
    if sys.argv[1] == "explicit":
        assert stepscope.live.start_worker()
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    batches = iter(DataLoader(TensorDataset(torch.ones(10_000, 8)), batch_size=4))

    def step(delay_s: float = 0.0) -> None:
        (x,) = next(batches)
        optimizer.zero_grad()
        time.sleep(delay_s)
        net(x).sum().backward()
        if WORLD > 1:
            distributed.all_reduce(torch.ones(3))
        torch.save({}, os.devnull)
        optimizer.step()

    def steps(count: str, late_rank: str = "") -> str:
        for _ in range(int(count)):
            step(0.05 if late_rank == os.environ.get("RANK") else 0.0)
        return "done"

    commands = {
        "steps": steps,
        "group": lambda: str(distributed.new_group([0, 1])),
        "fork": lambda: forked(step),
        "stop": lambda: str(stepscope.live.stop_worker()),
        "hooks": lambda: str(torch.nn.Linear.__call__ is torch.nn.Module.__call__),
    }
    for line in sys.stdin:
        word, *given = line.split()
        print(commands[word](*given), flush=True)
    if WORLD > 1:
        distributed.destroy_process_group()


def forked(step: object) -> str:
    """What a forked child has after some steps."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        for _ in range(3):
            step()  # type: ignore[operator]
        threads = [one.name for one in threading.enumerate()]
        links = [file for file in Path("/proc/self/fd").iterdir() if "socket" in _target(file)]
        os.write(write, f"{threads} {len(links)}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(read, 10_000).decode()


def _target(file: Path) -> str:
    try:
        return str(file.readlink())
    except OSError:
        return ""


if __name__ == "__main__":
    main()
