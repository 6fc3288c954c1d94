"""What the job would gain if experts were spread evenly over the ranks of their groups, by a replay."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.job.expert_load import EXPERTS
from stepscope.analysis.methods.job_graph import job_graph
from stepscope.analysis.rank_lists import listed
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.work import HOST
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of


@dataclass(frozen=True)
class Limits:
    """Which groups are replayed."""

    uneven_ratio: float = limit(1.02, "of the mean load, on the rank with most", "chosen by us: less saves nothing")
    most: int = limit(64, "groups that are replayed", "the most uneven ones; each costs a replay")


COLUMNS = columns(
    "group",
    Column("ranks", "string", "Ranks of the group that compute experts, e.g. `0, 1`."),
    Column("saving_ns", "int64", "What the mean step would be shorter if their experts took each the same time."),
    meaning("step_ns", "The mean step of the replay."),
    meaning("steps", "Number of replayed steps."),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it."),
    nulls="group",
)


@analysis("job", COLUMNS, whole_job=True)
def expert_costs(
    expert_groups: pl.DataFrame,
    work: pl.DataFrame,
    dependencies: pl.DataFrame,
    arrival: pl.DataFrame | None,
    clocks: pl.DataFrame | None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Replay the job with the time of expert kernels the same on all ranks of a group, in each step: one row for each
    uneven group, most uneven first. All other work stays as it is.

    Raises:
        Unavailable: If no work lies in a step.
    """
    uneven = expert_groups.filter(pl.col("imbalance_ratio") >= limits.uneven_ratio).head(limits.most)
    if uneven.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    graph = job_graph(work, dependencies, arrival, clocks)
    recorded, replayed = graph.recorded_step_times(), graph.step_times()
    if recorded.is_empty():
        raise Unavailable("no work lies in a step")
    lengths, lag_ns = graph.simulation.duration_ns, graph.simulation.lag_ns
    is_expert = (pl.col("kind") == "computing") & (pl.col("lane") != HOST) & pl.col("name").str.contains(EXPERTS)
    cell = ["rank", "step"]
    nodes = graph.nodes.select(*cell, is_expert=is_expert.fill_null(value=False), length=lengths)
    total = sum(replayed)
    rows = []
    for group, ranks in uneven.select("group", "ranks").iter_rows():
        marked = nodes.with_columns(own=pl.col("is_expert") & pl.col("rank").is_in(listed(ranks)))
        sums = marked.filter(pl.col("own") & pl.col("step").is_not_null()).group_by(cell).agg(pl.col("length").sum())
        mean = pl.col("length").mean().over("step")
        factors = sums.select(*cell, factor=mean / pl.col("length").clip(lower_bound=1))
        even = (
            marked.join(factors, on=cell, how="left", maintain_order="left")
            .select(length=pl.when("own").then(pl.col("length") * pl.col("factor").fill_null(1.0)).otherwise("length"))
            .to_series()
        )
        left = sum(graph.step_times(even.round().cast(pl.Int64), lag_ns))
        saving = max(0, round((total - left) / len(replayed)))
        error = total / sum(recorded) - 1 if sum(recorded) else 0.0
        rows.append((group, ranks, saving, round(total / len(replayed)), len(replayed), error))
    return pl.DataFrame(rows, schema=schema_of(COLUMNS), orient="row")
