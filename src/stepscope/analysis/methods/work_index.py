"""What is looked up in the work of a job whenever some of it is named, e.g. by `NamedWork`: the same for all names."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.methods.job_graph import ENTRY, WHOLE, JobGraph

_OF_CALLS = {
    **{"rank": pl.Int32, "collective": pl.Int64, "step": pl.Int32, "group": pl.String, "sequence": pl.Int64},
    **{"operation": pl.String, "name": pl.String, "size_bytes": pl.Int64, "members": pl.Int32},
    **{"transmit_ns": pl.Int64, "point_to_point": pl.Boolean},
}


@dataclass(frozen=True)
class WorkIndex:
    """The nodes of a job by what they are.

    Args:
        calls: The nodes that are calls, in order: `node`, and columns of `arrival`, null if it does not have the call.
            Entries are none, as they take no time.
        names: Each name of nodes once.
        name: Number of the name of each node in `names`; null if it has none.
        is_own: Whether each node is no part of a call.
        unmatched: Whether each node is a call with members that were not recorded.
    """

    calls: pl.DataFrame
    names: pl.Series
    name: pl.Series
    is_own: pl.Series
    unmatched: pl.Series


def work_index(graph: JobGraph, arrival: pl.DataFrame | None) -> WorkIndex:
    """Look through the work of a job.

    Args:
        graph: The job.
        arrival: Its calls, as the analysis of that name; None if there are none.
    """
    rows = graph.nodes.select("rank", "collective", "kind", "part").with_columns(
        node=pl.int_range(pl.len(), dtype=pl.Int64)
    )
    nodes = rows.filter(pl.col("collective").is_not_null(), pl.col("part") != ENTRY).select(
        "rank", "collective", "node"
    )
    known = pl.DataFrame(schema={**_OF_CALLS, "group_size": pl.Int32})
    if arrival is not None:
        known = arrival.select(list(known.schema))
    calls = nodes.join(known, on=["rank", "collective"], how="left", maintain_order="left")
    alone = rows.select((pl.col("kind") == "communication") & (pl.col("part") == WHOLE)).to_series()
    partly = calls["node"].filter(calls["members"] < calls["group_size"])
    names = graph.nodes["name"].drop_nulls().unique(maintain_order=True)
    numbered = names.to_frame().with_row_index("number")
    number = graph.nodes.select("name").join(numbered, on="name", how="left", maintain_order="left")["number"]
    is_own = rows["collective"].is_null()
    return WorkIndex(calls.drop("group_size"), names, number, is_own, alone.scatter(partly, values=True))
