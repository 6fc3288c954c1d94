"""How much shorter the transmission of calls would be at the typical speed for their size."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.communication.comparable_calls import SAME, sized_calls
from stepscope.analysis.communication.link_rates import pairs_of, timed_links
from stepscope.analysis.communication.suspected_links import Limits as LinkLimits
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.link_cuts import ENDS, between_ranks
from stepscope.analysis.methods.named_work import NamedWork
from stepscope.analysis.methods.scenario import Change
from stepscope.errors import StepscopeError

ALIKE_FACTOR = 1.05
"""Between bytes sent that count as equal, as sources report bytes of links in rounded MB."""

_CALL = list(CALL)
_LINKED = ["step", "group", "operation"]


def transmission_cuts(work: NamedWork, change: Change, shares: pl.Series) -> pl.Series:
    """How much shorter each node is if the calls that a change names move data at the usual speed.

    Where links were recorded, the calls over slow ones among those named end when they would if these were as fast as
    typical links of their transport. Otherwise, and for calls without links, calls of the same operation, size and
    number of members show what is usual: those in other places, if the change names a place, else all of them.

    Args:
        work: The work of the job.
        change: What is meant.
        shares: The share of each node that is meant.

    Returns:
        Int64, ns, one for each node.

    Raises:
        StepscopeError: If the change is about nothing but calls, and nothing can be compared with these.
    """
    nodes = work.graph.nodes
    calls = work.calls.with_columns(meant=(shares > 0).gather(work.calls["node"]))
    over_links, compared = _over_links(work, change, calls), _compared(work, change, calls)
    known = pl.concat([over_links, compared]).unique(_CALL, keep="first", maintain_order=True)
    meant = calls.filter("meant").select("node", *_CALL)
    found = meant.join(known, on=_CALL)
    named = nodes.filter(shares > 0)["kind"]
    if found.is_empty() and (change.must_be_calls or (named == "communication").all()):
        why = "no other calls of the same operation, size and number of members were recorded"
        if meant.join(calls.drop_nulls("size_bytes"), on=_CALL, how="semi").is_empty():
            why = "the sizes of these calls were not recorded"
        raise StepscopeError(f"{change.text}: {why}, so their usual speed is unknown. Use «--scale» with a factor")
    length = work.graph.simulation.duration_ns.gather(found["node"])
    cut = pl.select(pl.min_horizontal(found["cut_ns"].fill_null(0), length).clip(lower_bound=0)).to_series()
    return pl.repeat(0, nodes.height, dtype=pl.Int64, eager=True).scatter(found["node"], cut)


def _compared(work: NamedWork, change: Change, calls: pl.DataFrame) -> pl.DataFrame:
    """What meant calls take longer than the median of others like them: `group`, `sequence`, `cut_ns`."""
    elsewhere = work.elsewhere(change)
    other = pl.lit(value=True) if elsewhere is None else elsewhere.gather(calls["node"])
    members = calls.with_columns(other=other).filter(pl.col("members") > 1)
    which = members.group_by(_CALL).agg(pl.col("meant").any(), pl.col("other").all())
    sized = sized_calls(members, work.links, work.ranks.lazy(), ALIKE_FACTOR).join(which, on=_CALL)
    typical = sized.filter("other").group_by(SAME).agg(typical_ns=pl.col("transmit_ns").median())
    found = sized.filter("meant").join(typical, on=SAME, nulls_equal=True)
    cut = (pl.col("transmit_ns") - pl.col("typical_ns")).clip(lower_bound=0).round().cast(pl.Int64)
    return found.group_by(_CALL, maintain_order=True).agg(cut_ns=cut.max())


def _over_links(work: NamedWork, change: Change, calls: pl.DataFrame) -> pl.DataFrame:
    """By how much meant calls would be shorter if the named links were as fast as typical ones."""
    nothing = pl.DataFrame(schema={"group": pl.String, "sequence": pl.Int64, "cut_ns": pl.Int64})
    if work.links is None:
        return nothing
    enough = LinkLimits().links
    rows = between_ranks(work.links)
    if rows.is_empty():
        return nothing
    speeds = pairs_of(timed_links(rows, enough), enough).select(*ENDS, mended=pl.col("speed").clip(upper_bound=1.0))
    used = rows.join(speeds, on=ENDS, how="left")
    named = _named_links(work, change)
    mended = pl.when(named).then(pl.col("mended").fill_null(1.0)).otherwise(1.0)
    factors = (
        used.group_by(_LINKED)
        .agg(now=pl.col("duration_ns").max(), then=(pl.col("duration_ns") * mended).max(), named=named.any())
        .filter("named")
    )
    members = calls.filter("meant").group_by(*_CALL, "step", "operation")
    sent = members.agg(pl.col("transmit_ns").min())
    cut = (pl.col("transmit_ns") * (1 - pl.col("then") / pl.col("now"))).round().cast(pl.Int64)
    found = sent.join(factors, on=_LINKED).select(*_CALL, cut_ns=cut)
    return found.group_by(_CALL).agg(pl.col("cut_ns").max()).sort(_CALL)


def _named_links(work: NamedWork, change: Change) -> pl.Expr:
    """Which rows of links (`first`, `second`, `transport`) a change names."""
    named = pl.lit(value=True)
    if "link" in change.where:
        column, one, other = work.ends(change.where["link"], change.text)
        ends = [[one], [other]] if column == "ranks" else [work.ranks_of_host(str(end)) for end in (one, other)]
        there, back = (
            pl.col("first").is_in(a) & pl.col("second").is_in(b) for a, b in ((ends[0], ends[1]), (ends[1], ends[0]))
        )
        named &= there | back
    if "nic" in change.where:
        ranks = work.nic_ranks(change.where["nic"], change.text)
        named &= pl.col("first").is_in(ranks) | pl.col("second").is_in(ranks)
    if "transport" in change.where:
        named &= pl.col("transport").str.to_lowercase() == change.where["transport"].lower()
    return named
