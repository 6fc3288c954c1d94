"""Operators of a rank whose shapes change from step to step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Page, Section
from stepscope.pages.instead import OPERATORS, TOTALS, recorded_by

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

_INPUT = r"Input_\d+: \{format: (\w*), data_type: (\w*), shape: ([^{}]*)\}"
"""An input as MindSpore describes it, one of several within braces."""


def _readable(run: Run, found: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Shapes as people write them, e.g. `FLOAT16[16,64]`, with the data format unless it is the plain one."""
    import polars as pl

    shapes = pl.col("input_shapes")
    described = shapes.str.strip_chars("{").str.replace_all(_INPUT, "$2[$3] $1").str.strip_chars_end("}")
    inputs = described.str.replace_all(r"\] (ND|DefaultFormat)\b", "]")
    readable = pl.when(shapes.str.contains(_INPUT)).then(inputs).otherwise(shapes.str.replace_all('"', ""))
    return Derived(found.with_columns(readable.alias("input_shapes")))


PAGE = Page(
    "shapes",
    "Show operators of a rank whose input shapes change from step to step, and what that costs.",
    [
        Section("shape_costs", "Operators by how much their shapes change", every_step=True),
        Section("dynamic_shape_types", "Types of operators {by_step}"),
        Section("dynamic_shapes", "Operators {by_step_and} shape", derived=_readable),
    ],
    instead=recorded_by(
        "Record shapes, with record_shapes=True or `stepscope record --shapes`",
        OPERATORS,
        TOTALS,
    ),
)
