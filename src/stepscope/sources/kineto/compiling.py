"""Where a compiler ran: what operators did within is tracing, with tensors that hold no data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.distinct import Distinct
from stepscope.sources.kineto.events import Framed

RANGES = r" \(dynamo_timed\)$|^(dynamo|entire_frame_compile|entire_backward_compile)$"
"""Names of torch.compile's compiler stages; the first form is used by all versions."""

_FRAMES = r"torch/_dynamo/convert_frame\.py\(\d+\): (__call__|_convert_frame|_compile)$"
"""Python functions that only run to compile, for recordings with stacks and without the ranges."""

_COLUMNS = ["name", "start_ns", "duration_ns", "place"]
_SCHEMA = {"place": pl.Int32, "start_ns": pl.Int64, "end_ns": pl.Int64}


class Compiling:
    """The times of each thread in which it compiled.

    Args:
        ranges: `place`, `start_ns`, `end_ns` of the compiler's ranges, in any order, within each other or not.
    """

    def __init__(self, ranges: pl.DataFrame) -> None:
        reach = pl.col("end_ns").cum_max().shift(1).over("place")
        opens = (pl.col("start_ns") > reach).fill_null(True)
        self._stretches = (
            ranges.sort("place", "start_ns")
            .with_columns(block=opens.cum_sum())
            .group_by("place", "block", maintain_order=True)
            .agg(pl.col("start_ns").first(), compiled_ns=pl.col("end_ns").max())
            .sort("start_ns")
        )

    def holds(self, ranges: pl.DataFrame) -> pl.Series:
        """Whether each range (`start_ns`, `duration_ns`, `place`) lies within compiling on its thread."""
        if not self._stretches.height:
            return pl.repeat(False, ranges.height, dtype=pl.Boolean, eager=True)
        rows = ranges.select("place", "start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns")).with_row_index()
        last = rows.sort("start_ns").join_asof(self._stretches, on="start_ns", by="place", check_sortedness=False)
        inside = (pl.col("end_ns") <= pl.col("compiled_ns")).fill_null(False)
        return last.sort("index").select(inside).to_series()


def find_compiling(events: Framed) -> Compiling:
    """The compiler's ranges of a trace."""
    found = _named(events, ("operator", "annotation"), RANGES)
    return Compiling(found if found.height else _named(events, ("python",), _FRAMES))


def _named(events: Framed, classes: Sequence[str], names: str) -> pl.DataFrame:
    end = pl.col("start_ns") + pl.col("duration_ns")
    parts = [
        frame.filter(Distinct(frame["name"]).matching(names)).select("place", "start_ns", end_ns=end)
        for name in classes
        for frame in events.frames(name, _COLUMNS)
    ]
    return pl.concat([pl.DataFrame(schema=_SCHEMA), *parts])


def report_traced(count: int, path: Path, sink: Sink) -> None:
    """Report how many ranges a compiler's tracing made."""
    if count:
        traced = f"{count} operators ran while torch.compile traced the model"
        remedy = "Nothing to do; record after the first steps to leave compiling out of the recording"
        sink.issue("note", path, f"{traced}; they are not counted as operators of the model", remedy)
