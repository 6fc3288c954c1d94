"""`cpu_op_type_info` and `cpu_op_detail_info`: what the operators cost on the host.

Times are self times: PyTorch's operators call each other, and a time that counted for both would make the shares add
up to more than 1. MindSpore's do not, so there self time is all of the time.
"""

from __future__ import annotations

import polars as pl

from stepscope.export.classic.operator_names import named_operators
from stepscope.export.formatting import csv_text, ms, ratio
from stepscope.export.rank_export import RankExport

TYPE_HEADER = "op_type,type_occurrences,execution_frequency(per-step),total_compute_time,avg_time(ms),percent"
DETAIL_HEADER = (
    "op_side,op_type,op_name,full_op_name,op_occurrences,op_total_time(ms),op_avg_time(ms),"
    "total_proportion,subgraph,pid"
)
NO_OPERATORS = "no operators were recorded (op_time is off, or no window of operators was finished)"


def write_cpu_operators(export: RankExport) -> None:
    """Sum up the host's operators by type and by full name."""
    types, details = f"cpu_op_type_info_{export.rank}.csv", f"cpu_op_detail_info_{export.rank}.csv"
    if not export.run.has("operators"):
        export.leave_out(types, NO_OPERATORS)
        export.leave_out(details, NO_OPERATORS)
        return
    if export.on_gpu:
        for name in (types, details):
            export.leave_out(name, "readers take a GPU job with this file for one that computes on the CPU as well")
        return
    totals = (
        named_operators(export)
        .group_by("op_type", "op_name", "full_name", "subgraph")
        .agg(count=pl.len(), total_ns=pl.coalesce("self_ns", "duration_ns").sum())
        .sort("total_ns", "full_name", descending=[True, False])
        .collect()
    )
    export.write(types, csv_text(TYPE_HEADER, _type_rows(totals, step_count(export))))
    export.write(details, csv_text(DETAIL_HEADER, _detail_rows(totals, export.facts["process"])))


def step_count(export: RankExport) -> int:
    """Steps that were recorded; 1 if none is known, so that figures for each step are totals."""
    return max(export.rows("steps").filter(pl.col("step") > 0).height, 1)


def per_step(count: int, steps: int) -> int:
    """A count for each step, rounded, as readers take whole numbers only; at least 1."""
    return max((2 * count + steps) // (2 * steps), 1)


def _type_rows(totals: pl.DataFrame, steps: int) -> list[tuple[object, ...]]:
    whole = int(totals["total_ns"].sum())
    types = (
        totals.group_by("op_type")
        .agg(pl.col("count").sum(), pl.col("total_ns").sum())
        .sort("total_ns", "op_type", descending=[True, False])
    )
    return [
        (op_type, count, per_step(count, steps), ms(total), ms(total / count), ratio(total, whole))
        for op_type, count, total in types.iter_rows()
    ]


def _detail_rows(totals: pl.DataFrame, process: int | None) -> list[tuple[object, ...]]:
    whole = int(totals["total_ns"].sum())
    columns = totals.select("op_type", "op_name", "full_name", "subgraph", "count", "total_ns")
    return [
        ("Host", kind, name, full, count, ms(total), ms(total / count), ratio(total, whole), subgraph, process or 0)
        for kind, name, full, subgraph, count, total in columns.iter_rows()
    ]
