"""What the rules find in small PyTorch jobs, each recorded here with one planted fault, and in its healthy twin.

Each job trains a small model on the CPU for a few steps under our own profiler, in a process of its own (two of them
where ranks matter), several times, faults and twins in turn. A fault is found if the rule that is about it reports it
in most recordings; a twin is clean if most have no finding of high or medium severity. Faults that cost a CPU nothing
(values read back, small launches, copies of pageable memory) must have no finding. What the machine does beside the
jobs is told apart (`MACHINE`): it is true, but not of the job.
"""

# ruff: noqa: ARG001, PLC0415 - what follows a step has one signature; only the recorded process needs torch

from __future__ import annotations

import argparse
import contextlib
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
MACHINE = ("processor-wait", "cpu-busy")
"""Rules about other work on the machine."""


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
    return Job(loader=loading(0.03 if fault else 0.01, 0 if fault else 2))


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


@dataclass(frozen=True)
class Found:
    """The findings of one recording: rule, message and severity."""

    findings: tuple[tuple[str, str, str], ...]

    def has(self, case: Case) -> bool:
        """Whether the fault of a case is among them."""
        return any(rule == case.rule and message.startswith(case.message) for rule, message, _ in self.findings)

    @property
    def grave(self) -> list[str]:
        """Rules of high and medium severity."""
        return sorted({rule for rule, _, severity in self.findings if severity != "low"})


def recorded(case: Case, fault: bool, out: Path) -> Found:
    """Record a job in processes of its own, and what is found in it."""
    command = [sys.executable, __file__, "--case", str(CASES.index(case)), "--out", str(out)]
    command += ["--fault"] if fault else []
    with tempfile.TemporaryDirectory() as meeting:
        ranks = [
            subprocess.Popen([*command, "--rank", str(rank), "--meeting", f"{meeting}/all"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
            for rank in range(case.make(fault).ranks)
        ]  # fmt: skip
        for rank in ranks:
            _, words = rank.communicate()
            if rank.returncode:
                raise RuntimeError(f"{case.name}: {words}")
    from stepscope import open_run
    from stepscope.advice import advise

    found = advise(open_run(str(out)), strict=True)
    return Found(tuple((one.rule, one.message, one.severity) for one in found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", type=int, help="record only this job, and nothing else")
    parser.add_argument("--fault", action="store_true", help="with --case: plant the fault")
    parser.add_argument("--rank", type=int, default=0, help="with --case: the rank of this process")
    parser.add_argument("--meeting", default="", help="with --case: the file by which ranks meet")
    parser.add_argument("--out", help="where to write recordings; default: a temporary directory")
    parser.add_argument("--only", default="", help="only cases whose name has this text")
    parser.add_argument("--rounds", type=int, default=3, help="recordings of each job")
    options = parser.parse_args()
    if options.case is not None:
        train_rank(CASES[options.case].make(options.fault), options.out, options.rank, options.meeting)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        cases = [case for case in CASES if options.only in case.name]
        return _table(cases, Path(options.out or folder), options.rounds)


@dataclass
class Judged:
    """What was found in all recordings of a case, of the fault and of its twin."""

    case: Case
    faults: list[Found] = field(default_factory=list)
    twins: list[Found] = field(default_factory=list)

    @property
    def hits(self) -> int:
        """Recordings in which the fault is found; of faults that cost nothing, in which nothing grave is."""
        if self.case.rule is None:
            return sum(not _own(one.grave) for one in self.faults)
        return sum(one.has(self.case) for one in self.faults)

    @property
    def clean(self) -> int:
        """Twins without grave findings about the job."""
        return sum(not _own(one.grave) for one in self.twins)

    def false_alarms(self, rule: str) -> int:
        """Recordings of twins, and of faults that cost nothing, in which a rule has a grave finding."""
        healthy = self.twins + (self.faults if self.case.rule is None else [])
        return sum(rule in one.grave for one in healthy)


def _own(rules: list[str]) -> list[str]:
    """Rules about the job, not about the machine."""
    return [rule for rule in rules if rule not in MACHINE]


def _table(cases: list[Case], folder: Path, rounds: int) -> int:
    print(f"load average at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"{'fault':<34} {'rule that must find it':<24} {'found':<8} {'twins clean':<12} grave findings of twins")
    judged = [Judged(case) for case in cases]
    for one in judged:
        number = CASES.index(one.case)
        for turn in range(rounds):
            one.faults.append(recorded(one.case, True, folder / f"{number}-{turn}-fault"))
            one.twins.append(recorded(one.case, False, folder / f"{number}-{turn}-twin"))
        words = ", ".join(sorted({rule for twin in one.twins for rule in _own(twin.grave)})) or "-"
        expected = one.case.rule or "none: free on a CPU"
        counts = f"{one.hits} of {rounds}", f"{one.clean} of {rounds}"
        print(f"{one.case.name:<34} {expected:<24} {counts[0]:<8} {counts[1]:<12} {words}", flush=True)
    _by_rule(judged, rounds)
    most = rounds / 2
    return 0 if all(one.hits > most and one.clean > most for one in judged) else 1


def _by_rule(judged: list[Judged], rounds: int) -> None:
    """Recall and precision of each rule over all recordings."""
    every = [found for one in judged for found in one.faults + one.twins]
    rules = sorted({rule for found in every for rule in found.grave} | {one.case.rule or "" for one in judged} - {""})
    print(f"\n{'rule':<24} {'found':<12} false alarms in healthy recordings")
    healthy = rounds * sum(2 if one.case.rule is None else 1 for one in judged)
    for rule in rules:
        own = [one for one in judged if one.case.rule == rule]
        hits = f"{sum(one.hits for one in own)} of {rounds * len(own)}" if own else "-"
        alarms = sum(one.false_alarms(rule) for one in judged)
        of_machine = "   (about the machine)" if rule in MACHINE else ""
        print(f"{rule:<24} {hits:<12} {alarms} of {healthy}{of_machine}")


if __name__ == "__main__":
    sys.exit(main())
