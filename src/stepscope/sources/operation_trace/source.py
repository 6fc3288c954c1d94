"""The reader of operation-level traces."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import PROFILER_REASONS, Found, Input, Sink
from stepscope.sources.operation_trace.columns import (
    COLUMNS,
    IS_SANE,
    MARKS,
    OPTIONAL,
    collected,
    columns_of,
    faults,
    operations,
    schema_of_file,
    told,
)
from stepscope.sources.operation_trace.layout import Layout, faults_of
from stepscope.sources.operation_trace.meta import Sizes, meta_beside, sizes
from stepscope.sources.operation_trace.rows import (
    collection_rows,
    collective_rows,
    kernel_rows,
    placed,
    step_rows,
    with_calls,
)
from stepscope.sources.operation_trace.times import times_of
from stepscope.sources.operation_trace.trace import Trace, trace_of
from stepscope.tables import COLLECTIVES, GROUPS, KERNELS, RANKS, SLICES, STEPS

_PARQUET = b"PAR1"
_SHOWN = 8
_KEY = ["rank", "step", "optype", "seq_id", "mc", "mb_id"]


class OperationTraceSource:
    """Reads one rank of a trace of a job's operations."""

    name = "operation_trace"
    version = 2
    family = "operation"
    reasons: Mapping[str, str] = {
        **PROFILER_REASONS,
        **dict.fromkeys(PROFILER_REASONS, "the trace lists operations of the job only"),
    }
    own_tables: frozenset[str] = frozenset()
    starts_threads = True
    """Polars reads Parquet files by threads of its own; inside its only thread, that would wait forever."""

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:  # noqa: ARG002
        """None: traces are recognised file by file."""
        return None

    def sniff(self, file: Path, head: bytes) -> Found | None:
        """A Parquet file with the columns of a trace: an input for each rank in it.

        Raises:
            UnreadableInput: If it is damaged, or has no rank.
        """
        if not head.startswith(_PARQUET) or not schema_of_file(file).keys() >= MARKS:
            return None
        rows = operations(file, columns_of(file))
        ranks = collected(rows.filter(IS_SANE).select(pl.col("rank").unique().sort()), file)
        if ranks.is_empty():
            lost = faults(rows, file)
            why = f" that can be used: {told(lost)}" if lost else ""
            raise UnreadableInput(file, f"is an operation trace without any operation{why}", "Record again")
        kinds = collected(rows.filter(IS_SANE).select(pl.col("optype").unique().sort()), file)["optype"].to_list()
        if not {"forward-compute", "backward-compute"}.intersection(kinds):
            seen = ", ".join(kinds[:_SHOWN])
            problem = f"has neither forward-compute nor backward-compute among its operations ({seen})"
            raise UnreadableInput(file, problem, "Name operations as the traces of the OSDI 2025 study do")
        meta = meta_beside(file)
        files = (file,) if meta is None else (file, meta)
        return Found(tuple(Input(self.name, file, files, f"rank {rank}") for rank in ranks["rank"]))

    def read(self, item: Input, sink: Sink) -> None:
        """Read the operations of one rank.

        Raises:
            UnreadableInput: If the file is damaged, or has none of the rank.
        """
        path, meta = item.files[0], item.files[1] if len(item.files) > 1 else None
        trace = trace_of(path)
        layout = trace.layout
        rank = int(item.label.removeprefix("rank "))
        own = trace.rows_of(rank)
        if own.is_empty():
            raise UnreadableInput(path, f"has no operation of rank {rank}", "Open it again if it was replaced")
        is_first = rank == layout.ranks["rank"][0]
        shape = sizes(layout.places, meta, sink, report=is_first)
        if is_first:
            _report(trace, sink)
        repeated = own.height - own.unique(_KEY).height
        if repeated:
            problem = f"{repeated} operations of rank {rank} are there twice; the first of each is used"
            sink.issue("warning", path, problem, "Check how the trace was put together", lost=repeated)
            own = own.unique(_KEY, keep="first", maintain_order=True)
        calls, groups = with_calls(placed(own, layout), layout, shape, rank)
        steps = step_rows(calls, layout)
        sink.write(RANKS, _rank_row(rank, layout, shape, steps))
        sink.write(STEPS, steps)
        for table, frame in (
            (GROUPS, groups),
            (KERNELS, kernel_rows(calls)),
            (COLLECTIVES, collective_rows(calls)),
            (SLICES, collection_rows(calls)),
        ):
            if frame.height:
                sink.write(table, frame)
        sink.advance(path.stat().st_size // max(layout.ranks.height, 1))


def _report(trace: Trace, sink: Sink) -> None:
    """What is wrong with the whole file; only the first rank tells it."""
    path = trace.path
    if counted := trace.faults():
        remedy = "The rest is complete. Record again if you need them"
        sink.issue("warning", path, told(counted), remedy, lost=sum(counted.values()))
    for problem in times_of(path).problems:
        sink.issue("warning", path, problem, "Check that these are the times of its steps")
    for problem in faults_of(trace.layout):
        sink.issue("warning", path, problem, "Use a trace of all ranks and operations to judge these as well")
    if unknown := [name for name in trace.columns if name not in COLUMNS and name not in OPTIONAL]:
        sink.issue("note", path, f"columns that are not read: {', '.join(unknown)}", "Nothing to do")


def _rank_row(rank: int, layout: Layout, shape: Sizes, steps: pl.DataFrame) -> pl.DataFrame:
    stage, replica = layout.ranks.filter(pl.col("rank") == rank).select("stage", "dp_rank").row(0)
    parallelism = {
        "data_parallel_size": shape.data,
        "pipeline_parallel_size": shape.pipeline,
        "tensor_parallel_size": shape.tensor,
        "virtual_pipeline_size": shape.virtual_pipeline,
        "data_parallel_rank": replica,
        "pipeline_stage": stage,
    }
    return RANKS.unchecked(
        rank=[rank],
        rank_origin=["content"],
        world_size=[shape.world],
        format=[OperationTraceSource.name],
        start_ns=[steps["start_ns"].min()],
        end_ns=[steps["end_ns"].max()],
        parallelism=[json.dumps(parallelism)],
    )
