"""The steps that take far longer than the others of their rank, and with what."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.job.time_by_rank import LIMITS, Limits, measured
from stepscope.analysis.methods.pauses import pauses
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.step.idle import CAUSES
from stepscope.analysis.step.processor_waits import waited
from stepscope.tables import KERNELS, OPERATORS
from stepscope.tables.base import Column, schema_of

WORK = {
    "computing": pl.col("computing_ns"),
    "communication": pl.col("communication_not_overlapped_ns"),
    "memory": pl.col("memory_not_overlapped_ns"),
}
"""What a step's time is spent on, besides the causes of idle time."""

OUTSIDE = "outside"
"""Time of the host before a device's first work, or after its last."""

UNKNOWN = "unknown"

KINDS = (*WORK, *CAUSES, OUTSIDE, UNKNOWN)

MAIN = 0.5
"""Share of a step's extra time from which one kind of work explains it, chosen by us: most of it."""


@analysis(
    "rank",
    columns(
        "rank step by_phases",
        Column("window_ns", "int64", "Length of its window, with `outside_ns`."),
        Column("outside_ns", "int64", "Part of the step on the host before its rank's first window or after the last."),
        nulls="",
    ),
    together=True,
)
def step_lengths(timed_steps: pl.DataFrame, all_steps: pl.DataFrame) -> pl.DataFrame:
    """How long each step took: one row per step, in order.

    Windows of a device begin with its first work and end with its last, so they lack what the host does before and
    after.
    """
    start, end = pl.col("window_start_ns"), pl.col("window_start_ns") + pl.col("window_ns")
    seen = timed_steps.with_columns(first_ns=start.min().over("rank"), last_ns=end.max().over("rank"))
    host = all_steps.select("rank", "step", "start_ns", "end_ns").unique(["rank", "step"], maintain_order=True)
    before = pl.min_horizontal("end_ns", "first_ns") - pl.col("start_ns")
    after = pl.col("end_ns") - pl.max_horizontal("start_ns", "last_ns")
    outside = before.clip(lower_bound=0) + after.clip(lower_bound=0)
    of_device = pl.when(pl.col("window") == "device").then(outside).fill_null(0)
    found = seen.join(host, on=["rank", "step"], how="left", maintain_order="left").with_columns(outside_ns=of_device)
    length = pl.col("window_ns") + pl.col("outside_ns")
    return found.select("rank", "step", "by_phases", length.alias("window_ns"), "outside_ns")


COLUMNS = columns(
    "step",
    Column("rank", "int32", "Rank that spends most extra time on other things than communication.", nullable=False),
    Column("kind", "string", "What most of the extra time is spent on.", values=KINDS),
    Column("alike", "int32", "Number of ranks that spend at least half as much extra time on it."),
    meaning("window_ns", "Length of the step on this rank, without waits for a processor."),
    Column("median_ns", "int64", "Length of the rank's median step; of two steps, of the shorter one."),
    Column("excess_ns", "int64", "`window_ns` less `median_ns`."),
    Column("kind_ns", "int64", "Extra time of this kind, compared with the rank's median step."),
    Column("share_ratio", "float64", "Share of the rank's recorded time."),
    Column("is_first", "bool", "True for the first recorded step, and the first after a pause: these start things up."),
    meaning("steps", "Number of steps of the rank."),
    Column("recorded_ns", "int64", "Length of these steps."),
    Column(
        "same_work",
        "bool",
        "Of computing on a CPU: whether the step runs the operators, with the shapes, that most steps do; else null.",
    ),
    nulls="same_work",
)


@analysis("job", COLUMNS, whole_job=True, across_steps=True)
def outlier_steps(
    step_lengths: pl.DataFrame,
    breakdown: pl.DataFrame,
    idle: pl.DataFrame | None,
    outer_steps: pl.DataFrame | None = None,
    all_steps: pl.DataFrame | None = None,
    operators: pl.LazyFrame | None = None,
    kernels: pl.LazyFrame | None = None,
    processor_waits: pl.DataFrame | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Find the steps that take far longer than others of their rank, and what they spend the extra time on.

    The rank of a step is the one with most extra time other than communication, since the others wait for it. A step
    that only waits is left out beside one in which another rank is late: on a device, a rank that is late at the start
    of a step makes its own step before and the others' step longer.

    Of a CPU of which only phases were recorded, and that works with other ranks, it is unknown whether it computed or
    waited for them. If operators are missing on a rank, it is unknown whether others wait for it. A step after a pause
    of the recording, on any rank, counts as a first one: ranks go on at different times.

    What training threads wait for processors (`processor_waits`) makes no step long: lengths are without the wait of
    the rank that waits longest in the step, as the others wait for that.

    Returns:
        One row per step, in order.
    """
    net = (pl.col("window_ns") - _waited(step_lengths, processor_waits)).clip(lower_bound=0)
    every = measured(step_lengths.with_columns(window_ns=net), outer_steps, limits).with_columns(
        excess_ns=(pl.col("window_ns") - pl.col("median_ns")).cast(pl.Int64)
    )
    if all_steps is not None:
        resumed = pauses(all_steps)["step"].unique().sort()
        every = every.with_columns(is_first=pl.col("is_first") | pl.col("step").is_in(resumed.implode()))
    if not every["is_long"].any():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    excess = _excess(breakdown, idle, every)
    is_wait = pl.col("kind") == "communication"
    own = excess.filter(~is_wait).group_by("rank", "step").agg(own_ns=pl.col("kind_ns").clip(lower_bound=0).sum())
    rows = _with_late(every.join(own, on=["rank", "step"], how="left").with_columns(pl.col("own_ns").fill_null(0)))
    worst = rows.sort("step", -pl.col("own_ns"), -pl.col("excess_ns"), "rank").unique(
        "step", keep="first", maintain_order=True
    )
    is_own = pl.col("own_ns") >= MAIN * pl.col("excess_ns")
    kinds = excess.join(worst.select("rank", "step", is_own=is_own), on=["rank", "step"])
    order = kinds.filter(~pl.col("is_own") | ~is_wait).sort("rank", "step", -pl.col("kind_ns"), "kind")
    main = order.unique(["rank", "step"], keep="first", maintain_order=True)
    found = worst.join(main.select("rank", "step", "kind", "kind_ns"), on=["rank", "step"], how="left").with_columns(
        kind=pl.when(pl.col("kind_ns") >= MAIN * pl.col("excess_ns")).then("kind").fill_null(UNKNOWN),
        kind_ns=pl.col("kind_ns").fill_null(0),
    )
    others = excess.join(found.select("step", "kind", most_ns="kind_ns"), on=["step", "kind"])
    alike = others.filter(pl.col("kind_ns") >= MAIN * pl.col("most_ns")).group_by("step").agg(alike=pl.len())
    seen = [*ranks_of(OPERATORS.or_empty(operators)), *ranks_of(KERNELS.or_empty(kernels))]
    several = breakdown["rank"].n_unique() > 1
    in_phases = (pl.col("kind") == "computing") & ~pl.col("rank").is_in(seen) & several
    found = found.with_columns(kind=pl.when(in_phases).then(pl.lit(UNKNOWN)).otherwise("kind"))
    known = found.join(alike, on="step", how="left").with_columns(
        pl.col("alike").fill_null(1).cast(pl.Int32), pl.col("median_ns").cast(pl.Int64)
    )
    blind = [] if all_steps is None else _unrecorded(step_lengths, all_steps)
    is_blind = (pl.col("kind") == "communication") & pl.col("step").is_in(blind)
    told = _without_waits(known).with_columns(kind=pl.when(is_blind).then(pl.lit(UNKNOWN)).otherwise("kind"))
    same = _same_work(told, OPERATORS.or_empty(operators), ranks_of(KERNELS.or_empty(kernels)))
    return told.join(same, on=["rank", "step"], how="left").select(names(COLUMNS)).sort("step")


def _same_work(long: pl.DataFrame, operators: pl.LazyFrame, on_devices: list[int]) -> pl.DataFrame:
    """Whether long steps that compute on a CPU run what most steps of their rank do: `rank`, `step`, `same_work`."""
    asked = long.filter((pl.col("kind") == "computing") & ~pl.col("rank").is_in(on_devices))["rank"].unique().to_list()
    shape = pl.col("input_shapes").fill_null("")
    # a sum tells the same calls in any order from others; of half the bits, so that it does not overflow
    call = (pl.struct("name", shape).hash() % 2**32).cast(pl.Int64)
    works = (
        operators.filter(pl.col("rank").is_in(asked) & pl.col("step").is_not_null())
        .group_by("rank", "step")
        .agg(work=call.sum())
        .collect(engine="streaming")
    )
    alike = pl.len().over("rank", "work") > pl.len().over("rank") / 2
    of_computing = long.filter(pl.col("kind") == "computing").select("rank", "step")
    return works.select("rank", "step", same_work=alike).join(of_computing, on=["rank", "step"], how="semi")


def _waited(step_lengths: pl.DataFrame, processor_waits: pl.DataFrame | None) -> pl.Series:
    """What the rank that waits longest for a processor in a step waits, for each row; 0 if it is unknown."""
    return (
        step_lengths.select("rank", "step")
        .with_columns(waited(step_lengths, processor_waits))
        .select(pl.col("run_delay_ns").max().over("step"))
        .to_series()
    )


def _with_late(rows: pl.DataFrame) -> pl.DataFrame:
    """The long steps, and those that make the others wait in them, though they are not that much longer than their
    rank's own: a rank that is late in every step has a long median."""
    own, excess = pl.col("own_ns"), pl.col("excess_ns")
    waiting = rows.filter(pl.col("is_long") & (own < MAIN * excess)).group_by("step").agg(waited_ns=excess.max())
    before = waiting.select(pl.col("step") - 1, "waited_ns")
    waited = pl.concat([waiting, before]).group_by("step").agg(pl.col("waited_ns").max())
    is_late = pl.min_horizontal(own, excess) >= MAIN * pl.col("waited_ns")
    return rows.join(waited, on="step", how="left").filter(pl.col("is_long") | is_late.fill_null(value=False))


def _unrecorded(step_lengths: pl.DataFrame, all_steps: pl.DataFrame) -> list[int]:
    """The steps of which operators are missing on some rank, so that it is unknown whether others wait for it."""
    known = step_lengths.filter(~pl.col("by_phases"))
    missing = all_steps.join(known, on=["rank", "step"], how="anti")
    steps: list[int] = missing["step"].unique().sort().to_list()
    return steps


def _excess(breakdown: pl.DataFrame, idle: pl.DataFrame | None, long: pl.DataFrame) -> pl.DataFrame:
    """The extra time of each kind in long steps, against the rank's median step: `rank`, `step`, `kind`, `kind_ns`."""
    keys = ["rank", "step"]
    parts = [breakdown.select(*keys, kind=pl.lit(kind), spent_ns=value) for kind, value in WORK.items()]
    if idle is not None:
        parts.append(idle.select(*keys, kind="cause", spent_ns="idle_ns"))
    spent = pl.concat(parts)
    every = breakdown.select(keys).join(spent.select("rank", "kind").unique(), on="rank")
    usual = (
        every.join(spent, on=[*keys, "kind"], how="left")
        .with_columns(pl.col("spent_ns").fill_null(0))
        .with_columns(usual_ns=pl.col("spent_ns").quantile(0.5, "lower").over("rank", "kind"))
    )
    outside = long.filter(pl.col("outside_ns") > 0).select(*keys, kind=pl.lit(OUTSIDE), kind_ns="outside_ns")
    more = (pl.col("spent_ns") - pl.col("usual_ns")).cast(pl.Int64).alias("kind_ns")
    return pl.concat([usual.join(long.select(keys), on=keys).select(*keys, "kind", more), outside]).sort(*keys, "kind")


def _without_waits(found: pl.DataFrame) -> pl.DataFrame:
    """The steps without those of communication beside one with another kind of extra time."""
    waits = {*found.filter(pl.col("kind") == "communication")["step"]}
    others = {*found["step"]} - waits
    caused = [step for step in waits if {step - 1, step + 1} & others]
    return found.filter(~pl.col("step").is_in(caused))
