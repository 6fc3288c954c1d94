"""What slow ranks, links and groups cost the job: by replay, and shared out among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.job.late_ranks import compared_excess
from stepscope.analysis.methods.call_cuts import CallCuts
from stepscope.analysis.methods.costs import BusyCosts, ReplayCosts, quartiles
from stepscope.analysis.methods.counted_steps import without_start_ups
from stepscope.analysis.methods.extra_work import with_extra
from stepscope.analysis.methods.job_graph import OPERATION, JobGraph, job_graph, of_ranks
from stepscope.analysis.methods.link_cuts import LinkCuts, beside
from stepscope.analysis.methods.saving_range import TRUSTED_RATIO, saving_range
from stepscope.analysis.methods.shapley import shares
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.work import HOST, ON_HOST
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of


@dataclass(frozen=True)
class Limits:
    """From when on a suspect counts."""

    cost_ratio: float = limit(0.015, "of the mean step, that a rank costs the job", "less is jitter")
    link_cost_ratio: float = limit(
        0.002, "of the mean step, that a link costs", "its bandwidth shows that it is slow, so less is no jitter"
    )


COLUMNS = columns(
    Column("ranks", "list[int32]", "Numbers in `suspects`, of those that count as one."),
    Column("links", "list[int32]", "Numbers in `suspected_links`, of those that count as one."),
    Column("groups", "list[int32]", "Number in `suspected_groups`."),
    "cost_ns",
    Column("cost_ratio", "float64", "`cost_ns` over the mean step."),
    Column(
        "saving_low_ns",
        "int64",
        "Lower quartile of that over the slow steps, averaged over all, or `alone_ns` if that is less; 0 if the "
        "replay is off.",
    ),
    Column("saving_high_ns", "int64", "Upper quartile of that, or `alone_ns` if that is more."),
    Column("alone_ns", "int64", "What mending this alone would save."),
    Column(
        "counted_steps", "int64", "The number of steps whose mean these are: those in which all suspects were recorded."
    ),
    Column(
        "error_ratio",
        "float64",
        "How far a replay of the recording without changes is from it; null if nothing was replayed.",
    ),
    nulls="error_ratio",
)


@analysis("job", COLUMNS, whole_job=True)
def suspect_costs(
    suspects: pl.DataFrame | None,
    suspected_links: pl.DataFrame | None,
    suspected_groups: pl.DataFrame | None,
    work: pl.DataFrame,
    dependencies: pl.DataFrame,
    excess: pl.DataFrame | None,
    arrival: pl.DataFrame | None,
    clocks: pl.DataFrame | None,
    work_graph: Prepared[JobGraph],
    ranks: pl.LazyFrame,
    steps: pl.LazyFrame,
    links: pl.LazyFrame | None,
    extra_pieces: pl.DataFrame | None = None,
    time_by_rank: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Find what slow ranks (`suspects`), links and groups (`suspected_links`, `suspected_groups`) cost, by replaying
    the job without what they take longer than others of their kind.

    Each gets the share that it adds on average over all orders of mending them (Shapley, 1953), so together they claim
    exactly what mending all of them saves. Those that cost too little each are taken for one if they are alike: mending
    many ranks that are about as slow saves much, and mending any of them nothing. Steps in which a suspect was not
    recorded do not count, nor does a first step that is far longer than the others, as it starts things up.

    If the ranks share no calls, or none that can be matched, a step is taken to be shorter by as much as the host or
    device that is busy longest.

    Returns:
        One row per suspect, or several that count as one, most expensive first. There is none for ranks that cost too
        little, and none for links and groups if it is unknown which calls use them.

    Raises:
        Unavailable: If no work lies in a step.
    """
    players = _players(suspects, suspected_links, suspected_groups)
    if players.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    costs: ReplayCosts | BusyCosts
    if suspects is None or suspects.is_empty() or excess is None:
        graph = work_graph()
        costs = ReplayCosts(
            graph,
            _NOBODY,
            _NOBODY,
            without_start_ups(graph.steps, time_by_rank),
            _transmission(players, suspected_links, suspected_groups, graph, arrival, links),
        )
    else:
        compared, cells = compared_excess(excess, arrival, ranks, steps), _cells(suspects)
        # Operations alone show how far a replay without calls is off.
        if (arrival is not None and (arrival["members"] > 1).any()) or (dependencies["why"] == OPERATION).any():
            compared_work = _known(work, compared)
            is_all = compared_work is work
            graph = work_graph() if is_all else job_graph(compared_work, dependencies, arrival, clocks)
            slow = _transmission(players, suspected_links, suspected_groups, graph, arrival, links)
            counted = _recorded(compared, cells, time_by_rank)
            costs = ReplayCosts(graph, *with_extra(compared, cells), counted, slow, extra_pieces)
        else:
            every = without_start_ups(compared["step"].unique().sort().to_list(), time_by_rank)
            known = every if _are_seen(cells, every) else None
            costs = BusyCosts(_sides(compared, work), cells, _lengths(steps), known)
    return _shared_out(costs, players, limits)


_NOBODY = pl.DataFrame(
    schema={
        **{"suspect": pl.Int32, "rank": pl.Int32, "step": pl.Int32, "kind": pl.String, "program": pl.Int32},
        **{"own_ns": pl.Int64, "excess_ns": pl.Int64},
    }
)
"""No suspected ranks, and no excess."""


def _players(suspects: pl.DataFrame | None, links: pl.DataFrame | None, groups: pl.DataFrame | None) -> pl.DataFrame:
    """Who takes part: `player` (from 0), `ranks`, `links` or `groups` (its number there, else null), in which steps,
    and what makes them alike."""
    parts = [pl.DataFrame(schema=_PLAYERS)]
    if suspects is not None:
        pattern = pl.when("is_stall").then(pl.lit("stall")).otherwise("pattern").alias("pattern")
        parts.append(suspects.select("kind", pattern, "period", "slow_steps", ranks="suspect"))
    # Links of a kind may be slow for one reason; groups have each their own.
    for what, rows, kind in (
        ("links", links, pl.concat_str("unit", "transport", separator=" ")),
        ("groups", groups, pl.col("suspect").cast(pl.String)),
    ):
        if rows is not None:
            each = rows.group_by("suspect", maintain_order=True).agg(
                pl.col("pattern", "period").first(),
                slow_steps=pl.col("step").drop_nulls().unique().sort(),
                kind=kind.first(),
            )
            parts.append(each.rename({"suspect": what}))
    return pl.concat(parts, how="diagonal").with_row_index("player")


_PLAYERS = {
    **dict.fromkeys(("ranks", "links", "groups"), pl.Int32()),
    **{"kind": pl.String(), "slow_steps": pl.List(pl.Int32)},
    **{"pattern": pl.String(), "period": pl.Int64()},
}


def _cells(suspects: pl.DataFrame) -> pl.DataFrame:
    """The ranks and steps in which each suspect is slow."""
    return suspects.select("suspect", "kind", rank="ranks", step="slow_steps").explode("rank").explode("step")


def _transmission(
    players: pl.DataFrame,
    suspected_links: pl.DataFrame | None,
    suspected_groups: pl.DataFrame | None,
    graph: JobGraph,
    arrival: pl.DataFrame | None,
    links: pl.LazyFrame | None,
) -> LinkCuts | CallCuts | None:
    """What calls over suspected links, or of suspected groups, take longer; None if there are none."""
    if arrival is None:
        return None
    for what, suspected in (("links", suspected_links), ("groups", suspected_groups)):
        if suspected is not None and not suspected.is_empty():
            first = int(players.filter(pl.col(what).is_not_null())["player"][0])
            slow = suspected.with_columns(pl.col("suspect") + first)
            if what == "links":
                return None if links is None else LinkCuts(graph.nodes, arrival, beside(links, slow), slow)
            return CallCuts(graph.nodes, arrival, slow)
    return None


def _recorded(compared: pl.DataFrame, cells: pl.DataFrame, time_by_rank: pl.DataFrame | None) -> list[int]:
    """The steps in which all kinds of work are known of all ranks that have them, and all suspects were recorded: what
    a rank whose recording is cut costs in other steps is unknown, not 0; without start-ups. If in none of them some
    suspect is slow, the latter two are left out."""
    kinds = compared.group_by("rank", "step").agg(kinds=pl.col("kind").n_unique())
    recorded: list[int] = (
        kinds.with_columns(pl.col("kinds").max().over("rank").alias("most"))
        .group_by("step")
        .agg(complete=(pl.col("kinds") == pl.col("most")).all())
        .filter("complete")["step"]
        .sort()
        .to_list()
    )
    suspects = cells["rank"].unique()
    seen = compared.filter(pl.col("rank").is_in(suspects.implode())).group_by("step").agg(pl.col("rank").n_unique())
    shared = seen.filter(pl.col("rank") == len(suspects))["step"].to_list()
    kept = [step for step in recorded if step in shared]
    known = kept if _are_seen(cells, kept) else recorded
    counted = without_start_ups(known, time_by_rank)
    return counted if _are_seen(cells, counted) else known


def _are_seen(cells: pl.DataFrame, steps: list[int]) -> bool:
    """Whether each suspect is slow in some of these steps."""
    slow = cells.group_by("suspect").agg(is_seen=pl.col("step").is_in(steps).any())
    return bool(slow["is_seen"].all())


def _known(work: pl.DataFrame, compared: pl.DataFrame) -> pl.DataFrame:
    """The work of ranks that were compared. A rank that is like no other, and of whose host nothing was recorded while
    others' was, is left out: what its device waited for is unknown, so it would seem to hold all others up."""
    ranks = compared.group_by("rank").agg(alone=pl.col("excess_ns").is_null().all())
    hosts = work.filter(pl.col("lane") == HOST)["rank"].unique()
    seen = pl.col("rank").is_in(hosts.implode())
    kept = ranks.filter(seen | ~pl.col("alone") | ~seen.any())
    return of_ranks(work, kept["rank"])


def _sides(compared: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """The rows with `on_host`: whether it is work of the host beside that of the rank's device."""
    on_device = (pl.col("lane") != HOST) & pl.col("kind").is_in(["computing", "memory"])
    with_device = work.filter(on_device)["rank"].unique()
    beside = pl.col("rank").is_in(with_device.implode()) & pl.col("kind").is_in(ON_HOST)
    return compared.with_columns(on_host=beside)


def _lengths(steps: pl.LazyFrame) -> pl.DataFrame:
    """How long each step took on the rank where it was longest."""
    length = (pl.col("end_ns") - pl.col("start_ns")).max().alias("own_ns")
    return steps.group_by("step").agg(length).sort("step").collect()


def _shared_out(costs: ReplayCosts | BusyCosts, players: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """The answer."""
    count = len(costs.steps)
    if not count:
        raise Unavailable("no work lies in a step")
    total_ns, recorded_ns = sum(costs.step_ns), sum(costs.recorded_ns)
    error = total_ns / recorded_ns - 1 if recorded_ns else 0.0
    is_replay = isinstance(costs, ReplayCosts)
    is_link = players["links"].is_not_null()
    enough = [(limits.link_cost_ratio if link else limits.cost_ratio) * total_ns for link in is_link]
    rows = []
    kept, shared = _shares(costs, players, enough)
    left = frozenset(players.filter(pl.col("ranks").is_null())["player"]).difference(*kept)
    told = [who for number in sorted(left) if (who := frozenset([number])) <= costs.replayed]
    for who, values in zip([*kept, *told], [*shared, *([0.0] * count for _ in told)], strict=True):
        of_players = players.filter(pl.col("player").is_in(sorted(who)))
        slow = of_players["slow_steps"].explode().to_list()
        low, high = quartiles(values, [step in slow for step in costs.steps])
        alone = max(0.0, sum(costs.saved(who)) / count)
        low = 0.0 if abs(error) > TRUSTED_RATIO else max(0.0, min(alone, low))
        low_ns, high_ns = saving_range(sum(values) / count, low, max(alone, high))
        rows.append(
            {
                **{name: of_players[name].drop_nulls().to_list() for name in ("ranks", "links", "groups")},
                "cost_ns": round(sum(values) / count),
                "cost_ratio": sum(values) / total_ns,
                "saving_low_ns": low_ns,
                "saving_high_ns": high_ns,
                "alone_ns": round(alone),
                "counted_steps": count,
                "error_ratio": error if is_replay else None,
            }
        )
    found = pl.DataFrame(rows, schema=schema_of(COLUMNS))
    return found.sort("cost_ns", "ranks", "links", "groups", descending=[True, False, False, False]).select(
        names(COLUMNS)
    )


def _shares(
    costs: ReplayCosts | BusyCosts, players: pl.DataFrame, enough: Sequence[float]
) -> tuple[list[frozenset[int]], list[list[float]]]:
    """The players that cost enough in all steps together, with the share of each in each step. Those that are alike and
    get too small a share each are taken for one. Of the rest, small shares count if others hide what they cost."""
    kept = _worth([frozenset([number]) for number in range(len(enough))], costs, enough)
    small = [who for who, values in zip(kept, _shared(kept, costs), strict=True) if sum(values) < _least(who, enough)]
    kept = _worth([who for who in kept if who not in small] + _together(players, small), costs, enough)
    while True:
        shared = _shared(kept, costs)
        every = frozenset[int]().union(*kept)
        whole = sum(costs.saved(every))
        counts = [
            sum(values) >= _least(who, enough) or whole - sum(costs.saved(every - who)) >= HIDDEN * sum(values)
            for who, values in zip(kept, shared, strict=True)
        ]
        if all(counts):
            return kept, shared
        kept = [who for who, does in zip(kept, counts, strict=True) if does]


HIDDEN = 2
"""What is left of a player after all others were mended, over its share, from which on others hide it; chosen by us."""


def _shared(kept: Sequence[frozenset[int]], costs: ReplayCosts | BusyCosts) -> list[list[float]]:
    return shares(len(kept), lambda mended: costs.saved(frozenset().union(*(kept[place] for place in mended))))


def _least(who: frozenset[int], enough: Sequence[float]) -> float:
    """What some players have to cost."""
    return min(enough[one] for one in who)


def _worth(
    given: Sequence[frozenset[int]], costs: ReplayCosts | BusyCosts, enough: Sequence[float]
) -> list[frozenset[int]]:
    """The players whose mending saves enough, alone or after all the others were mended: that of one that is hidden
    behind another one shows only then."""
    every = frozenset[int]().union(*given)
    whole = sum(costs.saved(every))
    kept = []
    for who in given:
        alone = sum(costs.saved(who))
        last = whole - sum(costs.saved(every - who)) if len(given) > 1 else alone
        if max(alone, last) >= _least(who, enough):
            kept.append(who)
    return kept


def _together(players: pl.DataFrame, small: list[frozenset[int]]) -> list[frozenset[int]]:
    """Players at the same kind of work or link, with the same pattern, as one."""
    alike: dict[tuple[object, ...], frozenset[int]] = {}
    for who in small:
        what = players.select("kind", "pattern", "period").row(min(who))
        alike[what] = alike.get(what, frozenset()) | who
    return list(alike.values())
