"""`hccl_raw`: what communication cost in each step, in all and by call, and what went over each link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import Sink
from stepscope.sources.classic.average_rows import step_numbers
from stepscope.sources.classic.call_cells import CALLS, read_cells
from stepscope.sources.classic.call_units import unit_of
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.link_ranks import offset_of
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.csv_files.values import whole
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
    ),
    orders=(
        order("step_num,communication_cost,wait_cost,link_info,communication_operator_cost"),
        order("step_num,communication_cost,wait_cost,link_info"),
    ),
)
_ROWS = {"step": pl.String, "cost": pl.Float64, "wait": pl.Float64, "links": pl.String, "operators": pl.String}
_AVERAGE = "-"
_TOLERANCE = 0.01
_ROUNDING = 1e-4
"""Relative; the figures have four decimals."""
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
    rows = _marked(with_schema(rows, _ROWS))
    steps = _steps(rows, path, sink)
    if steps.is_empty():
        raise UnreadableInput(path, "has no row for a step", "Run the profiler's analysis of this rank again")
    calls, links = read_cells(steps, path, sink)
    unit_ns = unit_of(files, steps, links, sink)
    _compare_average(rows, steps, path, sink)
    sink.write(COMMUNICATION_TOTALS, _totals(steps, calls, unit_ns))
    offset = offset_of(files, links, path, sink)
    if offset is not None and links.height:
        sink.write(LINKS, _links(links, unit_ns, offset))


def _steps(rows: pl.DataFrame, path: Path, sink: Sink) -> pl.DataFrame:
    """The rows of steps, with `step` as a number; the average and rows without a number are left out."""
    rows = rows.filter(pl.col("cost").is_finite())
    numbered = rows.filter(pl.col("step").str.contains(_STEP))
    strange = rows.height - numbered.height - rows.filter(pl.col("step") == _AVERAGE).height
    if strange:
        problem = f"{strange} of {rows.height} rows have no step number and are left out"
        sink.issue("error", path, problem, "Copy the file again, or run the profiler's analysis again", lost=strange)
    if numbered.is_empty() and rows.height == 2 and not strange:  # a single step, which is its own average
        numbered = rows.head(1).with_columns(step=pl.lit("1"))
    return numbered.with_columns(pl.col("step").cast(pl.Int32)).unique("step", keep="first", maintain_order=True)


def _marked(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with `-` as the step of the average, also if it is numbered 0.

    Behind steps a 0 can only be that; in front of them it is a step unless its cost is their mean.
    """
    numbers = rows.select(step_numbers(pl.col("step"))).to_series()
    if rows.height < 2 or (numbers == 0).sum() != 1:
        return rows
    at, cost = int((numbers == 0).arg_true()[0]), rows["cost"]
    mean = cost.slice(1).mean()
    is_mean = isinstance(mean, float) and cost[0] is not None and abs(cost[0] - mean) <= _ROUNDING * abs(mean)
    if at != rows.height - 1 and (at or not is_mean):
        return rows
    return rows.with_columns(step=pl.when(pl.int_range(pl.len()) == at).then(pl.lit(_AVERAGE)).otherwise("step"))


def _totals(steps: pl.DataFrame, calls: pl.DataFrame, unit_ns: int) -> pl.DataFrame:
    """Rows of `communication_totals`."""
    of_steps = steps.with_columns(name=pl.lit(None, pl.String))
    both = pl.concat([of_steps.select(CALLS.keys()), calls])
    return COMMUNICATION_TOTALS.shaped(
        both.select(
            "step", "name", duration_ns=whole(pl.col("cost") * unit_ns), wait_ns=whole(pl.col("wait") * unit_ns)
        ).drop_nulls("duration_ns")
    )


def _links(links: pl.DataFrame, unit_ns: int, offset: int) -> pl.DataFrame:
    """Rows of `links`."""
    operator = pl.col("name").str.extract(r"^stream_\d+_\d+_(.+)$", 1)
    return LINKS.shaped(
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
    stated = float(average[-1])
    if not _is_known(stated, steps):
        problem = f"gives an average cost of {stated:g}, but its steps average {next(_defined(steps)):g}"
        sink.issue("note", path, problem, "Nothing to do: averages are computed. Some steps may be missing.")


def _is_known(cost: float, steps: pl.DataFrame) -> bool:
    """Whether a cost is the average of these steps, by either definition."""
    return any(abs(cost - value) <= _TOLERANCE * max(abs(value), 1e-9) for value in _defined(steps))


def _defined(steps: pl.DataFrame) -> Iterator[float]:
    yield float(steps["cost"].sum()) / steps.height
    yield float(steps["cost"][-1])
