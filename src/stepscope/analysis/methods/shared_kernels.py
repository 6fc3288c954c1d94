"""Which programs run mostly the same kernels, so that these can be compared although some ranks run others as well."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.methods.programs import common_counts, united
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When programs share kernels."""

    smaller_ratio: float = limit(0.8, "of the kernels of the smaller, counted", "chosen by us: stages share layers")
    larger_ratio: float = limit(0.5, "of the kernels of the larger, counted", "chosen by us: else little is comparable")
    names: int = limit(3, "names of kernels", "chosen by us: fewer are shared by chance")
    lacking_ratio: float = limit(
        0.1, "of the kernels of a program, that a rank compared with it lacks", "as ranks of one program"
    )
    alike_ratio: float = limit(
        1.15,
        "between the quartiles of how long the kernels take",
        "chosen by us: a slow device slows all kernels alike",
    )


LIMITS = Limits()

COUNTS = ["program", "what", "count", "middle_ns"]


def typical_counts(counts: pl.DataFrame, of: str) -> pl.DataFrame:
    """How often the typical rank runs each kernel, and how long it takes: `of`, `what`, `count`, `middle_ns`.

    Args:
        counts: `rank`, `what`, `count`, `middle_ns` and the column `of`.
        of: What the ranks are of: a program or a cluster. Of an even number of ranks, the lower middle counts.
    """
    ranks = counts.group_by(of).agg(ranks=pl.col("rank").n_unique())
    listed = counts.group_by(of, "what").agg(pl.col("count").sort(), pl.col("middle_ns").median())
    place = (pl.col("ranks").cast(pl.Int64) - 1) // 2 - (pl.col("ranks").cast(pl.Int64) - pl.col("count").list.len())
    found = listed.join(ranks, on=of).with_columns(place=place).filter(pl.col("place") >= 0)
    return found.select(of, "what", pl.col("count").list.get(pl.col("place")), "middle_ns").sort(of, "what")


def shared_kernels(programs: pl.DataFrame, counts: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Compare single ranks with programs whose kernels they run as well, and find which programs share most kernels.

    A rank without a peer, e.g. the only one of the last pipeline stage, is put into the program of others if it runs
    all their kernels, each as long or all longer alike, however many more it runs.

    Args:
        programs: `rank` and `program`, as of `programs`.
        counts: `rank`, `what`, `count` and `middle_ns` (typical length) of the kernels in a step.

    Returns:
        `rank`, `program` (lowest rank in it) and `cluster` (lowest rank of programs that share most kernels).
    """
    typical = typical_counts(counts.join(programs, on="rank"), "program")
    totals = typical.group_by("program").agg(total=pl.col("count").sum()).sort("program")
    pairs = _pairs(typical, totals)
    least = pl.min_horizontal("total", "others") * limits.smaller_ratio
    most = pl.max_horizontal("total", "others") * limits.larger_ratio
    near = pairs.filter((pl.col("common") >= least) & (pl.col("common") >= most) & (pl.col("names") >= limits.names))
    ids = programs["program"].unique().sort().to_list()
    single = programs.filter(pl.len().over("program") == 1)["program"]
    joined = _joined(near, typical, single, limits)
    clusters = united(ids, set(), list(near.select("program", "other").rows()))
    found = programs.with_columns(
        program=pl.col("program").replace(joined), cluster=pl.col("program").replace_strict(clusters)
    )
    return found.select("rank", *(pl.col("rank").min().over(of).alias(of) for of in ("program", "cluster")))


def _pairs(typical: pl.DataFrame, totals: pl.DataFrame) -> pl.DataFrame:
    """What each two programs have in common: `program`, `other` (higher), `common`, `names`, `total`, `others`."""
    own = typical.select("what", "count", rank="program")
    common = pl.concat(common_counts(own)).rename({"rank": "program"})
    return common.join(totals, on="program").join(totals.rename({"program": "other", "total": "others"}), on="other")


def _joined(near: pl.DataFrame, typical: pl.DataFrame, single: pl.Series, limits: Limits) -> dict[int, int]:
    """The program that each single rank is compared with, those that run fewest kernels first."""
    turned = near.rename({"program": "other", "other": "program", "total": "others", "others": "total"})
    ways = pl.concat([near, turned.select(near.columns)]).filter(
        pl.col("program").is_in(single.implode()),
        pl.col("others") - pl.col("common") <= limits.lacking_ratio * pl.col("others"),
    )
    ways = ways.with_columns(ratio=pl.col("common") / (pl.col("total") + pl.col("others") - pl.col("common")))
    ordered = ways.sort("total", "program", -pl.col("ratio"), "other")
    root: dict[int, int] = {}

    def top(program: int) -> int:
        while program in root:
            program = root[program]
        return program

    for program, other in ordered.select("program", "other").iter_rows():
        if program not in root and top(other) != program and _alike(typical, program, other, limits):
            root[program] = top(other)
    return {program: top(program) for program in root}


def _alike(typical: pl.DataFrame, one: int, other: int, limits: Limits) -> bool:
    """Whether the kernels of one take as long as those of the other, or all alike longer."""
    mine, theirs = (typical.filter(program=program) for program in (one, other))
    both = mine.join(theirs, on="what", suffix="_there").filter(
        (pl.col("middle_ns") > 0) & (pl.col("middle_ns_there") > 0)
    )
    ratio = pl.col("middle_ns") / pl.col("middle_ns_there")
    rows = both.select(ratio=ratio, weight=pl.col("count_there") * pl.col("middle_ns_there")).sort("ratio")
    share = rows.with_columns(share=pl.col("weight").cum_sum() / pl.col("weight").sum())
    low, high = (share.filter(pl.col("share") >= part)["ratio"].min() for part in (0.25, 0.75))
    return isinstance(low, float) and isinstance(high, float) and high <= low * limits.alike_ratio
