"""Waits of a host for its device that comparable ranks do not have, e.g. for `.item()` on one rank."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.excess_places import PLACE
from stepscope.analysis.methods.job_graph import SYNCHRONISATION, JobGraph

MORE_FACTOR = 1.5
"""How many times the waits of comparable ranks a rank must have, chosen by us: a full queue also makes hosts wait."""

NOBODY = pl.DataFrame(schema={"rank": pl.Int32, "step": pl.Int32, "node": pl.Int64})

_RANKS = 64
"""Ranks whose launches are counted at a time."""


def extra_waits(graph: JobGraph, cells: pl.DataFrame, programs: pl.DataFrame) -> pl.DataFrame:
    """The waits that only slow ranks have.

    Ranks of a program launch the same work in each step, so a wait is known by the number of launches before it. A wait
    is extra if less than half of the ranks have it, and the rank waits more often than they.

    Args:
        graph: The job.
        cells: `suspect`, `rank`, `step` and `kind` of slow ranks; only those slow at `dispatch` count.
        programs: `rank` and `program` (only ranks of one program can be compared).

    Returns:
        `suspect` and `node`, in order.
    """
    own = cells.filter(pl.col("kind") == "dispatch")
    return of_cells(NOBODY if own.is_empty() else lone_waits(graph, programs, own), cells)


def of_cells(waits: pl.DataFrame, cells: pl.DataFrame) -> pl.DataFrame:
    """The waits (`lone_waits`) of slow ranks; see `extra_waits`."""
    own = cells.filter(pl.col("kind") == "dispatch")
    found = own.join(waits, on=PLACE[:2]).select("suspect", "node")
    return found.unique().sort("suspect", "node")


def lone_waits(graph: JobGraph, programs: pl.DataFrame, among: pl.DataFrame | None = None) -> pl.DataFrame:
    """The waits that comparable ranks do not have.

    Args:
        graph, programs: See `extra_waits`.
        among: Only those of these ranks and steps.

    Returns:
        `rank`, `step`, `node`.
    """
    edges = graph.simulation.edges
    waiting = pl.repeat(value=False, n=graph.nodes.height, dtype=pl.Boolean, eager=True)
    waiting = waiting.scatter(edges.filter(pl.col("why") == SYNCHRONISATION)["node"], values=True)
    waits = graph.nodes.select("rank", "step", "own_start_ns").filter(waiting).with_columns(node=waiting.arg_true())
    if waits.is_empty():
        return NOBODY
    ranks = programs.group_by("rank").agg(pl.col("program").min())  # that of hosts, if shapes differ
    known = ["program", "step"]
    of_rank = graph.nodes.select("rank", "step").drop_nulls().unique().join(ranks, on="rank")
    counts = waits.drop_nulls("step").group_by("rank", "step").agg(waits=pl.len())
    of_rank = of_rank.join(counts, on=["rank", "step"], how="left")
    of_rank = of_rank.with_columns(pl.col("waits").fill_null(0)).with_columns(
        usual=pl.col("waits").median().over(known), ranks=pl.len().over(known)
    )
    more = pl.col("waits") - pl.col("usual")
    often = of_rank.filter((more >= 1) & (pl.col("waits") >= MORE_FACTOR * pl.col("usual"))).with_columns(more=more)
    if among is not None:
        often = often.join(among, on=PLACE[:2], how="semi")
    if often.is_empty():
        return NOBODY
    compared = ranks.join(often, on="program", how="semi")
    placed = _placed(waits.drop_nulls("step"), graph.nodes, compared["rank"]).join(ranks, on="rank")
    shared = placed.with_columns(sharing=pl.col("rank").n_unique().over(*known, "launches"))
    alone = shared.join(often.select("rank", "step", "ranks", "more"), on=["rank", "step"]).filter(
        2 * pl.col("sharing") <= pl.col("ranks")
    )
    first = alone.sort("node").filter(pl.int_range(pl.len()).over("rank", "step") < pl.col("more"))
    return first.select("rank", "step", pl.col("node").cast(pl.Int64))


def _placed(waits: pl.DataFrame, nodes: pl.DataFrame, ranks: pl.Series) -> pl.DataFrame:
    """Waits of some ranks with the number of launches of their rank and step before them, a few ranks at a time."""
    numbers = ranks.unique().sort()
    wanted = nodes.select("rank", "step", "launch_ns", "own_start_ns")
    parts = []
    for at in range(0, len(numbers), _RANKS):
        here = pl.col("rank").is_in(numbers[at : at + _RANKS].implode())
        parts.append(_placed_of(waits.filter(here), wanted.filter(here)))
    return pl.concat(parts)


def _placed_of(waits: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    launched = nodes.select("rank", at="launch_ns").drop_nulls().sort("at")
    launched = launched.with_columns(before=pl.int_range(1, pl.len() + 1).over("rank"))
    begun = nodes.drop_nulls("rank").group_by("rank", "step").agg(at=pl.col("own_start_ns").min()).drop_nulls()

    def counted(rows: pl.DataFrame) -> pl.DataFrame:
        found = rows.sort("at").join_asof(launched, on="at", by="rank", check_sortedness=False)
        return found.with_columns(pl.col("before").fill_null(0))

    firsts = counted(begun).select("rank", "step", first="before")
    asked = counted(waits.select("rank", "step", "node", at="own_start_ns"))
    return asked.join(firsts, on=["rank", "step"]).select(
        "rank", "step", "node", launches=pl.col("before") - pl.col("first")
    )
