"""`cpu_op_execute_timestamp` and `cpu_framework`: when each operator ran on the host, and on what shapes.

Times of nested operators overlap here, since each line says when its operator ran; the totals are elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.export.cpu_operators import NO_OPERATORS
from stepscope.export.forms import ms
from stepscope.export.job import Job
from stepscope.export.operator_names import named_operators
from stepscope.export.shapes import launch_shapes

_PART = 100_000


def write_launches(job: Job) -> None:
    """Write both files, a line an operator and a line a launch."""
    times, launches = f"cpu_op_execute_timestamp_{job.rank}.txt", f"cpu_framework_{job.rank}.txt"
    if not job.run.has("operators"):
        job.leave_out(times, NO_OPERATORS)
        job.leave_out(launches, NO_OPERATORS)
        return
    rows = named_operators(job).select(
        "full_name", "op_type", "op_name", "start_ns", "duration_ns", "thread", "input_shapes", "input_types"
    )
    found = rows.sort("start_ns", maintain_order=True).collect()
    job.write(times, _times(found))
    job.write(launches, _launches(found))


def _times(operators: pl.DataFrame) -> Iterator[str]:
    threads = thread_numbers(operators)
    for group in operators.group_by("full_name", maintain_order=True):
        (name,), rows = group
        calls = rows.select("start_ns", "duration_ns", "thread").iter_rows()
        yield (
            f"{name};HostCpuOps;"
            + "".join(f"{start},{ms(ns)},{threads[thread]} " for start, ns, thread in calls)
            + "\n"
        )


def thread_numbers(operators: pl.DataFrame) -> dict[str | None, int]:
    """Threads numbered from 0 in the order in which they first ran an operator (`operators` is in order of time)."""
    return {thread: number for number, thread in enumerate(operators["thread"].unique(maintain_order=True))}


def _launches(operators: pl.DataFrame) -> Iterator[str]:
    for part in operators.iter_slices(_PART):
        columns = part.select("op_type", "op_name", "input_shapes", "input_types")
        yield "".join(
            f"{kind.replace(';', ',')};{name.replace(';', ',')};0;{launch_shapes(shapes, types)}\n"
            for kind, name, shapes, types in columns.iter_rows()
        )
