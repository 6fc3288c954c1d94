"""What it saves to mend slow ranks and to do away with a kind of time, each alone and both together, by replay."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.counted_steps import without_start_ups
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.replay import NO_STEPS
from stepscope.analysis.replay.savings import LIMITS, TIMES, Limits, Without, without_slow_ranks
from stepscope.analysis.replay.work import HOST
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

COLUMNS = columns(
    Column("kind", "string", "Kind of time.", values=TIMES, importance=60),
    Column("slow_ns", "int64", "What the mean step would be shorter without what slow ranks lose."),
    Column("alone_ns", "int64", "What it would be shorter without this kind of time, while slow ranks stay as slow."),
    Column("together_ns", "int64", "What it would be shorter without both."),
    Column("step_ns", "int64", "The mean step."),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it."),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True)
def joint_savings(
    slow_ranks: pl.DataFrame,
    work: pl.DataFrame,
    work_graph: Prepared[JobGraph],
    arrival: pl.DataFrame | None,
    excess: pl.DataFrame,
    extra_pieces: pl.DataFrame | None = None,
    time_by_rank: pl.DataFrame | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Replay the job without what slow ranks lose, without any time of a kind, and without both: one row per kind.

    Causes that hide each other save little alone and much together: a job that waits for its hosts and for a slow
    device is as long as the longer of both. A first step that is far longer than the others does not count.

    Raises:
        Unavailable: If no rank is slow, or no work lies in a step.
    """
    if slow_ranks.is_empty():
        raise Unavailable("no rank is slow")
    graph = work_graph()
    recorded = graph.recorded_step_times()
    if recorded.is_empty():
        raise Unavailable(NO_STEPS)
    kinds, counted = _kinds(work, arrival), without_start_ups(graph.steps, time_by_rank)
    places = [place for place, step in enumerate(graph.steps) if step in counted]

    def mean(values: Sequence[float] | pl.Series) -> float:
        return sum(float(values[place]) for place in places) / len(places)

    now = Without(graph, graph, graph.simulation.duration_ns, kinds, limits)
    then = Without(graph, *without_slow_ranks(graph, excess, slow_ranks, extra_pieces), kinds, limits, now.free)
    step_ns, whole = mean(now.step_ns), sum(recorded)
    slow_ns = step_ns - mean(then.step_ns)
    rows = [
        {
            "kind": kind,
            "slow_ns": max(0, round(slow_ns)),
            "alone_ns": max(0, round(mean(now.saved(frozenset([number]))))),
            "together_ns": max(0, round(slow_ns + mean(then.saved(frozenset([number]))))),
            "step_ns": round(step_ns),
            "error_ratio": sum(now.step_ns) / whole - 1 if whole else 0.0,
        }
        for number, kind in enumerate(kinds)
    ]
    return pl.DataFrame(rows).select(names(COLUMNS))


def _kinds(work: pl.DataFrame, arrival: pl.DataFrame | None) -> list[str]:
    """The kinds of time that could be done away with. What hosts do unmarked may be waits for other ranks if no calls
    between them were recorded, nor what a device does."""
    waits = arrival is None and (work["lane"] == HOST).all() and work["rank"].n_unique() > 1
    return [kind for kind in TIMES if not (waits and kind == "dispatch")]
