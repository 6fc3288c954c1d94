"""The work of the whole job as a graph, and what else is prepared for replaying it again and again."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods import extra_waits
from stepscope.analysis.methods.excess_places import PIECE, cuts
from stepscope.analysis.methods.extra_work import apart
from stepscope.analysis.methods.job_graph import JobGraph, job_graph
from stepscope.analysis.methods.work_index import WorkIndex
from stepscope.analysis.methods.work_index import work_index as index_of
from stepscope.analysis.registry import Prepared, prepared


@prepared
def work_graph(
    work: pl.DataFrame, dependencies: pl.DataFrame, arrival: pl.DataFrame | None, clocks: pl.DataFrame | None
) -> JobGraph:
    """Put the work of all ranks into one graph (see `job_graph`): as expensive as many replays of it.

    Raises:
        Unavailable: If the calls of all ranks contradict one another.
    """
    return job_graph(work, dependencies, arrival, clocks)


@prepared
def changing_work(work_graph: Prepared[JobGraph]) -> JobGraph:
    """The graph for replaying it with changes: with what names its nodes, in a third of the memory."""
    texts = {name: pl.col(name).cast(pl.Categorical) for name in ("kind", "lane")}
    return work_graph().only(**{name: pl.col(name) for name in ("rank", "step", "launch_ns", "own_start_ns")}, **texts)


@prepared
def work_index(work_graph: Prepared[JobGraph], arrival: pl.DataFrame | None) -> WorkIndex:
    """Look through the work of the job for `NamedWork`."""
    return index_of(work_graph(), arrival)


@prepared
def own_cuts(
    work_graph: Prepared[JobGraph], excess: pl.DataFrame | None, extra_pieces: pl.DataFrame | None
) -> pl.Series | None:
    """What each node takes longer than on comparable ranks, calls apart (see `cuts`); None if there are none."""
    if excess is None or excess["excess_ns"].null_count() == excess.height:
        return None
    return cuts(apart(work_graph().nodes.select(PIECE), extra_pieces), excess)


@prepared
def lone_waits(changing_work: Prepared[JobGraph], excess: pl.DataFrame | None) -> pl.DataFrame:
    """The waits of hosts for their devices that comparable ranks do not have (see `lone_waits` of `extra_waits`)."""
    return extra_waits.NOBODY if excess is None else extra_waits.lone_waits(changing_work(), excess)
