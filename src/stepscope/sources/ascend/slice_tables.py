"""`slices`, `operators`, `stacks` and the flows between them."""

from __future__ import annotations

import polars as pl

from stepscope.sources.ascend.exported_rank import HOST, TASKS, first_of_each, in_order, nothing, shaped
from stepscope.sources.ascend.kernel_tables import CALL_CORE
from stepscope.sources.ascend.steps import step_at
from stepscope.sources.ascend.timeline import Piece
from stepscope.sources.nesting import nest
from stepscope.sources.stacks import OWN_FRAME, Stacks
from stepscope.tables import FLOWS, OPERATORS

ANNOTATIONS = ("ProfilerStep#", "Optimizer.", "enumerate(")
"""Prefixes of framework ranges that are not operators: steps, optimizers, data loaders."""
_IS_ANNOTATION = pl.any_horizontal(pl.col("name").str.starts_with(word) for word in ANNOTATIONS)
_FRAMEWORK = {
    "category": pl.when(_IS_ANNOTATION).then(pl.lit("annotation")).otherwise("category"),
    # Ops outside autograd carry -1, ops on their own thread 0.
    "sequence": pl.when(pl.col("sequence") >= 0).then("sequence"),
    "forward_thread": pl.when(pl.col("forward_thread") > 0).then("forward_thread"),
}
_COMMUNICATION, _HARDWARE = pl.lit("Communication"), pl.lit("Ascend Hardware")
_SLICE_OF_KERNEL = {"compute": "kernel", "communication": "communication", "memory": "memory"}
_OF_KERNEL = {
    "category": pl.col("kind").replace_strict(_SLICE_OF_KERNEL),
    "process": pl.when(pl.col("core") == CALL_CORE).then(_COMMUNICATION).otherwise(_HARDWARE),
}


def framework_ranges(rows: pl.DataFrame) -> pl.DataFrame:
    """Ranges that the framework recorded, without frames of its profiler; `annotation` if they are not operators."""
    known = rows.with_columns(**_FRAMEWORK)
    if not (known["category"] == "python").any():
        return known
    return known.filter((pl.col("category") != "python") | ~pl.col("name").str.contains(OWN_FRAME))


class SliceTables:
    """Makes the rows of `slices`, `operators` and `stacks`, piece by piece, with the groups of `described_calls`."""

    def __init__(self, calls: pl.DataFrame, ranges: pl.DataFrame) -> None:
        self._group = (
            calls.select("name", "start_ns", thread="group")
            .sort("thread")
            .unique(["name", "start_ns"], keep="first", maintain_order=True)
        )
        self._ranges = ranges
        self._next = 0
        self._open = _NO_ROWS()
        self._stacks = Stacks()

    def rows(self, piece: Piece, kernel_rows: pl.DataFrame) -> pl.DataFrame:
        """The ranges that are over by the end of a piece, in order of start: `_ROWS`, parent, depth and self time."""
        rows = self._new(piece, kernel_rows)
        if self._open.height:
            rows = pl.concat([self._open, rows], rechunk=True)
        places = rows.select("start_ns", "duration_ns", thread=pl.struct("process", "thread"))
        nested = nest(places, rows["spent_ns"], piece.end_ns)
        goes_on = nested["goes_on"]
        parent = rows["slice"].gather(nested["parent"]).alias("parent")
        rows = rows.with_columns(nested["spent_ns"])
        self._open = rows.filter(goes_on)
        done = rows.with_columns(parent, nested["depth"], nested["self_ns"])
        return done.filter(~goes_on) if self._open.height else done

    def _new(self, piece: Piece, kernel_rows: pl.DataFrame) -> pl.DataFrame:
        """The ranges that start in a piece, in order of start."""
        device = kernel_rows.with_columns(self._threads(kernel_rows), **_OF_KERNEL)
        parts = []
        if (host := piece.of("host")) is not None:
            parts.append(host.with_columns(step=step_at(host["start_ns"], self._ranges, inside=True)))
        parts.append(device)
        if (tasks := piece.of("tasks")) is not None:
            others = tasks.filter(pl.col("category") != "memory")
            parts.append(others.with_columns(step=step_at(others["start_ns"], self._ranges, inside=False)))
        rows = pl.concat([shaped(frame, _COLUMNS) for frame in parts])
        rows = in_order(rows, "duration_ns", descending=True)  # what encloses others comes before them
        first = self._next
        self._next += rows.height
        return rows.with_columns(slice=pl.int_range(first, self._next, dtype=pl.Int64), spent_ns=pl.lit(0, pl.Int64))

    def _threads(self, kernel_rows: pl.DataFrame) -> pl.Series:
        """The thread of device work: the group of a call, else the stream."""
        threads: pl.Series = kernel_rows["stream"].cast(pl.String).alias("thread")
        calls = (kernel_rows["kind"] == "communication").arg_true()
        if len(calls) and self._group.height:
            places = kernel_rows.select("name", "start_ns")[calls].with_columns(row=calls)
            known = places.join(self._group, on=["name", "start_ns"], how="inner").drop_nulls("thread")
            threads = threads.scatter(known["row"], known["thread"])
        return threads

    def operators(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Those of the `rows` that are operators, as rows of `operators`."""
        calls = rows.filter(pl.col("category") == "operator")
        numbered = calls.with_columns(self._stacks.numbers(calls["stack"]).alias("stack"))
        return shaped(numbered, OPERATORS.stored_schema)

    def stacks(self) -> pl.DataFrame:
        """Rows of `stacks`, for the operators made so far."""
        return self._stacks.frame("\n")


_COLUMNS = {**HOST, "device": TASKS["device"], "stream": TASKS["stream"], "step": pl.Int32}
_ROWS = {**_COLUMNS, "slice": pl.Int64, "spent_ns": pl.Int64}
_NO_ROWS = nothing(_ROWS)


class QueueFlows:
    """Finds where tasks were put into the queue and where they were taken out, by their shared number."""

    def __init__(self) -> None:
        self._waiting = _NONE_QUEUED()

    def rows(self, host: pl.DataFrame | None) -> pl.DataFrame:
        """Flows that end in one more piece."""
        if host is None:
            return _NO_FLOWS()
        queue = host.select(*_QUEUED, "category").filter(
            (pl.col("category") == "queue") & pl.col("correlation").is_not_null()
        )
        if queue.is_empty():
            return _NO_FLOWS()
        put = queue.filter(pl.col("name").str.starts_with("Enqueue")).select(*_QUEUED)
        into = first_of_each(pl.concat([self._waiting, put]), "correlation")
        out = first_of_each(queue.filter(pl.col("name").str.starts_with("Dequeue")), "correlation")
        pairs = into.join(out, on="correlation", suffix="_out").sort("start_ns", "correlation")
        self._waiting = into.join(out, on="correlation", how="anti").tail(_QUEUE_LENGTH)
        return FLOWS.shaped(
            pairs.select(
                kind=pl.lit("enqueue_dequeue"),
                flow=pl.col("correlation").cast(pl.String),
                from_ns="start_ns",
                from_thread="thread",
                to_ns="start_ns_out",
                to_thread="thread_out",
            )
        )


_QUEUED = {name: HOST[name] for name in ("correlation", "name", "start_ns", "thread")}
_NO_FLOWS = nothing(FLOWS.stored_schema)
_NONE_QUEUED = nothing(_QUEUED)
_QUEUE_LENGTH = 100_000
"""More tasks than that wait in no queue."""
