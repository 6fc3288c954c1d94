"""What light tracing costs a training step: all five kinds on, four on, all off, and no worker, interleaved.

One process trains on the CPU (one thread; DataLoader, forward, backward, optimizer and an all_reduce in a gloo group of
one rank) or on CUDA, with a step of about 10 ms. In each round all modes run a few steps in random order; between
them the worker is switched, or stopped and started. A mode's ratio is that of its mean step time, without the slowest
tenth of its steps, to that of the block without a worker in the same round, so that what else the machine does falls on
both. The ratio shown is the median over rounds, with a 95 % interval by resampling; beside it the same for processor
time of the training thread.

Where other programs run, the direct costs are more exact: processor time of the hooks in a step (each part of the step
alone, least of many short blocks), of the worker's thread, and the ratio that results if both fall on the processor
that trains. A step on the CPU leaves nothing of the hooks in the processor's caches, so they take many times as long
there as one after the other: the cold time is the median where each part of the step follows on `FLUSHED_MB` of other
memory. Training on an accelerator is between the two.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rounds import machine
from stepscope import live
from stepscope.live.switches import initial
from stepscope.live.worker import api

BOUNDS = {"five": 1.005, "four": 1.003, "off": 1.0005}
"""Largest ratio of step times that is accepted."""
MODES: dict[str, str | None] = {"none": None, "off": "none", "four": "", "five": "all"}
"""Switches of each mode, as in `STEPSCOPE_LIVE_SWITCHES`; None: no worker."""
STEP_NS = 10_000_000
FLUSHED_MB = 64
"""More than the processor's caches hold."""
_WIDTHS = (5, 9, 9, 18, 11, 18, 10, 10, 11, 10, 8)


@dataclass(frozen=True)
class Block:
    """Mean of some steps in a row, without the slowest tenth."""

    wall_ns: float
    processor_ns: float


@dataclass(frozen=True)
class Interval:
    """A median with its 95 % interval."""

    median: float
    low: float
    high: float

    @property
    def between(self) -> str:
        """Both ends."""
        return f"{self.low:.4f} to {self.high:.4f}"


@dataclass(frozen=True)
class Figures:
    """One mode.

    Args:
        step_ms: Median time of a step.
        wall: Ratio of step times to those without a worker.
        processor: The same for the processor time of the training thread.
        bound: What is accepted; None for the base.
        hooks_us: Processor time that the hooks take on the training thread in a step.
        cold_us: The same where nothing of them is in the processor's caches; time, not processor time.
        thread_us: Processor time of the worker's thread in a step of 10 ms.
    """

    mode: str
    step_ms: float
    wall: Interval
    processor: Interval
    bound: float | None
    hooks_us: float | None = None
    cold_us: float | None = None
    thread_us: float | None = None

    @property
    def direct(self) -> float | None:
        """Ratio of step times if both costs fell on the processor that trains."""
        if self.hooks_us is None or self.thread_us is None:
            return None
        return 1 + (self.hooks_us + self.thread_us) * 1000 / STEP_NS


Parts = dict[str, Callable[[], Any]]
"""Parts of a training step, in order."""


def parts(device: str, width: int, batch: int) -> Parts:
    """The parts of one step.

    Args:
        device: `cpu` or `cuda`.
        width: Of the layers of the model.
        batch: Samples in a batch.
    """
    import torch
    from torch import distributed, nn
    from torch.utils.data import DataLoader, Dataset

    class Batches(Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 10**8

        def __getitem__(self, index: int) -> Any:
            return item

    item = torch.randn(width)
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(4))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    batches = iter(DataLoader(Batches(), batch_size=batch, sampler=itertools.repeat(0)))
    small = torch.zeros(16, device=device)
    now: dict[str, Any] = {}

    def data() -> None:
        now["x"] = next(batches).to(device)

    def forward() -> None:
        now["loss"] = model(now["x"])

    def backward() -> None:
        now["loss"].square().mean().backward()

    def ends() -> None:
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    def exchanges() -> None:
        distributed.all_reduce(small)

    return {"data": data, "forward": forward, "backward": backward, "exchanges": exchanges, "ends": ends}


def loop(device: str, width: int) -> Callable[[], None]:
    """What does one step of training."""
    each = list(parts(device, width, 32).values())

    def step() -> None:
        for part in each:
            part()

    return step


class Switching:
    """The worker of this process, started, stopped and switched between blocks."""

    def set(self, mode: str) -> None:
        """From now on, trace as in this mode."""
        wanted = MODES[mode]
        if wanted is None:
            live.stop_worker()
            return
        os.environ["STEPSCOPE_LIVE_SWITCHES"] = wanted
        worker = api.running()
        if worker is None:
            if not live.start_worker(0, framework="torch"):
                sys.exit("the worker does not start")
            worker = api.running()
        assert worker is not None and worker.thread is not None
        worker.thread._switch(initial())

    def thread_cpu_ns(self) -> int:
        """Processor time of the worker's thread so far; 0 without one."""
        worker = api.running()
        if worker is None or worker.thread is None:
            return 0
        number = worker.thread._thread.native_id
        ticks = Path(f"/proc/self/task/{number}/schedstat").read_text().split()[0]
        return int(ticks)


def find_work(device: str) -> int:
    """A width of the model with which a step takes about 10 ms."""
    if device == "cuda":
        return 4096
    for width in range(128, 4096, 64):
        step = loop(device, width)
        for _ in range(3):
            step()
        if min(_times(step, 9)) >= 0.95 * STEP_NS:
            return width
    return 4096


def step_times(step: Callable[[], None], rounds: int, block: int) -> dict[str, list[Block]]:
    """The blocks of each mode, in rounds."""
    switching, order = Switching(), random.Random(0)
    found: dict[str, list[Block]] = {mode: [] for mode in MODES}
    for turn in range(rounds + 1):
        for mode in order.sample(list(MODES), len(MODES)):
            switching.set(mode)
            _times(step, 4)  # the hooks find the outermost module in the first steps
            measured = _block(step, block)
            if turn:
                found[mode].append(measured)
    switching.set("none")
    return found


def direct_costs(device: str) -> dict[str, tuple[float, float, float]]:
    """In a step, us: processor time of the hooks, their time with cold caches, processor time of the thread."""
    tiny = parts(device, 8, 2)
    forward = tiny["forward"]

    def backward() -> None:
        forward()
        tiny["backward"]()

    measured = {**tiny, "backward": backward}
    switching, order = Switching(), random.Random(0)
    least: dict[tuple[str, str], float] = {}
    for _ in range(12):
        for mode in order.sample(list(MODES), len(MODES)):
            switching.set(mode)
            for _ in range(8):
                for part in tiny.values():
                    part()
            for name, part in measured.items():
                for _ in range(15):
                    cost_ns = _processor_ns(part, 40)
                    least[mode, name] = min(least.get((mode, name), cost_ns), cost_ns)
    hooks = {}
    for mode in MODES:
        more = {name: least[mode, name] - least["none", name] for name in measured}
        hooks[mode] = (sum(more.values()) - more["forward"]) / 1000  # that of backward has it too
    cold = _cold_us(tiny, switching)
    threads = {}
    for mode in MODES:
        switching.set(mode)
        time.sleep(1)  # what a start takes is not the cost of a step
        began_ns, count = switching.thread_cpu_ns(), 1000
        for _ in range(count):
            for part in tiny.values():
                part()
            time.sleep(0.0095)
        threads[mode] = (switching.thread_cpu_ns() - began_ns) / count / 1000
    switching.set("none")
    return {mode: (hooks[mode], cold[mode], threads[mode]) for mode in MODES}


def _cold_us(tiny: Parts, switching: Switching, rounds: int = 15) -> dict[str, float]:
    """What the hooks add to the parts of a step, each of which follows on other memory, us."""
    import torch

    other, order = torch.zeros(FLUSHED_MB * 2**18), random.Random(0)
    times: dict[tuple[str, str], list[int]] = {}
    for _ in range(rounds):
        for mode in order.sample(list(MODES), len(MODES)):
            switching.set(mode)
            for turn in range(18):
                for name, part in tiny.items():
                    other.add_(1)
                    (took_ns,) = _times(part, 1)
                    if turn >= 3:  # the hooks find the outermost module in the first steps
                        times.setdefault((mode, name), []).append(took_ns)
    usual = {key: statistics.median(taken) for key, taken in times.items()}
    return {mode: sum(usual[mode, name] - usual["none", name] for name in tiny) / 1000 for mode in MODES}


def _processor_ns(part: Callable[[], Any], count: int) -> float:
    began_ns = time.thread_time_ns()
    for _ in range(count):
        part()
    return (time.thread_time_ns() - began_ns) / count


def figures(blocks: dict[str, list[Block]], direct: dict[str, tuple[float, float, float]]) -> list[Figures]:
    """The rows of the table."""
    rows = []
    for mode, own in blocks.items():
        pairs = list(zip(own, blocks["none"], strict=True))
        step_ms = statistics.median(one.wall_ns for one in own) / 1e6
        wall = interval([one.wall_ns / base.wall_ns for one, base in pairs])
        processor = interval([one.processor_ns / base.processor_ns for one, base in pairs])
        costs = direct[mode] if mode != "none" else ()
        rows.append(Figures(mode, step_ms, wall, processor, BOUNDS.get(mode), *costs))
    return rows


def interval(values: Sequence[float], draws: int = 2000) -> Interval:
    """Median and its 95 % interval, by resampling."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(draws))
    return Interval(statistics.median(values), medians[round(0.025 * draws)], medians[round(0.975 * draws) - 1])


def print_table(rows: Sequence[Figures]) -> None:
    """Print the rows."""
    titles = ("step ms", "wall", "95 %", "processor", "95 %", "hooks us", "cold us", "thread us", "direct", "bound")
    print("  " + "".join(f"{title:>{width}}" for title, width in zip(("", *titles), _WIDTHS, strict=True)))
    for row in rows:
        direct = "" if row.direct is None else f"{row.direct:.5f}"
        costs = ("" if cost is None else f"{cost:.1f}" for cost in (row.hooks_us, row.cold_us, row.thread_us))
        bound = "" if row.bound is None else f"{row.bound:.4f}"
        ratios = (text for one in (row.wall, row.processor) for text in (f"{one.median:.4f}", one.between))
        cells = (row.mode, f"{row.step_ms:.3f}", *ratios, *costs, direct, bound)
        print("  " + "".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)))


def _block(step: Callable[[], None], count: int) -> Block:
    wall_ns, processor_ns = [], []
    for _ in range(count):
        began_ns, worked_ns = time.perf_counter_ns(), time.thread_time_ns()
        step()
        processor_ns.append(time.thread_time_ns() - worked_ns)
        wall_ns.append(time.perf_counter_ns() - began_ns)
    most = max(1, count * 9 // 10)
    return Block(*(statistics.fmean(sorted(times)[:most]) for times in (wall_ns, processor_ns)))


def _times(step: Callable[[], None], count: int) -> list[int]:
    times = []
    for _ in range(count):
        began_ns = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - began_ns)
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=150, help="blocks of each mode (default 150)")
    parser.add_argument("--block", type=int, default=12, help="steps in a block (default 12)")
    parser.add_argument("--json", type=Path, help="write all figures as JSON")
    chosen = parser.parse_args()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

    import torch
    from torch import distributed

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="live-overhead-") as room:
        os.environ["STEPSCOPE_LIVE_DIR"] = room
        os.environ["STEPSCOPE_LIVE_SOCKET"] = f"{room}/nobody.sock"
        backend = "nccl" if chosen.device == "cuda" else "gloo"
        distributed.init_process_group(backend, init_method=f"file://{room}/rendezvous", rank=0, world_size=1)
        direct = direct_costs(chosen.device)
        step = loop(chosen.device, find_work(chosen.device))
        times = step_times(step, chosen.rounds, chosen.block)
        distributed.destroy_process_group()
    rows = figures(times, direct)
    print(f"{machine()}; {chosen.device}, {chosen.rounds} rounds of {chosen.block} steps")
    print_table(rows)
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    if chosen.json:
        chosen.json.write_text(
            json.dumps({"machine": machine(), "rows": [asdict(row) for row in rows]}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
