"""`flops` and `flops_summary`: floating point operations by operator, and the rate at which they were made.

The model's rate is the sum of operations over the sum of the times of the operators that made them. All counted
operators are matrix work, so the columns of the vector unit are 0. The time is that of the device if there is one.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.flops.flops import KEYS
from stepscope.analysis.methods.flop_formulas import COUNTED
from stepscope.errors import Unavailable
from stepscope.export.classic.gpu_operators import owned_kernels
from stepscope.export.classic.operator_names import named_operators
from stepscope.export.formatting import csv_text, largest_first
from stepscope.export.rank_export import RankExport

HEADER = "full_kernel_name,MFLOPs(10^6 cube),GFLOPS(10^9 cube),MFLOPs(10^6 vector),GFLOPS(10^9 vector)"

MAX_NAMED = 3
"""Kinds of operators that are named if they are missing."""


def write_flops(export: RankExport) -> None:
    """Write both files if shapes were recorded."""
    table, summary = f"flops_{export.rank}.txt", f"flops_summary_{export.rank}.json"
    try:
        counted = export.run.analyse("flops")
    except Unavailable as reason:
        counted = pl.DataFrame(schema={"calls": pl.Int64, "flops": pl.Int64})
        export.leave_out(table, str(reason))
    reasons = _uncounted(export, counted)
    if reasons:
        export.leave_out(f"{table} (operators)", "; ".join(reasons))
    known = counted.drop_nulls("flops")
    if known.is_empty():
        export.left_out.setdefault(table, "no operator with a known count and recorded shapes (record_shapes)")
        export.leave_out(summary, export.left_out[table])
        return
    totals = _by_operator(export, known)
    rows = (
        (name, round(whole / calls / 1e6, 6), round(whole / spent_ns, 6) if spent_ns else 0.0, 0.0, 0.0)
        for name, whole, calls, spent_ns in totals.iter_rows()
    )
    export.write(table, csv_text(HEADER, rows))
    whole, spent_ns = int(totals["whole"].sum()), int(totals["spent_ns"].sum())
    rate = round(whole / spent_ns, 6) if spent_ns else 0.0
    content = {"cube_FLOPs": round(whole / 1e6, 6), "cube_FLOPS": rate, "vec_FLOPs": 0.0, "vec_FLOPS": 0.0}
    export.write_json(summary, content)


def _uncounted(export: RankExport, counted: pl.DataFrame) -> list[str]:
    """Which calls of operators that count are missing, and why."""
    reasons = []
    bare = named_operators(export).filter(pl.col("op_type").is_in(list(COUNTED)) & pl.col("input_shapes").is_null())
    kinds = largest_first(bare, "op_type", calls=pl.len())
    if kinds.height:
        names = ", ".join(kinds["op_type"].head(MAX_NAMED)) + (", ..." if kinds.height > MAX_NAMED else "")
        reasons.append(f"{kinds['calls'].sum()} calls of {names} have no recorded shapes, so they are not counted")
    unknown = int(counted.filter(pl.col("flops").is_null())["calls"].sum())
    if unknown:
        reasons.append(f"{unknown} calls whose shapes are not enough, e.g. of convolutions that are not trained")
    return reasons


def _by_operator(export: RankExport, counted: pl.DataFrame) -> pl.DataFrame:
    """`full_name`, `whole` (operations of all calls), `calls`, `spent_ns`, most operations first.

    The device's time is that of all work launched by the operator or by those it calls.
    """
    calls = named_operators(export).select("full_name", "duration_ns", *KEYS)
    known = calls.join(counted.lazy().select("flops", *KEYS), on=KEYS, nulls_equal=True)
    sums = {"whole": pl.col("flops").sum(), "calls": pl.len(), "spent_ns": pl.col("duration_ns").sum()}
    totals = largest_first(known, "full_name", **sums)
    if not export.on_gpu:
        return totals
    device = owned_kernels(export).group_by("full_name").agg(ns=pl.col("duration_ns").sum()).collect().rows()
    spent = [
        sum(ns for owner, ns in device if owner == name or owner.startswith(f"{name}/")) for name in totals["full_name"]
    ]
    return totals.with_columns(spent_ns=pl.Series(spent, dtype=pl.Int64))
