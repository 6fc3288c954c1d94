"""Which ranks hold the others up, by how much, and with what."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.job.segments import STEP_GROUP, WORK
from stepscope.analysis.methods.statistics import MAD_TO_SIGMA, median
from stepscope.analysis.methods.step_windows import is_whole_recording
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of

CALL = ["group", "sequence"]


@dataclass(frozen=True)
class Limits:
    """When a rank counts as slow. Ratios are of the typical rank's own work in a step."""

    cost_ratio: float = limit(0.02, "of the work in a step, that it costs the job", "less is jitter")
    score: float = limit(3.5, "robust deviations", "limit for modified z-scores, Iglewicz and Hoaglin, 1993")
    steps_late_ratio: float = limit(0.6, "of the steps", "a slow rank is slow in most steps, and in the same way")
    chance: float = limit(0.01, "probability", "that it arrives last so often by chance (binomial)")
    floor_ratio: float = limit(0.003, "of the work in a step", "smaller deviations are noise")


COLUMNS = columns(
    "rank",
    meaning("kind", "What it is slow at.", values=WORK),
    "cost_ns",
    Column("cost_ratio", "float64", "`cost_ns` over the median step of the longest rank.", importance=60),
    Column("excess_ns", "int64", "Extra time compared with the typical rank in the median step.", importance=58),
    Column("typical_ns", "int64", "Time that the typical rank needs for this kind of work in a step.", importance=51),
    meaning("steps", "Number of compared steps."),
    Column("steps_late", "int32", "Number of steps in which it is late.", importance=38),
    Column("times_last", "int32", "Number of collectives in which it arrived last.", importance=37),
    meaning("calls", "Number of collectives in which it took part."),
    "score",
    Column(
        "unrecorded_ranks",
        "int32",
        "Number of ranks of the job (at least) that were not recorded. All may be waiting for one of these instead.",
        importance=32,
    ),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True)
def slow_ranks(
    segments: pl.DataFrame,
    breakdown: pl.DataFrame,
    arrival: pl.DataFrame | None,
    ranks: pl.LazyFrame,
    steps: pl.LazyFrame,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Find the ranks that hold the job up, what each is slow at, and what it costs.

    For each collective, the work that members did since their last one (`segments`: computing, data loading,
    compiling, checkpoints, dispatch and memory, not transmission, which all share) is compared with the median member's
    (of two members, with the other's). The slowest member's excess over the typical one is lost to all. It is divided
    among the members above the typical one as in the airport game (Littlechild and Owen, 1973): each increment of delay
    is shared equally by the members that are at least that late. So two equally slow ranks share the cost, and a rank
    masked by a slower one is still found.

    Incomplete recordings, e.g. from truncated files, are not compared: ranks without marked steps if other ranks have
    them, and ranks with less than half of the others' calls in their steps.

    A rank is slow at a kind of work if its excess occurs in most steps, costs the job a noticeable share of a step's
    work, and either is beyond noise (median and MAD over ranks and steps) or belongs to a rank that arrives last too
    often for chance, at the kind that costs most. Only calls whose members were all seen show who arrives last.

    Returns:
        One row per slow rank and kind of work, most expensive first.

    Raises:
        Unavailable: If there are fewer than two ranks, or the ranks do not belong together.
    """
    if segments["rank"].n_unique() < 2:
        raise Unavailable("slow ranks need the recordings of at least two ranks of one job")
    segments = _comparable(segments, steps)
    if segments["rank"].n_unique() < 2:
        raise Unavailable("only one rank has marked steps, so there is none to compare it with")
    if not segments.filter(pl.col("group") != STEP_GROUP).height and not _is_one_job(ranks):
        raise Unavailable("the ranks share no communication, so none of them can hold another up")
    step_ns = median(breakdown.group_by("step").agg(pl.col("window_ns").max()), pl.col("window_ns"))
    worked = segments.with_columns(work_ns=pl.sum_horizontal(f"{kind}_ns" for kind in WORK))
    work_ns = median(worked.group_by("rank", "step").agg(pl.col("work_ns").sum()), pl.col("work_ns"))
    per_step = _per_step(_with_excess(worked))
    last, unrecorded = _last(arrival), _unrecorded(ranks, arrival)
    rows = [
        row for kind in WORK for row in _slow_at(per_step, kind, last, step_ns=step_ns, work_ns=work_ns, limits=limits)
    ]
    found = pl.DataFrame([(*row, unrecorded) for row in rows], schema=schema_of(COLUMNS), orient="row")
    return found.sort("cost_ns", "rank", "kind", descending=[True, False, False])


def _comparable(segments: pl.DataFrame, steps: pl.LazyFrame) -> pl.DataFrame:
    """The segments that can be compared: without ranks that mark no steps if others do, and without a rank's calls of a
    group if it has less than half of the other members' calls in its steps."""
    marked = steps.select("rank", "step", "window").collect()
    unmarked = marked.filter(is_whole_recording())["rank"]
    if not marked["rank"].is_in(unmarked.implode()).all():
        segments = segments.filter(~pl.col("rank").is_in(unmarked.implode()))
    calls = segments.group_by("group", "step", "rank").len("calls")
    typical = calls.group_by("group", "step").agg(pl.col("calls").median())
    expected = typical.join(marked, on="step").group_by("group", "rank").agg(expected=pl.col("calls").sum())
    there = calls.group_by("group", "rank").agg(pl.col("calls").sum())
    whole = there.join(expected, on=["group", "rank"], nulls_equal=True).filter(
        2 * pl.col("calls") >= pl.col("expected")
    )
    return segments.join(whole, on=["group", "rank"], how="semi", nulls_equal=True, maintain_order="left")


def _is_one_job(ranks: pl.LazyFrame) -> bool:
    """Whether the recordings state that they belong to a job of several ranks."""
    return bool(ranks.select((pl.col("world_size") > 1).any()).collect().item())


def _with_excess(segments: pl.DataFrame) -> pl.DataFrame:
    """Add each member's excess over the typical member, and its share of the call's delay."""
    members = pl.len().over(CALL)
    # The median of two members is neither's time, so compare each with the other.
    scale = pl.when(members == 2).then(2).otherwise(1)
    columns = ["work_ns", *(f"{kind}_ns" for kind in WORK)]
    compared = segments.filter(members > 1).with_columns(
        ((pl.col(c) - pl.col(c).median().over(CALL)) * scale).alias(c.removesuffix("_ns") + "_excess") for c in columns
    )
    # Airport game: sort by lateness; each increment is shared by those at or beyond it.
    ordered = compared.sort(*CALL, "work_excess").with_columns(late=pl.col("work_excess").clip(lower_bound=0))
    behind = pl.len() - pl.int_range(pl.len())
    increment = pl.col("late") - pl.col("late").shift(1, fill_value=0)
    ordered = ordered.with_columns(cost=(increment / behind).cum_sum().over(CALL))
    # If calls overlap computing, a rank may be late at one call and early at the next: only its net lateness over the
    # step is lost.
    step = ["rank", "step"]
    late = pl.col("late").sum().over(step)
    left = pl.col("work_excess").sum().over(step).clip(lower_bound=0)
    return ordered.with_columns(cost=pl.when(late > 0).then(pl.col("cost") * left / late).otherwise(0.0))


def _per_step(excess: pl.DataFrame) -> pl.DataFrame:
    """Sum by rank and step, and divide a step's cost among the kinds of work that took longer."""
    sums = excess.group_by("rank", "step").agg(
        pl.col("cost").sum(), *(pl.col(f"{kind}_{what}").sum() for kind in WORK for what in ("excess", "ns"))
    )
    positive = [pl.col(f"{kind}_excess").clip(lower_bound=0) for kind in WORK]
    total = pl.sum_horizontal(positive)
    return sums.with_columns(
        pl.when(total > 0).then(pl.min_horizontal(pl.col("cost") * p / total, p)).otherwise(0.0).alias(f"{kind}_cost")
        for kind, p in zip(WORK, positive, strict=True)
    )


def _last(arrival: pl.DataFrame | None) -> pl.DataFrame:
    """How often each rank arrived last, in how many collectives, and how likely that is by chance."""
    schema = {"rank": pl.Int32, "times_last": pl.Int32, "calls": pl.Int32, "chance": pl.Float64}
    if arrival is None:
        return pl.DataFrame(schema=schema)
    complete = pl.col("members") >= pl.col("group_size").fill_null(0)
    counted = (
        arrival.filter((pl.col("members") > 1) & ~pl.col("point_to_point"))
        .group_by("rank")
        .agg(
            times_last=pl.col("is_last").sum(),
            calls=pl.len(),
            successes=pl.col("is_last").filter(complete).sum(),
            trials=complete.sum(),
            p=(1 / pl.col("members")).filter(complete).mean().fill_null(1),
        )
    )
    odds = counted.select("successes", "trials", "p").iter_rows()
    chance = [binomial_tail(successes, trials, p) for successes, trials, p in odds]
    return counted.with_columns(chance=pl.Series(chance)).select(list(schema))


def _unrecorded(ranks: pl.LazyFrame, arrival: pl.DataFrame | None) -> int:
    """At least how many ranks of the job were not recorded, by its number of ranks and the sizes of its groups."""
    lacking: list[int | None] = [ranks.select(pl.col("world_size").max() - pl.col("rank").n_unique()).collect().item()]
    if arrival is not None:
        by_group = arrival.filter(~pl.col("point_to_point")).group_by("group")
        lacking.extend(by_group.agg(n=pl.col("group_size").max() - pl.col("rank").n_unique())["n"])
    return max([0, *(n for n in lacking if n is not None)])


def binomial_tail(successes: int, trials: int, probability: float) -> float:
    """Probability of at least this many successes in independent trials."""
    if trials > 500:  # normal approximation; the exact sum overflows floats
        mean, variance = trials * probability, trials * probability * (1 - probability)
        return 0.0 if successes - mean > 4 * variance**0.5 else 1.0
    return sum(
        comb(trials, k) * probability**k * (1 - probability) ** (trials - k) for k in range(successes, trials + 1)
    )


def _slow_at(
    per_step: pl.DataFrame, kind: str, last: pl.DataFrame, *, step_ns: float, work_ns: float, limits: Limits
) -> list[tuple[object, ...]]:
    """The ranks that are slow at one kind of work, as rows of `COLUMNS`."""
    floor, enough = limits.floor_ratio * work_ns, limits.cost_ratio * work_ns
    excess = pl.col(f"{kind}_excess")
    ranks = per_step.group_by("rank").agg(
        center=excess.median(),
        cost=pl.col(f"{kind}_cost").median(),
        highest_cost=pl.max_horizontal(pl.col(f"{k}_cost").median() for k in WORK),
        typical=(pl.col(f"{kind}_ns") - excess).median(),
        steps=pl.len(),
        late=(excess > floor).sum(),
    )
    sigma = max(_noise(per_step, ranks, kind), floor)
    rows: list[tuple[object, ...]] = []
    for r in ranks.join(last, on="rank", how="left").iter_rows(named=True):
        score = r["center"] / sigma if sigma > 0 else 0.0
        costly = r["cost"] >= enough and r["center"] > 0
        steady = r["late"] >= limits.steps_late_ratio * r["steps"]
        outlier = score >= limits.score
        often_last = r["chance"] is not None and r["chance"] < limits.chance and r["cost"] == r["highest_cost"]
        if costly and steady and (outlier or often_last):
            rows.append(
                (
                    r["rank"],
                    kind,
                    round(r["cost"]),
                    r["cost"] / step_ns if step_ns else 0.0,
                    round(r["center"]),
                    round(r["typical"]),
                    r["steps"],
                    r["late"],
                    r["times_last"] or 0,
                    r["calls"] or 0,
                    round(score, 2),
                )
            )
    return rows


def _noise(per_step: pl.DataFrame, ranks: pl.DataFrame, kind: str) -> float:
    """Standard deviation of an ordinary rank's excess, from MADs over ranks and over steps."""
    centered = per_step.join(ranks.select("rank", "center"), on="rank").filter(pl.len().over("rank") > 1)
    spread = median(centered, (pl.col(f"{kind}_excess") - pl.col("center")).abs())
    if ranks.height > 2:
        spread = max(spread, median(ranks, (pl.col("center") - pl.col("center").median()).abs()))
    return MAD_TO_SIGMA * spread
