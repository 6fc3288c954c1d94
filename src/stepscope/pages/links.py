"""The links between ranks: what went over each, and how fast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.pages.instead import CALLS, recorded_by
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

LINK_OPTIONS = (
    Option("source", "text", "Show only links from these ranks, e.g. 0,2-3.", "LIST", columns=("source",)),
    Option("destination", "text", "Show only links to these ranks.", "LIST", columns=("destination",)),
    Option("transport", "text", "Show only links of this transport, e.g. HCCS.", "NAME", columns=("transport",)),
)
FILTERS = {option.name: option.name for option in LINK_OPTIONS}

BY_STEP = Option("by_step", "flag", "Show each step, not only the mean step.", "", default=False)


def of_mean(run: Run, rows: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """The rows; whether they are of the mean step."""
    is_mean = rows.height and not rows["step"].count() and (rows["steps"] > 1).any()
    return Derived(rows, ", mean of all its steps" if is_mean else "")


MOST = 16
"""Ranks of which a matrix is shown."""


def _matrix(run: Run, rows: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Bandwidth from each rank (row) to each other (column); nothing if there are too many."""
    import polars as pl

    pairs = rows.explode("destinations", "sizes_bytes", "durations_ns").filter(pl.col("durations_ns") > 0)
    ranks = _ranks(pairs["source"], pairs["destinations"])
    if len(ranks) > MOST:
        return Derived(pl.DataFrame(schema={"source": pl.Int32}))
    rates = pairs.with_columns(rate=pl.col("sizes_bytes") / pl.col("durations_ns") * 1e9)
    cells = {(source, end): rate for source, end, rate in rates.select("source", "destinations", "rate").iter_rows()}
    table = {"source": [rank for rank in ranks if rank in {*pairs["source"]}]}
    names = {rank: f"to_{rank}_bytes_per_s" for rank in ranks if rank in {*pairs["destinations"]}}
    columns = {name: [cells.get((source, rank)) for source in table["source"]] for rank, name in names.items()}
    declared = [Column("source", "int32", "", title="from", importance=90)]
    declared += [Column(name, "float64", "", title=f"to {rank}") for rank, name in names.items()]
    schema = {"source": pl.Int32, **dict.fromkeys(columns, pl.Float64)}
    return Derived(pl.DataFrame({**table, **columns}, schema=schema), ", bytes over time", columns=declared)


def _ranks(*ends: pl.Series) -> list[int]:
    """The ranks at the ends of links, in order; a job of 1,024 may have a million links."""
    return sorted({rank for ranks in ends for rank in ranks.unique()})


def _too_many(rows: pl.DataFrame) -> Iterator[str]:
    count = len(_ranks(rows["source"], rows["destinations"].explode()))
    if count > MOST:
        yield (
            f"Bandwidth between {count} ranks is too wide for a screen: "
            f"choose up to {MOST} with «--ranks», or «--json»."
        )


PAGE = Page(
    "links",
    "Show the links between ranks: bytes, time and bandwidth by link and transport, and which are slow.",
    [
        Section("link_totals", "Links", derived=of_mean, takes={"by_step": "by_step", **FILTERS}),
        Section(
            "link_matrix", "Bandwidth between ranks", derived=_matrix, takes=FILTERS, rows=MOST, sentences=_too_many
        ),
        Section("transport_totals", "Transports", takes=FILTERS),
        Section("slow_links", "Slow links", rows=8),
    ],
    options=[*LINK_OPTIONS, BY_STEP],
    more=f"Bandwidth is bytes over time, never a sum of recorded rates. The matrix is shown for up to {MOST} ranks.",
    scope="job",
    instead=recorded_by(
        "Ascend's profilers record links (from profiler level 1 on; in MindSpore with profile_communication=True)",
        CALLS,
    ),
)
