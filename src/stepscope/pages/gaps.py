"""The longest gaps of each rank: what the host did in them, and what ended them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.pages.instead import OPERATORS, TOTALS, recorded_by
from stepscope.selection import describe_numbers
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

_IDS = ("process", "thread")
_IN_HOST = ("layer", "during")

_OWN = (
    Column("duration_ns", "int64", "", importance=99),
    Column("mean_ns", "int64", "", title="in {a_step}", importance=99),
    Column("host", "string", "", title="what the host did", importance=98),
    Column("next_name", "string", "", title="ended by", importance=97),
    Column("rank", "int32", "", importance=96),
    Column("ranks", "string", "", importance=96),
    Column("step", "int32", "", importance=80),
    Column("step_ratio", "float64", "", title="share", importance=80),
    Column("cause", "string", "", importance=70),
    Column("start_ns", "int64", "", moment=True, importance=60),
    Column("launched", "string", "", importance=40),
    Column("place", "string", "", importance=39),
    Column("waits_for", "string", "", importance=38),
    Column("before_name", "string", "", importance=30),
    Column("mostly", "string", "", importance=29),
    *(Column(name, "int64", "", importance=20) for name in ("ahead_ns", "count", "total_ns", "longest_ns")),
    *(Column(name, "int64", "", importance=19) for name in ("steps", "of_steps")),
)
"""Importance on narrow screens: what a gap is, what the host did, and what ended it."""


def _longest(run: Run, gaps: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """The longest gaps of all ranks first, with the layer and the range of the host in one column."""
    import polars as pl

    ordered = gaps.sort(-pl.col("duration_ns"), "rank", "start_ns")
    places = ["rank", "step", "duration_ns", "cause", "host", "next_name"]
    return Derived(_first(ordered.with_columns(host=_host()), places), columns=_OWN)


def _recurring(run: Run, gaps: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Gaps at the same place on several ranks together, the most expensive first."""
    import polars as pl

    place = ["cause", "before_name", "next_name"]
    ordered = gaps.sort(-pl.col("mean_ns"), "rank", *place, nulls_last=True)
    same = ordered.group_by(place, maintain_order=True)
    over_ranks = ["mean_ns", "step_ratio", "count", "total_ns", "longest_ns"]
    firsts = same.agg(pl.exclude("rank", *over_ranks).first(), number=pl.col("rank"))
    means = same.agg(
        pl.col("mean_ns", "count", "total_ns").mean().round().cast(pl.Int64),
        pl.col("step_ratio").mean(),
        pl.col("longest_ns").max(),
    )
    found = pl.concat([firsts, means.select(over_ranks)], how="horizontal").sort(
        -pl.col("mean_ns") * pl.col("number").list.len(), *place, nulls_last=True
    )
    named = [describe_numbers(ranks) for ranks in found["number"].to_list()]
    rows = found.drop("number").with_columns(pl.Series("ranks", named, dtype=pl.String), host=_host())
    more = ", mean of the ranks" if gaps["rank"].n_unique() > 1 else ""
    return Derived(_first(rows, ["ranks", "mean_ns", "step_ratio", "cause", "host", "next_name"]), more, columns=_OWN)


def _first(rows: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """The rows with these columns first."""
    return rows.select(*columns, *(name for name in rows.columns if name not in columns))


def _host() -> pl.Expr:
    """Layer and range in one text, e.g. `runtime: cudaMalloc`."""
    import polars as pl

    from stepscope.text_columns import filled_in

    layer, during = pl.col("layer"), pl.col("during")
    unknown = layer == "nothing recorded"
    named = pl.when(unknown).then(filled_in("unknown, in {}", during)).otherwise(filled_in("{}: {}", layer, during))
    return pl.when(during.is_null()).then(layer).otherwise(named)


def _none(gaps: pl.DataFrame) -> Iterator[str]:
    if gaps.is_empty():
        yield "No gaps: on every rank, work begins as soon as the work before it has ended."


def _none_recurs(gaps: pl.DataFrame) -> Iterator[str]:
    if gaps.is_empty():
        yield "No gap is between the same work {in_most_steps}."


PAGE = Page(
    "gaps",
    "Show the longest gaps of each rank, in which nothing runs: cause, what the host does and where, what ends them.",
    [
        Section(
            "gaps",
            "Longest gaps",
            takes={"limit": "limit"},
            hidden=(*_IDS, *_IN_HOST, "next_stream", "during_ratio", "mostly_ratio"),
            derived=_longest,
            sentences=_none,
        ),
        Section(
            "recurring_gaps",
            "Gaps between the same work {in_most_steps}",
            hidden=(*_IDS, *_IN_HOST, "next_stream", "during_ratio", "mostly_ratio", "start_ns", "longest_step"),
            derived=_recurring,
            sentences=_none_recurs,
        ),
    ],
    options=[Option("limit", "integer", "Gaps to find on each rank. Default: 20.", "N", minimum=1)],
    more="A gap lasts from the end of all work of a device (of all operators in a CPU-only recording) to the next "
    "work. What the host did is the layer (framework, python, runtime, driver...) and the innermost range that covers "
    "most of the gap; `unknown, in` a range: nothing else was recorded in it. `mostly` is where most of its time goes, "
    "and `place` the line of the script, if Python's stack was recorded. If the next work was launched before the gap, "
    "the host did not cause it.",
    scope="job",
    instead=recorded_by(
        "Record the device as well, e.g. activities=[CPU, CUDA] of PyTorch's profiler",
        OPERATORS,
        TOTALS,
    ),
)
