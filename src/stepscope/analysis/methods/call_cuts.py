"""How much shorter calls are if the groups that make them transmit as fast as typical ones."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.job_graph import ENTRY, HUB


class CallCuts:
    """Calls of a job that take longer than usual, each for one suspect.

    Args:
        nodes: Nodes of the job's graph.
        arrival: Its calls, as the analysis of that name.
        slow: `suspect` (a number), `group`, `sequence`, `transmit_ns`, `typical_ns` of each.
    """

    def __init__(self, nodes: pl.DataFrame, arrival: pl.DataFrame, slow: pl.DataFrame) -> None:
        sent = nodes.with_row_index("node").filter(
            pl.col("collective").is_not_null() & ~pl.col("part").is_in([ENTRY, HUB])
        )
        calls = arrival.filter(pl.col("members") > 1).select("rank", "collective", *CALL)
        less = (pl.col("transmit_ns") - pl.col("typical_ns")).clip(lower_bound=0)
        self._cuts = (
            sent.select("node", "rank", "collective", length_ns=pl.col("end_ns") - pl.col("start_ns"))
            .join(calls, on=["rank", "collective"], maintain_order="left")
            .join(slow.select("suspect", *CALL, less=less), on=CALL, maintain_order="left")
            .select("suspect", "node", cut=pl.min_horizontal("less", "length_ns"))
            .filter(pl.col("cut") > 0)
        )
        self.suspects = frozenset(self._cuts["suspect"].unique().to_list())
        """Those with calls in the graph."""

    def of(self, suspects: Iterable[int]) -> tuple[pl.Series, pl.Series]:
        """Nodes, and by how many ns each is shorter, if the calls of these suspects take as long as typical ones."""
        chosen = self._cuts.filter(pl.col("suspect").is_in(sorted(suspects)))
        return chosen["node"], chosen["cut"]
