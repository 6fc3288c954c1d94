"""How much shorter calls are if some of the links that they use are as fast as typical ones."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.job_graph import ENTRY, HUB

ENDS = ("first", "second", "transport")
"""What names a link, both directions together: `first` is the lower rank."""

_TRANSFERS = ("send", "recv")
_CALLS = ["step", "group", "operation", "sender", "receiver"]
"""Calls whose links are recorded together: of transfers, those from one rank to another."""


_AMONG = ["step", "group"]
"""Links whose calls may be those of a slow one."""


def between_ranks(links: pl.LazyFrame) -> pl.DataFrame:
    """Rows of `links` that are totals of a link between different ranks, with its ends (`first`, `second`): the columns
    that are compared. There may be millions of them. What ranks with steps move outside of these is left out."""
    return _between_ranks(links).collect()


def beside(links: pl.LazyFrame, slow: pl.DataFrame) -> pl.DataFrame:
    """The rows of `between_ranks` of the groups and steps in which slow links are used: few of millions, of which only
    some are in memory at a time.

    Args:
        links: The table.
        slow: Links (`ENDS`), each in a `step`.
    """
    rows = _between_ranks(links)
    wanted = slow.select(*ENDS, "step").unique()
    used = [
        batch.join(wanted, on=[*ENDS, "step"], how="semi", nulls_equal=True).select(_AMONG).unique()
        for batch in batches(rows.select(*ENDS, *_AMONG))
    ]
    groups = pl.concat(used).unique()
    found = [
        batch.join(groups, on=_AMONG, how="semi", nulls_equal=True, maintain_order="left") for batch in batches(rows)
    ]
    return pl.concat(found)


def _between_ranks(links: pl.LazyFrame) -> pl.LazyFrame:
    marked = links.group_by("rank").agg(has_steps=pl.col("step").count() > 0, has_others=pl.col("step").has_nulls())
    some = marked.filter(pl.col("has_steps") & pl.col("has_others")).collect(engine="streaming")["rank"]
    return links.filter(
        pl.col("step").is_not_null() | ~pl.col("rank").is_in(some.to_list()),
        (pl.col("source") != pl.col("destination"))
        & (pl.col("transport") != "LOCAL")
        & (pl.col("duration_ns") > 0)
        & (pl.col("size_bytes") > 0)
        & pl.col("name").is_null(),
    ).select(
        *("step", "group", "operation", "source", "destination", "transport", "size_bytes", "duration_ns"),
        first=pl.min_horizontal("source", "destination"),
        second=pl.max_horizontal("source", "destination"),
    )


def steps_of(links: pl.LazyFrame) -> int:
    """In how many steps anything went over links between different ranks; if none is known, one."""
    found: int = _between_ranks(links).select(pl.col("step").drop_nulls().n_unique()).collect(engine="streaming").item()
    return max(found, 1)


class LinkCuts:
    """The calls of a job and the links that they use.

    The links of a call work side by side, so it lasts as long as its slowest link. What recorded links take together in
    a step, for the calls of a group and operation, is shared among these calls in proportion to their transmission.

    Args:
        nodes: Nodes of the job's graph.
        arrival: Its calls, as the analysis of that name.
        rows: Result of `beside` for these links.
        mended: `suspect` (a number), `first`, `second`, `transport`, `step`, `ratio`: the share of its time in that
            step that a link of the suspect needs as a typical link.
    """

    def __init__(self, nodes: pl.DataFrame, arrival: pl.DataFrame, rows: pl.DataFrame, mended: pl.DataFrame) -> None:
        used = rows.with_row_index("row").with_columns(**_ends("source", "destination"), operation=_operation())
        slow = used.join(mended.select(*ENDS, "step").unique(), on=[*ENDS, "step"], how="semi", nulls_equal=True)
        struck = used.join(slow.select(_CALLS).unique(), on=_CALLS, how="semi", nulls_equal=True)
        struck = struck.with_columns(pl.struct(_CALLS).rank("dense").alias("key"))
        self._mended = struck.join(mended, on=[*ENDS, "step"], nulls_equal=True).select(
            "suspect", "row", "key", "ratio", "duration_ns"
        )
        self._used = struck.select("row", "key", "duration_ns")
        self._nodes = _of_calls(nodes, arrival, struck.select("key", *_CALLS).unique("key"))
        known = self._mended.join(self._nodes, on="key", how="semi")
        self.suspects = frozenset(known["suspect"].unique().to_list())
        """Those of which it is known which calls use their links."""

    def of(self, suspects: Iterable[int]) -> tuple[pl.Series, pl.Series]:
        """Nodes, and by how many ns each is shorter, if the links of these suspects are as fast as typical ones."""
        chosen = self._mended.filter(pl.col("suspect").is_in(sorted(suspects)))
        ratios = chosen.group_by("row").agg(pl.col("ratio").min())
        then = pl.col("duration_ns") * pl.col("ratio").fill_null(1.0)
        now = pl.col("duration_ns").max()
        keys = (
            self._used.join(chosen.select("key").unique(), on="key", how="semi")
            .join(ratios, on="row", how="left")
            .group_by("key")
            .agg(now_ns=now, lost_ns=now - then.max())
        )
        found = self._nodes.join(keys, on="key", maintain_order="left")
        share = pl.min_horizontal(1.0, pl.col("lost_ns") / pl.max_horizontal("now_ns", "together_ns"))
        cut = pl.min_horizontal((pl.col("sent_ns") * share).round().cast(pl.Int64), "length_ns")
        found = found.select("node", cut=cut).filter(pl.col("cut") > 0)
        return found["node"], found["cut"]


def _ends(source: str, destination: str) -> dict[str, pl.Expr]:
    """The two ranks of transfers; null for other calls."""
    transfer = pl.when(pl.col("operation").is_in(_TRANSFERS))
    return {name: transfer.then(end) for name, end in (("sender", source), ("receiver", destination))}


def _operation() -> pl.Expr:
    """The operation; the same for both sides of a transfer."""
    return pl.when(pl.col("operation").is_in(_TRANSFERS)).then(pl.lit("transfer")).otherwise("operation")


def _of_calls(nodes: pl.DataFrame, arrival: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """The nodes in which calls transmit: `node`, `key`, `length_ns`, `sent_ns` (of the call), `together_ns` (of all
    calls of the key)."""
    alone = pl.when(pl.col("members") < 2).then("rank")  # it matches no other rank's call
    calls = arrival.with_columns(alone=alone).with_columns(
        call=pl.struct("group", "sequence", "alone").rank("dense"),
        sent=pl.coalesce("transmit_ns", pl.col("end_ns") - pl.col("start_ns")),
    )
    sends, receives = (pl.col("rank").filter(pl.col("operation") == side).first().over("call") for side in _TRANSFERS)
    calls = calls.with_columns(source=sends, destination=receives)
    calls = calls.with_columns(**_ends("source", "destination"), operation=_operation())
    rows = calls.join(keys, on=_CALLS, nulls_equal=True, maintain_order="left")
    sums = rows.group_by("call", "key", "alone").agg(sent_ns=pl.col("sent").min())
    sums = sums.with_columns(together_ns=pl.col("sent_ns").sum().over("key", "alone"))
    sent = nodes.with_row_index("node").filter(pl.col("collective").is_not_null() & ~pl.col("part").is_in([ENTRY, HUB]))
    return (
        sent.select("node", "rank", "collective", length_ns=pl.col("end_ns") - pl.col("start_ns"))
        .join(rows.select("rank", "collective", "call", "key"), on=["rank", "collective"], maintain_order="left")
        .join(sums.select("call", "key", "sent_ns", "together_ns"), on=["call", "key"], maintain_order="left")
        .select("node", "key", "length_ns", "sent_ns", "together_ns")
    )
