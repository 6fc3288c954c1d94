"""What the rules find in small PyTorch jobs, each recorded here with one planted fault, and in its healthy twin.

Each job trains a small model on the CPU for a few steps under our own profiler, in a process of its own. A fault is
found if the rule that is about it reports it; a twin is clean if it has no finding of high or medium severity. Faults
that cost a CPU nothing (values read back, small launches, pageable copies) must have no finding.
"""

# ruff: noqa: ARG001, PLC0415 - what follows a step has one signature; only the recorded process needs torch

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
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
        optimizer: Makes the optimizer.
    """

    loader: Callable[[], Any]
    step: Callable[[Any, Any, Any], Any] | None = None
    after: Callable[[int, Any, Any], None] | None = None
    wrap: Callable[[Any], Any] | None = None
    optimizer: dict[str, Any] = field(default_factory=dict)
    stack: bool = True


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


def optimizer_loop(fault: bool) -> Job:
    return Job(loader=batches, optimizer={"foreach": not fault})


def recompiling(fault: bool) -> Job:
    def varying() -> Iterator[Any]:
        for step, (inputs, labels) in enumerate(batches()):
            rows = BATCH - (8 * step if fault else 0)
            yield inputs[:rows], labels[:rows]

    return Job(loader=varying, wrap=_compiled, stack=False)


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


def _compiled(model: Any) -> Any:
    import torch

    torch._dynamo.config.recompile_limit = 100
    return torch.compile(model, backend="aot_eager", dynamic=False)


def slow_collate(fault: bool) -> Job:
    return Job(loader=loading(0.0, 0, 0.03 if fault else 0.0))


def no_workers(fault: bool) -> Job:
    return Job(loader=loading(0.03 if fault else 0.01, 0 if fault else 2))


CASES = (
    Case("checkpoint after each step", checkpoint, "checkpoint"),
    Case("slow collate", slow_collate, "idle-time", "data_loading"),
    Case("samples read without workers", no_workers, "idle-time", "data_loading"),
    Case("recompiling, as shapes change", recompiling, "compile-time", "again"),
    Case("graph breaks between layers", graph_breaks, "graph-breaks", "pieces"),
    Case("graph break in a loop", graph_break_in_loop, "graph-breaks", "none"),
    Case("logging to disk in each step", logging, "idle-time"),
    Case("many small operators in Python", small_work, "idle-time", "python"),
    Case("reading values (`.item()`)", reading_values, None),
    Case("optimizer without foreach", optimizer_loop, None),
)


def train(job: Job, out: str) -> None:
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
    profiler = stepscope.Profiler(output_path=out, steps=RECORDED, host_stack=job.stack)
    for number, (inputs, labels) in enumerate(job.loader(), 1):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(called(inputs), labels)
        loss.backward()
        optimizer.step()
        if job.after:
            job.after(number, model, loss)
    profiler.stop()


@dataclass(frozen=True)
class Found:
    """The findings of one recording: rule, message, severity and share of the step."""

    findings: tuple[tuple[str, str, str, float], ...]
    seconds: float

    def has(self, case: Case) -> bool:
        """Whether the fault of a case is among them."""
        return any(rule == case.rule and message.startswith(case.message) for rule, message, *_ in self.findings)

    @property
    def grave(self) -> list[str]:
        """Those of high and medium severity."""
        return [f"{rule}: {message}" for rule, message, severity, _ in self.findings if severity != "low"]


def recorded(case: Case, fault: bool, folder: Path) -> Found:
    """Record a job in a process of its own, and what is found in it."""
    out = folder / f"{CASES.index(case)}-{'fault' if fault else 'twin'}"
    command = [sys.executable, __file__, "--case", str(CASES.index(case)), "--out", str(out)]
    began = time.perf_counter()
    subprocess.run(command + (["--fault"] if fault else []), check=True, capture_output=True, text=True)
    from stepscope import open_run
    from stepscope.advice import advise

    found = advise(open_run(str(out)), strict=True)
    rows = tuple((one.rule, one.message, one.severity, one.saving_ratio) for one in found)
    return Found(rows, time.perf_counter() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", type=int, help="record only this job, and nothing else")
    parser.add_argument("--fault", action="store_true", help="with --case: plant the fault")
    parser.add_argument("--out", help="where to write recordings; default: a temporary directory")
    parser.add_argument("--only", default="", help="only cases whose name has this text")
    options = parser.parse_args()
    if options.case is not None:
        train(CASES[options.case].make(options.fault), options.out)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return _table([case for case in CASES if options.only in case.name], Path(options.out or folder))


def _table(cases: list[Case], folder: Path) -> int:
    right, hits, reports = True, 0, 0
    print(f"{'fault':<34} {'rule that must find it':<24} {'found':<6} {'twin clean':<10}  other findings of the fault")
    for case in cases:
        faulty, twin = recorded(case, True, folder), recorded(case, False, folder)
        found = faulty.has(case) if case.rule else not faulty.grave
        others = [
            one for one in faulty.grave if case.rule is None or not one.startswith(f"{case.rule}: {case.message}")
        ]
        expected = case.rule or "none: free on a CPU"
        is_clean = not twin.grave and not (case.rule and twin.has(case))
        words = "; ".join(others) or "-", "" if is_clean else "   twin: " + "; ".join(twin.grave)
        answers = ["yes" if one else "NO" for one in (found, is_clean)]
        print(f"{case.name:<34} {expected:<24} {answers[0]:<6} {answers[1]:<10}  {''.join(words)}", flush=True)
        right &= found and is_clean
        hits += bool(case.rule and faulty.has(case))
        reports += bool(case.rule and faulty.has(case)) + len(others) + len(twin.grave)
    planted = sum(case.rule is not None for case in cases)
    print(f"\nrecall {hits} of {planted}; precision of high and medium findings {hits} of {reports}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
