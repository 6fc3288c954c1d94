"""What the job would save without any time of a kind, by replay: the most that findings about this time can claim."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.costs import ReplayCosts, quartiles
from stepscope.analysis.methods.extra_work import with_extra
from stepscope.analysis.methods.job_graph import JobGraph, without_waits
from stepscope.analysis.methods.shapley import shares
from stepscope.analysis.rank_lists import listed_ranks
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.replay import NO_STEPS
from stepscope.analysis.replay.work import CALLS, HOST, ON_HOST, WAITING
from stepscope.analysis.replay.work import KINDS as OF_WORK
from stepscope.errors import StepscopeError, Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column

SYNCHRONISATION, DEPENDENCY = "synchronisation", "dependency"

TIMES = (*ON_HOST, "memory", SYNCHRONISATION, DEPENDENCY)
"""Kinds of time: those of `work`; waits of hosts for their devices; gaps of devices before work that was launched in
time."""


@dataclass(frozen=True)
class Limits:
    """What is left of a gap."""

    gap_ns: int = limit(20_000, "ns", "launching and starting a kernel takes up to this, measured")


LIMITS = Limits()


COLUMNS = columns(
    Column("kind", "string", "Kind of time.", values=TIMES, importance=60),
    Column(
        "saving_ns", "int64", "Its share of what the mean step would be shorter without all of these kinds of time."
    ),
    Column("saving_low_ns", "int64", "Lower quartile of that over the steps."),
    Column("saving_high_ns", "int64", "Upper quartile of that over the steps."),
    Column("alone_ns", "int64", "What the mean step would be shorter without this kind of time alone."),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it."),
    nulls="",
)


@analysis("job", COLUMNS, whole_job=True)
def savings(
    work_graph: Prepared[JobGraph],
    excess: pl.DataFrame | None,
    slow_ranks: pl.DataFrame | None,
    extra_pieces: pl.DataFrame | None = None,
    kinds: str = ",".join(TIMES),
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Replay the job without any time of some kinds on all ranks: one row per kind, in the order of `kinds`.

    This is what is left to save once slow ranks (`slow_ranks`) are mended. Of several kinds, each gets the share that
    it adds on average over all orders of taking them away (Shapley, 1953), so together they save `saving_ns`. Of ranks
    that were recorded without the others of their job, calls take as long as they did.

    Args:
        kinds: Kinds of time, separated by commas.

    Raises:
        Unavailable: If no work lies in a step.
        StepscopeError: If there is no such kind of time.
    """
    asked = list(dict.fromkeys(kinds.split(",")))
    if unknown := [kind for kind in asked if kind not in TIMES]:
        raise StepscopeError(f"savings: there is no kind of time `{unknown[0]}`. There are {', '.join(TIMES)}")
    graph = work_graph()
    recorded = graph.recorded_step_times()
    if recorded.is_empty():
        raise Unavailable(NO_STEPS)
    without = Without(graph, *without_slow_ranks(graph, excess, slow_ranks, extra_pieces), asked, limits)
    count, whole = len(recorded), sum(recorded)
    error = sum(graph.step_times()) / whole - 1 if whole else 0.0
    rows = []
    for number, (kind, values) in enumerate(zip(asked, shares(len(asked), without.saved), strict=True)):
        saving = sum(values) / count
        low, high = quartiles(values)
        rows.append(
            {
                "kind": kind,
                "saving_ns": max(0, round(saving)),
                "saving_low_ns": max(0, round(low)),
                "saving_high_ns": max(0, round(high)),
                "alone_ns": max(0, round(sum(without.saved(frozenset([number]))) / count)),
                "error_ratio": error,
            }
        )
    return pl.DataFrame(rows).select(names(COLUMNS))


def without_slow_ranks(
    graph: JobGraph,
    excess: pl.DataFrame | None,
    slow_ranks: pl.DataFrame | None,
    extra_pieces: pl.DataFrame | None = None,
) -> tuple[JobGraph, pl.Series]:
    """The job without what slow ranks lose, and the durations of its nodes."""
    if excess is None or slow_ranks is None or slow_ranks.is_empty():
        return graph, graph.simulation.duration_ns
    slow = slow_ranks.with_row_index("suspect").select("suspect", "kind", rank=listed_ranks(), step="slow_steps")
    cells = slow.explode("rank").explode("step")
    excess, cells = with_extra(excess, cells)
    return ReplayCosts(graph, excess, cells, extra=extra_pieces).mended(frozenset(range(slow_ranks.height)))


class Without:
    """The job without kinds of time, which are numbered.

    Args:
        recorded: The job.
        mended: The job without what slow ranks lose; or the same.
        durations: The durations of its nodes.
        kinds: Kinds of time.
        limits: What is left of a gap.
        free: `without_waits` of the recorded job, if it is known.
    """

    def __init__(
        self,
        recorded: JobGraph,
        mended: JobGraph,
        durations: pl.Series,
        kinds: list[str],
        limits: Limits,
        free: JobGraph | None = None,
    ) -> None:
        self.mended = mended
        self.kinds = kinds
        lag = recorded.simulation.lag_ns
        on_device = pl.col("lane").is_not_null() & ~pl.col("lane").is_in([HOST, CALLS])
        kind = pl.col("kind").replace_strict(OF_WORK, range(len(OF_WORK)), default=None, return_dtype=pl.UInt8)
        # a host without a device waits for calls, which nobody can do away with
        for_calls = (pl.col("kind") == WAITING) & ~on_device.any().over("rank")
        self.nodes = recorded.nodes.select(
            pl.when(~for_calls).then(kind), on_device.alias("on_device"), duration=durations, lag=lag
        )
        self.free = mended
        if SYNCHRONISATION in kinds:
            self.free = without_waits(recorded) if free is None else free
        self.limits = limits
        self.step_ns = mended.step_times(durations, lag)

    def saved(self, numbers: frozenset[int]) -> list[float]:
        """By how much each step is shorter without these kinds."""
        left = {self.kinds[number] for number in numbers}
        if not left:
            return [0.0] * len(self.step_ns)
        gone = {*left, WAITING} if SYNCHRONISATION in left else left
        numbered = [number for number, kind in enumerate(OF_WORK) if kind in gone]
        ready = pl.when("on_device").then(pl.col("lag").clip(upper_bound=self.limits.gap_ns)).otherwise("lag")
        changed = self.nodes.select(
            duration=pl.when(pl.col("kind").is_in(numbered)).then(0).otherwise("duration"),
            lag=ready if DEPENDENCY in left else pl.col("lag"),
        )
        graph = self.free if SYNCHRONISATION in left else self.mended
        return [float(one) for one in self.step_ns - graph.step_times(changed["duration"], changed["lag"])]
