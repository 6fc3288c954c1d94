"""How long steps would take if some work took another time."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.excess_places import PLACE
from stepscope.analysis.methods.extra_waits import of_cells
from stepscope.analysis.methods.job_graph import JobGraph, without_waits
from stepscope.analysis.methods.named_work import NamedWork
from stepscope.analysis.methods.scenario import Change, faster, scaled
from stepscope.analysis.methods.scenario import without as parsed_without
from stepscope.analysis.methods.work_index import WorkIndex
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.replay import NO_STEPS, STEP_TIMES
from stepscope.analysis.replay.transmission_cuts import transmission_cuts
from stepscope.errors import StepscopeError, Unavailable
from stepscope.tables.base import Column

COLUMNS = columns(
    "step",
    *STEP_TIMES,
    Column("changed_ns", "int64", "The same in a replay with the changes."),
    Column("saving_ns", "int64", "`replayed_ns` minus `changed_ns`; negative if the step becomes longer."),
    Column("saving_ratio", "float64", "`saving_ns` over `replayed_ns`.", title="saved"),
    Column(
        "less_ns",
        "int64",
        "Work that the changes take away in the step, summed over all ranks; negative if they add some.",
        title="work taken away",
        importance=30,
    ),
    Column(
        "unmatched_ns",
        "int64",
        "Of `less_ns`, what is taken from calls with members that were not recorded: these may wait for them.",
        title="of calls with unknown members",
        importance=10,
    ),
    Column(
        "error_ratio",
        "float64",
        "`replayed_ns` over `recorded_ns`, minus 1: how far the replay is off without changes.",
    ),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True, across_steps=True)
def what_if(
    changing_work: Prepared[JobGraph],
    work_index: Prepared[WorkIndex],
    own_cuts: Prepared[pl.Series | None],
    lone_waits: Prepared[pl.DataFrame],
    ranks: pl.LazyFrame,
    groups: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    links: pl.LazyFrame | None,
    transports: pl.LazyFrame | None,
    parallel_layout: pl.DataFrame,
    without: str | None = None,
    scale: str | None = None,
    bandwidth: str | float | None = None,
    ideal: bool = False,
) -> pl.DataFrame:
    """Replay each step with changed durations: one row per step, in order. All changes are made together.

    Args:
        without: What loses its excess: own work, what it takes longer than on comparable ranks (`excess`); calls, what
            they transmit longer than usual for their size. E.g. `rank=6` or `host=node3,kind=dispatch`; several
            separated by `;`. What can be named is `scenario.WHERE`.
        scale: Which work takes another time, and how much, e.g. `op=FlashAttention,0.7`.
        bandwidth: Factor by which communication moves data faster, e.g. `2x` (all) or `transport=RDMA,2x`.
        ideal: Take away the excess of all ranks in their own work.

    Raises:
        Unavailable: If no work lies in a step, or there is nothing to compare with.
        StepscopeError: If a change is not understood, or nothing is meant by it.
    """
    graph = changing_work()
    recorded, replayed = graph.recorded_step_times(), graph.step_times()
    if recorded.is_empty():
        raise Unavailable(NO_STEPS)
    index = work_index()
    named = NamedWork(graph, index, ranks.collect(), groups, operators, links, transports, parallel_layout)
    now, lag_ns = graph.simulation.duration_ns, graph.simulation.lag_ns
    taken = [] if without is None else parsed_without(without)
    scales = [] if scale is None else scaled(scale)
    speeds = [] if bandwidth is None else faster(str(bandwidth))
    _checked(graph, taken, speeds, ideal=ideal)
    changed, durations = _without(named, own_cuts, lone_waits, taken, ideal=ideal) if ideal or taken else (graph, now)
    for change in (*scales, *speeds):
        factor = 1.0 if change.factor is None else change.factor
        durations = (durations * (1 + (factor - 1) * named.shares(change))).round().cast(pl.Int64)
    less = pl.DataFrame({"step": graph.nodes["step"], "less_ns": now - durations}).with_columns(
        unmatched_ns=pl.when(index.unmatched).then("less_ns").otherwise(0)
    )
    found = pl.DataFrame(
        {
            "step": pl.Series(graph.steps, dtype=pl.Int32),
            "recorded_ns": recorded,
            "replayed_ns": replayed,
            "changed_ns": changed.step_times(durations, lag_ns),
        }
    ).with_columns(saving_ns=pl.col("replayed_ns") - pl.col("changed_ns"))
    return (
        found.join(less.group_by("step").agg(pl.all().sum()), on="step", how="left", maintain_order="left")
        .with_columns(
            pl.col("less_ns", "unmatched_ns").fill_null(0),
            saving_ratio=_over("saving_ns", "replayed_ns"),
            error_ratio=_over("replayed_ns", "recorded_ns", 1.0),
        )
        .select(names(COLUMNS))
    )


def _over(one: str, other: str, less: float = 0.0) -> pl.Expr:
    return pl.when(pl.col(other) > 0).then(pl.col(one) / pl.col(other) - less).otherwise(0.0)


def _checked(graph: JobGraph, taken: Sequence[Change], speeds: Sequence[Change], *, ideal: bool) -> None:
    """Refuse what adds nothing, or is about nothing.

    Raises:
        StepscopeError: If `ideal` contains what is to be taken away, or the job has no communication to be faster.
    """
    for change in taken:
        if ideal and not change.names_calls:
            raise StepscopeError(
                f"«--ideal» takes away the excess of all ranks already, so {change.text} adds nothing. Leave out one "
                "of them"
            )
    if speeds and not (graph.nodes["kind"] == "communication").any():
        raise StepscopeError(
            f"{speeds[0].text}: no communication was recorded, so a faster network changes nothing here. For other "
            "work, use «--scale»"
        )


def _without(
    work: NamedWork,
    own_cuts: Prepared[pl.Series | None],
    lone_waits: Prepared[pl.DataFrame],
    changes: Sequence[Change],
    *,
    ideal: bool,
) -> tuple[JobGraph, pl.Series]:
    """The job without the excess of what is named, and the durations of its nodes: own work and, where calls are named,
    their transmission. Waits for the device that only a slow rank has are left out, as in `slow_ranks`."""
    graph = work.graph
    durations = graph.simulation.duration_ns
    own = pl.repeat(0, len(durations), dtype=pl.Int64, eager=True)
    cut = own
    for change in changes:
        shares = work.shares(change)
        if not change.must_be_calls:
            own = _larger(own, (_own(own_cuts) * shares).round().cast(pl.Int64))
        if change.names_calls:
            cut = _larger(cut, transmission_cuts(work, change, shares))
    if ideal:
        own = _larger(own, _own(own_cuts))
    left: pl.Series = durations - _larger(cut, own)
    cells = graph.nodes.filter(own > 0).select(PLACE).unique().with_columns(suspect=0)
    if not (cells["kind"] == "dispatch").any():
        return graph, left
    waits = of_cells(lone_waits(), cells)["node"]
    if waits.is_empty():
        return graph, left
    return without_waits(graph, waits), left.scatter(waits, 0)


def _own(own_cuts: Prepared[pl.Series | None]) -> pl.Series:
    """What each node takes longer than on comparable ranks, calls apart."""
    found = own_cuts()
    if found is None:
        raise Unavailable(
            "there is no other rank to compare with, so it is unknown which work takes longer than usual; use "
            "«--scale» or «--bandwidth»"
        )
    return found


def _larger(one: pl.Series, other: pl.Series) -> pl.Series:
    return pl.select(pl.max_horizontal(one, other)).to_series()
