"""What the job would save if calls between ranks took less, by replay."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.communication.comparable_calls import matched_calls
from stepscope.analysis.methods.call_cuts import CallCuts
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.replay import Shortened
from stepscope.tables.base import Column, schema_of

ITEMS = RETRANSMITTED, CONTENDED, SLOW, LATENCY = ("retransmitted", "contended", "slow", "latency")
"""What calls could do without: packets sent again; matrix products beside them; what they take above the best that
recurs; latency of many small ones."""

COLUMNS = columns(
    Column("item", "string", "What calls could do without.", values=ITEMS),
    Column("saving_ns", "int64", "What the mean step would be shorter."),
    Column("saving_ratio", "float64", "The same as a share of the mean step."),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it."),
    nulls="",
)

_KIND = ["group", "operation", "size_bytes", "members"]
_SHORTER = [*CALL, "transmit_ns", "typical_ns"]


@analysis("job", COLUMNS, whole_job=True)
def call_savings(
    work_graph: Prepared[JobGraph],
    arrival: pl.DataFrame,
    retransmissions: pl.DataFrame | None = None,
    contended_calls: pl.DataFrame | None = None,
    transmission: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Replay the job with shorter calls, one item after the other: one row per item that says anything, in order.

    Raises:
        Unavailable: If no work lies in a step.
    """
    shorter = _shorter(arrival, retransmissions, contended_calls, transmission)
    if not shorter:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    graph = work_graph()
    job = Shortened(graph)
    left = job.now_ns.clone()
    rows = []
    for item, calls in shorter.items():
        nodes, cut = CallCuts(graph.nodes, arrival, calls.with_columns(suspect=0)).of([0])
        less = (left.gather(nodes) - cut).clip(lower_bound=0)  # an item before may have taken more than the rest
        rows.append(job.row(item, left.scatter(nodes, less)))
    return pl.DataFrame(rows, schema=schema_of(COLUMNS)).select(names(COLUMNS))


def _shorter(
    arrival: pl.DataFrame,
    retransmissions: pl.DataFrame | None,
    contended: pl.DataFrame | None,
    transmission: pl.DataFrame | None,
) -> dict[str, pl.DataFrame]:
    """By item, calls with what they transmit now and would then (`_SHORTER`)."""
    matched = matched_calls(arrival).with_columns(size_bytes=pl.col("size_bytes").max().over(CALL))
    calls = matched.group_by(*CALL, *_KIND[1:]).agg(pl.col("transmit_ns").min()).drop_nulls("transmit_ns")
    found: dict[str, pl.DataFrame] = {}
    if retransmissions is not None and retransmissions.height:
        named = ["rank", "step", "group", "name"]
        again = matched.join(retransmissions.select(*named, "excess_ns"), on=named, nulls_equal=True)
        excess = again.group_by(CALL).agg(pl.col("excess_ns").max())
        found[RETRANSMITTED] = calls.join(excess, on=list(CALL)).with_columns(
            typical_ns=pl.col("transmit_ns") - pl.col("excess_ns")
        )
    if contended is not None:
        found[CONTENDED] = _of_kinds(calls, contended.filter("is_slower").with_columns(typical_ns="alone_ns"))
    if transmission is not None:
        found[SLOW] = _of_kinds(calls, transmission.with_columns(typical_ns="best_ns"))
        found[LATENCY] = _of_kinds(calls, _without_latency(calls, transmission, arrival["step"].n_unique()))
    return {item: rows.select(_SHORTER) for item, rows in found.items() if rows.height}


def _without_latency(calls: pl.DataFrame, transmission: pl.DataFrame, steps: int) -> pl.DataFrame:
    """Kinds of calls with what they would transmit without their latency, which is known as the sum of a step."""
    counted = transmission.join(calls.group_by(_KIND).len("every"), on=_KIND, nulls_equal=True)
    of_call = (pl.col("latency_ns") * steps / pl.col("every")).round().cast(pl.Int64)
    return counted.with_columns(typical_ns=pl.col("transmit_ns") - of_call)


def _of_kinds(calls: pl.DataFrame, kinds: pl.DataFrame) -> pl.DataFrame:
    """The calls of some kinds, with the usual transmission of their kind; kinds that cannot be told apart are left
    out."""
    known = kinds.drop_nulls("typical_ns").select(*_KIND, "typical_ns").filter(~pl.struct(_KIND).is_duplicated())
    return calls.join(known, on=_KIND, nulls_equal=True)
