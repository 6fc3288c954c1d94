"""`aicore_intermediate` and `framework_raw`: operators of an Ascend device by type and by full name, in ms.

They are sums of the kernels, or, of a profile that has only totals, those. `task_type` is the core as recorded. An AI
CPU has a file of its own with a line for each execution, which is not made: its kernels are among the others.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from stepscope.export.classic.gpu_operators import owned_kernels
from stepscope.export.formatting import csv_text, largest_first, ms, ratio
from stepscope.export.rank_export import RankExport
from stepscope.json_files import value_in

TYPE_HEADER = "kernel_type,total_time,execution_frequency,percent"
DETAIL_HEADER = "full_kernel_name,task_duration,execution_frequency,task_type"
FRAMEWORK_HEADER = (
    "task_id,stream_id,block_dim,full_kernel_name,op_name,kernel_name,kernel_type,subgraph,op_info,model_id,task_type"
)
UNIT = "AI_CORE"
"""The list of totals that has the work of an Ascend device."""
_BY_NAME = {
    "full_name": pl.String,
    "type": pl.String,
    "core": pl.String,
    "stream": pl.Int32,
    "block_dim": pl.Int64,
    "info": pl.String,
    "subgraph": pl.String,
    "graph": pl.Int64,
    "total": pl.Int64,
    "count": pl.Int64,
}
_INFO = tuple(
    (side, what, key)
    for side in ("input", "output")
    for what, key in (("formats", "format"), ("types", "data_type"), ("shapes", "shape"))
)


def write_device_operators(export: RankExport) -> None:
    """Write all three; nothing without an Ascend device."""
    if export.facts["device_kind"] != "npu":
        return
    types, details, framework = (
        f"aicore_intermediate_{export.rank}_type.csv",
        f"aicore_intermediate_{export.rank}_detail.csv",
        f"framework_raw_{export.rank}.csv",
    )
    operators = _of_kernels(export) if export.run.has("kernels") else _of_totals(export, "operator")
    by_type = _by_type(operators) if operators.height else _by_type(_of_totals(export, "type"))
    if by_type.is_empty():
        for name in (types, details, framework):
            export.leave_out(name, "no kernels of the device were recorded")
        return
    whole = int(by_type["total"].sum())
    rows = ((kind, ms(total), count, ratio(total, whole)) for kind, total, count in by_type.iter_rows())
    export.write(types, csv_text(TYPE_HEADER, rows))
    if operators.is_empty():
        for name in (details, framework):
            export.leave_out(name, "only totals by type were recorded")
        return
    columns = operators.select("full_name", "total", "count", "core").iter_rows()
    export.write(details, csv_text(DETAIL_HEADER, ((name, ms(total / n), n, core) for name, total, n, core in columns)))
    export.write(framework, csv_text(FRAMEWORK_HEADER, map(_framework_row, operators.iter_rows(named=True))))


def _framework_row(row: dict[str, Any]) -> tuple[object, ...]:
    full = row["full_name"]
    own = full.rsplit("/", 1)[-1]
    place = (None, row["stream"], row["block_dim"], full, full, own, row["type"], row["subgraph"] or "Default")
    return (*place, row["info"], row["graph"], row["core"])


def _of_kernels(export: RankExport) -> pl.DataFrame:
    """Compute kernels by full name, those that took longest first, as `_BY_NAME`."""
    first = ("type", "stream", "block_dim", *(f"{side}_{what}" for side, what, _ in _INFO))
    computes = owned_kernels(export).filter(pl.col("kind") == "compute")
    if not export.is_mindspore:  # a kernel's own name tells more than that of the operator which launched it
        own = pl.col("name").str.replace_all("/", "|", literal=True)
        computes = computes.with_columns(full_name=pl.concat_str("full_name", pl.lit("/"), own))
    found = largest_first(
        computes.with_columns(core=pl.col("core").fill_null(UNIT), type=pl.coalesce("type", "name")),
        "full_name",
        "core",
        total=pl.col("duration_ns").sum(),
        count=pl.len(),
        **{name: pl.col(name).drop_nulls().first() for name in first},
    )
    texts = [_info(row) for row in found.select(first[3:]).iter_rows(named=True)]
    return _shaped(found.with_columns(info=pl.Series(texts, dtype=pl.String)))


def _info(row: dict[str, Any]) -> str | None:
    """Inputs and outputs as the framework describes them; None if it has not."""
    described: dict[str, dict[str, str]] = {}
    for side, what, key in _INFO:
        for number, part in enumerate(str(row[f"{side}_{what}"] or "").strip('"').split(";")):
            if part:
                described.setdefault(f"{side.title()}_{number}", {})[key] = part
    return json.dumps(described) if described else None


def _of_totals(export: RankExport, level: str) -> pl.DataFrame:
    """Totals of the device as a profile states them, as `_BY_NAME`; none if it states none."""
    rows = export.lazy("operator_totals").filter((pl.col("unit") == UNIT) & (pl.col("level") == level)).collect()
    named = rows.with_columns(
        type=pl.coalesce("type", "name"),
        full_name=pl.coalesce("full_name", "name"),
        info=pl.when(pl.col("inputs").map_elements(_is_object, return_dtype=pl.Boolean)).then("inputs"),
    )
    return _shaped(named.rename({"total_ns": "total"})).sort("total", "full_name", descending=[True, False])


def _is_object(text: str) -> bool:
    return isinstance(value_in(text), dict)


def _by_type(operators: pl.DataFrame) -> pl.DataFrame:
    return largest_first(operators.lazy(), "type", total=pl.col("total").sum(), count=pl.col("count").sum())


def _shaped(rows: pl.DataFrame) -> pl.DataFrame:
    known = (pl.col(name) if name in rows.columns else pl.lit(None).alias(name) for name in _BY_NAME)
    return rows.select(known).cast(_BY_NAME)  # type: ignore[arg-type]
