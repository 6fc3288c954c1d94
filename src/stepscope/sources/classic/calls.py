"""`hccl_raw`: what communication cost in each step, in all and by call, and what went over each link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import Sink
from stepscope.sources.classic.call_cells import CALLS, read_cells
from stepscope.sources.classic.call_units import unit_of
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.link_ranks import offset_of
from stepscope.sources.csv_files import Field, FileLayout, read_csv, whole
from stepscope.sources.kineto.communication import operation_of
from stepscope.tables import COMMUNICATION_TOTALS, LINKS
from stepscope.tables.base import with_schema

HCCL_RAW = FileLayout(
    fields=(
        Field("step", "text", ("step_num", "step"), required=True),
        Field("cost", "float", ("communication_cost",), required=True),
        Field("wait", "float", ("wait_cost",)),
        Field("links", "text", ("link_info",)),
        Field("operators", "text", ("communication_operator_cost",)),
    )
)
_ROWS = {"step": pl.String, "cost": pl.Float64, "wait": pl.Float64, "links": pl.String, "operators": pl.String}
_AVERAGE = "-"
_TOLERANCE = 0.01
_STEP = r"^\d{1,9}$"


def write_calls(files: RankFiles, sink: Sink) -> None:
    """Write `communication_totals` and `links` of each step: totals without a name, and each call by its name.

    Times are ms or us, see `call_units`; sizes are KB of 1000 bytes. Bandwidths are not taken: those of a step are the
    sum of its calls'. The last row, an average or a copy of the last step by the version, is compared and not stored.

    Raises:
        UnreadableInput: If the file has no row that can be read.
    """
    path = files.one("calls")
    if path is None:
        return
    rows = read_csv(path, HCCL_RAW, sink)
    if rows is None:
        return  # that is told
    steps = _steps(with_schema(rows, _ROWS), path, sink)
    if steps.is_empty():
        raise UnreadableInput(path, "has no row of a step", "Run the profiler's analysis of this rank again")
    calls, links = read_cells(steps, path, sink)
    unit_ns = unit_of(files, steps, links, sink)
    _compare_average(rows, steps, path, sink)
    sink.write(COMMUNICATION_TOTALS, _totals(steps, calls, unit_ns))
    offset = offset_of(files, links, path, sink)
    if offset is not None and links.height:
        sink.write(LINKS, _links(links, unit_ns, offset))


def _steps(rows: pl.DataFrame, path: Path, sink: Sink) -> pl.DataFrame:
    """The rows of steps, with `step` as a number; the average and what is no number are left out."""
    rows = rows.filter(pl.col("cost").is_finite())
    numbered = rows.filter(pl.col("step").str.contains(_STEP))
    strange = rows.height - numbered.height - rows.filter(pl.col("step") == _AVERAGE).height
    if strange:
        problem = f"{strange} of {rows.height} rows have no step number and are left out"
        sink.issue("error", path, problem, "Copy the file again, or run the profiler's analysis again", lost=strange)
    if numbered.is_empty() and rows.height == 2 and not strange:  # a single step, which is its own average
        numbered = rows.head(1).with_columns(step=pl.lit("1"))
    return numbered.with_columns(pl.col("step").cast(pl.Int32)).unique("step", keep="first", maintain_order=True)


def _totals(steps: pl.DataFrame, calls: pl.DataFrame, unit_ns: int) -> pl.DataFrame:
    """Rows of `communication_totals`."""
    of_steps = steps.with_columns(name=pl.lit(None, pl.String))
    both = pl.concat([of_steps.select(CALLS.keys()), calls])
    return COMMUNICATION_TOTALS.conform(
        both.select(
            "step", "name", duration_ns=whole(pl.col("cost") * unit_ns), wait_ns=whole(pl.col("wait") * unit_ns)
        ).drop_nulls("duration_ns")
    )


def _links(links: pl.DataFrame, unit_ns: int, offset: int) -> pl.DataFrame:
    """Rows of `links`."""
    operator = pl.col("name").str.extract(r"^stream_\d+_\d+_(.+)$", 1)
    return LINKS.conform(
        links.select(
            "step",
            "name",
            pl.col("source", "destination") + offset,
            "transport",
            operation=pl.when(operator.is_not_null()).then(operation_of(operator)),
            size_bytes=whole(pl.col("size") * 1000),
            duration_ns=whole(pl.col("time") * unit_ns),
            wait_ns=whole(pl.col("wait") * unit_ns),
        ).drop_nulls(["size_bytes", "duration_ns"])
    )


def _compare_average(rows: pl.DataFrame, steps: pl.DataFrame, path: Path, sink: Sink) -> None:
    """Tell if the last row is neither the mean of the steps, as up to 2.0, nor the last step, as from 2.1."""
    average = rows.filter(pl.col("step") == _AVERAGE)["cost"]
    if average.is_empty() or average[-1] is None:
        return
    stated, known = float(average[-1]), list(_defined(steps))
    if all(abs(stated - value) > _TOLERANCE * max(abs(value), 1e-9) for value in known):
        problem = f"states an average cost of {stated:g}, its steps give {known[0]:g}"
        sink.issue("note", path, problem, "None needed: averages are computed. Some steps may be cut off.")


def _defined(steps: pl.DataFrame) -> Iterator[float]:
    yield float(steps["cost"].sum()) / steps.height
    yield float(steps["cost"][-1])
