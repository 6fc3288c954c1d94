"""What a job would save if its stages, replicas, ranks and micro-batches were even, and its calls ideal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.costs import quartiles
from stepscope.analysis.methods.shapley import shares
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.rank_lists import rank_list
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.operation_graph import CALL, COMPUTING
from stepscope.analysis.replay.operation_replay import (
    OperationReplay,
    ideal_durations,
    operation_replay,
    operations_of,
    places,
    typed,
)
from stepscope.analysis.replay.slowdowns import NO_MICRO_BATCHES
from stepscope.analysis.replay.uneven_work import FACTORS, REPLICA, SEQUENCE, STAGE, WORKER, uneven_work
from stepscope.analysis.replay.uneven_work import Limits as UnevenLimits
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of, with_schema

COMMUNICATION, UNKNOWN = "communication", "unknown"

CAUSES = (*FACTORS, COMMUNICATION, UNKNOWN)
"""Slow ranks; slow data-parallel ranks, at all stages; stages with more work; micro-batches of uneven length; calls
that take longer than the median call; everything else."""

COLUMNS = columns(
    Column("cause", "string", "What it is.", values=CAUSES),
    Column("unit", "string", "Which: ranks, data-parallel ranks, the slowest stage, or a kind of call."),
    Column("ranks", "string", "The ranks that this is about, e.g. `4, 5`; null if it is all."),
    Column(
        "factor",
        "float64",
        "How many times as long as usual these compute, in the mean: ranks as others of their stage, stages as the "
        "mean stage; of micro-batches, the longest in a step as the mean one.",
    ),
    Column(
        "correlation",
        "float64",
        "Of forward and backward times of micro-batches, the median rank: near 1 if their lengths differ.",
    ),
    Column("is_alone", "bool", "Whether the stage has only one recorded rank, so the machine may be the reason."),
    Column("is_last", "bool", "Whether it is the last stage, which has the layers that compute the loss."),
    Column("is_named", "bool", "Whether it explains enough to be called the cause."),
    Column("explained", "float64", "`saving_ns` over `lost_ns`."),
    Column("saving_ns", "int64", "What a step is shorter without it: its share if there are several causes."),
    Column("saving_low_ns", "int64", "Lower quartile of that over the steps."),
    Column("saving_high_ns", "int64", "Upper quartile of that over the steps."),
    Column(
        "mended_ns",
        "int64",
        "Of a stage with one recorded rank: what a step is shorter if its device is at fault, and is mended.",
    ),
    Column("lost_ns", "int64", "What all of them cost together: the sum of `saving_ns`."),
    Column("replayed_ns", "int64", "Mean time of a step without delays between operations."),
    Column(
        "error_ratio",
        "float64",
        "`replayed_ns` over the recorded time, minus 1: what was not recorded, or delays operations.",
    ),
    Column("slowdown_factor", "float64", "`replayed_ns` over its ideal time, as `slowdowns` has it.", title="slowdown"),
    meaning("steps", "Number of compared steps."),
    nulls="unit ranks factor correlation is_alone is_last explained mended_ns slowdown_factor",
    keep="cause unit explained saving_ns",
)


@dataclass(frozen=True)
class Limits(UnevenLimits):
    """When work is uneven, and when that is the cause."""

    explained: float = limit(
        0.5, "of the slowdown", "as the study that `slowdowns` quotes takes a cause for the main one"
    )


@analysis("job", COLUMNS)
def slowdown_causes(
    kernels: pl.LazyFrame,
    steps: pl.LazyFrame,
    ranks: pl.LazyFrame,
    collectives: pl.LazyFrame | None = None,
    slices: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Replay the job with each cause of uneven work taken away (see `uneven_work`), and share out what that saves: one
    row per cause, largest first.

    Raises:
        Unavailable: If no operation of a micro-batch lies in a step.
    """
    operations = operations_of(kernels, collectives, slices, steps)
    if operations.is_empty():
        raise Unavailable(NO_MICRO_BATCHES)
    job = _Job(operation_replay(operations, steps), places(ranks, groups), limits)
    found = with_schema(pl.DataFrame(job.rows(), infer_schema_length=None), schema_of(COLUMNS))
    order = pl.col("cause").replace_strict(list(CAUSES), range(len(CAUSES)), return_dtype=pl.Int64)
    return found.sort(-pl.col("saving_ns"), order)


class _Job:
    """A job to be replayed without some causes."""

    def __init__(self, graph: OperationReplay, at: pl.DataFrame, limits: Limits) -> None:
        self._graph = graph
        self._limits = limits
        placed = typed(graph.operations).join(at, on="rank", how="left", maintain_order="left")
        # A rank whose place is unknown is a replica of its own.
        known = placed.with_columns(pl.coalesce("replica", -1 - pl.col("rank")), pl.col("stage").fill_null(0))
        rows = known.with_columns(graph.duration_ns)
        self._uneven = uneven_work(rows, limits)
        rows = rows.with_columns(*self._uneven.factors)
        # What is ideal is not longer because some ranks are slow.
        usual = pl.col("duration_ns") / (pl.col(FACTORS[WORKER]) * pl.col(FACTORS[REPLICA]))
        self._rows = rows.with_columns(ideal_ns=ideal_durations(rows.with_columns(duration_ns=usual)))
        uneven = [cause for cause, name in FACTORS.items() if (self._rows[name] != 1).any()]
        self._causes = [*uneven, *([COMMUNICATION] if (self._rows["kind"] == CALL).any() else []), UNKNOWN]
        self._recorded = graph.step_times()
        self._published = graph.step_times(ideal_durations(rows))

    def rows(self) -> list[dict[str, Any]]:
        """A row for each cause, with what it costs."""
        count = len(self._recorded)
        shared = shares(len(self._causes), self._saved)
        replayed = sum(self._recorded) / count
        lost = sum(map(sum, shared)) / count
        common = {
            "replayed_ns": round(replayed),
            "lost_ns": round(lost),
            "error_ratio": sum(self._recorded) / known - 1 if (known := sum(self._graph.recorded_times())) else 0.0,
            "slowdown_factor": sum(self._recorded) / ideal if (ideal := sum(self._published)) else None,
            "steps": count,
            "correlation": self._uneven.correlation,
        }
        found = []
        for cause, saved in zip(self._causes, shared, strict=True):
            mean, (low, high) = sum(saved) / count, quartiles(saved)
            share = mean / lost if lost else None
            found.append(
                {
                    **common,
                    **self._described(cause),
                    "cause": cause,
                    "saving_ns": round(mean),
                    "saving_low_ns": round(low),
                    "saving_high_ns": round(high),
                    "explained": share,
                    "is_named": share is not None and share >= self._limits.explained,
                }
            )
        return found

    def _saved(self, mended: frozenset[int]) -> list[float]:
        """What each step is shorter without some causes."""
        gone = {self._causes[place] for place in mended}
        changed = self._rows.select(_length(gone))["length"]
        return [float(saved) for saved in self._recorded - self._graph.step_times(changed)]

    def _described(self, cause: str) -> dict[str, Any]:
        """Who it is, and by which factor."""
        rows = self._rows.filter(pl.col("kind") == COMPUTING)
        if cause in (WORKER, REPLICA):
            slow = rows.filter(pl.col(FACTORS[cause]) != 1)
            units = slow["rank" if cause == WORKER else "replica"].unique().sort()
            return {
                "unit": rank_list(units),
                "ranks": rank_list(slow["rank"].unique().sort()),
                "factor": _mean(slow, FACTORS[cause]),
            }
        if cause == STAGE:
            return self._stage(rows)
        if cause == SEQUENCE:
            length = pl.col(FACTORS[SEQUENCE])
            longest = length.max().over("step") / length.mean().over("step")
            return {"factor": rows.filter(pl.col("micro_batch").is_not_null()).select(longest.mean()).item()}
        if cause == COMMUNICATION:
            calls = self._rows.filter(pl.col("kind") == CALL)
            more = (pl.col("duration_ns") - pl.col("ideal_ns")).clip(lower_bound=0).sum()
            return {"unit": calls.group_by("type").agg(more=more).sort("more", "type")["type"][-1]}
        return {}

    def _stage(self, rows: pl.DataFrame) -> dict[str, Any]:
        """The stage with most work."""
        usual = (pl.col("ideal_ns") * pl.col(FACTORS[STAGE])).sum()
        per_rank = pl.col("rank").n_unique()
        stages = rows.group_by("stage").agg(time=usual / per_rank, ranks=pl.col("rank").unique().sort()).sort("stage")
        slowest = stages.sort("time", "stage").row(-1, named=True)
        others = stages.filter(pl.col("stage") != slowest["stage"])["time"].mean()
        factor, is_alone = slowest["time"] / others if others else None, len(slowest["ranks"]) == 1
        return {
            "unit": str(slowest["stage"]),
            "ranks": rank_list(slowest["ranks"]),
            "factor": factor,
            "is_alone": is_alone,
            "mended_ns": self._mended(slowest["stage"], factor) if factor and is_alone else None,
            "is_last": slowest["stage"] == stages["stage"][-1],
        }

    def _mended(self, stage: int, factor: float) -> int:
        """What the mean step is shorter if computing of a stage is this many times as fast."""
        faster = (pl.col("stage") == stage) & (pl.col("kind") == COMPUTING)
        length = pl.when(faster).then(pl.col("duration_ns") / factor).otherwise("duration_ns")
        times = self._graph.step_times(self._rows.select(length=rounded(length))["length"])
        saved: list[int] = (self._recorded - times).to_list()
        return round(sum(saved) / len(saved))


def _length(gone: set[str]) -> pl.Expr:
    """Durations of operations without some causes."""
    left, factors = pl.col("duration_ns").cast(pl.Float64), [name for cause, name in FACTORS.items() if cause in gone]
    for name in factors:
        left = left / pl.col(name)
    if UNKNOWN in gone:
        left = pl.col("ideal_ns").cast(pl.Float64)
        for cause, name in FACTORS.items():
            left = left if cause in gone else left * pl.col(name)
    is_call = pl.col("kind") == CALL
    calls = pl.col("ideal_ns" if COMMUNICATION in gone else "duration_ns")
    return rounded(pl.when(is_call).then(calls).otherwise(left)).alias("length")


def _mean(rows: pl.DataFrame, factor: str) -> float | None:
    found = rows[factor].mean()
    return found if isinstance(found, float) else None
