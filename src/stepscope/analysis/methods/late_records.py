"""Calls of a CPU whose record ends later than the call: the thread that moves the data writes it when it next runs."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When a host waited."""

    wait_ns: int = limit(50_000, "ns", "hosts pause for a few us between operators, also while a call runs (measured)")
    record_ns: int = limit(1_000_000, "ns", "a record ends up to this after its call (measured, on two busy cores)")


LIMITS = Limits()


def ended_calls(
    nodes: pl.DataFrame, members: pl.DataFrame, limits: Limits = LIMITS
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """End calls where their host went on.

    A host that waits while its call runs, and goes on shortly after the call had ended on another rank, waited for it,
    although its own record of the call ends later. So does one that goes on just before its own record ends, if no
    other call had just ended.

    Args:
        nodes: `node`, `rank`, `lane`, `kind`, `start_ns`, `end_ns` (common clock).
        members: `node`, `call`, `entered_ns` of matched calls.
        limits: When a host waited.

    Returns:
        The nodes, with the ends of such calls and the starts of such waits at the moment when the host went on; and
        what else waits for what: `node`, `before`.
    """
    placed = nodes.select("node", "rank", "lane", "kind", "start_ns", "end_ns")
    calls = members.join(placed.filter(pl.col("lane") == "communication").drop("lane", "kind"), on="node")
    if calls.is_empty():  # as of all devices: millions of rows stay as they are
        return nodes, calls.select("node", before="node")
    host = placed.filter((pl.col("lane") == "host") & (pl.col("end_ns") > pl.col("start_ns")))
    waits = host.select("rank", "kind", wait="node", from_ns="start_ns", until_ns="end_ns").sort("from_ns")
    found = pl.concat([_ended_elsewhere(calls, waits, limits), _recorded_late(calls, waits, limits)])
    once = (
        found.sort("wait", "late_ns", "node")
        .unique("wait", keep="first", maintain_order=True)
        .sort("node", "until_ns")
        .unique("node", keep="first", maintain_order=True)
    )
    changed = (
        nodes.join(once.select("node", end="until_ns"), on="node", how="left", maintain_order="left")
        .join(once.select(node="wait", start="until_ns"), on="node", how="left", maintain_order="left")
        .with_columns(start_ns=pl.coalesce("start", "start_ns"), end_ns=pl.coalesce("end", "end_ns"))
        .select(nodes.columns)
    )
    return changed, once.select(node="wait", before="node")


_FOUND = ("node", "wait", "until_ns", "late_ns")


def _ended_elsewhere(calls: pl.DataFrame, waits: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Waits in which a call ended on another rank."""
    done = pl.when(pl.col("end_ns") >= pl.col("entered_ns")).then(pl.col("end_ns"))
    over = pl.when(done == done.min().over("call")).then(done.bottom_k(2).max().over("call"))
    first = calls.with_columns(over_ns=over.otherwise(done.min().over("call")))
    asked = first.filter(pl.col("over_ns").is_between("entered_ns", "end_ns", closed="left")).sort("over_ns")
    at, since, until = pl.col("over_ns"), pl.col("from_ns"), pl.col("until_ns")
    return (
        asked.join_asof(waits, left_on="over_ns", right_on="from_ns", by="rank", check_sortedness=False)
        .filter(pl.col("kind") == "waiting", at - since >= limits.wait_ns)
        .filter(at <= until, until < pl.col("end_ns"), until - at <= at - since)
        .select("node", "wait", "until_ns", late_ns=until - at)
    )


def _recorded_late(calls: pl.DataFrame, waits: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Waits that end just before the record of a call, and follow from no call that had ended."""
    known = calls.select("rank", from_ns="end_ns").unique()
    since, until = pl.col("from_ns"), pl.col("until_ns")
    unknown = waits.filter(pl.col("kind") == "waiting", until - since >= limits.wait_ns).join(
        known, on=["rank", "from_ns"], how="anti"
    )
    return (
        calls.sort("end_ns")
        .join_asof(unknown.sort("until_ns"), left_on="end_ns", right_on="until_ns", by="rank", check_sortedness=False)
        .filter(pl.col("end_ns") - until <= limits.record_ns, until < pl.col("end_ns"), until >= pl.col("entered_ns"))
        .select("node", "wait", "until_ns", late_ns=pl.col("end_ns") - until)
    )
