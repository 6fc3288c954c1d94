"""Which ranks hold the job up, by how much, when and with what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.job.comparable import last_arrivals, unrecorded
from stepscope.analysis.job.late_ranks import compared_excess
from stepscope.analysis.job.segments import WORK
from stepscope.analysis.job.suspects import suspects
from stepscope.analysis.methods.costs import BusyCosts, ReplayCosts, quartiles
from stepscope.analysis.methods.job_graph import OPERATION, job_graph
from stepscope.analysis.methods.saving_range import TRUSTED_RATIO, saving_range
from stepscope.analysis.methods.shapley import shares
from stepscope.analysis.methods.timing import ROTATING
from stepscope.analysis.methods.units import RANKS
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.uneven_work import REPLICA, SEQUENCE, WORKER
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of


@dataclass(frozen=True)
class Limits:
    """When a rank counts as slow."""

    cost_ratio: float = limit(0.015, "of the mean step, that it costs the job", "less is jitter")
    most: int = limit(24, "suspects that are replayed", "those with the greatest excess; each costs two dozen replays")


COLUMNS = columns(
    Column("rank", "int32", "The slow rank; of several, the one that takes longest.", importance=66),
    Column("ranks", "string", "All ranks that are slow together, e.g. `4, 5, 6, 7`.", importance=61),
    Column(
        "unit_kind",
        "string",
        "What these ranks are: `rank`, or e.g. `host`, `stage`, `tensor parallel`.",
        importance=33,
    ),
    Column("unit", "string", "Which of them.", importance=34),
    meaning("kind", "What it is slow at.", values=WORK),
    "cost_ns",
    Column("cost_ratio", "float64", "`cost_ns` over the mean step.", importance=60),
    Column(
        "saving_low_ns",
        "int64",
        "What it may be at least: the lower quartile over the slow steps, averaged over all, or `alone_ns` if less; 0 "
        "if ranks are missing or the replay is far from the recording.",
        title="at least",
        importance=21,
    ),
    Column(
        "saving_high_ns",
        "int64",
        "What it may be at most: the upper quartile over the slow steps, averaged over all.",
        title="at most",
        importance=22,
    ),
    Column("alone_ns", "int64", "What mending this alone would save: less, if another is as late.", importance=20),
    Column(
        "excess_ns",
        "int64",
        "Extra time of the rank compared with the typical rank, in the median of its slow steps; of ranks late in "
        "turn, of the latest one.",
        importance=58,
    ),
    Column("typical_ns", "int64", "Time that the typical rank needs for this kind of work in a step.", importance=51),
    Column(
        "pattern",
        "string",
        "When it is slow: `steady`, `since`, `until`, `periodic`, `sometimes`, `once`, `rotating`.",
        importance=40,
    ),
    meaning("steps", "Number of compared steps."),
    Column("steps_late", "int32", "Number of steps in which it is late.", importance=38),
    Column("slow_steps", "list[int32]", "These steps.", importance=12),
    Column("period", "int64", "Steps between recurrences; null if irregular.", importance=13),
    Column("times_last", "int32", "Number of collectives in which it arrived last.", importance=37),
    meaning("calls", "Number of collectives in which it took part."),
    "score",
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it.", importance=11),
    Column(
        "unrecorded_ranks",
        "int32",
        "Number of ranks of the job (at least) that were not recorded. All may be waiting for one of these instead.",
        importance=32,
    ),
    nulls="period unit",
)


@analysis("job", COLUMNS, whole_job=True)
def slow_ranks(
    late_ranks: pl.DataFrame,
    work: pl.DataFrame,
    dependencies: pl.DataFrame,
    excess: pl.DataFrame,
    arrival: pl.DataFrame | None,
    clocks: pl.DataFrame | None,
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None,
    steps: pl.LazyFrame,
    slowdown_causes: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Find the ranks that hold the job up, what each is slow at, when, and what it costs.

    A rank is suspected if its own work takes longer than that of comparable ranks, beyond noise and chance
    (`late_ranks`). What it costs is found by replaying the job without that excess. Of several suspects, each gets the
    share that it adds on average over all orders of mending them (Shapley, 1953), so together they claim exactly what
    mending all of them saves. Ranks that form a unit, e.g. all ranks of a host, are one suspect.

    If the ranks share no calls, a step is taken to be as long as the rank that is busy longest; or as it was, if it is
    unknown how long they compute. If micro-batches are of uneven length (`slowdown_causes`), only those ranks are
    suspected of computing slowly that this does not explain.

    Returns:
        One row per slow rank, or unit, and kind of work, most expensive first.

    Raises:
        Unavailable: If there are fewer than two ranks, or the ranks do not belong together.
    """
    compared = compared_excess(excess, arrival, ranks, steps)
    known = work.join(compared.select("rank").unique(), on="rank", how="semi", maintain_order="left")
    listed = None if groups is None else groups.collect()
    found = suspects(late_ranks, compared, ranks.collect(), listed)
    if slowdown_causes is not None:
        found = _of_ranks(found, slowdown_causes)
    found = found.head(limits.most)
    if found.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    cells = _cells(found)
    costs: ReplayCosts | BusyCosts
    # Operations alone show how far a replay without calls is off.
    if (arrival is not None and (arrival["members"] > 1).any()) or (dependencies["why"] == OPERATION).any():
        costs = ReplayCosts(job_graph(known, dependencies, arrival, clocks), compared, cells, _recorded(compared))
    else:
        costs = BusyCosts(compared, cells, None if (compared["kind"] == "computing").any() else _lengths(steps))
    count = len(costs.steps)
    if not count:
        raise Unavailable("no work lies in a step")
    mean_ns = sum(costs.step_ns) / count
    recorded_ns = sum(costs.recorded_ns)
    error = sum(costs.step_ns) / recorded_ns - 1 if recorded_ns else 0.0
    enough = limits.cost_ratio * mean_ns
    kept, shared = _shared(costs, found, enough)
    missing = unrecorded(ranks, arrival)
    rows = []
    for numbers, values in zip(kept, shared, strict=True):
        cost, who = sum(values) / count, _one(found[sorted(numbers)])
        alone = max(0, round(sum(costs.saved(numbers)) / count))
        low, high = quartiles(values, [step in who["slow_steps"] for step in costs.steps])
        # Others that were not recorded may be as late; but not in turn.
        unsure = abs(error) > TRUSTED_RATIO or (missing and who["pattern"] != ROTATING)
        least, most = saving_range(cost, 0 if unsure else max(0, min(alone, low)), high)
        rows.append(
            {
                **who,
                "cost_ns": round(cost),
                "cost_ratio": cost / mean_ns,
                "saving_low_ns": least,
                "saving_high_ns": most,
                "alone_ns": alone,
                "error_ratio": error,
            }
        )
    return _described(rows, compared, last_arrivals(arrival), missing)


def _lengths(steps: pl.LazyFrame) -> pl.DataFrame:
    """How long each step took on the rank where it was longest."""
    length = (pl.col("end_ns") - pl.col("start_ns")).max().alias("own_ns")
    return steps.group_by("step").agg(length).sort("step").collect()


def _of_ranks(found: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """The suspects that uneven micro-batches do not explain."""
    if SEQUENCE not in causes["cause"]:
        return found
    slow = causes.filter(pl.col("cause").is_in([WORKER, REPLICA]) & pl.col("ranks").is_not_null())
    ranks = {int(rank) for text in slow["ranks"] for rank in text.split(", ")}
    kept = [kind != "computing" or ranks.issuperset(who) for kind, who in found.select("kind", "ranks").rows()]
    return found.filter(pl.Series(kept, dtype=pl.Boolean)).with_columns(suspect=pl.int_range(pl.len(), dtype=pl.Int64))


def _recorded(compared: pl.DataFrame) -> list[int]:
    """The steps in which all kinds of work are known of all ranks that have them."""
    kinds = compared.group_by("rank", "step").agg(kinds=pl.col("kind").n_unique())
    recorded: list[int] = (
        kinds.with_columns(pl.col("kinds").max().over("rank").alias("most"))
        .group_by("step")
        .agg(complete=(pl.col("kinds") == pl.col("most")).all())
        .filter("complete")["step"]
        .sort()
        .to_list()
    )
    return recorded


def _cells(found: pl.DataFrame) -> pl.DataFrame:
    """The ranks and steps in which each suspect is slow."""
    return found.select("suspect", "kind", rank="ranks", step="slow_steps").explode("rank").explode("step")


def _shared(
    costs: ReplayCosts | BusyCosts, found: pl.DataFrame, enough: float
) -> tuple[list[frozenset[int]], list[list[float]]]:
    """The suspects that cost enough, with the share of each in each step. Those of a kind that cost too little each are
    taken for one: mending many ranks that are about as slow saves much, and mending any of them nothing."""
    kept = [frozenset([number]) for number in _accepted(costs, found.height, enough)]
    merged = False
    while True:
        shared = shares(len(kept), lambda mended: costs.saved(frozenset().union(*(kept[place] for place in mended))))  # noqa: B023
        worth = [sum(values) >= enough * len(values) for values in shared]
        if all(worth):
            return kept, shared
        small = [who for who, enough_of_it in zip(kept, worth, strict=True) if not enough_of_it]
        kept = [who for who in kept if who not in small]
        if not merged:
            kept += _together(found, small)
        merged = True


def _together(found: pl.DataFrame, small: list[frozenset[int]]) -> list[frozenset[int]]:
    """Suspects of the same kind of work and pattern as one."""
    alike: dict[tuple[object, ...], frozenset[int]] = {}
    for who in small:
        what = found.select("kind", "pattern", "period").row(min(who))
        alike[what] = alike.get(what, frozenset()) | who
    return list(alike.values())


def _one(rows: pl.DataFrame) -> dict[str, Any]:
    """Suspects as one."""
    first = rows.row(0, named=True)
    if rows.height == 1:
        return first
    both = {name: rows[name].explode().unique().sort().to_list() for name in ("ranks", "slow_steps")}
    unit = ", ".join(map(str, both["ranks"]))
    return {**first, **both, "unit_kind": RANKS, "unit": unit, "score": rows["score"].max()}


def _accepted(costs: ReplayCosts | BusyCosts, count: int, enough: float) -> list[int]:
    """The suspects whose mending saves enough, alone or after all the others were mended."""
    steps, every = len(costs.steps), frozenset(range(count))
    whole = sum(costs.saved(every))
    kept = []
    for number in range(count):
        alone = sum(costs.saved(frozenset([number])))
        last = whole - sum(costs.saved(every - {number})) if count > 1 else alone
        if max(alone, last) >= enough * steps:
            kept.append(number)
    return kept


def _described(rows: list[dict[str, object]], excess: pl.DataFrame, last: pl.DataFrame, missing: int) -> pl.DataFrame:
    """The answer: what is known of each suspect's ranks."""
    if not rows:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    found = pl.DataFrame(rows, infer_schema_length=None)
    members = (
        found.select("suspect", "kind", "slow_steps", "pattern", rank="ranks")
        .explode("rank")
        .with_columns(pl.col("rank").cast(pl.Int32))
    )
    # of ranks that are late in turn, what counts is by how much the one whose turn it is, is late
    turn = pl.when(pl.col("pattern") == ROTATING).then(pl.col("excess_ns").max().over("suspect", "step"))
    own = members.join(excess, on=["rank", "kind"]).with_columns(excess_ns=turn.otherwise("excess_ns"))
    slow = pl.col("step").is_in(pl.col("slow_steps"))
    figures = own.group_by("suspect", "rank").agg(
        excess_ns=pl.col("excess_ns").filter(slow).median().round().cast(pl.Int64),
        typical_ns=pl.col("typical_ns").median().round().cast(pl.Int64),
        steps=pl.len().cast(pl.Int64),
        steps_late=slow.sum().cast(pl.Int32),
    )
    worst = figures.sort("suspect", -pl.col("excess_ns"), "rank").unique("suspect", keep="first", maintain_order=True)
    return (
        found.join(worst, on="suspect")
        .join(last, on="rank", how="left")
        .with_columns(
            pl.col("times_last", "calls").fill_null(0),
            pl.col("score").round(2),
            pl.col("slow_steps").cast(pl.List(pl.Int32)),
            pl.col("period").cast(pl.Int64),
            ranks=pl.col("ranks").list.sort().list.eval(pl.element().cast(pl.String)).list.join(", "),
            unrecorded_ranks=pl.lit(missing, pl.Int32),
        )
        .sort("cost_ns", "rank", "kind", descending=[True, False, False])
        .select(names(COLUMNS))
    )
