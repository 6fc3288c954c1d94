"""All tables, by name: the one schema between every source and every answer."""

from stepscope.tables.allocations import ALLOCATIONS
from stepscope.tables.base import Column, Table
from stepscope.tables.collectives import COLLECTIVES
from stepscope.tables.counters import COUNTERS
from stepscope.tables.flows import FLOWS
from stepscope.tables.groups import GROUPS
from stepscope.tables.host_usage import HOST_USAGE
from stepscope.tables.input_pipeline import INPUT_PIPELINE
from stepscope.tables.issues import ISSUES
from stepscope.tables.kernel_counters import KERNEL_COUNTERS
from stepscope.tables.kernels import KERNELS
from stepscope.tables.links import LINKS
from stepscope.tables.memory_curve import MEMORY_CURVE
from stepscope.tables.operator_totals import OPERATOR_TOTALS
from stepscope.tables.operators import OPERATORS
from stepscope.tables.ranks import RANKS
from stepscope.tables.slices import SLICES
from stepscope.tables.stacks import STACKS
from stepscope.tables.step_totals import STEP_TOTALS
from stepscope.tables.steps import STEPS
from stepscope.tables.transports import TRANSPORTS

TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        RANKS,
        GROUPS,
        STEPS,
        SLICES,
        OPERATORS,
        KERNELS,
        KERNEL_COUNTERS,
        COLLECTIVES,
        LINKS,
        TRANSPORTS,
        ALLOCATIONS,
        MEMORY_CURVE,
        FLOWS,
        STEP_TOTALS,
        OPERATOR_TOTALS,
        COUNTERS,
        STACKS,
        INPUT_PIPELINE,
        HOST_USAGE,
        ISSUES,
    )
}

__all__ = [
    "ALLOCATIONS",
    "COLLECTIVES",
    "COUNTERS",
    "FLOWS",
    "GROUPS",
    "HOST_USAGE",
    "INPUT_PIPELINE",
    "ISSUES",
    "KERNELS",
    "KERNEL_COUNTERS",
    "LINKS",
    "MEMORY_CURVE",
    "OPERATORS",
    "OPERATOR_TOTALS",
    "RANKS",
    "SLICES",
    "STACKS",
    "STEPS",
    "STEP_TOTALS",
    "TABLES",
    "TRANSPORTS",
    "Column",
    "Table",
]
