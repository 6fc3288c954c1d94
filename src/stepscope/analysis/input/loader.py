"""What the data loader costs the training loop: waiting, batches ready, workers and their CPU use."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.input.input_queues import QUEUES
from stepscope.analysis.methods.intervals import starting_in
from stepscope.analysis.methods.statistics import first_label, sum_known
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables import INPUT_PIPELINE, SLICES
from stepscope.tables.base import Column

MARKED = "DataLoader"
"""Name of a loader known only from marks in a trace."""

ITERATOR = r"DataLoader.*__next__"
IN_PROCESS = r"_SingleProcessDataLoaderIter"
"""Names of PyTorch's marks of iterators, and of one without workers."""

NO_WORKERS, HANDOVER, HOST_CPU, WORKER_CPU, READING = "no workers", "handover", "host CPU", "worker CPU", "reading"


@dataclass(frozen=True)
class Limits:
    """When a loader's workers count as busy or idle, and its batches as ready."""

    handed_ratio: float = limit(0.5, "of the waiting, for batches that were ready", "chosen by us: most of it")
    busy_worker: float = limit(
        0.8, "processors that each worker keeps busy", "chosen by us: the rest is spent passing batches on"
    )
    idle_worker: float = limit(
        0.3, "processors that each worker keeps busy", "chosen by us: an idle worker waits for reads"
    )
    host_idle: float = limit(0.1, "of all processors, idle", "chosen by us: with less, workers compete for processors")


NO_LOADER = "no batches of a data loader were recorded"

STEP_COLUMNS = columns(
    "rank step loader batches",
    meaning("wait_ns", "Time in which the training loop waited for its batches."),
    "step_ns",
    meaning("wait_ratio", "`wait_ns` over `step_ns`."),
    "ready queue_capacity workers worker_processors host_idle_ratio",
    keep="step loader",
)


@analysis("rank", STEP_COLUMNS, together=True, nothing=NO_LOADER)
def loader_steps(
    input_pipeline: pl.LazyFrame | None,
    steps: pl.LazyFrame | None,
    marks: pl.DataFrame | None,
    cpu_utilization: pl.DataFrame | None,
    slices: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Sum how long the training loop waited for its batches: one row per loader and step.

    Uses the batches that the recorder saw, or else the marks of PyTorch's profiler, which show only the wait, and by
    the name of the iterator whether the loader has no workers.

    Raises:
        Unavailable: If no data loader was recorded.
    """
    waits = _of_batches(input_pipeline)
    others = None if marks is None else marks.filter(~pl.col("rank").is_in(waits["rank"].unique().implode()))
    if others is not None and others.height and steps is not None:
        marked = _of_marks(others, steps).with_columns(
            workers=pl.when(pl.col("rank").is_in(_without_workers(slices))).then(pl.lit(0, pl.Int32))
        )
        waits = pl.concat([waits, marked.select(waits.columns)])
    if waits.is_empty():
        raise Unavailable(NO_LOADER)
    windows = pl.DataFrame(schema={"rank": pl.Int32, "step": pl.Int32, "step_ns": pl.Int64})
    if steps is not None:
        length = pl.col("window_end_ns") - pl.col("window_start_ns")
        windows = steps.select("rank", "step", step_ns=length).collect()
    return (
        waits.join(windows, on=["rank", "step"], how="left")
        .join(_workers(cpu_utilization), on=["rank", "step"], how="left")
        .with_columns(wait_ratio=pl.when(pl.col("step_ns") > 0).then(pl.col("wait_ns") / pl.col("step_ns")))
        .select(names(STEP_COLUMNS))
        .sort("rank", "loader", "step")
    )


LOADER_COLUMNS = columns(
    "rank loader steps batches",
    meaning("wait_ns", "Time in which the training loop waited for its batches, all steps."),
    Column("mean_wait_ns", "float64", "Mean wait of a step."),
    Column("median_wait_ns", "int64", "Median wait of a step."),
    Column("max_wait_ns", "int64", "Longest wait of a step."),
    "wait_ratio ready queue_capacity workers worker_processors host_idle_ratio",
    "processors_per_worker",
    Column(
        "handed_ratio",
        "float64",
        "Share of the waiting for batches that certainly were ready; null if it is unknown which were.",
        title="handover",
    ),
    Column(
        "limited_by",
        "string",
        "`no workers`, `handover` (batches were ready), `worker CPU`, `host CPU` or `reading`; null if none is "
        "evident.",
    ),
    keep="loader mean_wait_ns wait_ratio max_wait_ns steps median_wait_ns",
)


@analysis("rank", LOADER_COLUMNS, together=True)
def loader(loader_steps: pl.DataFrame, limits: Limits = Limits()) -> pl.DataFrame:
    """Summarise each loader over the steps, longest wait first."""
    wait, workers, used = pl.col("wait_ns"), pl.col("workers"), pl.col("processors_per_worker")
    limited_by = {
        NO_WORKERS: workers == 0,
        HANDOVER: pl.col("handed_ratio") >= limits.handed_ratio,
        WORKER_CPU: used >= limits.busy_worker,
        HOST_CPU: (workers > 0) & (pl.col("host_idle_ratio") < limits.host_idle),
        READING: used < limits.idle_worker,
    }
    return (
        loader_steps.with_columns(handed=_was_ready())
        .group_by("rank", "loader")
        .agg(
            steps=pl.col("step").n_unique().cast(pl.Int64),
            batches=sum_known("batches"),
            wait_ns=wait.sum(),
            mean_wait_ns=wait.mean(),
            median_wait_ns=wait.quantile(0.5, "lower").cast(pl.Int64),
            max_wait_ns=wait.max(),
            wait_ratio=wait.filter(pl.col("step_ns") > 0).sum() / pl.col("step_ns").sum(),
            ready=pl.col("ready").mean(),
            queue_capacity=pl.col("queue_capacity").max(),
            workers=workers.max(),
            worker_processors=pl.col("worker_processors").mean(),
            host_idle_ratio=pl.col("host_idle_ratio").mean(),
            handed_ratio=pl.when(pl.col("ready").count() > 0).then(wait.filter("handed").sum() / wait.sum()),
        )
        .with_columns(
            wait_ratio=pl.when(pl.col("wait_ratio").is_finite()).then("wait_ratio"),
            handed_ratio=pl.when(pl.col("handed_ratio").is_finite()).then("handed_ratio"),
            processors_per_worker=pl.when(workers > 0).then(pl.col("worker_processors") / workers),
        )
        .with_columns(limited_by=first_label(limited_by))
        .select(names(LOADER_COLUMNS))
        .sort("rank", -wait, "loader")
    )


def _was_ready() -> pl.Expr:
    """Whether the next batch certainly was ready when it was asked for, by how many were left after the one before.

    Workers make their batches in turn, each in order: if the next one is not ready, none of its worker's batches are,
    and more than the share of the other workers cannot be.
    """
    by, before = ["rank", "loader"], pl.col("ready").shift(1)
    following = pl.col("step") == pl.col("step").shift(1) + 1
    share_of_others = pl.col("queue_capacity") * (1 - 1 / pl.col("workers"))
    ready = following & (before > share_of_others) & (pl.col("workers") > 0)
    return ready.over(by, order_by="step").fill_null(value=False)


def _of_batches(input_pipeline: pl.LazyFrame | None) -> pl.DataFrame:
    """Waits by step from the batches of loaders."""
    return (
        INPUT_PIPELINE.or_empty(input_pipeline)
        .filter(~pl.col("operator").is_in(QUEUES) & pl.col("batch").is_not_null() & pl.col("duration_ns").is_not_null())
        .group_by("rank", "step", loader=pl.col("operator"))
        .agg(
            batches=pl.len().cast(pl.Int64),
            wait_ns=pl.col("duration_ns").sum(),
            ready=pl.col("queue_size").mean(),
            queue_capacity=pl.col("queue_capacity").max(),
            workers=pl.col("workers").max(),
        )
        .filter(pl.col("step").is_not_null())
        .collect()
    )


def _of_marks(marks: pl.DataFrame, steps: pl.LazyFrame) -> pl.DataFrame:
    """Waits by step from marked ranges; a wait belongs to the step in which it began."""
    found = starting_in(marks.filter(pl.col("what") == "data"), steps.sort("end_ns", "step").collect(), "step")
    unknown = {"batches": pl.Int64(), "ready": pl.Float64(), "queue_capacity": pl.Int64(), "workers": pl.Int32()}
    return (
        found.group_by("rank", "step")
        .agg(wait_ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
        .with_columns(loader=pl.lit(MARKED), **{name: pl.lit(None, dtype) for name, dtype in unknown.items()})
    )


def _without_workers(slices: pl.LazyFrame | None) -> list[int]:
    """The ranks whose marked loaders all read in the training process itself."""
    marks = SLICES.or_empty(slices).filter((pl.col("category") == "annotation") & pl.col("name").str.contains(ITERATOR))
    own = pl.col("name").str.contains(IN_PROCESS).all()
    return marks.group_by("rank").agg(own=own).filter("own").sort("rank").collect()["rank"].to_list()


def _workers(cpu: pl.DataFrame | None) -> pl.DataFrame:
    """Processors that a rank's workers kept busy, and the idle share of the host, by step."""
    if cpu is None:
        figures = dict.fromkeys(("worker_processors", "host_idle_ratio"), pl.Float64())
        return pl.DataFrame(schema={"rank": pl.Int32(), "step": pl.Int32(), **figures})
    of_workers = pl.col("busy_processors").filter(pl.col("scope") == "worker")
    return (
        cpu.filter(pl.col("step").is_not_null())
        .group_by("rank", "step", "time_ns")
        .agg(
            worker_processors=pl.when(of_workers.count() > 0).then(of_workers.sum()),
            host_idle_ratio=pl.col("idle_ratio").filter(pl.col("scope") == "host").mean(),
        )
        .group_by("rank", "step")
        .agg(pl.col("worker_processors", "host_idle_ratio").mean())
    )
