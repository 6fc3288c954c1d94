"""How much slower steps are than with ideal operations, and which kinds, ranks and stages make them so.

Definitions are those of "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025). With T
the time of a step in a replay without delays between operations, where

* computing ideally takes the mean of all operations of its name, over all ranks and steps,
* a call ideally takes the median of all calls of its name, after the last member has entered (both ends of transfers
  between stages together),

a slowdown is S = T(as recorded) / T(ideal); that of a kind of operation, a data-parallel rank or a stage is
S_x = T(all ideal except x) / T(ideal); that of a rank S_w is the smaller one of its data-parallel rank and its stage;
the share that x explains is M_x = (T - T(x ideal, all others as recorded)) / (T - T(ideal)). The launch slowdown is the
recorded time of a step over T. Of several steps, means of all times are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.rank_lists import rank_list
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.operation_graph import CALL
from stepscope.analysis.replay.operation_replay import (
    OperationReplay,
    ideal_durations,
    operation_replay,
    operations_of,
    places,
    typed,
)
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column

NO_MICRO_BATCHES = "the recordings do not state the micro-batch of any work, so its ideal time is unknown"

KINDS = ("job", "operation", "replica", "stage", "rank", "slowest_ranks", "last_stage")
"""What is looked at: everything; a kind of operation; a data-parallel rank; a pipeline stage; a rank; the few slowest
ranks; the last stage."""

COLUMNS = columns(
    meaning("step", "Number of the step as recorded."),
    Column("kind", "string", "What is looked at; a `replica` is a data-parallel rank.", values=KINDS),
    Column("unit", "string", "Which one; several ranks separated by commas; null for the job."),
    Column("replica", "int32", "The data-parallel rank, of replicas and ranks."),
    Column("stage", "int32", "The pipeline stage, of stages and ranks."),
    Column("slowdown_factor", "float64", "`alone_ns` over `ideal_ns`.", title="slowdown"),
    Column(
        "explained",
        "float64",
        "Share of the job's slowdown that is gone if it is ideal; negative if steps then take longer, above 1 if less.",
    ),
    Column(
        "alone_ns",
        "int64",
        "Time of a step if only it took as long as recorded; of a rank the shorter one of its replica and its stage.",
    ),
    Column(
        "without_ns", "int64", "Time of a step if it were ideal and all else took as long as recorded; null for ranks."
    ),
    Column("ideal_ns", "int64", "Time of a step if all were ideal."),
    Column("replayed_ns", "int64", "Time of a step without delays between operations."),
    Column("recorded_ns", "int64", "Time of a step as recorded."),
    Column("launch_factor", "float64", "`recorded_ns` over `replayed_ns`: what delays between operations cost."),
    Column(
        "error_ratio",
        "float64",
        "How far a replay with the recorded delays is off: the recording contradicts the order of operations.",
    ),
    Column("unmatched", "int64", "Calls of which members were not recorded: their time includes waiting for these."),
    nulls="unit replica stage slowdown_factor explained alone_ns without_ns launch_factor",
    keep="kind unit slowdown_factor explained alone_ns",
)
OF_ALL = tuple(column for column in COLUMNS if column.name != "step")

_OF_JOB = ("ideal_ns", "replayed_ns", "recorded_ns")
_TIMES = ("alone_ns", "without_ns", *_OF_JOB)
_UNIT = ["kind", "unit", "replica", "stage"]
_ORDER = pl.col("kind").replace_strict(list(KINDS), range(len(KINDS)), return_dtype=pl.Int64)
_ROWS = {
    **dict.fromkeys(("kind", "unit"), pl.String),
    **dict.fromkeys(("replica", "stage"), pl.Int32),
    **dict.fromkeys(("alone_ns", "without_ns"), pl.Int64),
}


@dataclass(frozen=True)
class Limits:
    """Who are the slowest ranks."""

    slowest_ratio: float = limit(0.03, "of the recorded ranks", "as published, see above; at least one rank")


@analysis("job", COLUMNS, across_steps=True)
def step_slowdowns(
    kernels: pl.LazyFrame,
    steps: pl.LazyFrame,
    ranks: pl.LazyFrame,
    collectives: pl.LazyFrame | None = None,
    slices: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Replay each step with ideal operations, and find what makes it slower: one row per step and kind, rank or stage.

    Raises:
        Unavailable: If no operation of a micro-batch lies in a step.
    """
    operations = operations_of(kernels, collectives, slices, steps)
    if operations.is_empty():
        raise Unavailable(NO_MICRO_BATCHES)
    graph = operation_replay(operations, steps)
    scenarios = _Scenarios(graph)
    at = graph.operations.select("rank").join(places(ranks, groups), on="rank", how="left", maintain_order="left")
    kinds = scenarios.kinds
    parts = [scenarios.job()]
    parts.extend(scenarios.rows("operation", name, kinds == name) for name in kinds.unique().sort())
    for replica in _known(at["replica"]):
        parts.append(scenarios.rows("replica", str(replica), at["replica"] == replica, replica=replica))
    for stage in _known(at["stage"]):
        parts.append(scenarios.rows("stage", str(stage), at["stage"] == stage, stage=stage))
    parts.extend(
        scenarios.without_times("rank", str(rank), replica, stage)
        for rank, replica, stage in at.unique().sort("rank").select("rank", "replica", "stage").rows()
    )
    if slowest := _slowest(pl.concat(parts), limits):
        parts.append(scenarios.rows("slowest_ranks", rank_list(slowest), at["rank"].is_in(slowest)))
    if stages := _known(at["stage"]):
        parts.append(scenarios.rows("last_stage", str(stages[-1]), at["stage"] == stages[-1], stage=stages[-1]))
    rows = _judged(pl.concat(parts), ["step"])
    return rows.sort("step", _ORDER, "replica", "stage", "unit").select(names(COLUMNS))


@analysis("job", OF_ALL)
def slowdowns(step_slowdowns: pl.DataFrame) -> pl.DataFrame:
    """Find what makes the job slower than with ideal operations: as `step_slowdowns`, with the mean times of all steps.

    Returns:
        The job, then kinds of operations, replicas, stages and ranks, those that slow it most first.
    """
    rows = _judged(_means(step_slowdowns), [])
    whole = [rounded(pl.col(name)).alias(name) for name in _TIMES]
    ordered = rows.sort(_ORDER, -pl.col("slowdown_factor").fill_null(0), "replica", "stage", "unit")
    return ordered.with_columns(whole).select(names(OF_ALL))


class _Scenarios:
    """Times of the steps with some operations ideal."""

    def __init__(self, graph: OperationReplay) -> None:
        self._graph = graph
        self._recorded = graph.duration_ns
        known = typed(graph.operations).with_columns(self._recorded)
        self.kinds = known["type"]
        self._ideal = ideal_durations(known)
        self._steps = (
            graph.steps.select("step")
            .with_columns(
                ideal_ns=graph.step_times(self._ideal),
                replayed_ns=graph.step_times(),
                recorded_ns=graph.recorded_times(),
                with_lags=graph.step_times(with_lags=True),
            )
            .join(_unmatched(graph.operations), on="step", how="left", maintain_order="left")
        )
        off = (_over("with_lags", "recorded_ns") - 1).abs()
        self._steps = self._steps.with_columns(
            error_ratio=off.fill_null(0.0), unmatched=pl.col("unmatched").fill_null(0)
        )

    def job(self) -> pl.DataFrame:
        """Rows of the whole job: all as recorded, or all ideal."""
        times = self._steps.select(alone_ns="replayed_ns", without_ns="ideal_ns")
        return self._with_steps("job", None, times)

    def rows(
        self, kind: str, unit: str, is_meant: pl.Series, *, replica: int | None = None, stage: int | None = None
    ) -> pl.DataFrame:
        """Rows of some operations."""
        meant = is_meant.fill_null(value=False)
        alone, without = (
            pl.select(pl.when(chosen).then(self._recorded).otherwise(self._ideal)).to_series()
            for chosen in (meant, ~meant)
        )
        times = {"alone_ns": self._graph.step_times(alone), "without_ns": self._graph.step_times(without)}
        return self._with_steps(kind, unit, pl.DataFrame(times), replica, stage)

    def without_times(self, kind: str, unit: str, replica: int | None, stage: int | None) -> pl.DataFrame:
        """Rows whose times follow from those of others."""
        nothing = pl.repeat(None, self._steps.height, dtype=pl.Int64, eager=True)
        times = pl.DataFrame({"alone_ns": nothing, "without_ns": nothing})
        return self._with_steps(kind, unit, times, replica, stage)

    def _with_steps(
        self, kind: str, unit: str | None, times: pl.DataFrame, replica: int | None = None, stage: int | None = None
    ) -> pl.DataFrame:
        unit_ = {"kind": kind, "unit": unit, "replica": replica, "stage": stage}
        named = times.with_columns(pl.lit(value, _ROWS[name]).alias(name) for name, value in unit_.items())
        return self._steps.drop("with_lags").hstack(named.select(list(_ROWS)))


def _unmatched(operations: pl.DataFrame) -> pl.DataFrame:
    """Calls by step whose members were not all seen."""
    lonely = operations.filter((pl.col("kind") == CALL) & ~pl.col("whole"))
    return lonely.group_by("step").agg(unmatched=pl.len().cast(pl.Int64))


def _known(places: pl.Series) -> list[int]:
    known: list[int] = places.drop_nulls().unique().sort().to_list()
    return known


def _means(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean times of each unit over the steps."""
    lengths = [pl.col(name).mean() for name in _TIMES]
    return rows.group_by(_UNIT).agg(*lengths, pl.col("error_ratio").mean(), pl.col("unmatched").sum())


def _slowest(rows: pl.DataFrame, limits: Limits) -> list[int]:
    """The ranks that are slowest over all steps, in order."""
    ranks = _judged(_means(rows), []).filter((pl.col("kind") == "rank") & pl.col("alone_ns").is_not_null())
    count = ceil(limits.slowest_ratio * ranks.height)
    number = pl.col("unit").cast(pl.Int32)
    slowest: list[int] = ranks.sort(-pl.col("alone_ns"), number).head(count).select(number.sort())["unit"].to_list()
    return slowest


def _judged(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Add the times of ranks, and all ratios."""
    for place in ("replica", "stage"):
        of_place = rows.filter(pl.col("kind") == place).select(*by, place, pl.col("alone_ns").alias(f"of_{place}"))
        rows = rows.join(of_place, on=[*by, place], how="left", maintain_order="left")
    shorter = pl.when(pl.all_horizontal(pl.col("of_replica", "of_stage").is_not_null())).then(
        pl.min_horizontal("of_replica", "of_stage")
    )
    alone = pl.when(pl.col("kind") == "rank").then(shorter).otherwise("alone_ns")
    slowdown, saved = pl.col("replayed_ns") - pl.col("ideal_ns"), pl.col("replayed_ns") - pl.col("without_ns")
    return rows.with_columns(alone_ns=alone).with_columns(
        slowdown_factor=_over("alone_ns", "ideal_ns"),
        launch_factor=_over("recorded_ns", "replayed_ns"),
        explained=pl.when(slowdown != 0).then(saved / slowdown),
    )


def _over(one: str, other: str) -> pl.Expr:
    return pl.when(pl.col(other) > 0).then(pl.col(one) / pl.col(other))
