"""Small PyTorch jobs with one planted fault each, and their healthy twins, for `advise_torch.py`."""

# ruff: noqa: ARG001, PLC0415 - what follows a step has one signature; only the recorded process needs torch

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

STEPS, RECORDED = 14, (3, 14)
WIDTH, BATCH, LAYERS = 512, 256, 4


@dataclass
class Job:
    """A training loop with places to plant something.

    Args:
        loader: Makes the data loader.
        step: Runs forward, backward and optimizer of a batch.
        after: What follows each step.
        wrap: Wraps the model.
        optimizer: Options of the optimizer.
        stack: Whether Python functions are recorded.
        ranks: Processes that train together, by DistributedDataParallel.
        micro_batches: Backward passes to a step of the optimizer.
        sums_each: Whether gradients are summed over ranks after each of them.
    """

    loader: Callable[[], Any]
    step: Callable[[Any, Any, Any], Any] | None = None
    after: Callable[[int, Any, Any], None] | None = None
    wrap: Callable[[Any], Any] | None = None
    optimizer: dict[str, Any] = field(default_factory=dict)
    stack: bool = True
    ranks: int = 1
    micro_batches: int = 1
    sums_each: bool = False


@dataclass(frozen=True)
class Case:
    """A fault and what must be found.

    Args:
        name: Of the fault.
        make: The job with the fault (True), or its healthy twin (False).
        rule: The rule that must report it; None: it costs a CPU nothing, so nothing may be reported.
        message: How the key of its message begins.
    """

    name: str
    make: Callable[[bool], Job]
    rule: str | None
    message: str = ""


def batches(rows: int = BATCH) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    import torch

    batch = torch.randn(rows, WIDTH), torch.randint(10, (rows,))
    for _ in range(STEPS):
        yield batch


def loading(cost_s: float, workers: int = 0, collate_s: float = 0.0) -> Callable[[], Any]:
    """A DataLoader whose samples cost time, or whose collation does."""

    def make() -> Any:
        from torch.utils.data import DataLoader

        more = {"prefetch_factor": 4, "persistent_workers": True} if workers else {}
        slow = Collated(collate_s)
        return DataLoader(Samples(cost_s), batch_size=1, num_workers=workers,
                          collate_fn=slow, **more)  # fmt: skip

    return make


class Samples:
    """Ready batches that take some time each."""

    def __init__(self, cost_s: float) -> None:
        self.cost_s = cost_s
        self.batch = next(batches())

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, place: int) -> tuple[torch.Tensor, torch.Tensor]:
        if self.cost_s:
            time.sleep(self.cost_s)
        return self.batch


class Collated:
    """A slow way to put samples together."""

    def __init__(self, cost_s: float) -> None:
        self.cost_s = cost_s

    def __call__(self, items: list[Any]) -> Any:
        end = time.perf_counter() + self.cost_s
        while time.perf_counter() < end:
            sum(range(100))
        return items[0]


def checkpoint(fault: bool) -> Job:
    def save(step: int, model: Any, loss: Any) -> None:
        import torch

        if fault or step == STEPS:
            with tempfile.TemporaryDirectory() as folder:
                state = {f"{copy}": model.state_dict() for copy in range(4)}
                torch.save({name: {k: v.clone() for k, v in one.items()} for name, one in state.items()},
                           Path(folder, "state.pt"))  # fmt: skip

    return Job(loader=batches, after=save)


def logging(fault: bool) -> Job:
    def log(step: int, model: Any, loss: Any) -> None:
        if fault or step == STEPS:
            with tempfile.NamedTemporaryFile("w") as file:
                for name, parameter in model.named_parameters():
                    file.write(json.dumps({"name": name, "values": parameter.detach().flatten()[:20000].tolist()}))
                    file.flush()
                    os.fsync(file.fileno())

    return Job(loader=batches, after=log)


def reading_values(fault: bool) -> Job:
    def read(step: int, model: Any, loss: Any) -> None:
        if fault:
            for parameter in model.parameters():
                parameter.grad.norm().item()

    return Job(loader=batches, after=read)


def small_work(fault: bool) -> Job:
    def after(step: int, model: Any, loss: Any) -> None:
        import torch

        values = torch.ones(64)
        if fault:
            for place in range(2500):
                if place % 3 != 1:
                    values[place % 64] *= 0.5

    return Job(loader=batches, after=after)


def copying(fault: bool) -> Job:
    """Batches that are moved to where they are, as a script for GPUs does without pinned memory."""

    def wrap(model: Any) -> Any:
        from torch import nn

        class Moved(nn.Module):  # type: ignore[misc]
            def __init__(self, inner: Any) -> None:
                super().__init__()
                self.inner = inner

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.inner(x.to("cpu", copy=True) if fault else x)

        return Moved(model)

    return Job(loader=batches, wrap=wrap)


def collecting(fault: bool) -> Job:
    def collect(step: int, model: Any, loss: Any) -> None:
        import gc

        if fault:
            gc.collect()

    return Job(loader=batches, after=collect)


def accumulating(fault: bool) -> Job:
    return Job(loader=batches, ranks=2, micro_batches=4, sums_each=fault)


def optimizer_loop(fault: bool) -> Job:
    return Job(loader=batches, optimizer={"foreach": not fault})


def recompiling(fault: bool) -> Job:
    def varying() -> Iterator[Any]:
        for step, (inputs, labels) in enumerate(batches()):
            rows = BATCH - (8 * step if fault else 0)
            yield inputs[:rows], labels[:rows]

    return Job(loader=varying, wrap=_compiled, stack=False)


def changing_flag(fault: bool) -> Job:
    """A function that is given another flag in each step, which is compiled in."""

    def wrap(model: Any) -> Any:
        from torch import nn

        class Flagged(nn.Module):  # type: ignore[misc]
            def __init__(self, inner: Any) -> None:
                super().__init__()
                self.inner = inner
                self.epoch = ""

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.inner(x) * (2.0 if self.epoch == "never" else 1.0)

        inner = Flagged(model)
        compiled = _compiled(inner)

        def called(x: torch.Tensor) -> Any:
            inner.epoch += "x" if fault else ""
            return compiled(x)

        return called

    return Job(loader=batches, wrap=wrap, stack=False)


def past_the_limit(fault: bool) -> Job:
    """Shapes that change more often than a function is compiled, before the recording begins."""

    def varying() -> Iterator[Any]:
        for step, (inputs, labels) in enumerate(batches()):
            rows = BATCH - (8 * step if fault else 0)
            yield inputs[:rows], labels[:rows]

    return Job(loader=varying, wrap=lambda model: _compiled(model, limit=2), stack=False)


def graph_breaks(fault: bool) -> Job:
    def wrap(model: Any) -> Any:
        import torch
        from torch import nn

        class Breaking(nn.Module):  # type: ignore[misc]
            def __init__(self, inner: Any) -> None:
                super().__init__()
                self.inner = inner

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                if not fault:
                    return self.inner(x)
                x = self.inner[:2](x)
                torch._dynamo.graph_break()
                x = self.inner[2:4](x)
                torch._dynamo.graph_break()
                x = self.inner[4:6](x)
                torch._dynamo.graph_break()
                return self.inner[6:](x)

        return _compiled(Breaking(model))

    return Job(loader=batches, wrap=wrap, stack=False)


def graph_break_in_loop(fault: bool) -> Job:
    def wrap(model: Any) -> Any:
        import torch
        from torch import nn

        class Looping(nn.Module):  # type: ignore[misc]
            def __init__(self, inner: Any) -> None:
                super().__init__()
                self.inner = inner

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                for layer in self.inner:
                    x = layer(x)
                    if fault:
                        torch._dynamo.graph_break()
                return x

        return _compiled(Looping(model))

    return Job(loader=batches, wrap=wrap, stack=False)


def _compiled(model: Any, limit: int = 100) -> Any:
    import torch

    torch._dynamo.config.recompile_limit = limit
    return torch.compile(model, backend="aot_eager", dynamic=False)


def slow_collate(fault: bool) -> Job:
    return Job(loader=loading(0.0, 0, 0.03 if fault else 0.0))


def no_workers(fault: bool) -> Job:
    """Steps so long that to take a batch over from a worker, which takes 1.5 ms here, is no matter."""
    return Job(loader=loading(0.03 if fault else 0.01, 0 if fault else 2), micro_batches=3, sums_each=True)


CASES = (
    Case("checkpoint after each step", checkpoint, "checkpoint"),
    Case("slow collate", slow_collate, "idle-time", "data_loading"),
    Case("samples read without workers", no_workers, "idle-time", "data_loading"),
    Case("recompiling, as shapes change", recompiling, "compile-time", "again_sizes"),
    Case("recompiling, as a flag changes", changing_flag, "compile-time", "again_values"),
    Case("past the limit of versions", past_the_limit, "recompile-limit", "reached"),
    Case("graph breaks between layers", graph_breaks, "graph-breaks", "pieces"),
    Case("graph break in a loop", graph_break_in_loop, "graph-breaks", "none"),
    Case("logging to disk in each step", logging, "idle-time"),
    Case("many small operators in Python", small_work, "idle-time", "python"),
    Case("collecting garbage in each step", collecting, "garbage-collection"),
    Case("sums in each micro-batch", accumulating, "data-parallel", "every_backward"),
    Case("reading values (`.item()`)", reading_values, None),
    Case("optimizer without foreach", optimizer_loop, None),
    Case("copies of pageable memory", copying, None),
)


def train(job: Job, out: str, rank: int = 0) -> None:
    """Train a few steps under the profiler."""
    import torch
    from torch import nn

    import stepscope

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [one for _ in range(LAYERS) for one in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model: Any = nn.Sequential(*layers, nn.Linear(WIDTH, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, **job.optimizer)
    called = job.wrap(model) if job.wrap else model
    if job.ranks > 1:
        called = nn.parallel.DistributedDataParallel(called, gradient_as_bucket_view=True)
    profiler = stepscope.Profiler(output_path=out, steps=RECORDED, host_stack=job.stack)
    for number, (inputs, labels) in enumerate(job.loader(), 1):
        optimizer.zero_grad()
        for place in range(job.micro_batches):
            last = place == job.micro_batches - 1
            with contextlib.nullcontext() if last or job.sums_each else called.no_sync():
                loss = nn.functional.cross_entropy(called(inputs), labels)
                loss.backward()
        optimizer.step()
        if job.after:
            job.after(number, model, loss)
    profiler.stop()


def train_rank(job: Job, out: str, rank: int, meeting: str) -> None:
    """Train as one of several ranks, which meet by a file."""
    import torch.distributed as dist

    if job.ranks > 1:
        dist.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=job.ranks)
    train(job, out, rank)
    if job.ranks > 1:
        dist.destroy_process_group()
