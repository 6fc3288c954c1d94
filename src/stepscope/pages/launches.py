"""How the host of a rank launches its device work, and how much of it waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.pages.instead import KERNELS, TOTALS, recorded_by
from stepscope.pages.over_time import BLOCKS, drawn
from stepscope.pages.sequences import operators_first
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

_STREAM = ("rank", "device", "stream")


def _short(summary: pl.DataFrame) -> Iterator[str]:
    """How much of the work is shorter than its launch."""
    count, short = int(summary["count"].sum()), int(summary["short"].sum())
    if short:
        yield f"{short} of {count} pieces of device work ({short / count:.0%}) take less time than their launch."


def _lengths(run: Run, lengths: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """One row a stream: how many pieces wait over time."""
    import polars as pl

    rows = drawn(lengths, _STREAM, "max_length")
    most = lengths.group_by(_STREAM).agg(pl.col("max_length").max())
    found = rows.join(most, on=list(_STREAM), nulls_equal=True, maintain_order="left")
    own = (
        Column("over_time", "string", "", title="waiting over time"),
        Column("max_length", "int64", "", title="most waiting", importance=90),
    )
    return Derived(found.select("device", "stream", "over_time", "max_length"), columns=own)


def _legend(lengths: pl.DataFrame) -> Iterator[str]:
    most = max(lengths["max_length"].to_list(), default=0)
    yield f"{BLOCKS[0]} none waits, {BLOCKS[-1]} up to {most}: launched and not yet started, the most of each cell."


def _none(outliers: pl.DataFrame) -> Iterator[str]:
    if outliers.is_empty():
        yield "No call and no delay is beyond the limits."


PAGE = Page(
    "launches",
    "Show how the host launches a rank's device work: calls, delays, short kernels, queues, idle streams.",
    [
        Section("launch_summary", "Launches by kind of work", sentences=_short),
        Section("queues", "Launched work that waits, by stream"),
        Section(
            "queue_lengths",
            "Launched work that waits, over time",
            derived=_lengths,
            drawn="over_time",
            sentences=_legend,
        ),
        Section("stream_idle", "Idle time of each stream"),
        Section("kernel_launches", "Launches by kernel", rows=10),
        Section(
            "operator_launches",
            "Kernels that operators launch themselves",
            takes={"shown": "shown"},
            derived=operators_first,
            rows=10,
        ),
        Section("launch_outliers", "Longest calls and delays", takes={"limit": "limit"}, sentences=_none, rows=10),
    ],
    options=[
        Option("limit", "integer", "Calls and delays to find. Default: 50 each.", "N", minimum=1),
        Option("shown", "integer", "Kernels of a sequence to write out; 0 for all. Default: 20.", "N", minimum=0),
    ],
    more="A call is what the host does to launch a piece of work; the delay lasts from its end to the start of "
    "the work. Work that is shorter than its call leaves the device waiting for the host. A stream is idle because the "
    "host launches its next work only after the last has ended (host), for the short time from one kernel to the next "
    "(kernel), or although that work was launched before (other).",
    instead=recorded_by(
        "Launches are in traces of host and device",
        KERNELS,
        TOTALS,
    ),
)
