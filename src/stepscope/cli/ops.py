"""`stepscope ops`: which operators of a rank cost the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stepscope.cli.asking import Table, asks

if TYPE_CHECKING:
    import polars as pl

_HIDDEN = (
    *("framework_name", "subgraph", "graph", "block_dim", "process", "inputs", "input_types", "min_ns"),
    *("wait_ns", "kind"),
)


@asks
def ops() -> Sequence[Table]:
    """Show which operators and kernels of a rank cost the time, by type and one by one.

    Every list (`unit`) stands by itself: AI_CORE, AI_CPU, MEMORY (copies), GPU, CUDA, PYNATIVE of a device; HOST_CPU,
    CPU of the host.
    """
    return [
        Table(
            "operator_types",
            "Operators by type",
            says=_lists,
            keeps=("type", "total_ns", "share_ratio", "unit", "count", "self_ns", "mean_ns"),
        ),
        Table(
            "operator_instances",
            "Operators",
            hidden=_HIDDEN,
            keeps=("name", "total_ns", "share_ratio", "count", "self_ns", "unit", "mean_ns", "input_shapes"),
        ),
    ]


def _lists(types: pl.DataFrame) -> Iterator[str]:
    """Which lists there are, and how to see one."""
    lists = types.group_by("unit", maintain_order=True).len().rows()
    if len(lists) > 1:
        there = ", ".join(f"{unit} ({count})" for unit, count in lists)
        yield f"Lists: {there}; one alone: --filter \"unit = '{lists[-1][0]}'\"."
