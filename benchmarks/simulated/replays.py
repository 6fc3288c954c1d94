"""Jobs whose ranks all do what one recorded rank did: its kernels, launches, waits and calls, step after step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from simulated.faults import Fault, kernels, launches, stops
from simulated.layouts import COMPUTE, MS, Shape
from simulated.operations import Operation
from simulated.truth import Job
from stepscope import open_run

WAITS = r"^cuda(Stream|Device|Event)Synchronize$"
LONG_WAIT_NS = 20_000
"""Shorter waits found the device idle."""
SIZE_BYTES = 1_000_000
"""Of a call whose size was not recorded."""
GROUP = "dp0.0"

Program = list[Operation]


@dataclass(frozen=True)
class Sample:
    """A recorded job, and how many ranks and steps a replay of it has.

    Args:
        slower: Factor of the kernels of a slow rank, which must be large where hosts bound the job.
    """

    name: str
    path: str
    ranks: int
    steps: int
    slower: float


SAMPLES = (
    Sample("DLRM", "dlrm_8rank_v100", 8, 6, 20.0),
    Sample("data parallel, A100", "single/nccl_data.json.gz", 4, 4, 6.0),
    Sample("one of 128 ranks", "sampled_2of128/sampled_rank-0.json.gz", 8, 5, 6.0),
)


def programs_in(path: Path) -> list[Program]:
    """What the first recorded rank did, by step."""
    run = open_run(path, use_store=False)
    tables = {name: run.table(name).filter(rank=run.ranks[0].rank) for name in ("kernels", "slices", "collectives")}
    work = tables["kernels"].drop_nulls(["step", "launch_start_ns"]).sort("launch_start_ns", "start_ns").collect()
    waits = tables["slices"].filter(
        (pl.col("category") == "runtime") & pl.col("name").str.contains(WAITS) & (pl.col("duration_ns") > LONG_WAIT_NS)
    )
    calls = tables["collectives"].select("start_ns", "stream", "operation", size="size_bytes").collect()
    rows = work.join(calls, on=["start_ns", "stream"], how="left", maintain_order="left")
    return _programs(rows, waits.drop_nulls("step").sort("start_ns").collect())


def _programs(work: pl.DataFrame, waits: pl.DataFrame) -> list[Program]:
    """One program a step."""
    busy = work.filter(kind="compute").group_by("stream").agg(pl.col("duration_ns").sum())
    main = busy.sort("duration_ns", descending=True)["stream"][0]
    found = []
    for step in work["step"].unique().sort():
        rows = [
            *({**row, "at": row["launch_start_ns"], "until": row["launch_end_ns"]} for row in _rows(work, step)),
            *({**row, "at": row["start_ns"], "until": None, "kind": "wait"} for row in _rows(waits, step)),
        ]
        found.append(program_of(sorted(rows, key=lambda row: row["at"]), main))
    return found


def _rows(frame: pl.DataFrame, step: int) -> list[dict[str, Any]]:
    return frame.filter(step=step).to_dicts()


def program_of(rows: list[dict[str, Any]], main: int) -> Program:
    """Operations of a step; a call blocks from the first kernel on the main stream that began after its end."""
    out: Program = []
    running: list[tuple[int, int]] = []
    event = 0
    before = rows[0]["at"]
    for row in rows:
        gap = max(0, row["at"] - before)
        if row["kind"] == "wait":
            out.append(Operation("synchronise", row["name"], gap_ns=gap))
            before = row["at"] + row["duration_ns"]
            continue
        before = max(before, row["until"])
        stream = COMPUTE if row["stream"] == main else 100 + row["stream"]
        if stream == COMPUTE and row["kind"] == "compute":
            ended = [number for end, number in running if end <= row["start_ns"]]
            running = [(end, number) for end, number in running if end > row["start_ns"]]
            for number in ended:
                out.append(Operation("wait", "cudaStreamWaitEvent", launch_ns=1000, stream=COMPUTE, event=number))
        common = {"gap_ns": gap, "launch_ns": row["until"] - row["at"], "stream": stream, "operator": ""}
        if row["operation"] is None:
            kind = "memory" if row["kind"] == "memory" else "compute"
            size = row["size_bytes"] or 0
            out.append(Operation("kernel", row["name"], row["duration_ns"], kind=kind, size_bytes=size, **common))
            continue
        out.append(Operation("record", "cudaEventRecord", launch_ns=1000, stream=COMPUTE, event=event))
        out.append(Operation("wait", "cudaStreamWaitEvent", launch_ns=1000, stream=stream, event=event))
        call = Operation("call", row["name"], kind="communication", group=GROUP, operation=row["operation"], **common)
        call.size_bytes = row["size"] or SIZE_BYTES
        out.append(call)
        out.append(Operation("record", "cudaEventRecord", launch_ns=1000, stream=stream, event=event + 1))
        running.append((row["start_ns"] + row["duration_ns"], event + 1))
        event += 2
    for _, number in running:
        out.append(Operation("wait", "cudaStreamWaitEvent", launch_ns=1000, stream=COMPUTE, event=number))
    return out


@dataclass(frozen=True)
class Repeated:
    """Makes a job whose ranks and steps do what the recorded steps did, in turn, with noise."""

    recorded: Sequence[Program]

    def __call__(self, shape: Shape) -> dict[int, list[Program]]:
        found = {}
        for rank in range(shape.ranks):
            chance = Random(f"{shape.seed} {rank}")
            steps = [self.recorded[step % len(self.recorded)] for step in range(shape.steps)]
            found[rank] = [_noisy(program, step, shape, chance) for step, program in enumerate(steps)]
        return found


def _noisy(program: Program, step: int, shape: Shape, chance: Random) -> Program:
    """A copy for a step, whose events have numbers of their own."""
    out = []
    for each in program:
        factor = max(0.5, 1 + shape.kernel_noise * chance.gauss(0, 1))
        gap = max(0.3, 1 + shape.host_noise * chance.gauss(0, 1))
        length = round(each.ns * factor)
        out.append(replace(each, ns=length, gap_ns=round(each.gap_ns * gap), event=each.event + step * 100_000))
    return out


def replays(samples: Path, number: int) -> Iterator[tuple[str, Job]]:
    """Replays of recorded jobs in turn: nothing wrong, slow kernels, a slow host, a host that stops."""
    recorded: dict[str, list[Program]] = {}
    for turn in range(number):
        sample = SAMPLES[turn // 4 % len(SAMPLES)]
        if sample.name not in recorded:
            recorded[sample.name] = programs_in(samples / sample.path)
        programs = recorded[sample.name]
        shape = Shape(ranks=sample.ranks, steps=sample.steps, seed=turn, kernel_noise=0.02, host_noise=0.05)
        rank = (turn * 3 + 1) % sample.ranks
        families: list[tuple[str, Fault | None]] = [
            ("replay, as recorded", None),
            ("replay, slow device", Fault("computing", "rank", (rank,), kernels(sample.slower))),
            ("replay, slow host", Fault("dispatch", "rank", (rank,), launches(40_000))),
            ("replay, host stops", Fault("dispatch", "rank", (rank,), stops(15 * MS))),
        ]
        family, fault = families[turn % 4]
        yield family, Job(sample.name, shape, [fault] if fault else [], source=Repeated(programs))
