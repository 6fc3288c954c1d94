"""Rows of `slices`, `operators` and `stacks`."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.distinct import Distinct
from stepscope.sources.kineto.compiling import Compiling
from stepscope.sources.kineto.details import on_one_line, write_operator_details, write_python_calls, write_waits
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.host import HostTree
from stepscope.sources.kineto.layout import HOST_CLASSES
from stepscope.sources.kineto.segments import Segment
from stepscope.sources.kineto.steps import Steps
from stepscope.sources.stacks import Stacks
from stepscope.tables import OPERATORS, SLICES, STACKS

_SLICE_COLUMNS = tuple(c.name for c in SLICES.columns if c.name != "rank")
_OPERATOR_COLUMNS = (
    *("slice", "start_ns", "duration_ns", "self_ns", "name", "type", "thread"),
    *("sequence", "forward_thread", "external_id", "step"),
)
GARBAGE = ("python_gc", "gc", "garbage_collection")
"""Categories of Python's garbage collections, in lower case."""
_OTHER = {"overhead": "overhead", **dict.fromkeys(GARBAGE, "gc")}
_TRACED = ("operator", "call", "annotation")
"""Classes of what frameworks and scripts mark: within compiling they mark what is traced, and not what runs."""
# older versions put these ranges among the operators
_ANNOTATION_NAMES = r"^(ProfilerStep#|Optimizer\.|enumerate\(DataLoader\)|nccl:|gloo:|## )"


class SliceWriter:
    """Writes `slices`, `operators` and `stacks`, segment by segment."""

    def __init__(self, events: Events, steps: Steps, compiling: Compiling, sink: Sink) -> None:
        self._events = events
        self._steps = steps
        self._compiling = compiling
        self._sink = sink
        self._stacks = Stacks()
        self.worked: set[int] = set()
        """Steps in which operators ran."""
        self.traced = 0
        """Operators that only a compiler saw; they computed nothing, so they are slices and no operators."""

    def write_host(self, segment: Segment, tree: HostTree) -> dict[str, pl.DataFrame]:
        """Write the ranges on host threads that are over, and the operators among them; returns the others."""
        open_ranges: dict[str, pl.DataFrame] = {}
        parents = tree.slices.gather(tree.parent)
        for name in HOST_CLASSES:
            if not segment.rows(name):
                continue
            frame = segment.whole(name)
            place = slice(tree.offsets[name], tree.offsets[name] + frame.height)
            placed = self._events.located(frame).with_columns(
                parent=parents[place],
                depth=tree.depth[place],
                self_ns=tree.self_ns[place],
                step=self._steps.of(frame["start_ns"]),
                category=_category(name, frame, self._compiling.holds(frame) if name in _TRACED else None),
            )
            if (goes_on := tree.goes_on[place]).any():
                open_ranges[name] = frame.with_columns(spent_ns=tree.spent_ns[place]).filter(goes_on)
                placed = placed.filter(~goes_on)
            self._write(placed)
            if name == "other":
                write_waits(frame.filter(~goes_on), self._sink)
            if name == "python":
                write_python_calls(placed, self._sink)
            if name in ("operator", "call"):
                self.traced += int((placed["category"] == "compile").sum())
                self._write_operators(placed.filter(pl.col("category") == "operator"))
        return open_ranges

    def write_device(self, segment: Segment, first: int, device: pl.DataFrame | None) -> int:
        """Write device work, and annotations that the profiler carried over to the device, as slices from `first` on.

        Returns:
            The number behind the last.
        """
        if device is not None:
            category = pl.col("kind").replace({"compute": "kernel"})
            first = self._write_numbered(device.with_columns(self_ns="duration_ns", category=category), first)
        marks = segment.whole("device_annotation") if segment.rows("device_annotation") else None
        return (
            first
            if marks is None
            else self._write_numbered(marks.with_columns(category=pl.lit("device_annotation")), first)
        )

    def _write_numbered(self, rows: pl.DataFrame, first: int) -> int:
        """Write rows as slices with numbers from `first` on; returns the number behind the last."""
        behind = first + rows.height
        self._write(self._events.located(rows).with_columns(slice=pl.int_range(first, behind, dtype=pl.Int64)))
        return behind

    def _write(self, rows: pl.DataFrame) -> None:
        self._sink.write(SLICES, rows.select(name for name in _SLICE_COLUMNS if name in rows.columns))

    def finish(self) -> None:
        """Write the call stacks."""
        self._sink.write(STACKS, self._stacks.frame(";"))

    def _write_operators(self, placed: pl.DataFrame) -> None:
        self.worked.update(placed["step"].drop_nulls().unique())
        columns = [name for name in _OPERATOR_COLUMNS if name in placed.columns]
        is_convolution = Distinct(placed["name"]).matching("conv")
        values = pl.when(is_convolution).then("input_values")  # those of other operators are many and not needed
        shapes = [on_one_line(placed[name]) for name in ("input_shapes", "input_types")]
        stack = self._stacks.numbers(placed["stack_text"])
        write_operator_details(placed, self._sink)
        self._sink.write(OPERATORS, placed.select(*columns, *shapes, input_values=values, stack=stack))


def _category(name: str, ranges: pl.DataFrame, compiled: pl.Series | None) -> pl.Expr:
    """The category of a class's ranges; `compile` for those of `compiled`."""
    if name == "operator":
        among = Distinct(ranges["name"]).matching(_ANNOTATION_NAMES)
        own = pl.when(among).then(pl.lit("annotation")).otherwise(pl.lit("operator"))
    elif name == "other":
        own = pl.col("category").str.to_lowercase().replace_strict(_OTHER, default="other")
    else:
        own = pl.lit("operator" if name == "call" else name)
    return own if compiled is None else pl.when(compiled).then(pl.lit("compile")).otherwise(own)
