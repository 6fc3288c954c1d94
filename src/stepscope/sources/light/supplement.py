"""What light records have besides their marks: calls between ranks with their place in their step."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.json_files import value_in
from stepscope.recording_format.about import About
from stepscope.recording_format.light import call_in
from stepscope.recording_format.marks import COLLECTIVE, CollectiveDetail
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.steps import Steps
from stepscope.sources.kineto.tables import TraceSupplement
from stepscope.sources.light.ranges import DEVICE, detail_of
from stepscope.sources.recording.marks import CALLS, Marks
from stepscope.sources.recording.ranks import group_rows
from stepscope.tables.communication import PART, POINT_TO_POINT, WHOLE

_STEP_OF_CALLS = 1_000_000
"""Calls of a group in one step: fewer than this. The place of a call in its group is its step times this, and its place
in the step."""


class LightSupplement(TraceSupplement):
    """What light records have besides events.

    Args:
        about: The rank.
        marks: Its marks.
        on_device: Ranges that were timed on the device, as `DEVICE`.
    """

    def __init__(self, about: About, marks: Marks, on_device: Sequence[pl.DataFrame]) -> None:
        super().__init__(group_rows(about))
        self._marks = marks
        self._on_device = pl.concat([pl.DataFrame(schema=DEVICE), *on_device])
        self.left_out = 0
        """Calls in a step of which others are missing."""

    def phases(self, steps: Steps, events: Events) -> pl.DataFrame | None:  # noqa: ARG002 - as in the base class
        """From the marks."""
        known = self._marks.phases_of(steps)
        return known if known.height else None

    def calls(self, found: pl.DataFrame, steps: Steps) -> pl.DataFrame:
        """All calls, at the times of the device where these were recorded."""
        marks = self._marks.all_calls()
        if not marks.height:
            return found
        timed = self._on_device.filter(pl.col("kind") == COLLECTIVE)
        hosts = marks.with_columns(end_ns=pl.col("start_ns") + pl.col("duration_ns"))
        alone = hosts.join(timed, left_on=["start_ns", "end_ns"], right_on=["host_start_ns", "host_end_ns"], how="anti")
        rows = pl.concat([_of_host(alone.select(*CALLS), steps), _of_device(timed, steps)], how="diagonal")
        placed = _placed(rows, steps)
        self.left_out = rows.height - placed.height
        return pl.concat([found, placed], how="diagonal_relaxed")


def _of_host(calls: pl.DataFrame, steps: Steps) -> pl.DataFrame:
    return calls.drop("is_async").with_columns(
        on_device=pl.lit(False), step=steps.of(calls["start_ns"]), size_of=_size_of()
    )


def _of_device(timed: pl.DataFrame, steps: Steps) -> pl.DataFrame:
    """Calls that were timed on the device; they belong to the step in which the host launched them."""
    details = [CollectiveDetail.of(value_in(detail_of(call_in(name)))) for name in timed["name"]]
    columns = ("group", "size_bytes", "element_type", "group_size", "peer")
    schema = {name: CALLS[name] for name in columns}
    described = pl.DataFrame([[getattr(one, name) for name in columns] for one in details], schema=schema, orient="row")
    operations = pl.Series("operation", [call_in(name).operation for name in timed["name"]], dtype=pl.String)
    rows = timed.select("start_ns", "duration_ns", "stream").hstack([operations, *described.get_columns()])
    rows = rows.with_columns(
        name="operation", on_device=pl.lit(True), step=steps.of(timed["host_start_ns"]), size_of=_size_of()
    )
    return rows.filter(pl.col("duration_ns") >= 0)


def _size_of() -> pl.Expr:
    """What the payload is of: that of one rank, as in the marks of the recorder."""
    operation = pl.col("operation")
    return (
        pl.when(operation.is_in(["all_gather", "gather"]))
        .then(pl.lit(PART))
        .when(operation.is_in(["reduce_scatter", "all_to_all"]))
        .then(pl.lit(WHOLE))
    )


def _placed(calls: pl.DataFrame, steps: Steps) -> pl.DataFrame:
    """Calls with their place in their group (`recorded`), which is the same on all ranks although these were not
    switched on, or have lost their oldest files, at the same call: it is counted in each step anew.

    The calls of a step are left out if some before them may be missing: in the first step with calls, and in the first
    one after steps without, if it has fewer than the next one; and those before the first step, unless that is step 1.
    """
    if not steps.ranges.height:
        return calls
    numbers = steps.ranges["step"]
    first = int(numbers[0])
    known = calls.sort("start_ns").with_columns(step=pl.col("step").fill_null(first - 1 if first == 1 else -1))
    counts = known.filter(pl.col("step") >= 0).group_by("step").len("calls")
    counted = pl.DataFrame({"step": numbers}).join(counts, on="step", how="left", maintain_order="left")
    calls_in, before, after = (
        pl.col("calls").fill_null(0),
        pl.col("calls").shift(1).fill_null(0),
        pl.col("calls").shift(-1),
    )
    begins = (before == 0) & (pl.col("step") != 1)
    partial = counted.filter(begins & (calls_in < after.fill_null(0)))["step"]
    whole = known.filter(~pl.col("step").is_in(partial.implode()) & (pl.col("step") >= 0))
    between_two = pl.col("operation").is_in(POINT_TO_POINT) & pl.col("group").is_not_null()
    place = pl.int_range(pl.len(), dtype=pl.Int64).over("group", "on_device", between_two.alias("between"), "step")
    return whole.with_columns(recorded=pl.col("step").cast(pl.Int64) * _STEP_OF_CALLS + place)
