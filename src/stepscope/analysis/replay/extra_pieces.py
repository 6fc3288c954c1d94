"""What ranks compute in addition to what others do, by design: a stage's output layer, metrics of one rank."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.shared_kernels import typical_counts
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.alike_ranks import median_counts
from stepscope.limits import limit
from stepscope.tables import KERNELS
from stepscope.tables.base import Column, schema_of


@dataclass(frozen=True)
class Limits:
    """When a rank does more than others, not something instead."""

    lacking_ratio: float = limit(
        0.5, "of what it does more often, that it does less often", "chosen by us: then it does one for the other"
    )
    alike_ratio: float = limit(
        0.1, "of the length of a call", "chosen by us: if calls are no longer than on others, none of them stands out"
    )

    larger_ratio: float = limit(
        0.04, "of what a kernel takes in a stage, beyond other stages", "as `gap_ratio`: healthy devices differ less"
    )


COLUMNS = columns(
    "rank",
    Column("work", "int64", "Number of the piece of `work`."),
    "step",
    Column("name", "string", "Name of the kernel."),
    Column("type", "string", "Its operator type; null if not recorded."),
    "duration_ns",
    Column("is_only", "bool", "True if typical ranks never run it, false if they run it less often."),
    Column("is_spread", "bool", "True if any other call of this kernel might as well be the extra one."),
    Column("is_larger", "bool", "True if others run it as often, on smaller shapes."),
    Column("extra_ratio", "float64", "How much of it is extra: 1, or less if it `is_larger`."),
    Column("compared", "bool", "True if the rank is compared with others by what is left (`alike_ranks`)."),
    nulls="type",
)


@analysis("job", COLUMNS, whole_job=True)
def extra_pieces(
    work: pl.DataFrame,
    alike_ranks: pl.DataFrame,
    kernels: pl.LazyFrame | None,
    stage_shapes: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Find the kernels that a rank runs more often than typical ranks of its program, or of those that run mostly the
    same kernels (`alike_ranks`): one row per piece of `work`, in order.

    If others run the same kernel, but less often, the longest calls count as extra, or some of each length, whichever
    leaves calls as long as those of the others. A rank that runs about as many other kernels less often has other
    kernels instead, e.g. another algorithm, and a kernel on the CPU of a device is a fault: both are none. So is
    what is not recorded by kernel. Of pipeline stages that get larger shapes (`stage_shapes`), the part of each call is
    extra by which it takes longer than on typical ranks.
    """
    does = work.filter((pl.col("kind") == "computing") & pl.col("name").is_not_null() & pl.col("step").is_not_null())
    several = alike_ranks.filter(pl.len().over("cluster") > 1)
    timed = does.select("rank", "step", "work", what="name", duration_ns=pl.col("end_ns") - pl.col("start_ns"))
    lengths = timed.group_by("rank", "what").agg(
        middle_ns=pl.col("duration_ns").median(), mean_ns=pl.col("duration_ns").mean()
    )
    counts = median_counts(timed.select("rank", "step", "what")).join(lengths, on=["rank", "what"])
    counts = counts.join(several, on="rank")
    among = pl.len().over("program") > 1
    parts = []
    extra_in_program: list[int] = []
    for of, compared in (("program", True), ("cluster", False)):
        found = _more(counts, several.filter(among) if compared else several, of, limits)
        if not compared:
            found = found.filter(~pl.col("rank").is_in(extra_in_program))
        extra_in_program = found["rank"].unique().to_list()
        parts.append(found.with_columns(compared=pl.lit(compared)))
    more = pl.concat(parts)
    if not more.is_empty():
        types = _types(KERNELS.or_empty(kernels), more)
        more = more.join(types, on=["rank", "what"], how="left").filter(~pl.col("on_cpu").fill_null(False))
    larger = pl.DataFrame(schema=schema_of(COLUMNS))
    if stage_shapes is not None:
        larger = _larger(timed.join(more, on=["rank", "what"], how="anti"), several, kernels, stage_shapes, limits)
    if more.is_empty():
        return larger
    calls = timed.join(more, on=["rank", "what"]).with_columns(calls=pl.len().over("rank", "what", "step"))
    calls = calls.with_columns(extra=(pl.col("calls").cast(pl.Int64) - pl.col("usual")).clip(lower_bound=0))
    order = pl.struct(-pl.col("duration_ns"), "work").rank("ordinal").over("rank", "what", "step").cast(pl.Int64)
    calls = calls.with_columns(order=order)
    longest = pl.col("order") <= pl.col("extra")
    spread = pl.col("order") * pl.col("extra") // pl.col("calls") > (
        (pl.col("order") - 1) * pl.col("extra") // pl.col("calls")
    )
    left = calls.group_by("rank", "what").agg(
        after_longest=pl.col("duration_ns").filter(~longest).mean(),
        after_spread=pl.col("duration_ns").filter(~spread).mean(),
    )
    off_longest, off_spread = (
        (pl.col(name) - pl.col("expected_ns")).abs() for name in ("after_longest", "after_spread")
    )
    ways = left.join(more, on=["rank", "what"]).select(
        "rank",
        "what",
        is_spread=((off_spread <= off_longest) | (off_spread <= limits.alike_ratio * pl.col("expected_ns"))).fill_null(
            False
        ),
    )
    picked = calls.join(ways, on=["rank", "what"]).filter(pl.when("is_spread").then(spread).otherwise(longest))
    picked = picked.with_columns(is_spread=pl.col("is_spread") & (pl.col("usual") > 0))
    found = picked.with_columns(is_only=pl.col("usual") == 0, is_larger=pl.lit(value=False), extra_ratio=pl.lit(1.0))
    rows = pl.concat([found.rename({"what": "name"}).select(names(COLUMNS)), larger], how="vertical_relaxed")
    return rows.sort("rank", "work")


def _larger(
    timed: pl.DataFrame,
    ranks: pl.DataFrame,
    kernels: pl.LazyFrame | None,
    stage_shapes: pl.DataFrame,
    limits: Limits,
) -> pl.DataFrame:
    """Calls on larger shapes than in other pipeline stages; the rank itself may be slow, so that its stage counts."""
    rows = timed.join(ranks.join(stage_shapes, on="rank"), on="rank")
    types = _types(KERNELS.or_empty(kernels), rows.select("what"))
    rows = rows.join(types, on=["rank", "what"], how="left")
    rows = rows.filter(pl.coalesce("type", "what").is_in("names"), ~pl.col("on_cpu").fill_null(value=False))
    steps = timed.group_by("rank").agg(steps=pl.col("step").n_unique())
    means = rows.group_by("cluster", "shaped", "rank", "what").agg(length=pl.col("duration_ns").sum())
    means = means.join(steps, on="rank").with_columns(length=pl.col("length") / pl.col("steps"))
    own = pl.col("length").quantile(0.5, "lower").over("cluster", "shaped", "what")
    usual = pl.col("own_ns").quantile(0.5, "lower").over("cluster", "what")
    shares = means.with_columns(own_ns=own).with_columns(extra_ratio=1 - usual / pl.col("own_ns"))
    most = shares.filter(pl.col("extra_ratio") > limits.larger_ratio).select("rank", "what", "extra_ratio")
    found = rows.join(most, on=["rank", "what"]).with_columns(
        is_only=pl.lit(value=False),
        is_spread=pl.lit(value=True),
        is_larger=pl.lit(value=True),
        compared=pl.lit(value=False),
    )
    return found.rename({"what": "name"}).select(names(COLUMNS)).sort("rank", "work")


def _more(counts: pl.DataFrame, ranks: pl.DataFrame, of: str, limits: Limits) -> pl.DataFrame:
    """What ranks run more often than typical ones: `rank`, `what`, `usual` (count) and `expected_ns` (how long a call
    takes if it takes as long as on others, and all as much longer as those kernels that it runs as often)."""
    known = counts.join(ranks.select("rank"), on="rank", how="semi")
    typical = typical_counts(known.select("rank", "what", "count", "middle_ns", of), of).select(
        of, "what", usual="count"
    )
    own = known.join(typical, on=[of, "what"], how="left").with_columns(pl.col("usual").fill_null(0))
    others = _others(own, of)
    own = own.join(others, on=["rank", "what"], how="left")
    as_often = (pl.col("count") == pl.col("usual")) & pl.col("others_ns").is_not_null()
    usual_ns = (pl.col("count") * pl.col("others_ns")).filter(as_often).sum()
    factors = own.group_by("rank").agg(
        factor=pl.when(usual_ns > 0).then((pl.col("count") * pl.col("mean_ns")).filter(as_often).sum() / usual_ns),
        more=(pl.col("count") - pl.col("usual")).clip(lower_bound=0).sum(),
        did=pl.min_horizontal("count", "usual").sum(),
        of=pl.col(of).first(),
    )
    totals = typical.group_by(of).agg(usually=pl.col("usual").sum())
    lacking = (pl.col("usually") - pl.col("did")) > limits.lacking_ratio * pl.col("more")
    real = factors.join(totals, left_on="of", right_on=of).filter((pl.col("more") > 0) & ~lacking)
    found = own.filter(pl.col("count") > pl.col("usual")).join(real.select("rank", "factor"), on="rank")
    return found.select("rank", "what", "usual", expected_ns=pl.col("others_ns") * pl.col("factor").fill_null(1.0))


def _others(own: pl.DataFrame, of: str) -> pl.DataFrame:
    """How long a call takes on the typical rank that runs it at most as often as usual: `rank`, `what`, `others_ns`."""
    usual = own.filter(pl.col("count") <= pl.col("usual"))
    middle = usual.group_by(of, "what").agg(others_ns=pl.col("mean_ns").median())
    return own.select("rank", "what", of).join(middle, on=[of, "what"]).drop(of)


def _types(kernels: pl.LazyFrame, more: pl.DataFrame) -> pl.DataFrame:
    """The type of each kernel, and whether it ran on the CPU of its device: `rank`, `what`, `type`, `on_cpu`."""
    rows = kernels.filter(pl.col("name").is_in(more["what"].unique().implode()))
    found = rows.group_by("rank", what="name").agg(pl.col("type").min(), on_cpu=(pl.col("core") == "AI_CPU").any())
    return found.collect()
