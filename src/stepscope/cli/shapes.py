"""`stepscope shapes`: operators of a rank whose shapes change from step to step."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.cli.asking import Table, asks


@asks
def shapes() -> Sequence[Table]:
    """Show which operators of a rank change their shapes, what that costs, and what each step took."""
    return [
        Table(
            "shape_costs",
            "Operators by how much their shapes change",
            every_step=True,
            keeps=("name", "shapes", "total_ns", "spread_ns", "count", "type", "slowest_ns", "fastest_ns"),
        ),
        Table(
            "dynamic_shape_types",
            "Types of operators by step",
            keeps=("type", "step", "total_ns", "shapes", "count", "mean_ns", "unit"),
        ),
        Table(
            "dynamic_shapes",
            "Operators by step and shape",
            keeps=("name", "step", "total_ns", "input_shapes", "count", "is_new", "mean_ns", "type"),
        ),
    ]
