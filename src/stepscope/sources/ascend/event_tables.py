"""The tables of single events, made piece by piece: kernels, slices, operators and what sums them up."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.sources.ascend.checks import Busy
from stepscope.sources.ascend.exported_rank import ExportedRank, shaped
from stepscope.sources.ascend.kernel_tables import IS_KERNEL, KernelTables, Launches, Totals
from stepscope.sources.ascend.slice_tables import QueueFlows, SliceTables
from stepscope.sources.ascend.timeline import Piece
from stepscope.sources.windows import span_of, step_spans
from stepscope.tables import FLOWS, KERNEL_COUNTERS, KERNELS, OPERATORS, SLICES, STACKS, Table


class EventTables:
    """Makes the tables, and keeps what the other tables need of them. Its attributes are complete after `rows`.

    Args:
        recording: The recording; its timeline is used up.
        calls: `described_calls`.
        are_stated: Whether the source states the steps of kernels itself, and only the host's part is missing.
    """

    def __init__(self, recording: ExportedRank, calls: pl.DataFrame, *, are_stated: bool) -> None:
        self._timeline = recording.timeline
        on_gpu = recording.identity.device_kind in ("cuda", "rocm")
        self._kernels = KernelTables(recording.operator_starts, recording.steps, are_stated=are_stated, on_gpu=on_gpu)
        self._slices = SliceTables(calls, recording.steps)
        self._queue = QueueFlows()
        self._launches = Launches()
        self.totals = Totals()
        self.computed = Busy()
        """Sum and union of kernels."""
        self.busy: list[pl.DataFrame] = []
        """`step_spans` of computing and communication."""
        self.call_steps: list[pl.DataFrame] = []
        """Steps of calls: `name`, `start_ns`, `kernel_step`."""
        self.spans: list[tuple[int, int] | None] = []
        """First start and last end of slices."""

    def rows(self) -> Iterator[tuple[Table, pl.DataFrame]]:
        """Rows of the tables, as they are made."""
        pieces = self._timeline.pieces()
        piece: Piece | None = next(pieces)
        self._launches.add(piece)
        while piece is not None:
            following = next(pieces, None)
            self._launches.add(following)  # by the clocks' difference, work may seem to start before its launch
            yield from self._of(piece)
            piece = following
        yield STACKS, self._slices.stacks()

    def _of(self, piece: Piece) -> Iterator[tuple[Table, pl.DataFrame]]:
        kernel_rows, counters = self._kernels.rows(piece, self._launches)
        yield KERNELS, kernel_rows
        yield KERNEL_COUNTERS, counters
        slice_rows = self._slices.rows(piece, kernel_rows)
        yield SLICES, shaped(slice_rows, SLICES.stored_schema)
        yield OPERATORS, self._slices.operators(slice_rows)
        yield FLOWS, self._queue.rows(piece.of("host"))
        kind = pl.col("kind")
        self.totals.add(kernel_rows, piece.of("host"))
        work = kernel_rows.select("kind", "core", "name", "start_ns", "duration_ns", "step")
        self.computed.add(work.filter(IS_KERNEL))
        self.busy.append(step_spans(work.filter(kind != "memory")))
        calls = work.filter(kind == "communication")
        self.call_steps.append(calls.select("name", "start_ns", kernel_step="step"))
        self.spans.append(span_of(slice_rows))
