"""Operators on the host: what they cost (`cpu_op_type_info`, `cpu_op_detail_info`), when each ran
(`cpu_op_execute_timestamp`), and on what shapes (`cpu_framework`).

Costs are self times: PyTorch's operators call each other, and a time that counted for both would make the shares add
up to more than 1. MindSpore's do not, so there self time is all of the time. When operators ran may overlap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import polars as pl

from stepscope.export.classic.operator_names import named_operators
from stepscope.export.formatting import csv_text, largest_first, ms, ratio
from stepscope.export.rank_export import RankExport
from stepscope.json_files import value_in

TYPE_HEADER = "op_type,type_occurrences,execution_frequency(per-step),total_compute_time,avg_time(ms),percent"
DETAIL_HEADER = (
    "op_side,op_type,op_name,full_op_name,op_occurrences,op_total_time(ms),op_avg_time(ms),"
    "total_proportion,subgraph,pid"
)
_NO_OPERATORS = "no operators were recorded", "op_time is off, or no window of operators was finished"
"""Why there are none, and what may have caused it in a recording of ours."""
_NAMES = ("full_name", "op_type", "op_name", "subgraph")
_PART = 100_000
NO_SHAPE = "NoShape"
_NO_TENSOR = ("", "Scalar", "ScalarList")


def write_cpu_operators(export: RankExport) -> None:
    """Sum up the host's operators by type and by full name."""
    types, details = f"cpu_op_type_info_{export.rank}.csv", f"cpu_op_detail_info_{export.rank}.csv"
    if export.on_gpu or not export.run.has("operators"):
        not_of_gpus = "readers take a GPU job with this file for one that computes on the CPU as well"
        for name in (types, details):
            export.leave_out(name, not_of_gpus if export.run.has("operators") else export.because(*_NO_OPERATORS))
        return
    spent = pl.coalesce("self_ns", "duration_ns")
    by_name = largest_first(named_operators(export), *_NAMES, total=spent.sum(), count=pl.len())
    by_type = largest_first(by_name.lazy(), "op_type", total=pl.col("total").sum(), count=pl.col("count").sum())
    whole = int(by_type["total"].sum())
    # Readers take whole numbers only. If no step is known, the number for each step is that of all calls.
    steps = max(export.numbered_steps.height, 1)
    type_rows = [
        (kind, count, max((2 * count + steps) // (2 * steps), 1), ms(total), ms(total / count), ratio(total, whole))
        for kind, total, count in by_type.iter_rows()
    ]
    export.write(types, csv_text(TYPE_HEADER, type_rows))
    process = export.facts["process"] or 0
    detail_rows = [
        ("Host", kind, name, full, count, ms(total), ms(total / count), ratio(total, whole), subgraph, process)
        for full, kind, name, subgraph, total, count in by_name.iter_rows()
    ]
    export.write(details, csv_text(DETAIL_HEADER, detail_rows))


def write_launches(export: RankExport) -> None:
    """Write both files, a line an operator and a line a launch."""
    times, launches = f"cpu_op_execute_timestamp_{export.rank}.txt", f"cpu_framework_{export.rank}.txt"
    if not export.run.has("operators"):
        export.leave_out(times, export.because(*_NO_OPERATORS))
        export.leave_out(launches, export.because(*_NO_OPERATORS))
        return
    rows = named_operators(export).select(
        "full_name", "op_type", "op_name", "start_ns", "duration_ns", "thread", "input_shapes", "input_types"
    )
    found = rows.sort("start_ns", maintain_order=True).collect()
    export.write(times, _times(found))
    export.write(launches, _launches(found))


def _times(operators: pl.DataFrame) -> Iterator[str]:
    threads = thread_numbers(operators)
    for (name,), rows in operators.group_by("full_name", maintain_order=True):
        calls = rows.select("start_ns", "duration_ns", "thread").iter_rows()
        times = "".join(f"{start},{ms(ns)},{threads[thread]} " for start, ns, thread in calls)
        yield f"{name};HostCpuOps;{times}\n"


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


@lru_cache(maxsize=65536)
def parsed_shapes(text: str | None) -> tuple[Any, ...]:
    """The inputs in a text of shapes: sizes, a list of sizes, or None each. Empty if the text is not a JSON list."""
    found = value_in(text)
    return tuple(found) if isinstance(found, list) else ()


@lru_cache(maxsize=65536)
def launch_shapes(shapes: str | None, types: str | None) -> str:
    """The inputs as `cpu_framework` has them.

    Examples:
        >>> launch_shapes("[[8, 3], [], []]", '["float", "Scalar", ""]')
        'input_1:[8, 3];input_2:NoShape;input_3:NoShape;'
    """
    kinds = parsed_shapes(types)
    parts = []
    for number, shape in enumerate(parsed_shapes(shapes)):
        kind = kinds[number] if number < len(kinds) else None
        no_tensor = shape is None or shape == NO_SHAPE or (not shape and kind in _NO_TENSOR)
        parts.append(f"input_{number + 1}:{NO_SHAPE if no_tensor else json.dumps(shape)};")
    return "".join(parts)
