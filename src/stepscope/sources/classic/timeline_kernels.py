"""Kernels of a classic profile, and `output_timeline_data`, the file that has them.

Its duration is in ms. Its start is headed ms or us, but from 2.1 on it may be ms under the header of us, so the unit is
found by what fits: the steps, or else that kernels of a stream run one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise
from math import isfinite
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.communication_names import OPERATOR
from stepscope.sources.csv_files.heading import header_of, raw_rows
from stepscope.sources.csv_files.layout import Field, FileLayout, Kind, column_key, order
from stepscope.sources.csv_files.reading import read_csv_parts
from stepscope.sources.windows import around, span_of
from stepscope.tables import KERNELS, STEPS
from stepscope.tables.steps import WHOLE_RECORDING

MOVES = r"(?i)memcpy|memset"
_NUMBER = r"-op\d+$"
_SAMPLE = 500
_TO_NS: dict[Kind, float] = {"time": 1e3, "time_ms": 1e6}


class KernelRows:
    """Writes kernels as they come; `steps` in order of start, None if there are none, give them theirs."""

    def __init__(self, steps: pl.DataFrame | None, sink: Sink) -> None:
        self._steps = None if steps is None else steps.select("step", first_ns="start_ns", last_ns="end_ns")
        self._sink = sink
        self.rows = 0
        self.total_ns = 0
        self.operators_ns = 0
        """The same without communication, as summaries of Ascend devices sum it."""
        self.steps: set[int] = set()
        """Steps in which kernels were recorded."""
        self.span: tuple[int, int] | None = None

    def add(self, kernels: pl.DataFrame) -> None:
        """Write some kernels: `start_ns`, `duration_ns`, `name`, and `kind`, `type`, `core`, `stream` if known."""
        if kernels.is_empty():
            return
        type_ = pl.col("name").str.split("/").list.last().str.replace(_NUMBER, "")
        if "type" in kernels.columns:
            type_ = pl.coalesce("type", type_)
        kernels = kernels.sort("start_ns").with_columns(type=type_)
        kind = (
            pl.when(pl.col("type").str.contains(OPERATOR))
            .then(pl.lit("communication"))
            .when(pl.col("type").str.contains(MOVES))
            .then(pl.lit("memory"))
            .otherwise(pl.lit("compute"))
        )
        kernels = kernels.with_columns(kind=pl.coalesce("kind", kind) if "kind" in kernels.columns else kind)
        kernels = self._with_steps(kernels).with_columns(kernel=pl.int_range(self.rows, self.rows + pl.len()))
        self._sink.write(KERNELS, kernels)
        self.rows += kernels.height
        self.total_ns += int(kernels["duration_ns"].sum())
        self.operators_ns += int(kernels.filter(pl.col("kind") != "communication")["duration_ns"].sum())
        self.span = around([self.span, span_of(kernels)])

    def _with_steps(self, kernels: pl.DataFrame) -> pl.DataFrame:
        if self._steps is None:
            return kernels.with_columns(step=pl.lit(0, pl.Int32))
        found = kernels.join_asof(self._steps, left_on="start_ns", right_on="first_ns")
        found = found.with_columns(step=pl.when(pl.col("start_ns") < pl.col("last_ns")).then("step"))
        self.steps.update(found["step"].drop_nulls().unique().to_list())
        return found.drop("first_ns", "last_ns")


def whole_recording(span: tuple[int, int]) -> pl.DataFrame:
    """One step 0 for all of a recording without steps."""
    window = {"window_start_ns": span[:1], "window_end_ns": span[1:], "window": [WHOLE_RECORDING]}
    return STEPS.frame(step=[0], start_ns=span[:1], end_ns=span[1:], **window)


def read_kernels(path: Path, steps: pl.DataFrame | None, types: pl.DataFrame, rows: KernelRows, sink: Sink) -> None:
    """Read `output_timeline_data` into `rows`; a unit other than that of the header becomes an issue.

    `types` has `name` and `type` of operators, once each, as the file has names only.
    """
    unit = _unit(path, steps, sink)
    if unit is None:
        problem = "its clock differs from that of the step trace, so its kernels are left out"
        sink.issue("note", path, problem, "Nothing to do if both belong to one profile.", place="kernels")
        return
    for part in read_csv_parts(path, _layout(unit), sink):
        rows.add(part.join(types, on="name", how="left", maintain_order="left"))


def _layout(unit: Kind) -> FileLayout:
    return FileLayout(
        fields=(
            Field("name", "text", ("kernel_name", "op_name", "full_kernel_name", "full_op_name"), required=True),
            Field("stream", "small", ("stream_id",)),
            Field("start_ns", unit, ("start_time",), required=True),
            Field("duration_ns", "ms", ("duration",), required=True),
        ),
        report_cells=True,
        report_empty=True,
        orders=(order("kernel_name,stream_id,start_time,duration"),),
    )


def _unit(path: Path, steps: pl.DataFrame | None, sink: Sink) -> Kind | None:
    """The unit of the starts; None if the kernels match the steps in no unit."""
    headers = header_of(path, _layout("time"))
    keys = [column_key(header) for header in headers]
    headed: Kind = "time_ms" if any("start_time(ms)" in header.replace(" ", "") for header in headers) else "time"
    if not {"start_time", "duration"} <= set(keys):
        return headed
    columns = keys.index("start_time"), keys.index("duration"), keys.index("stream_id") if "stream_id" in keys else 0
    sample = _sample(path, columns)
    if sample and steps is not None and not steps.is_empty():
        found = _by_steps(sample, steps)
    else:
        found = _by_order(sample) or headed
    if found is not None and found != headed:
        words = {"time": "us", "time_ms": "ms"}
        problem = f"start_time is read as {words[found]}, not {words[headed]} as in its header: only this fits the rest"
        sink.issue("note", path, problem, "Nothing to do.", place="line 1")
    return found


def _sample(path: Path, columns: tuple[int, int, int]) -> list[tuple[str, float, float]]:
    """Stream, start and duration of the first kernels that can be read."""
    sample = []
    for row in islice(raw_rows(path, _layout("time")), _SAMPLE):
        try:
            sample.append((row[columns[2]].strip(), float(row[columns[0]]), float(row[columns[1]])))
        except (ValueError, IndexError):
            continue
    return [kernel for kernel in sample if isfinite(kernel[1]) and isfinite(kernel[2])]


def _by_steps(sample: Sequence[tuple[str, float, float]], steps: pl.DataFrame) -> Kind | None:
    """The unit in which most kernels are near the steps; None if there is none."""
    first, last = steps.select(pl.min("start_ns"), pl.max("end_ns")).row(0)
    room = last - first
    for unit, factor in _TO_NS.items():
        if 2 * sum(first - room <= start * factor <= last + room for _, start, _ in sample) >= len(sample):
            return unit
    return None


def _by_order(sample: Sequence[tuple[str, float, float]]) -> Kind | None:
    """ms if, read as us, most kernels would overlap the previous one on their stream; otherwise None."""
    ordered = sorted(sample)
    pairs = [(a, b) for a, b in pairwise(ordered) if a[0] == b[0]]
    overlapping = sum(b[1] - a[1] < a[2] * 1e3 * 0.9 for a, b in pairs)
    return "time_ms" if pairs and overlapping > len(pairs) / 2 else None
