"""Rows of `slices`, `operators` and `stacks`."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.host import HostTree
from stepscope.sources.kineto.layout import HOST_CLASSES
from stepscope.sources.kineto.spool import Spool
from stepscope.sources.kineto.steps import Steps
from stepscope.tables import OPERATORS, SLICES, STACKS

_CATEGORY = {
    "operator": "operator",
    "call": "operator",
    "annotation": "annotation",
    "python": "python",
    "runtime": "runtime",
}
_OTHER = {"overhead": "overhead", "python_gc": "gc", "gc": "gc", "garbage_collection": "gc"}
# older versions put these ranges among the operators
_ANNOTATION_NAMES = r"^(ProfilerStep#|Optimizer\.|enumerate\(DataLoader\)|nccl:|gloo:|## )"


def write_host(spool: Spool, tree: HostTree, steps: Steps, sink: Sink) -> None:
    """Write all ranges on host threads, and the operators among them."""
    stacks = _Stacks()
    for name in HOST_CLASSES:
        row = tree.offsets[name]
        for frame in spool.frames(name):
            size = frame.height
            placed = frame.with_columns(
                slice=pl.int_range(row, row + size, dtype=pl.Int64),
                parent=tree.parent.slice(row, size),
                depth=tree.depth.slice(row, size),
                self_ns=tree.self_ns.slice(row, size),
                step=steps.of(frame["start_ns"]),
                category=_category(name),
            )
            row += size
            sink.write(SLICES, placed.select(c for c in _SLICE_COLUMNS if c in placed.columns))
            if name in ("operator", "call"):
                _write_operators(placed.filter(pl.col("category") == "operator"), stacks, sink)
    sink.write(STACKS, stacks.frame())


def write_device(spool: Spool, tree: HostTree, device: pl.DataFrame | None, sink: Sink) -> None:
    """Write device work, and annotations that the profiler carried over to the device, as slices."""
    row = tree.rows
    if device is not None:
        kinds = {"compute": "kernel"}
        sink.write(
            SLICES,
            device.select(
                "start_ns",
                "duration_ns",
                "name",
                "process",
                "thread",
                "device",
                "stream",
                "correlation",
                "step",
                slice=pl.int_range(row, row + device.height, dtype=pl.Int64),
                self_ns="duration_ns",
                category=pl.col("kind").replace(kinds),
            ),
        )
        row += device.height
    for frame in spool.frames("device_annotation"):
        numbered = frame.with_columns(
            slice=pl.int_range(row, row + frame.height, dtype=pl.Int64),
            category=pl.lit("device_annotation"),
        )
        row += frame.height
        sink.write(SLICES, numbered.select(c for c in _SLICE_COLUMNS if c in numbered.columns))


_SLICE_COLUMNS = tuple(c.name for c in SLICES.columns if c.name != "rank")


def _category(name: str) -> pl.Expr:
    if name == "operator":
        among = pl.col("name").str.contains(_ANNOTATION_NAMES)
        return pl.when(among).then(pl.lit("annotation")).otherwise(pl.lit("operator"))
    if name == "other":
        return pl.col("category").str.to_lowercase().replace_strict(_OTHER, default="other")
    return pl.lit(_CATEGORY[name])


def _write_operators(placed: pl.DataFrame, stacks: _Stacks, sink: Sink) -> None:
    sink.write(
        OPERATORS,
        placed.select(
            "slice",
            "start_ns",
            "duration_ns",
            "self_ns",
            "name",
            "thread",
            "input_shapes",
            "input_types",
            "sequence",
            "forward_thread",
            "external_id",
            "step",
            stack=stacks.numbers(placed["stack_text"]),
        ),
    )


class _Stacks:
    """Numbers for call stacks, each text once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def numbers(self, texts: pl.Series) -> pl.Series:
        for text in texts.unique(maintain_order=True).to_list():
            if text:
                self._numbers.setdefault(text, len(self._numbers))
        if texts.null_count() == len(texts):
            return pl.repeat(None, len(texts), dtype=pl.Int64, eager=True)
        known: pl.Series = texts.replace_strict(self._numbers, default=None, return_dtype=pl.Int64)
        return known

    def frame(self) -> pl.DataFrame:
        lines = [text.replace(";", "\n") for text in self._numbers]
        schema = {"stack": pl.Int64, "text": pl.String}
        return pl.DataFrame({"stack": list(self._numbers.values()), "text": lines}, schema=schema)
