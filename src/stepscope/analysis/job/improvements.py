"""What the mean step would be if one cause after the other were mended: none of the time is counted twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.call_cuts import CallCuts
from stepscope.analysis.methods.costs import ReplayCosts
from stepscope.analysis.methods.extra_work import with_extra
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.methods.link_cuts import LinkCuts, beside
from stepscope.analysis.methods.shapley import EXACT, shares
from stepscope.analysis.rank_lists import listed_ranks
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.replay import NO_STEPS
from stepscope.analysis.replay.savings import LIMITS as SAVING_LIMITS
from stepscope.analysis.replay.savings import Without
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of

RECORDED, RANK, LINK, GROUP, TIME, LEFT = WHAT = ("recorded", "rank", "link", "group", "time", "left")
"""The recorded step; slow ranks, links and groups; a kind of time on all ranks; what is left."""


@dataclass(frozen=True)
class Limits:
    """What is shown."""

    saving_ratio: float = limit(0.001, "of the mean step", "chosen by us: less shows in no figure")
    suspects: int = limit(8, "slow ranks, links and groups", "chosen by us: each doubles the replays; the rest is left")


COLUMNS = columns(
    Column("what", "string", "What the row is about.", values=WHAT),
    Column("name", "string", "Ranks, ends of the link or members of the group; null for others."),
    Column("kind", "string", "Kind of work or time; transport of a link; null if there is none."),
    Column("saving_ns", "int64", "What mending it makes the mean step shorter, its share among those like it."),
    Column("step_ns", "int64", "The mean step after it and all before it are mended."),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it."),
    nulls="name kind saving_ns",
)


@analysis("job", COLUMNS, whole_job=True)
def improvements(
    savings: pl.DataFrame,
    replay: pl.DataFrame,
    slow_ranks: pl.DataFrame | None,
    suspect_costs: pl.DataFrame | None,
    suspected_links: pl.DataFrame | None,
    suspected_groups: pl.DataFrame | None,
    work_graph: Prepared[JobGraph],
    arrival: pl.DataFrame | None,
    excess: pl.DataFrame | None,
    links: pl.LazyFrame | None,
    extra_pieces: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Mend slow ranks, links and groups, then take kinds of time away from all ranks: one row for each, in this order.

    Those of the first part save what they cost (`suspect_costs`), as their findings say. Those of the second share what
    is then still to be saved (Shapley, 1953). So the rows add up, and what is left is about the step of a replay
    without all of them: suspects that cost too little to be shown have small shares as well.

    Raises:
        Unavailable: If no work lies in a step.
    """
    if replay.is_empty():
        raise Unavailable(NO_STEPS)
    step_ns = float(replay["replayed_ns"].mean() or 0)  # type: ignore[arg-type]
    error = sum(replay["replayed_ns"]) / max(sum(replay["recorded_ns"]), 1) - 1
    least = limits.saving_ratio * step_ns
    slow = _slow(slow_ranks, suspect_costs, suspected_links, suspected_groups)[: limits.suspects]
    times = savings.filter(pl.col("saving_ns") >= least).sort(-pl.col("saving_ns"), "kind")
    rows: list[dict[str, Any]] = []
    if slow:
        each = [float(one["cost"]) for one in slow]
        rows += _fitting(slow, each, sum(each), least)
        if any(one["what"] != RANK for one in rows):  # savings are what is left once slow ranks are mended, not links
            graph = work_graph()
            costs, players = _costs(
                graph, slow, slow_ranks, suspected_links, suspected_groups, arrival, links, excess, extra_pieces
            )
            count, every = len(costs.steps), frozenset[int]().union(*players)
            kinds = times["kind"].to_list()[:EXACT]
            without = Without(graph, *costs.mended(every), kinds, SAVING_LIMITS)
            values = [sum(one) / count for one in shares(len(kinds), without.saved)]
            whole = sum(without.saved(frozenset(range(len(kinds))))) / count
            rows += _fitting([{"what": TIME, "name": None, "kind": kind} for kind in kinds], values, whole, least)
            return _chain(rows, step_ns, error)
    saved = [float(value) for value in times["saving_ns"]]
    rows += _fitting([{"what": TIME, "name": None, "kind": kind} for kind in times["kind"]], saved, sum(saved), least)
    return _chain(rows, step_ns, error)


def _slow(
    slow_ranks: pl.DataFrame | None,
    suspect_costs: pl.DataFrame | None,
    suspected_links: pl.DataFrame | None,
    suspected_groups: pl.DataFrame | None,
) -> list[dict[str, Any]]:
    """Slow ranks, links and groups, those that cost most first: `what`, `name`, `kind`, and `numbers` in the answer
    that found them."""
    found: list[dict[str, Any]] = []
    if slow_ranks is not None:
        columns = slow_ranks.select("ranks", "kind", "cost_ns").iter_rows()
        for number, (ranks, kind, cost) in enumerate(columns):
            found.append({"what": RANK, "name": ranks, "kind": kind, "numbers": [number], "cost": cost})
    for what, name, suspected, of in (
        (LINK, "links", suspected_links, "transport"),
        (GROUP, "groups", suspected_groups, "operation"),
    ):
        if suspect_costs is None or suspected is None or suspected.is_empty():
            continue
        for numbers, cost in suspect_costs.filter(pl.col(name).list.len() > 0).select(name, "cost_ns").iter_rows():
            rows = suspected.filter(pl.col("suspect").is_in(numbers))
            named = ", ".join(rows["ranks"].unique(maintain_order=True).to_list()[:4])
            found.append({"what": what, "name": named, "kind": rows[of][0], "numbers": numbers, "cost": cost})
    return sorted(found, key=lambda one: (-one["cost"], WHAT.index(one["what"]), one["name"]))


def _costs(
    graph: JobGraph,
    slow: Sequence[Mapping[str, Any]],
    slow_ranks: pl.DataFrame | None,
    suspected_links: pl.DataFrame | None,
    suspected_groups: pl.DataFrame | None,
    arrival: pl.DataFrame | None,
    links: pl.LazyFrame | None,
    excess: pl.DataFrame | None,
    extra_pieces: pl.DataFrame | None,
) -> tuple[ReplayCosts, list[frozenset[int]]]:
    """The job with what each costs, and their numbers there: slow ranks first, then links or groups."""
    first = 0 if slow_ranks is None else slow_ranks.height
    if excess is None or slow_ranks is None or slow_ranks.is_empty():
        cells = pl.DataFrame(schema={"suspect": pl.UInt32, "kind": pl.String, "rank": pl.Int32, "step": pl.Int32})
        compared = pl.DataFrame(schema=_EXCESS) if excess is None else excess
    else:
        numbered = slow_ranks.with_row_index("suspect")
        cells = numbered.select("suspect", "kind", rank=listed_ranks(), step="slow_steps").explode("rank")
        compared, cells = with_extra(excess, cells.explode("step"))
    cuts: LinkCuts | CallCuts | None = None
    whats = {one["what"] for one in slow}
    if LINK in whats and suspected_links is not None and arrival is not None and links is not None:
        late = suspected_links.with_columns(pl.col("suspect") + first)
        cuts = LinkCuts(graph.nodes, arrival, beside(links, late), late)
    elif GROUP in whats and suspected_groups is not None and arrival is not None:
        cuts = CallCuts(graph.nodes, arrival, suspected_groups.with_columns(pl.col("suspect") + first))
    costs = ReplayCosts(graph, compared, cells, None, cuts, extra_pieces)
    shift = {RANK: 0, LINK: first, GROUP: first}
    return costs, [frozenset(number + shift[one["what"]] for number in one["numbers"]) for one in slow]


_EXCESS = {
    **{"rank": pl.Int32, "step": pl.Int32, "kind": pl.String, "program": pl.Int32},
    **{"own_ns": pl.Int64, "excess_ns": pl.Int64},
}


def _fitting(
    told: Sequence[Mapping[str, Any]], values: Sequence[float], whole: float, least: float
) -> list[dict[str, Any]]:
    """Those that save something, the most first; together no more than all of them do."""
    kept = [({**one}, value) for one, value in zip(told, values, strict=True) if value >= least]
    claimed = sum(value for _, value in kept)
    factor = min(1.0, max(whole, 0.0) / claimed) if claimed else 0.0
    order = sorted(
        kept, key=lambda one: (-one[1], WHAT.index(one[0]["what"]), str(one[0]["name"]), str(one[0]["kind"]))
    )
    return [
        {"what": one["what"], "name": one["name"], "kind": one["kind"], "saving_ns": round(value * factor)}
        for one, value in order
        if round(value * factor) > 0
    ]


def _chain(rows: Sequence[Mapping[str, Any]], step_ns: float, error: float) -> pl.DataFrame:
    """The rows between the recorded step and what is left."""
    left = round(step_ns)
    chain: list[dict[str, Any]] = [{"what": RECORDED, "step_ns": left}]
    for row in rows:
        left = max(left - row["saving_ns"], 0)
        chain.append({**row, "step_ns": left})
    chain.append({"what": LEFT, "step_ns": left})
    return pl.DataFrame([{**one, "error_ratio": error} for one in chain], schema=schema_of(COLUMNS))
