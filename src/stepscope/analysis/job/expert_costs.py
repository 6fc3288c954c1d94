"""What the job would gain if experts were spread evenly over the ranks of their groups, by a replay."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.job.expert_load import EXPERTS
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.rank_lists import listed
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.work import HOST
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of


@dataclass(frozen=True)
class Limits:
    """Which groups are replayed."""

    uneven_ratio: float = limit(1.02, "of the mean load, on the rank with most", "chosen by us: less saves nothing")
    uneven_call_ratio: float = limit(
        1.1, "of the mean load, on the rank with most in each call", "chosen by us: routers differ by some per cent"
    )
    most: int = limit(64, "groups that are replayed", "the most uneven ones; each costs a replay")


COLUMNS = columns(
    "group",
    Column("ranks", "string", "Ranks of the group that compute experts, e.g. `0, 1`."),
    Column("saving_ns", "int64", "What the mean step would be shorter if their experts took each the same time."),
    Column("together_ns", "int64", "The same if those of all these groups did.", title="of all groups"),
    meaning("step_ns", "The mean step of the replay."),
    meaning("steps", "Number of replayed steps."),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it."),
    nulls="group",
)


@analysis("job", COLUMNS, whole_job=True)
def expert_costs(
    expert_groups: pl.DataFrame,
    work_graph: Prepared[JobGraph],
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Replay the job with the time of each expert kernel the same on all ranks of a group: one row for each uneven
    group, most uneven first. All other work stays as it is. In steps in which ranks have another number of these
    kernels, their sum in the step is the same.

    Raises:
        Unavailable: If no work lies in a step.
    """
    in_calls = (pl.col("call_imbalance_ratio") >= limits.uneven_call_ratio).fill_null(value=False)
    uneven = expert_groups.filter((pl.col("imbalance_ratio") >= limits.uneven_ratio) | in_calls).head(limits.most)
    if uneven.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    graph = work_graph()
    recorded, replayed = graph.recorded_step_times(), graph.step_times()
    if recorded.is_empty():
        raise Unavailable("no work lies in a step")
    lengths, lag_ns = graph.simulation.duration_ns, graph.simulation.lag_ns
    is_expert = (pl.col("kind") == "computing") & (pl.col("lane") != HOST) & pl.col("name").str.contains(EXPERTS)
    experts = (
        graph.nodes.select("rank", "step", "lane", "work", is_expert=is_expert.fill_null(value=False), length=lengths)
        .with_row_index("node")
        .filter(pl.col("is_expert") & pl.col("step").is_not_null())
        .sort("rank", "step", "lane", "work", "node")
        .with_columns(call=pl.int_range(pl.len()).over("rank", "step"), calls=pl.len().over("rank", "step"))
    )
    total = sum(replayed)

    def saved(even: pl.DataFrame) -> int:
        changed = lengths.clone().scatter(even["node"], even["length"])
        return max(0, round((total - sum(graph.step_times(changed, lag_ns))) / len(replayed)))

    error = total / sum(recorded) - 1 if sum(recorded) else 0.0
    evened = [_evened(experts.filter(pl.col("rank").is_in(listed(ranks)))) for ranks in uneven["ranks"]]
    alone = [saved(one) for one in evened]
    together = alone[0] if len(alone) == 1 else saved(pl.concat(evened).unique("node", keep="first"))
    rows = [
        (group, ranks, saving, together, round(total / len(replayed)), len(replayed), error)
        for (group, ranks), saving in zip(uneven.select("group", "ranks").iter_rows(), alone, strict=True)
    ]
    return pl.DataFrame(rows, schema=schema_of(COLUMNS), orient="row")


def _evened(own: pl.DataFrame) -> pl.DataFrame:
    """The expert kernels of a group's ranks (`node`) with their `length` if all ranks took the same time."""
    alike = pl.col("calls").n_unique().over("step") == 1
    own = own.with_columns(call=pl.when(alike).then("call").otherwise(-1))
    sums = own.group_by("rank", "step", "call").agg(of_rank=pl.col("length").sum())
    mean = pl.col("of_rank").mean().over("step", "call")
    factors = sums.with_columns(factor=mean / pl.col("of_rank").clip(lower_bound=1))
    joined = own.join(factors, on=["rank", "step", "call"], maintain_order="left")
    return joined.select("node", length=(pl.col("length") * pl.col("factor")).round().cast(pl.Int64))
