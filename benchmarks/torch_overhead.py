"""One rank of the PyTorch part of `record_overhead.py`: trains in blocks, each with another recorder or none.

It prints one line of JSON: for each mode the times of its steps and its processor time a step, all of one process and
interleaved, so that what the machine does besides falls on all of them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

import stepscope

MODES = ("nothing", "marks", "profiler", "bare", "unwritten")
"""`unwritten` is the framework's own profiler, whose trace is not written."""
Step = Callable[[], None]


class Bottleneck(nn.Module):  # type: ignore[misc]
    """A block as of ResNet-50."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            *(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)),
            *(nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)),
        )
        self.side: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.side = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        return torch.relu(self.body(x) + self.side(x))


def resnet(blocks: tuple[int, ...], width: int) -> Any:
    """A residual network; `(3, 4, 6, 3)` and 64 are those of ResNet-50."""
    layers: list[Any] = [
        nn.Conv2d(3, width, 7, 2, 3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = width
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(Bottleneck(inputs, width << stage, 2 if stage and not block else 1))
            inputs = 4 * (width << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 100))


def transformer(width: int, layers: int) -> Any:
    """A stack of encoder layers."""
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.Linear(width, 100))


class Small(nn.Module):  # type: ignore[misc]
    """A layer of a few operators that compute next to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(16, 16)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.line(x)) + x * 0.5


MODELS: dict[str, Callable[[], tuple[Any, tuple[int, ...]]]] = {
    "small": lambda: (resnet((1, 1), 16), (4, 3, 32, 32)),
    "medium": lambda: (transformer(192, 4), (4, 64, 192)),
    "operators": lambda: (nn.Sequential(*[Small() for _ in range(47)]), (8, 16)),
    "resnet50": lambda: (resnet((3, 4, 6, 3), 64), (64, 3, 224, 224)),
    "transformer": lambda: (transformer(1024, 24), (8, 512, 1024)),
}
"""Model and the shape of its input; the last two for a GPU. `operators` has some 3,700 events a step, few of which take
longer than being recorded."""


def build(name: str, device: str, ranks: int) -> Step:
    """A model, and what does one step of its training."""
    torch.manual_seed(0)
    model, shape = MODELS[name]()
    model = model.to(device)
    if ranks > 1:
        model = nn.parallel.DistributedDataParallel(model)
    plain = {"foreach": False} if name == "operators" else {}
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, **plain)
    x = torch.randn(shape, device=device)

    def step() -> None:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


@contextmanager
def recorder(mode: str, device: str, out: Path) -> Iterator[Callable[[], None]]:
    """Record in the way of `mode`; gives what is called after each step. All is on disk afterwards."""
    if mode == "nothing":
        yield lambda: None
    elif mode in ("bare", "unwritten"):
        activities = [torch.profiler.ProfilerActivity.CPU]
        if device == "cuda":
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
            yield profiler.step
        if mode == "bare":
            profiler.export_chrome_trace(str(out / "trace.json"))
    else:
        recording = stepscope.Profiler(output_path=str(out), op_time=mode == "profiler", framework="torch")
        yield lambda: None
        recording.stop()


def processor_s() -> float:
    """Processor time of this process and of its children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def block(step: Step, mode: str, device: str, steps: int) -> tuple[list[float], float]:
    """Train for some steps; times of all but the first, and processor time of all, begin and end included, in ms."""
    out = Path(tempfile.mkdtemp(prefix="overhead-"))
    times = []
    began_s = processor_s()
    with recorder(mode, device, out) as after:
        for _ in range(steps):
            start_ns = time.perf_counter_ns()
            step()
            after()
            times.append((time.perf_counter_ns() - start_ns) / 1e6)
    gc.collect()  # what recording leaves behind is its cost, not that of the next block
    cost_ms = (processor_s() - began_s) * 1e3
    shutil.rmtree(out)
    return times[1:], cost_ms


def main() -> None:
    """Run the blocks and print what they cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--rendezvous", default="")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.ranks > 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        torch.distributed.init_process_group(
            "gloo", init_method=chosen.rendezvous, rank=chosen.rank, world_size=chosen.ranks
        )
    step = build(chosen.model, chosen.device, chosen.ranks)
    modes = chosen.modes.split(",")
    found: dict[str, dict[str, list[float]]] = {mode: {"step_ms": [], "cpu_ms": [], "fixed_ms": []} for mode in modes}
    order = random.Random(0)
    for turn in range(chosen.rounds + 1):
        for mode in order.sample(modes, len(modes)):
            fixed_ms = block(step, mode, chosen.device, 1)[1]
            if not turn:  # the first turn warms everything up
                continue
            times, cost_ms = block(step, mode, chosen.device, chosen.steps)
            found[mode]["step_ms"] += times
            found[mode]["cpu_ms"].append((cost_ms - fixed_ms) / (chosen.steps - 1))
            found[mode]["fixed_ms"].append(fixed_ms)
    if chosen.rank == 0:
        print(json.dumps(found))
    if chosen.ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
