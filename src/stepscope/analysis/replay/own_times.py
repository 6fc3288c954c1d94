"""How long each rank was busy with its own work in each step, by kind, and which ranks can be compared."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.extra_work import EXTRA, apart
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.replay.forward_only import forward_only
from stepscope.analysis.replay.work import HOST, MARKED, ON_HOST
from stepscope.analysis.replay.work import KINDS as OF_WORK
from stepscope.tables import OPERATORS
from stepscope.tables.base import Column

KINDS = (*OF_WORK, EXTRA)
"""Kinds of own work: those of `work`, and computing that other ranks of the program do not do (`extra_pieces`)."""

COLUMNS = columns(
    "rank step",
    meaning("kind", "What it is.", values=KINDS),
    Column("own_ns", "int64", "Sum of its pieces of `work`, without waiting for other ranks."),
    Column("pieces", "int64", "Number of pieces."),
    Column("program", "int32", "Lowest of the ranks that compute and call the same: only these are compared."),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True)
def own_times(
    alike_ranks: pl.DataFrame,
    extra_pieces: pl.DataFrame,
    work: pl.DataFrame,
    operators: pl.LazyFrame | None,
    marks: pl.DataFrame | None,
    steps: pl.LazyFrame,
    slices: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Sum each rank's own work by step and kind: one row per rank, step and kind; 0 for kinds that only others have.

    Calls are left out: their time depends on other ranks. If a step's operators were not recorded, what is not marked
    is unknown: its rows are missing. Of a CPU without any, only phases show when it computes, and it may wait for other
    ranks in them, so how long it computes is unknown, unless only forward passes are marked (`forward_only`): the waits
    in these are recorded calls. What its host did is left out of a rank of whose host less was
    recorded than of others. What a rank computes by design and typical ranks of its program do not (`extra_pieces`) is
    of a kind of its own.
    """
    rows = apart(
        work.filter(pl.col("step").is_not_null() & ~pl.col("kind").is_in(["communication", "waiting"])), extra_pieces
    )
    sums = rows.group_by("rank", "step", "kind").agg(
        own_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(), pieces=pl.len().cast(pl.Int64)
    )
    every = rows.select("rank", "step").unique().join(sums.select("kind").unique(), how="cross")
    found = (
        every.join(sums, on=["rank", "step", "kind"], how="left")
        .with_columns(pl.col("own_ns", "pieces").fill_null(0))
        .join(_unknown(steps), on=["rank", "step", "kind"], how="anti")
    )
    seen = [*ranks_of(OPERATORS.or_empty(operators)), *([] if marks is None else marks["rank"].unique().to_list())]
    unseen = ~pl.col("rank").is_in(seen)
    by_phases = _by_phases(rows, operators)
    known = forward_only(_bare(rows, operators), slices, found, work)
    in_phases = (pl.col("kind") == "computing") & pl.col("rank").is_in(by_phases)
    uneven = pl.col("kind").is_in(ON_HOST) & unseen & ~unseen.all().over("program")
    return (
        found.join(alike_ranks.select("rank", "program", "launching"), on="rank", how="left")
        # What a host does does not depend on shapes.
        .with_columns(program=pl.when(pl.col("kind").is_in(ON_HOST)).then("launching").otherwise("program"))
        .join(known, on=["rank", "step"], how="left")
        .filter(~uneven & pl.when("is_light").then(_is_known()).otherwise(~in_phases))
        .select(names(COLUMNS))
        .sort("rank", "step", "kind")
    )


def _is_known() -> pl.Expr:
    """Whether the time of a kind is known of a rank of which only forward passes are marked: without recorded calls,
    the rest of the step may be waiting."""
    kind = pl.col("kind")
    return pl.when(kind == "computing").then("forward_known").when(kind == "dispatch").then("has_calls").otherwise(True)


def _by_phases(rows: pl.DataFrame, operators: pl.LazyFrame | None) -> list[int]:
    """The ranks that compute on their host and of which no operators were recorded."""
    on_host = rows.filter((pl.col("kind") == "computing") & (pl.col("lane") == HOST))["rank"].unique().to_list()
    return sorted({*on_host} - {*ranks_of(OPERATORS.or_empty(operators))})


def _bare(rows: pl.DataFrame, operators: pl.LazyFrame | None) -> list[int]:
    """The ranks of which neither operators nor kernels were recorded."""
    on_device = rows.filter((pl.col("kind") == "computing") & (pl.col("lane") != HOST))["rank"].unique().to_list()
    return sorted({*rows["rank"].unique().to_list()} - {*on_device, *ranks_of(OPERATORS.or_empty(operators))})


def _unknown(steps: pl.LazyFrame) -> pl.DataFrame:
    """The kinds of work of steps without recorded operators that no mark shows: `rank`, `step`, `kind`."""
    unmarked = pl.DataFrame({"kind": [kind for kind in KINDS if kind not in MARKED.values()]})
    return steps.filter(~pl.col("recorded")).select("rank", "step").collect().join(unmarked, how="cross")
