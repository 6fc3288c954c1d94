"""Which operators and kernels of a rank cost the time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Page, Section

if TYPE_CHECKING:
    import polars as pl


def _lists(types: pl.DataFrame) -> Iterator[str]:
    """Which lists there are, and how to see one."""
    lists = types.group_by("unit", maintain_order=True).len().rows()
    if len(lists) > 1:
        there = ", ".join(f"{unit} ({count})" for unit, count in lists)
        yield f"Lists: {there}. To see only one: --filter \"unit = '{lists[-1][0]}'\"."


PAGE = Page(
    "ops",
    "Show which operators and kernels of a rank cost the time, by type and individually.",
    [
        Section("operator_types", "Operators by type", sentences=_lists),
        Section(
            "operator_instances",
            "Operators",
            hidden=(
                *("framework_name", "subgraph", "graph", "block_dim", "process", "inputs", "input_types", "min_ns"),
                *("wait_ns", "kind"),
            ),
        ),
    ],
    more="Shares and totals are per list (`unit`): AI_CORE, AI_CPU, MEMORY (copies), GPU, CUDA and PYNATIVE on a "
    "device, HOST_CPU and CPU on the host.",
)
