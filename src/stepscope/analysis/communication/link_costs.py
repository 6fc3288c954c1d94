"""What slow links cost a step: the time by which the calls that use them would end sooner."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.communication.exposed_calls import gained_ns
from stepscope.analysis.methods.statistics import rounded

_UNIT = ["unit", "ranks", "transport"]
_CALLS = ["step", "group", "operation"]
_LINK = ["first", "second", "transport"]


def link_costs(rows: pl.DataFrame, slow: pl.DataFrame, exposed_calls: pl.DataFrame | None) -> pl.DataFrame:
    """The cost of each slow unit in a step.

    The links of a group's calls work side by side, so these last as long as the slowest link. If several units slow
    the calls of a group down, what all of them cost is shared in proportion to what each costs at its slowest link.

    Args:
        rows: Rows of `links`: totals between different ranks, by step, group and operation.
        slow: The slow links, each with its unit (`unit`, `ranks`, `transport`), ends (`first`, `second`) and `speed`.
        exposed_calls: Which calls computing awaits; None if unknown.

    Returns:
        For each unit `cost_ns` and `exposed_ns`, by how much computing goes on sooner; null if unknown.
    """
    ends = {"first": pl.min_horizontal("source", "destination"), "second": pl.max_horizontal("source", "destination")}
    used = rows.with_columns(**ends)
    units = slow.select(*_UNIT, "first", "second", mended=pl.col("speed").clip(upper_bound=1.0))
    mended = units.group_by(_LINK).agg(pl.col("mended").min())
    calls = (
        used.join(mended, on=_LINK, how="left")
        .group_by(_CALLS)
        .agg(
            lost_ns=pl.col("duration_ns").max() - (pl.col("duration_ns") * pl.col("mended").fill_null(1.0)).max(),
        )
    )
    own = (
        used.join(units, on=_LINK)
        .group_by(*_CALLS, *_UNIT)
        .agg(own_ns=(pl.col("duration_ns") * (1 - pl.col("mended"))).max())
        .join(calls, on=_CALLS, nulls_equal=True)
        .with_columns(share=pl.col("own_ns") / pl.col("own_ns").sum().over(_CALLS))
        .with_columns(cost_ns=pl.col("share").fill_nan(0.0) * pl.col("lost_ns"))
    )
    return _of_steps(_covered(own, exposed_calls), used)


def _covered(own: pl.DataFrame, exposed_calls: pl.DataFrame | None) -> pl.DataFrame:
    """Costs of units by step and group (`cost_ns`) with `exposed_ns`: the part by which computing goes on sooner."""
    group = ["step", "group"]
    costs = own.group_by(*group, *_UNIT).agg(pl.col("cost_ns").sum())
    if exposed_calls is None:
        return costs.with_columns(exposed_ns=pl.lit(None, pl.Float64))
    total = costs.group_by(group).agg(lost_ns=pl.col("cost_ns").sum())
    of_rank = [*group, "rank"]
    calls = (
        exposed_calls.with_columns(sent_ns=pl.coalesce("sent_ns", pl.col("end_ns") - pl.col("start_ns")))
        .with_columns(share=(pl.col("sent_ns") / pl.col("sent_ns").sum().over(of_rank)).fill_nan(0.0))
        .join(total, on=group, nulls_equal=True)
        .with_columns(excess=pl.col("share") * pl.col("lost_ns"))
    )
    # The rank that gains least is the one for which the others wait then.
    least = gained_ns(calls, "excess").group_by(group).agg(sooner=pl.col("gained").min())
    part = (pl.col("sooner") / pl.col("cost_ns").sum().over(group)).fill_nan(0.0).clip(0.0, 1.0)
    return costs.join(least, on=group, how="left", nulls_equal=True).with_columns(exposed_ns=pl.col("cost_ns") * part)


def _of_steps(costs: pl.DataFrame, used: pl.DataFrame) -> pl.DataFrame:
    """Mean costs of units in a step: of the rank whose groups lose most together, as others lose at the same time."""
    members = pl.concat([used.select("step", "group", rank=end) for end in ("source", "destination")]).unique()
    steps = used["step"].n_unique()
    found = costs.join(members, on=["step", "group"], nulls_equal=True).group_by(*_UNIT, "rank")
    sums = found.agg(
        pl.col("cost_ns").sum(), pl.col("exposed_ns").sum(), known=pl.col("exposed_ns").is_not_null().all()
    )
    return sums.group_by(_UNIT).agg(
        cost_ns=rounded(pl.col("cost_ns").max() / steps),
        exposed_ns=pl.when(pl.col("known").all()).then(rounded(pl.col("exposed_ns").max() / steps)),
    )
