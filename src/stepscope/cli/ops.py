"""`stepscope ops`: which operators of a rank cost the time."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.cli.asking import Table, asks

_HIDDEN = (
    *("framework_name", "subgraph", "graph", "block_dim", "process", "inputs", "input_types", "min_ns"),
    *("wait_ns", "kind"),
)


@asks
def ops() -> Sequence[Table]:
    """Show which operators and kernels of a rank cost the time, by type and one by one.

    Every list (`unit`) stands by itself: AI_CORE, AI_CPU, GPU, CUDA, PYNATIVE of a device, HOST_CPU, CPU of the host.
    """
    return [
        Table("operator_types", "Operators by type"),
        Table("operator_instances", "Operators", hidden=_HIDDEN),
    ]
