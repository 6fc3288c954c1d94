"""Operations of a job as a graph to replay: those of all ranks, step by step, without delays between them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.methods.call_positions import CALL as JOINED
from stepscope.analysis.methods.memberships import stages_of, stated_stage
from stepscope.analysis.methods.parallel_layout import object_of
from stepscope.analysis.methods.simulation import Groups, Simulation
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.methods.step_windows import known_steps
from stepscope.analysis.replay.operation_graph import (
    BACKWARD,
    CALL,
    COLLECTION,
    COMPUTING,
    EDGES,
    FORWARD,
    OPERATIONS,
    operation_edges,
)
from stepscope.json_values import as_index
from stepscope.tables import COLLECTIVES, GROUPS, KERNELS, SLICES
from stepscope.tables.communication import POINT_TO_POINT
from stepscope.text_columns import filled_in

_JOINED = list(JOINED)
_COLUMNS = {**OPERATIONS, "group": pl.String, "sequence": pl.Int64, "group_size": pl.Int32}


@dataclass(frozen=True)
class OperationReplay:
    """A graph whose first nodes are the rows of `operations`.

    Args:
        operations: `OPERATIONS` with `whole` (whether all members of a call were seen), in order of rank and work.
        steps: `step` and `base_ns` (its start), in order.
        simulation: The graph. A call is its part after the last member has entered it.
        by_step: The nodes by step.
        without_lags: No lag of any node.
    """

    operations: pl.DataFrame
    steps: pl.DataFrame
    simulation: Simulation
    by_step: Groups
    without_lags: pl.Series

    @property
    def duration_ns(self) -> pl.Series:
        """Durations of the operations: of calls, from when all members have entered them."""
        durations: pl.Series = self.simulation.duration_ns[: self.operations.height]
        return durations

    def step_times(self, duration_ns: pl.Series | None = None, *, with_lags: bool = False) -> pl.Series:
        """How long each step takes.

        Args:
            duration_ns: Duration of each operation; those recorded if it is not given.
            with_lags: Keep the recorded delays between operations.
        """
        durations = None
        if duration_ns is not None:
            durations = duration_ns.extend_constant(0, len(self.without_lags) - len(duration_ns))
        lags = None if with_lags else self.without_lags
        times: pl.Series = self.simulation.last_ends(self.by_step, durations, lags) - self.steps["base_ns"]
        return times

    def recorded_times(self) -> pl.Series:
        """How long each step took: to the last end of an operation."""
        ends = self.operations.group_by("step").agg(pl.col("end_ns").max())
        return self.steps.join(ends, on="step", how="left", maintain_order="left").select(
            recorded_ns=pl.col("end_ns") - pl.col("base_ns")
        )["recorded_ns"]


def operations_of(
    kernels: pl.LazyFrame, collectives: pl.LazyFrame | None, slices: pl.LazyFrame | None, steps: pl.LazyFrame
) -> pl.DataFrame:
    """The operations of ranks whose micro-batches are known, with the columns of `OPERATIONS` and their calls.

    Those outside of steps are left out, and so are kernels that are calls as well.
    """
    end = pl.col("start_ns") + pl.col("duration_ns")
    known = kernels.filter(pl.col("micro_batch").is_not_null()).select("rank").unique().collect()
    if known.is_empty():
        return pl.DataFrame(schema=_COLUMNS)
    computing = KERNELS.or_empty(kernels).filter(pl.col("kind") == "compute")
    collections = SLICES.or_empty(slices).filter(pl.col("category") == "gc")
    calls = COLLECTIVES.or_empty(collectives)
    parts = [
        computing.select(
            *("rank", "name", "micro_batch", "model_chunk", "start_ns"), end_ns=end, kind=pl.lit(COMPUTING)
        ),
        calls.select(
            *("rank", "name", "micro_batch", "model_chunk", "start_ns", "operation", *_JOINED, "group_size"),
            end_ns=end,
            kind=pl.lit(CALL),
        ),
        collections.select("rank", "name", "start_ns", end_ns=end, kind=pl.lit(COLLECTION)),
    ]
    rows = pl.concat(parts, how="diagonal").join(known.lazy(), on="rank", how="semi")
    windows = known_steps(steps).select("rank", "step", step_ns="start_ns", last_ns="end_ns")
    placed = (
        rows.collect()
        .sort("start_ns", maintain_order=True)
        .join_asof(
            windows.collect().sort("step_ns", "step"),
            left_on="start_ns",
            right_on="step_ns",
            by="rank",
            check_sortedness=False,
        )
        .filter(pl.col("start_ns") <= pl.col("last_ns"))
        .sort("rank", "start_ns", "end_ns", "kind", "name", "micro_batch", "model_chunk", "sequence")
        .with_columns(work=pl.int_range(pl.len(), dtype=pl.Int64).over("rank"))
    )
    return placed.select(pl.col(name).cast(dtype) for name, dtype in _COLUMNS.items())


def operation_replay(operations: pl.DataFrame, steps: pl.LazyFrame) -> OperationReplay:
    """The graph of operations. A step begins at its first recorded start on any rank."""
    members = pl.len().over(_JOINED)
    one_each = (pl.col("rank").n_unique().over(_JOINED) == members) & (pl.col("step").n_unique().over(_JOINED) == 1)
    whole = (members == pl.col("group_size")) & one_each & pl.col("group").is_not_null() & (pl.col("kind") == CALL)
    rows = operations.with_columns(whole=whole.fill_null(value=False)).with_row_index("node")
    rows = rows.with_columns(pl.col("node").cast(pl.Int64))
    calls = rows.filter(pl.col("whole") & (pl.col("group_size") > 1)).with_columns(
        entry=pl.int_range(pl.len(), dtype=pl.Int64) + rows.height
    )
    hubs = calls.group_by(_JOINED).agg(hub_ns=pl.col("start_ns").max(), step=pl.col("step").first()).sort(_JOINED)
    hubs = hubs.with_columns(hub=pl.int_range(pl.len(), dtype=pl.Int64) + rows.height + calls.height)
    calls = calls.join(hubs.drop("step"), on=_JOINED, how="left", maintain_order="left")
    starts = rows.group_by("step").agg(first_ns=pl.col("start_ns").min())
    recorded = known_steps(steps).group_by("step").agg(pl.col("start_ns").min()).collect()
    base = (
        starts.join(recorded, on="step", how="left")
        .sort("step")
        .select("step", base_ns=pl.min_horizontal("first_ns", "start_ns"))
    )
    first = rows.height + calls.height + hubs.height
    roots = base.with_columns(root=pl.int_range(pl.len(), dtype=pl.Int64) + first)

    after = rows.join(calls.select("node", "hub_ns"), on="node", how="left", maintain_order="left")
    start = pl.coalesce("hub_ns", "start_ns")
    nodes = pl.concat(
        [
            after.select("step", start_ns=start, end_ns=pl.max_horizontal(start, "end_ns")),
            calls.select("step", "start_ns", end_ns="start_ns"),
            hubs.select("step", start_ns="hub_ns", end_ns="hub_ns"),
            roots.select("step", start_ns="base_ns", end_ns="base_ns"),
        ]
    )
    simulation = Simulation(nodes.drop("step"), _edges(rows, calls, roots))
    lags = pl.repeat(0, nodes.height, dtype=pl.Int64, eager=True)
    return OperationReplay(rows.drop("node"), base, simulation, simulation.grouped(nodes["step"]), lags)


def _edges(rows: pl.DataFrame, calls: pl.DataFrame, roots: pl.DataFrame) -> pl.DataFrame:
    """Edges between nodes: calls are entered when what they wait for has ended, and go on when all have."""
    numbered = rows.select("rank", "work", "node").join(
        calls.select("node", "entry"), on="node", how="left", maintain_order="left"
    )
    begins = numbered.select("rank", "work", node=pl.coalesce("entry", "node"))
    ends = numbered.select("rank", before="work", before_node="node")
    own = operation_edges(rows).select(list(EDGES)).join(begins, on=["rank", "work"]).join(ends, on=["rank", "before"])
    free = rows.select("rank", "work", "step").join(own, on=["rank", "work"], how="anti")
    first = free.join(begins, on=["rank", "work"]).join(roots, on="step")
    return pl.concat(
        [
            own.select("node", before="before_node"),
            first.select("node", before="root"),
            calls.select(node="hub", before="entry"),
            calls.select("node", before="hub"),
        ]
    )


def typed(operations: pl.DataFrame) -> pl.DataFrame:
    """Operations with the `type` by which they are judged: both ends of transfers together."""
    way = pl.col("name").str.extract(f"^({FORWARD}|{BACKWARD})")
    both = filled_in("{}-pp-comm", way)
    is_transfer = pl.col("operation").is_in(POINT_TO_POINT).fill_null(value=False) & way.is_not_null()
    return operations.with_columns(type=pl.when(is_transfer).then(both).otherwise("name"))


def ideal_durations(operations: pl.DataFrame) -> pl.Series:
    """The ideal duration of each operation (`type`, `duration_ns`), over all ranks and steps: the mean of computing,
    the median of calls. Calls whose members were not all seen say nothing of the others."""
    calls = pl.col("kind") == CALL
    length = pl.col("duration_ns")
    whole = length.filter(pl.col("whole")).median().over("type")
    ideal = pl.when(calls).then(pl.coalesce(whole, length.median().over("type"))).otherwise(length.mean().over("type"))
    return operations.select(ideal_ns=rounded(ideal))["ideal_ns"]


def places(ranks: pl.LazyFrame, groups: pl.LazyFrame | None = None) -> pl.DataFrame:
    """Where each rank is in the job: `rank`, `replica` (its data-parallel rank), `stage`; null if unknown. A job whose
    ranks state that there is one stage has stage 0."""
    known = ranks.select("rank", "world_size", "parallelism").collect().sort("rank")
    stages = stages_of(known, GROUPS.or_empty(groups).collect())
    stated = [(rank, object_of(text)) for rank, text in known.select("rank", "parallelism").iter_rows()]
    found = [
        (rank, as_index(one.get("data_parallel_rank")), stages.get(rank, stated_stage(one))) for rank, one in stated
    ]
    return pl.DataFrame(found, schema={"rank": pl.Int32, "replica": pl.Int32, "stage": pl.Int32}, orient="row")
