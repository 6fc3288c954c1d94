"""All tables, by name: the one schema between every source and every answer.

A new table is a file and a line here; tables are listed in the order of these lines.
"""

# ruff: noqa: I001 - the order of the lines is that of the tables
from stepscope.tables.base import Column as Column
from stepscope.tables.base import Table as Table
from stepscope.tables.ranks import RANKS as RANKS
from stepscope.tables.groups import GROUPS as GROUPS
from stepscope.tables.steps import STEPS as STEPS
from stepscope.tables.slices import SLICES as SLICES
from stepscope.tables.operators import OPERATORS as OPERATORS
from stepscope.tables.kernels import KERNELS as KERNELS
from stepscope.tables.kernel_counters import KERNEL_COUNTERS as KERNEL_COUNTERS
from stepscope.tables.collectives import COLLECTIVES as COLLECTIVES
from stepscope.tables.links import LINKS as LINKS
from stepscope.tables.transports import TRANSPORTS as TRANSPORTS
from stepscope.tables.allocations import ALLOCATIONS as ALLOCATIONS
from stepscope.tables.memory_curve import MEMORY_CURVE as MEMORY_CURVE
from stepscope.tables.flows import FLOWS as FLOWS
from stepscope.tables.step_totals import STEP_TOTALS as STEP_TOTALS
from stepscope.tables.operator_totals import OPERATOR_TOTALS as OPERATOR_TOTALS
from stepscope.tables.counters import COUNTERS as COUNTERS
from stepscope.tables.stacks import STACKS as STACKS
from stepscope.tables.communication_totals import COMMUNICATION_TOTALS as COMMUNICATION_TOTALS
from stepscope.tables.operator_steps import OPERATOR_STEPS as OPERATOR_STEPS
from stepscope.tables.graphs import GRAPHS as GRAPHS
from stepscope.tables.graph_nodes import GRAPH_NODES as GRAPH_NODES
from stepscope.tables.graph_tensors import GRAPH_TENSORS as GRAPH_TENSORS
from stepscope.tables.flop_scopes import FLOP_SCOPES as FLOP_SCOPES
from stepscope.tables.host_events import HOST_EVENTS as HOST_EVENTS
from stepscope.tables.rank_figures import RANK_FIGURES as RANK_FIGURES
from stepscope.tables.pipeline_operators import PIPELINE_OPERATORS as PIPELINE_OPERATORS
from stepscope.tables.input_pipeline import INPUT_PIPELINE as INPUT_PIPELINE
from stepscope.tables.host_usage import HOST_USAGE as HOST_USAGE
from stepscope.tables.issues import ISSUES as ISSUES

TABLES: dict[str, Table] = {table.name: table for table in list(vars().values()) if isinstance(table, Table)}
