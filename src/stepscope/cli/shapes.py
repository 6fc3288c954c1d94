"""`stepscope shapes`: operators of a rank whose shapes change from step to step."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.cli.asking import Table, asks


@asks
def shapes() -> Sequence[Table]:
    """Show which operators of a rank change their shapes, what that costs, and what each step took."""
    return [
        Table("shape_costs", "Operators by how much their shapes change", every_step=True),
        Table("dynamic_shape_types", "Types of operators by step"),
        Table("dynamic_shapes", "Operators by step and shape"),
    ]
