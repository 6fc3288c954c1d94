"""Runs that are exported as databases, and what stands in these."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl

from stepscope import Run, open_run
from stepscope.export.ascend_db.directory import write_ascend_db
from stepscope.tables import (
    ALLOCATIONS,
    COLLECTIVES,
    COMMUNICATION_TASKS,
    COUNTERS,
    GROUPS,
    KERNEL_COUNTERS,
    KERNELS,
    LINKS,
    MEMORY_CURVE,
    OPERATORS,
    RANKS,
    SLICES,
    STACKS,
    STEPS,
    TRANSPORTS,
)

EPOCH_NS = 1_760_000_000_000_000_000
US, MS = 1_000, 1_000_000
STEP_NS = 10 * MS
KEY = "11517043351967950690"
"""The key of a group as recordings of Ascend devices state it."""
OPTIONS = (
    '{"activities": ["CPU", "NPU"], "device_info": {"ai_core_num": 24, "aic_frequency": 1800, "aiv_num": 48}, '
    '"record_shapes": true}'
)


def exported(run: Run, directory: Path) -> Path:
    """Where a run was exported to."""
    write_ascend_db(run, directory)
    return directory


def read_back(directory: Path) -> Run:
    """What was exported, opened."""
    return open_run(directory, use_store=False)


def databases(directory: Path, rank: int = 0) -> dict[str, Path]:
    """The databases of a rank: `events` and `analysis`."""
    (events,) = directory.glob(f"*/ASCEND_PROFILER_OUTPUT/ascend_*_profiler_{rank}.db")
    (analysis,) = (path for path in events.parent.iterdir() if path != events)
    return {"events": events, "analysis": analysis}


def select(path: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def text(number: str) -> str:
    """The text of a number, in SQL."""
    return f"(SELECT value FROM STRING_IDS WHERE id = {number})"


def npu_run(ranks: int = 2, steps: int = 2) -> Run:
    """Ranks with an Ascend device; a step loads data, copies, multiplies and reduces over all ranks."""
    return Run.from_frames({rank: npu_rank(rank, ranks, steps) for rank in range(ranks)})


def npu_rank(rank: int, ranks: int, steps: int) -> dict[str, pl.DataFrame]:
    """The tables of one rank: everything that the format has a place for."""
    numbers = [4 + n for n in range(steps)]
    starts = [EPOCH_NS + n * STEP_NS for n in range(steps)]
    begins = [start + 300 * US for start in starts]
    ends = [*begins[1:], starts[-1] + 9 * MS]
    process = 4000 + rank
    call = [f"hcom_allReduce__690_{n}_1" for n in range(steps)]
    reduces = [start + 4 * MS + 7 for start in starts]
    correlations = [100 + 10 * n for n in range(steps)]
    return {
        "ranks": RANKS.frame(
            rank=[rank],
            world_size=[ranks],
            host=["node"],
            process=[process],
            device_kind=["npu"],
            device=[rank],
            device_name=["Ascend910B"],
            framework=["pytorch"],
            framework_version=["2.7.1"],
            ai_cores=[24],
            vector_cores=[48],
            nominal_clock_mhz=[1800.0],
            backend=["hccl"],
            start_ns=[starts[0]],
            end_ns=[starts[-1] + STEP_NS - 1],
            options=[OPTIONS],
            environment=['{"HCCL_ALGO": ""}'],
            parallelism=[f'{{"data_parallel_size": {ranks}, "world_size": {ranks}}}'],
        ),
        "groups": GROUPS.frame(group=[KEY], name=["dp"], members=[list(range(ranks))]),
        "steps": STEPS.frame(
            step=numbers,
            start_ns=starts,
            end_ns=[start + STEP_NS - 1 for start in starts],
            window_start_ns=begins,
            window_end_ns=ends,
            window=["device"] * steps,
        ),
        **_host(process, numbers, starts, correlations),
        **_device(rank, numbers, starts, correlations, call, reduces),
        "collectives": COLLECTIVES.frame(
            collective=range(steps),
            group=[KEY] * steps,
            sequence=range(steps),
            operation=["all_reduce"] * steps,
            name=call,
            size_bytes=[2_000_000] * steps,
            size_of=["whole"] * steps,
            element_type=["BFP16"] * steps,
            group_size=[ranks] * steps,
            start_ns=reduces,
            duration_ns=[5 * MS - 7] * steps,
            wait_ns=[1_000_003] * steps,
            transmit_ns=[2 * MS] * steps,
            synchronization_ns=[MS] * steps,
            on_device=[True] * steps,
            correlation=[each + 3 for each in correlations],
            algorithm=["MESH-RING"] * steps,
            relayed=[True] * steps,
            retried=[False] * steps,
            step=numbers,
        ),
        **_samples(rank, ranks, numbers, starts, call),
    }


def _host(process: int, numbers: list[int], starts: list[int], correlations: list[int]) -> dict[str, pl.DataFrame]:
    rows = []
    for step, start, first in zip(numbers, starts, correlations, strict=True):
        rows += [
            (start, STEP_NS - 1, "annotation", f"ProfilerStep#{step}", "Python", None),
            (start + 1, 90 * US, "annotation", "enumerate(DataLoader)#__next__", "Python", None),
            (start + 100 * US, 300 * US, "operator", "aten::mm", "Python", first + 1),
            (start + 110 * US, 20 * US, "operator", "aten::empty", "Python", None),
            (start + 120 * US, 5 * US, "runtime", "Runtime@MemcpyAsync", "CANN", first),
            (start + 200 * US, 5 * US, "runtime", "Node@launch", "CANN", first + 1),
            (start + 210 * US, 5 * US, "runtime", "Node@launch", "CANN", first + 3),
            (start + 500 * US, 2 * MS, "gc", "GC", "Python GC", None),
            (start + 600 * US, 3 * MS, "annotation", "Net", "MSTX Module", None),
            (start + 700 * US, 0, "mark", "here", "MSTX", None),
        ]
    columns = ("start_ns", "duration_ns", "category", "name", "process", "correlation")
    listed = [list(each) for each in zip(*rows, strict=True)]
    slices = SLICES.frame(
        slice=range(len(rows)),
        thread=[str(process)] * len(rows),
        step=[step for step in numbers for _ in range(10)],
        **dict(zip(columns, listed, strict=True)),
    )
    called = slices.filter(pl.col("category") == "operator")
    operators = OPERATORS.frame(
        slice=called["slice"],
        start_ns=called["start_ns"],
        duration_ns=called["duration_ns"],
        self_ns=[280 * US, 20 * US] * len(numbers),
        name=called["name"],
        thread=called["thread"],
        input_shapes=["8,4;4,2", None] * len(numbers),
        input_types=["FLOAT;FLOAT", None] * len(numbers),
        sequence=[1, None] * len(numbers),
        forward_thread=[None, 77] * len(numbers),
        stack=[0, None] * len(numbers),
        step=called["step"],
    )
    stacks = STACKS.frame(stack=[0], text=["net.py(3): forward\ntrain.py(9): main"])
    return {"slices": slices, "operators": operators, "stacks": stacks}


def _device(
    rank: int, numbers: list[int], starts: list[int], correlations: list[int], call: list[str], reduces: list[int]
) -> dict[str, pl.DataFrame]:
    count = len(numbers)
    rows = []
    for place, (step, start, first) in enumerate(zip(numbers, starts, correlations, strict=True)):
        copied = (start + 130 * US, 40 * US, "memory", "MEMCPY_ASYNC", "MEMCPY_ASYNC", None, first, 2, step)
        computed = (start + 300 * US, 3 * MS + 1, "compute", "mm_1", "MatMulV3", "AI_CORE", first + 1, 2, step)
        reduced = (reduces[place], 5 * MS - 7, "communication", call[place], "hcom_allReduce_", "COMMUNICATION")
        rows += [copied, computed, (*reduced, first + 3, None, step)]
    columns = ("start_ns", "duration_ns", "kind", "name", "type", "core", "correlation", "stream", "step")
    listed = dict(zip(columns, (list(each) for each in zip(*rows, strict=True)), strict=True))
    kernels = KERNELS.frame(
        kernel=range(3 * count),
        device=[rank] * (3 * count),
        size_bytes=[4096, None, None] * count,
        direction=["host to device", None, None] * count,
        input_shapes=[None, "8,4;4,2", None] * count,
        input_types=[None, "FLOAT;FLOAT", None] * count,
        input_formats=[None, "ND;ND", None] * count,
        output_shapes=[None, "8,2", None] * count,
        output_types=[None, "FLOAT", None] * count,
        output_formats=[None, "ND", None] * count,
        block_dim=[None, 24, None] * count,
        mix_block_dim=[None, 0, None] * count,
        state=[None, "static", None] * count,
        **listed,
    )
    counters = KERNEL_COUNTERS.frame(
        kernel=[3 * n + 1 for n in range(count)],
        aic_time_ns=[2_500_001.0] * count,
        aic_mac_time_ns=[1_000_500.0] * count,
        aic_mac_ratio=[0.4] * count,
        aic_total_cycles=[9e6] * count,
        cube_utilization_ratio=[0.625] * count,
    )
    return {"kernels": kernels, "kernel_counters": counters}


def _samples(rank: int, ranks: int, numbers: list[int], starts: list[int], call: list[str]) -> dict[str, pl.DataFrame]:
    count, peer = len(numbers), (rank + 1) % ranks
    return {
        "communication_tasks": COMMUNICATION_TASKS.frame(
            start_ns=[start + at for start in starts for at in (4 * MS + 7, 5 * MS)],
            duration_ns=[MS, 2 * MS] * count,
            name=["Notify_Wait", "Memcpy"] * count,
            call=[name for name in call for _ in range(2)],
            device=[rank] * (2 * count),
            stream=[7] * (2 * count),
            plane=[0, 1] * count,
            source=[rank] * (2 * count),
            destination=[peer] * (2 * count),
            transport=["LOCAL", "SDMA"] * count,
            link=[None, "HCCS"] * count,
            size_bytes=[0, 1_000_000] * count,
        ),
        "links": LINKS.frame(
            step=[step for step in numbers for _ in range(2)],
            group=[KEY] * (2 * count),
            operation=["all_reduce"] * (2 * count),
            name=[name for each in call for name in (each, None)],
            source=[rank] * (2 * count),
            destination=[peer] * (2 * count),
            transport=["HCCS"] * (2 * count),
            size_bytes=[1_000_000, 1_000_000] * count,
            duration_ns=[2 * MS, 2 * MS] * count,
        ),
        "transports": TRANSPORTS.frame(
            step=[step for step in numbers for _ in range(2)],
            group=[KEY] * (2 * count),
            name=[name for name in call for _ in range(2)],
            transport=["HCCS", "SDMA"] * count,
            size_bytes=[1_000_000] * (2 * count),
            duration_ns=[2 * MS] * (2 * count),
            packet_bytes=[250_000] * (2 * count),
            packets=[4] * (2 * count),
        ),
        "memory_curve": MEMORY_CURVE.frame(
            time_ns=[starts[0] + 5, starts[0] + 6],
            component=["PTA", "HCCL"],
            device=[rank, rank],
            allocated_bytes=[1032, None],
            reserved_bytes=[4096, 7],
            active_bytes=[1032, None],
        ),
        "allocations": ALLOCATIONS.frame(
            name=["aten::empty", None],
            device=[rank, rank],
            size_bytes=[1032, 7],
            allocation_ns=[starts[0] + 5, starts[0] + 7],
            release_ns=[starts[0] + 9, None],
            active_release_ns=[starts[0] + 8, None],
        ),
        "counters": COUNTERS.frame(
            time_ns=[starts[0], starts[0], starts[0] + MS, starts[0] + MS],
            name=["ai_core_frequency_mhz", "hbm_0_read_bytes_per_s", "hbm_0_read_bytes_per_s", "llc_1_read_hit_ratio"],
            device=[rank] * 4,
            value=[1800.0, 1.5e9, 2e9, 0.25],
        ),
    }


def host_run(ranks: int = 2, steps: int = 2) -> Run:
    """The same job without devices: the host computes and reduces, in a group with a number for a name."""
    frames = {}
    for rank in range(ranks):
        tables = npu_rank(rank, ranks, steps)
        facts = {"device_kind": "cpu", "backend": "gloo"}
        unknown = ("device", "device_name", "ai_cores", "vector_cores", "nominal_clock_mhz")
        stated = tables["ranks"].with_columns(
            *(pl.lit(value).alias(name) for name, value in facts.items()),
            *(pl.lit(None, RANKS.schema[name]).alias(name) for name in unknown),
            options=pl.lit('{"activities": ["CPU"]}'),
        )
        host = pl.col("category").is_in(["annotation", "operator"])
        calls = tables["collectives"].with_columns(
            name=pl.lit("gloo:all_reduce"),
            group=pl.lit("0"),
            element_type=pl.lit("float"),
            on_device=pl.lit(False),
            **{
                name: pl.lit(None, COLLECTIVES.schema[name])
                for name in ("correlation", "algorithm", "wait_ns", "transmit_ns", "synchronization_ns", "relayed")
            },
        )
        windows = {
            "window_start_ns": "start_ns",
            "window_end_ns": "end_ns",
            "window": pl.lit("host"),
        }
        frames[rank] = {
            "ranks": stated,
            "groups": GROUPS.frame(group=["0"], name=["default_pg"], members=[list(range(ranks))]),
            "steps": tables["steps"].with_columns(**windows),
            "slices": tables["slices"].filter(host).with_columns(correlation=pl.lit(None, pl.Int64)),
            "operators": tables["operators"],
            "stacks": tables["stacks"],
            "collectives": calls,
        }
    return Run.from_frames(frames)
