"""`slices`, `operators`, `stacks` and the arrows between them."""

from __future__ import annotations

import polars as pl

from stepscope.sources.ascend.recording import HOST, TASKS, first_of_each, shaped
from stepscope.sources.ascend.steps import step_at
from stepscope.sources.nesting import nest
from stepscope.tables import FLOWS, OPERATORS, SLICES, STACKS

ANNOTATIONS = ("ProfilerStep#", "Optimizer.", "enumerate(")
"""What names of framework ranges begin with that are no operators: steps, optimizers, data loaders."""
_SLICE_OF_KERNEL = {"compute": "kernel", "communication": "communication", "memory": "memory"}


def annotated(category: pl.Expr, name: pl.Expr) -> pl.Expr:
    """`category`, or `annotation` for framework ranges that are no operators."""
    is_annotation = pl.any_horizontal(name.str.starts_with(word) for word in ANNOTATIONS)
    return pl.when(is_annotation).then(pl.lit("annotation")).otherwise(category)


def slices(
    host: pl.DataFrame,
    kernel_rows: pl.DataFrame,
    collective_rows: pl.DataFrame,
    tasks: pl.DataFrame,
    ranges: pl.DataFrame,
) -> pl.DataFrame:
    """All ranges in order of start: rows of `slices`, beside them what `operators` needs."""
    group = collective_rows.select("name", "start_ns", thread="group").unique(["name", "start_ns"])
    device = kernel_rows.join(group, on=["name", "start_ns"], how="left", maintain_order="left").with_columns(
        category=pl.col("kind").replace_strict(_SLICE_OF_KERNEL),
        process=pl.when(pl.col("kind") == "communication")
        .then(pl.lit("Communication"))
        .otherwise(pl.lit("Ascend Hardware")),
        thread=pl.coalesce(pl.when(pl.col("kind") == "communication").then("thread"), pl.col("stream").cast(pl.String)),
    )
    others = tasks.filter(pl.col("category") != "memory")
    others = others.with_columns(step=step_at(others["start_ns"], ranges, inside=False))
    host = host.with_columns(step=step_at(host["start_ns"], ranges, inside=True))
    columns = {**HOST, "device": TASKS["device"], "stream": TASKS["stream"], "step": pl.Int32}
    rows = pl.concat([shaped(frame, columns) for frame in (host, device, others)])
    # Ties keep the order of the export; more keys would cost more than all the rest of this function.
    rows = rows.sort("start_ns", "duration_ns", descending=[False, True], maintain_order=True)
    return _nested(rows.with_row_index("slice").with_columns(pl.col("slice").cast(pl.Int64)))


def _nested(rows: pl.DataFrame) -> pl.DataFrame:
    """Add parent, depth and self time on each thread of each process."""
    places = rows.select("start_ns", "duration_ns", thread=pl.struct("process", "thread").rank("dense"))
    return rows.with_columns(nest(places).get_columns())


def slices_table(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of `slices` alone."""
    return SLICES.conform(rows.select(name for name in SLICES.stored_schema if name in rows.columns))


def operators(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of `operators` and of `stacks`."""
    calls = rows.filter(pl.col("category") == "operator")
    texts = calls["stack"].drop_nulls().unique().sort()
    stacks = STACKS.frame(stack=range(len(texts)), text=texts)
    numbered = calls.drop("stack").with_columns(stack=pl.lit(None, pl.Int64))
    if len(texts):
        numbered = calls.join(
            stacks.rename({"stack": "number"}), left_on="stack", right_on="text", how="left", maintain_order="left"
        ).with_columns(stack="number")
    columns = [name for name in OPERATORS.stored_schema if name in numbered.columns]
    return OPERATORS.conform(numbered.select(columns)), stacks


def queue_flows(host: pl.DataFrame) -> pl.DataFrame:
    """Arrows from where a task was put into the queue to where it was taken out, by their shared number."""
    queue = host.select("category", "correlation", "name", "start_ns", "thread").filter(
        (pl.col("category") == "queue") & pl.col("correlation").is_not_null()
    )
    into = first_of_each(queue.filter(pl.col("name").str.starts_with("Enqueue")), "correlation")
    out = first_of_each(queue.filter(pl.col("name").str.starts_with("Dequeue")), "correlation")
    pairs = into.join(out, on="correlation", suffix="_out").sort("start_ns", "correlation")
    return FLOWS.conform(
        pairs.select(
            kind=pl.lit("enqueue_dequeue"),
            flow=pl.col("correlation").cast(pl.String),
            from_ns="start_ns",
            from_thread="thread",
            to_ns="start_ns_out",
            to_thread="thread_out",
        )
    )
