"""For which ranks the others wait in communication while they compute nothing."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

COLUMNS = columns(
    Column("rank", "int32", "The rank that the others wait for: it enters their calls last.", nullable=False),
    meaning("wait_ns", "Time that the mean rank waits for it in a step and computes nothing."),
    meaning("share_ratio", "Share of all such waiting."),
    Column("calls", "int64", "Calls that it enters last, in all steps.", importance=36),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True)
def waited_for(arrival: pl.DataFrame, exposed_calls: pl.DataFrame) -> pl.DataFrame:
    """Sum up the exposed waiting in each call by the rank that enters it last; of several, each has an equal part.

    This says who comes last, not why: a rank that comes last may have waited for another one in another group.

    Returns:
        One row per rank, the one that is waited for most first.
    """
    known = exposed_calls.filter(pl.col("wait_ns").is_not_null())
    steps = exposed_calls.select(pl.struct("rank", "step").n_unique()).item() or 1
    lasts = arrival.filter("is_last").select("rank", *CALL).with_columns(part=1 / pl.len().over(CALL))
    waits = known.group_by(CALL).agg(pl.col("wait_ns").sum())
    found = lasts.join(waits, on=CALL, nulls_equal=True).group_by("rank")
    sums = found.agg(waited=(pl.col("part") * pl.col("wait_ns")).sum(), calls=pl.len().cast(pl.Int64))
    return (
        sums.filter(pl.col("waited") > 0)
        .with_columns(wait_ns=rounded(pl.col("waited") / steps), share_ratio=pl.col("waited") / pl.col("waited").sum())
        .sort(-pl.col("wait_ns"), "rank")
        .select(names(COLUMNS))
    )


MOST = 0.8
"""Share of the waiting that the ranks that are named cause together."""


def late_ranks(waited: pl.DataFrame, ranks: int) -> list[int]:
    """The ranks that cause most of the waiting, in order; none if that takes more than a quarter of all ranks.

    Args:
        waited: `waited_for`.
        ranks: How many ranks there are.
    """
    before = pl.col("share_ratio").cum_sum() - pl.col("share_ratio")
    late = waited.filter(before < MOST)["rank"].to_list()
    return sorted(late) if len(late) <= max(1, ranks // 4) else []
