"""Which operators and kernels of a rank cost the time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Page, Section
from stepscope.pages.instead import CALLS, recorded_by

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run


def _lists(types: pl.DataFrame) -> Iterator[str]:
    """Which lists there are, and how to see one."""
    lists = types.group_by("unit", maintain_order=True).len().rows()
    if len(lists) > 1:
        there = ", ".join(f"{unit} ({count})" for unit, count in lists)
        yield f"Lists: {there}. To see only one: «--filter» \"unit = '{lists[-1][0]}'\"."


def _with_shapes(run: Run, found: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Operators with the shapes of their inputs, also those of `inputs` such as `{"Input_0": {"shape": "32,64"}}`."""
    import polars as pl

    inputs = pl.col("inputs").str.extract_all(r'(?i)"input_\d+":\s*\{[^}]*')
    shapes = inputs.list.eval(pl.element().str.extract(r'"shape":\s*["\[]([-\d, ]*)').str.replace_all(" ", ""))
    text = shapes.list.drop_nulls().list.join(";")
    return Derived(found.with_columns(input_shapes=pl.coalesce("input_shapes", pl.when(text != "").then(text))))


PAGE = Page(
    "ops",
    "Show which operators and kernels of a rank cost the time, by type and individually.",
    [
        Section("operator_types", "Operators by type", sentences=_lists),
        Section(
            "operator_instances",
            "Operators",
            derived=_with_shapes,
            hidden=(
                *("framework_name", "subgraph", "graph", "block_dim", "process", "inputs", "input_types", "min_ns"),
                *("wait_ns", "kind"),
            ),
        ),
    ],
    more="Shares and totals are per list (`unit`): AI_CORE, AI_CPU, MEMORY (copies), GPU, CUDA and PYNATIVE on a "
    "device, HOST_CPU and CPU on the host.",
    instead=recorded_by(
        "Record a trace with PyTorch's, MindSpore's or Ascend's profiler",
        CALLS,
    ),
)
