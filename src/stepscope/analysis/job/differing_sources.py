"""Where the figures that a profile states differ from what its timeline shows, and which of the two to believe."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.communication.rank_communication import of_calls, of_totals
from stepscope.analysis.methods.counted_steps import counted
from stepscope.analysis.methods.statistics import first_label, rounded, sum_known
from stepscope.analysis.rank_lists import as_rank_list
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables import COMMUNICATION_TOTALS, STEP_TOTALS
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits:
    """When two sources of a figure differ."""

    off_ratio: float = limit(0.1, "of the greater figure", "chosen by us: more than rounding and edges of steps make")
    least_ns: int = limit(1000, "ns per step", "chosen by us: step tables count in us, some in tens of ns")


COMPUTING, EXPOSED, COMMUNICATION, WAITING = "computing", "exposed communication", "communication", "waiting"
FIGURES = (COMPUTING, EXPOSED, COMMUNICATION, WAITING)

STATED, TIMELINE = "stated", "timeline"

FEWER_IN_TIMELINE, FEWER_STATED = "timeline has fewer calls", "profile states fewer calls"
LESS_IN_TIMELINE, EACH_SHOWN = "timeline shows less", "timeline shows each"
WHY = (FEWER_IN_TIMELINE, FEWER_STATED, LESS_IN_TIMELINE, EACH_SHOWN)

COLUMNS = columns(
    Column("figure", "string", "Which figure differs.", values=FIGURES),
    Column("ranks", "string", "Ranks of which it differs, e.g. `0, 1`."),
    Column("rank", "int32", "The rank of which it differs most."),
    Column("stated_ns", "int64", "Its mean over the steps that both have, as stated by the profile.", title="stated"),
    Column("timeline_ns", "int64", "The same from the timeline.", title="from the timeline"),
    Column("off_ratio", "float64", "Their difference over the greater of them.", title="off"),
    Column("stated_calls", "float64", "Calls in a step that the profile names; null if it names none."),
    Column("timeline_calls", "float64", "Calls in a step that the timeline shows; null if unknown."),
    Column("believe", "string", "Which of them to believe.", values=(STATED, TIMELINE)),
    Column("why", "string", "Why that one: the other lacks work, or this one shows every piece of it.", values=WHY),
    nulls="stated_calls timeline_calls",
)

_SCHEMA = {
    "rank": pl.Int32,
    "step": pl.Int32,
    "figure": pl.String,
    "stated_ns": pl.Int64,
    "timeline_ns": pl.Int64,
    "stated_calls": pl.Int64,
    "timeline_calls": pl.Int64,
}


@analysis("job", COLUMNS)
def differing_sources(
    breakdown: pl.DataFrame | None = None,
    step_totals: pl.LazyFrame | None = None,
    arrival: pl.DataFrame | None = None,
    communication_totals: pl.LazyFrame | None = None,
    left_out_steps: pl.DataFrame | None = None,
    steps: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Compare what a profile states of its steps with its timeline: one row per figure that differs much.

    A timeline may lack work but shows none that was not done, so it is believed unless it shows fewer calls than are
    stated or, where calls were not counted, less. Where computing is missing in it, communication seems exposed that is
    not.
    """
    both = pl.concat([_parts(breakdown, step_totals), _calls(arrival, communication_totals)])
    rows = counted(both, ["rank", "figure"], left_out_steps, steps)
    means = rows.group_by("figure", "rank").agg(
        rounded(pl.col("stated_ns", "timeline_ns").mean()), pl.col("stated_calls", "timeline_calls").mean()
    )
    greater = pl.max_horizontal("stated_ns", "timeline_ns")
    apart = (pl.col("stated_ns") - pl.col("timeline_ns")).abs()
    lacks = (pl.col("figure") == COMPUTING) & (pl.col("timeline_ns") < (1 - limits.off_ratio) * pl.col("stated_ns"))
    why = first_label(
        {
            FEWER_IN_TIMELINE: pl.col("timeline_calls") < pl.col("stated_calls"),
            FEWER_STATED: pl.col("timeline_calls") > pl.col("stated_calls"),
            EACH_SHOWN: pl.col("timeline_calls") == pl.col("stated_calls"),
            LESS_IN_TIMELINE: (pl.col("timeline_ns") < pl.col("stated_ns"))
            | (pl.col("lacks") & (pl.col("figure") == EXPOSED)),
        },
        otherwise=EACH_SHOWN,
    )
    by_timeline = pl.col("why").is_in([FEWER_STATED, EACH_SHOWN])
    far = means.with_columns(off_ratio=apart / greater, lacks=lacks.any().over("rank")).filter(
        (pl.col("off_ratio") > limits.off_ratio) & (apart > limits.least_ns)
    )
    return (
        far.sort(-pl.col("off_ratio"), "rank")
        .group_by("figure", maintain_order=True)
        .agg(as_rank_list(pl.col("rank")).alias("ranks"), pl.exclude("figure").first())
        .with_columns(why=why)
        .with_columns(believe=pl.when(by_timeline).then(pl.lit(TIMELINE)).otherwise(pl.lit(STATED)))
        .select(names(COLUMNS))
        .sort(pl.col("figure").replace_strict({name: at for at, name in enumerate(FIGURES)}, return_dtype=pl.Int32))
    )


def _parts(breakdown: pl.DataFrame | None, step_totals: pl.LazyFrame | None) -> pl.DataFrame:
    """Computing and exposed communication of each step of which both are known."""
    if breakdown is None:
        return pl.DataFrame(schema=_SCHEMA)
    ways = {COMPUTING: "computing_ns", EXPOSED: "communication_not_overlapped_ns"}
    stated = STEP_TOTALS.or_empty(step_totals).select("rank", "step", *ways.values()).collect()
    once = stated.unique(["rank", "step"], keep="first", maintain_order=True)
    both = breakdown.select("rank", "step", *ways.values()).join(once, on=["rank", "step"], suffix="_stated")
    parts = [
        both.select(
            *("rank", "step"),
            figure=pl.lit(figure),
            stated_ns=f"{name}_stated",
            timeline_ns=name,
            stated_calls=pl.lit(None, pl.Int64),
            timeline_calls=pl.lit(None, pl.Int64),
        ).drop_nulls(["stated_ns", "timeline_ns"])
        for figure, name in ways.items()
    ]
    return pl.concat(parts)


def _calls(arrival: pl.DataFrame | None, communication_totals: pl.LazyFrame | None) -> pl.DataFrame:
    """The time in calls, and what of it is waiting if that is known of all, of each step of which both are known."""
    if arrival is None:
        return pl.DataFrame(schema=_SCHEMA)
    totals = COMMUNICATION_TOTALS.or_empty(communication_totals).collect()
    places, sums = ["rank", "step"], ["total_ns", "wait_ns"]
    named = totals.drop_nulls("name").group_by(places).agg(stated_calls=pl.len().cast(pl.Int64))
    stated = of_totals(totals.filter(pl.col("name").is_null())).group_by(places).agg(map(sum_known, sums))
    split = pl.col("unsplit_ns") == 0
    shown = of_calls(arrival, places).with_columns(wait_ns=pl.when(split).then("wait_ns"), timeline_calls="calls")
    both = shown.join(stated, on=places, suffix="_stated").join(named, on=places, how="left")
    parts = [
        both.select(
            *places,
            figure=pl.lit(figure),
            stated_ns=f"{name}_stated",
            timeline_ns=name,
            stated_calls="stated_calls",
            timeline_calls="timeline_calls",
        ).drop_nulls(["stated_ns", "timeline_ns"])
        for figure, name in zip((COMMUNICATION, WAITING), sums, strict=True)
    ]
    return pl.concat(parts)
