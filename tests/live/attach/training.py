"""A small training loop that reports what a recorder could have left in it. Run as a script, also by a benchmark.

With `TIMES` it writes there, for each step, when it ended, how long it took and its processor time, seconds.
"""

from __future__ import annotations

import atexit
import gc
import json
import logging
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch  # noqa: TID253
import torch.utils.data.dataloader as loading  # noqa: TID253
from torch import distributed, nn  # noqa: TID253
from torch.distributed import all_reduce  # noqa: TID253
from torch.optim import optimizer as optimizers  # noqa: TID253
from torch.utils.data import DataLoader, TensorDataset  # noqa: TID253

REDUCE = all_reduce
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(100_000, 16), torch.randn(100_000, 4))
asked: list[int] = []
stalled: list[int] = []
done = 0


def patched() -> Iterator[tuple[str, Any]]:
    """Everything that hooks replace, and more of the same."""
    modules = (torch, distributed, distributed.distributed_c10d, torch.autograd, torch.autograd.profiler, optimizers)
    for module in (*modules, loading, os, sys.modules["__main__"]):
        for name, value in list(vars(module).items()):
            if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
                yield f"{module.__name__}.{name}", value
    classes = (nn.Module, nn.Sequential, nn.Linear, nn.ReLU, torch.optim.SGD, torch.optim.Optimizer, torch.Tensor)
    for cls in (*classes, loading._BaseDataLoaderIter, loading._MultiProcessingDataLoaderIter,
                torch.autograd.profiler.record_function):  # fmt: skip
        for name, value in list(vars(cls).items()):
            yield f"{cls.__qualname__}.{name}", value


def look() -> dict[str, Any]:
    """What differs from the start, and what there is."""
    gc.collect()
    now = dict(patched())
    return {
        "changed": sorted(
            {name for name in now if name not in kept or kept[name] is not now[name]} | (kept.keys() - now.keys())
        ),
        "modules": sorted(name for name in sys.modules if "stepscope" in name),
        "threads": [thread.name for thread in threading.enumerate()],
        "native_threads": len(list(Path("/proc/self/task").iterdir())),
        "files": sorted(str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()),
        "finders": [str(type(finder)) for finder in sys.meta_path],
        "importers": sorted(place for place in sys.path_importer_cache if "stepscope" in place),
        "collecting": len(gc.callbacks),
        "optimizer_hooks": len(optimizers._global_optimizer_pre_hooks) + len(optimizers._global_optimizer_post_hooks),
        "loggers": sorted(name for name in logging.Logger.manager.loggerDict if "stepscope" in name),
        "unraisable": sys.unraisablehook is sys.__unraisablehook__,
        "exits": atexit._ncallbacks(),
        "names": len(vars(sys.modules["__main__"])),
        "steps": done,
        "rss_kb": int(Path("/proc/self/statm").read_text().split()[1]) * 4,
        "objects": len(gc.get_objects()),
    }


def run_line(*_: object) -> None:
    """Run the line that a test has written."""
    exec(Path(os.environ["STEPSCOPE_TEST_LINE"]).read_text(), {})


def train() -> None:
    """Train for ever."""
    global done  # noqa: PLW0603 - counted for tests
    times = Path(os.environ["TIMES"]).open("w", buffering=1) if "TIMES" in os.environ else None  # noqa: SIM115
    while True:
        for inputs, targets in DataLoader(data, batch_size=16):
            began_s, used_s = time.perf_counter(), time.thread_time()
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
            done += 1
            if "forks" in sys.argv and done % 50 == 0 and os.fork() == 0:
                time.sleep(3)
                os._exit(0)
            if times is not None:
                ended_s = time.perf_counter()
                times.write(f"{ended_s:.6f} {ended_s - began_s:.6f} {time.thread_time() - used_s:.6f}\n")
            time.sleep(float(os.environ.get("PAUSE_S", "0.005")))
            while stalled:
                time.sleep(0.05)
            if done == 3:
                print("ready", flush=True)
            if asked:
                asked.clear()
                print(json.dumps(look()), flush=True)


kept = dict(patched())
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
signal.signal(signal.SIGUSR2, run_line)
signal.signal(signal.SIGHUP, lambda *_: stalled.clear() if stalled else stalled.append(1))
if "threaded" in sys.argv:
    thread = threading.Thread(target=train, daemon=True)
    thread.start()
    thread.join()
else:
    train()
