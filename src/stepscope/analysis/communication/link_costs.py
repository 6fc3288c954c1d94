"""What slow links cost a step by themselves: the time by which the calls that use them would end sooner."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.link_cuts import ENDS, beside, steps_of
from stepscope.analysis.methods.statistics import rounded

_CALLS = ["step", "group", "operation"]


def link_costs(links: pl.LazyFrame, suspected: pl.DataFrame) -> pl.DataFrame:
    """The cost of each slow unit in a step.

    The links of a group's calls work side by side, so these last as long as the slowest link. If several units slow
    the calls of a group down, what all of them cost is shared in proportion to what each costs at its slowest link.

    Args:
        links: The table.
        suspected: The analysis `suspected_links`.

    Returns:
        For each `suspect` its `cost_ns`.
    """
    units = suspected.select("suspect", *ENDS, "step", "ratio")
    slow = [*ENDS, "step"]
    mended = units.group_by(slow).agg(pl.col("ratio").min())
    length = pl.col("duration_ns")
    rows = beside(links, units)
    calls = (
        rows.join(mended, on=slow, how="left", nulls_equal=True)
        .group_by(_CALLS)
        .agg(lost_ns=length.max() - (length * pl.col("ratio").fill_null(1.0)).max())
    )
    own = (
        rows.join(units, on=slow, nulls_equal=True)
        .group_by(*_CALLS, "suspect")
        .agg(own_ns=(length * (1 - pl.col("ratio"))).max())
        .join(calls, on=_CALLS, nulls_equal=True)
        .with_columns(share=(pl.col("own_ns") / pl.col("own_ns").sum().over(_CALLS)).fill_nan(0.0))
        .with_columns(cost_ns=pl.col("share") * pl.col("lost_ns"))
    )
    return _of_steps(own, rows, steps_of(links))


def _of_steps(costs: pl.DataFrame, rows: pl.DataFrame, steps: int) -> pl.DataFrame:
    """Mean costs of units in a step: of the rank whose groups lose most together, as others lose at the same time."""
    members = pl.concat([rows.select("step", "group", rank=end) for end in ("source", "destination")]).unique()
    of_ranks = costs.join(members, on=["step", "group"], nulls_equal=True).group_by("suspect", "rank")
    sums = of_ranks.agg(pl.col("cost_ns").sum())
    return sums.group_by("suspect").agg(cost_ns=rounded(pl.col("cost_ns").max() / steps))
