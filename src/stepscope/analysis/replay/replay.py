"""How well the replay of the job agrees with its recording, and how long steps would take if all ranks were alike."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.excess_places import PIECE, cuts
from stepscope.analysis.methods.extra_work import apart
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.registry import Prepared, analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

STEP_TIMES = (
    Column(
        "recorded_ns",
        "int64",
        "From the end of the step before (or the first start) to the end of its last work on any rank.",
    ),
    Column("replayed_ns", "int64", "The same in a replay with all durations as recorded."),
)
"""How long each step took, as recorded and as replayed."""

COLUMNS = columns(
    "step",
    *STEP_TIMES,
    Column(
        "error_ratio",
        "float64",
        "`replayed_ns` over `recorded_ns`, minus 1: how far the recording contradicts the dependencies.",
    ),
    Column("ideal_ns", "int64", "The same if no rank took longer for its own work than comparable ranks."),
    Column("saving_ns", "int64", "`replayed_ns` minus `ideal_ns`: what all differences between ranks cost."),
    nulls="",
)

NO_STEPS = "no piece of work lies in a step, so there is nothing to replay"


@analysis("job", COLUMNS, whole_job=True)
def replay(
    work_graph: Prepared[JobGraph],
    excess: pl.DataFrame,
    extra_pieces: pl.DataFrame | None,
) -> pl.DataFrame:
    """Replay each step with the recorded durations, and without any rank's excess: one row per step, in order.

    Raises:
        Unavailable: If no work lies in a step.
    """
    graph = work_graph()
    recorded, replayed = graph.recorded_step_times(), graph.step_times()
    if recorded.is_empty():
        raise Unavailable(NO_STEPS)
    ideal = graph.step_times(without_excess(graph, excess, extra_pieces))
    found = pl.DataFrame(
        {
            "step": pl.Series(graph.steps, dtype=pl.Int32),
            "recorded_ns": recorded,
            "replayed_ns": replayed,
            "ideal_ns": ideal,
        }
    )
    ratio = pl.when(pl.col("recorded_ns") > 0).then(pl.col("replayed_ns") / pl.col("recorded_ns") - 1).otherwise(0.0)
    return found.with_columns(error_ratio=ratio, saving_ns=pl.col("replayed_ns") - pl.col("ideal_ns")).select(
        names(COLUMNS)
    )


class Shortened:
    """What a job saves if some of its nodes take less time, by replay.

    Args:
        graph: The job.

    Raises:
        Unavailable: If no work lies in a step.
    """

    def __init__(self, graph: JobGraph) -> None:
        recorded, self._replayed = graph.recorded_step_times(), graph.step_times()
        if recorded.is_empty():
            raise Unavailable(NO_STEPS)
        self._graph, self._steps, self._whole_ns = graph, len(recorded), sum(recorded)
        self.now_ns: pl.Series = graph.simulation.duration_ns
        """How long each node takes."""
        self.error_ratio: float = sum(self._replayed) / self._whole_ns - 1 if self._whole_ns else 0.0
        """How far a replay without changes is from the recording."""

    def saving_ns(self, durations: pl.Series) -> int:
        """By how much the mean step is shorter if nodes take so long; 0 if it is not."""
        saved = int((self._replayed - self._graph.step_times(durations)).sum())
        return max(round(saved / self._steps), 0)

    def row(self, item: str, durations: pl.Series) -> dict[str, str | float]:
        """What doing without an item saves, if nodes then take so long: a row of `operator_savings`."""
        saved = self.saving_ns(durations)
        ratio = saved * self._steps / self._whole_ns if self._whole_ns else 0.0
        return {"item": item, "saving_ns": saved, "saving_ratio": ratio, "error_ratio": self.error_ratio}


def without_excess(graph: JobGraph, excess: pl.DataFrame, extra_pieces: pl.DataFrame | None = None) -> pl.Series:
    """Durations of all nodes if no rank took longer than comparable ones."""
    left: pl.Series = graph.simulation.duration_ns - cuts(apart(graph.nodes.select(PIECE), extra_pieces), excess)
    return left
