"""All tables, by name: the one schema between every source and every answer."""

from stepscope.tables.allocations import ALLOCATIONS
from stepscope.tables.base import Column, Table
from stepscope.tables.collectives import COLLECTIVES
from stepscope.tables.communication_totals import COMMUNICATION_TOTALS
from stepscope.tables.counters import COUNTERS
from stepscope.tables.flop_scopes import FLOP_SCOPES
from stepscope.tables.flows import FLOWS
from stepscope.tables.graph_nodes import GRAPH_NODES
from stepscope.tables.graph_tensors import GRAPH_TENSORS
from stepscope.tables.graphs import GRAPHS
from stepscope.tables.groups import GROUPS
from stepscope.tables.host_events import HOST_EVENTS
from stepscope.tables.host_usage import HOST_USAGE
from stepscope.tables.input_pipeline import INPUT_PIPELINE
from stepscope.tables.issues import ISSUES
from stepscope.tables.kernel_counters import KERNEL_COUNTERS
from stepscope.tables.kernels import KERNELS
from stepscope.tables.links import LINKS
from stepscope.tables.memory_curve import MEMORY_CURVE
from stepscope.tables.operator_steps import OPERATOR_STEPS
from stepscope.tables.operator_totals import OPERATOR_TOTALS
from stepscope.tables.operators import OPERATORS
from stepscope.tables.pipeline_operators import PIPELINE_OPERATORS
from stepscope.tables.rank_figures import RANK_FIGURES
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
        COMMUNICATION_TOTALS,
        OPERATOR_STEPS,
        GRAPHS,
        GRAPH_NODES,
        GRAPH_TENSORS,
        FLOP_SCOPES,
        HOST_EVENTS,
        RANK_FIGURES,
        PIPELINE_OPERATORS,
        INPUT_PIPELINE,
        HOST_USAGE,
        ISSUES,
    )
}

__all__ = [
    "ALLOCATIONS",
    "COLLECTIVES",
    "COMMUNICATION_TOTALS",
    "COUNTERS",
    "FLOP_SCOPES",
    "FLOWS",
    "GRAPHS",
    "GRAPH_NODES",
    "GRAPH_TENSORS",
    "GROUPS",
    "HOST_EVENTS",
    "HOST_USAGE",
    "INPUT_PIPELINE",
    "ISSUES",
    "KERNELS",
    "KERNEL_COUNTERS",
    "LINKS",
    "MEMORY_CURVE",
    "OPERATORS",
    "OPERATOR_STEPS",
    "OPERATOR_TOTALS",
    "PIPELINE_OPERATORS",
    "RANKS",
    "RANK_FIGURES",
    "SLICES",
    "STACKS",
    "STEPS",
    "STEP_TOTALS",
    "TABLES",
    "TRANSPORTS",
    "Column",
    "Table",
]
