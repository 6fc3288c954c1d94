"""`hccl_raw`: what communication cost in each step, in all and by call, and what went over each link."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import Sink
from stepscope.sources.classic.average_rows import step_numbers
from stepscope.sources.classic.call_cells import CALLS, read_cells
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.ranks import offset_of, read_info
from stepscope.sources.classic.step_trace import peek_steps
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.csv_files.values import whole
from stepscope.sources.kineto.communication import operation_of
from stepscope.tables import COMMUNICATION_TOTALS, LINKS

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
_AVERAGE = "-"
_TOLERANCE = 0.01
_ROUNDING = 1e-4
"""Relative; the figures have four decimals."""
_STEP = r"^\d{1,9}$"
_MS, _US = 1_000_000, 1_000
_UNITS = {_MS: "ms", _US: "us"}
_MOST_STEPS = 20.0
"""No more communication and waiting than this many times the step; streams do overlap."""
_VERSION = re.compile(r"(\d+)\.(\d+)")


def write_calls(files: RankFiles, sink: Sink) -> None:
    """Write `communication_totals` and `links` of each step: totals without a name, and each call by its name.

    Times are ms, as MindSpore wrote until 2.0, or us, as from 2.1 under the same headers; sizes are KB of 1000 bytes.
    Bandwidths are not taken: those of a step are the sum of its calls'. The last row, an average or a copy of the last
    step by the version, is compared and not stored.

    Raises:
        UnreadableInput: If the file has no row that can be read.
    """
    path = files.one("calls")
    rows = read_csv(path, HCCL_RAW, sink)
    if path is None or rows is None:
        return
    rows = _marked(rows)
    steps = _steps(rows, path, sink)
    if steps.is_empty():
        raise UnreadableInput(path, "has no row for a step", "Run the profiler's analysis of this rank again")
    calls, links = read_cells(steps, path, sink)
    unit_ns = _unit_of(files, path, steps, links, sink)
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


def _unit_of(files: RankFiles, path: Path, steps: pl.DataFrame, links: pl.DataFrame, sink: Sink) -> int:
    """The unit of the times of a file, in ns; reported if the version differs or nothing gives it.

    The file itself goes first: a call's recorded bandwidth is KB/s, or KB/us for SDMA where times are us, so it
    is 1000 times size over time for ms and once (or a million times) that for us. Then the version counts, unless the
    communication of a step would then take many times as long as the step.
    """
    by_version, own = _by_version(files), _by_bandwidth(links)
    unit = own or by_version or _MS
    ratio = _steps_long(files, steps, unit) if own is None and unit == _MS else None
    if ratio is not None and ratio > _MOST_STEPS:
        unit = _US
    if unit == by_version or (by_version is None and own is not None):
        return unit
    read_as = f"its times are read as {_UNITS[unit]}"
    if own and by_version is not None:
        problem = f"{read_as} to match its bandwidths; its version writes {_UNITS[by_version]}"
    elif by_version is not None:
        problem = f"{read_as}: in {_UNITS[by_version]}, they would be {ratio:.0f} steps long"
    elif unit == _US:
        problem = f"{read_as}: in ms, they would be {ratio:.0f} steps long"
    else:
        problem = f"{read_as}; without a version, they could be us"
    sink.issue("note", path, problem, "Keep profiler_info with the file: it has the version that wrote it")
    return unit


def _by_version(files: RankFiles) -> int | None:
    """ms until 2.0, us from 2.1; ms in what this tool exports, which names the framework."""
    info = read_info(files)
    if info.get("framework"):
        return _MS
    match = _VERSION.match(str(info.get("ms_version") or ""))
    if match is None:
        return None
    return _US if (int(match[1][:6]), int(match[2][:6])) >= (2, 1) else _MS


def _by_bandwidth(links: pl.DataFrame) -> int | None:
    """The unit that the bandwidths of calls imply; those of whole steps are sums and imply none."""
    of_calls = links.filter(pl.col("name").is_not_null() & (pl.col("time") > 0) & (pl.col("size") > 0))
    factor = of_calls.select((pl.col("stated") * pl.col("time") / pl.col("size")).median()).item()
    if factor is None:
        return None
    units = {1000.0: _MS, 1.0: _US, 1e6: _US}
    return next((unit for value, unit in units.items() if abs(factor - value) < 0.01 * value), None)


def _steps_long(files: RankFiles, steps: pl.DataFrame, unit: int) -> float | None:
    """Median communication of a step in lengths of a step; null if no step is known."""
    length = peek_steps(files).select((pl.col("end_ns") - pl.col("start_ns")).median()).item()
    spent = steps.select((pl.col("cost") + pl.col("wait").fill_null(0)).median()).item()
    if length is None or length <= 0 or spent is None:
        return None
    return float(spent) * unit / float(length)


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
    names = links["name"].drop_nulls().unique()
    operator = names.str.extract(r"^stream_\d+_\d+_(.+)$", 1)
    operations = pl.select(pl.when(operator.is_not_null()).then(operation_of(pl.lit(operator)))).to_series()
    return LINKS.shaped(
        links.select(
            "step",
            "name",
            pl.col("source", "destination") + offset,
            "transport",
            operation=pl.col("name").replace_strict(names, operations, default=None, return_dtype=pl.String),
            size_bytes=whole(pl.col("size") * 1000),
            duration_ns=whole(pl.col("time") * unit_ns),
            wait_ns=whole(pl.col("wait") * unit_ns),
        ).drop_nulls(["size_bytes", "duration_ns"])
    )


def _compare_average(rows: pl.DataFrame, steps: pl.DataFrame, path: Path, sink: Sink) -> None:
    """Report a last row that is neither the mean of the steps, as up to 2.0, nor the last step, as from 2.1."""
    average = rows.filter(pl.col("step") == _AVERAGE)["cost"]
    if average.is_empty() or average[-1] is None:
        return
    stated = float(average[-1])
    mean, last = float(steps["cost"].sum()) / steps.height, float(steps["cost"][-1])
    if all(abs(stated - value) > _TOLERANCE * max(abs(value), 1e-9) for value in (mean, last)):
        problem = f"gives an average cost of {stated:g}, but its steps average {mean:g}"
        sink.issue("note", path, problem, "Nothing to do: averages are computed. Some steps may be missing.")
