"""All tables, by name: the one schema between every source and every answer.

To add a table, add a file and an import here; tables are listed in the order of these imports.
"""

# ruff: noqa: I001 - the order of the imports is that of the tables
from stepscope.tables.base import Column as Column
from stepscope.tables.base import Table as Table
from stepscope.tables.ranks import RANKS as RANKS
from stepscope.tables.communication import GROUPS as GROUPS
from stepscope.tables.steps import STEPS as STEPS
from stepscope.tables.slices import SLICES as SLICES
from stepscope.tables.operators import OPERATORS as OPERATORS
from stepscope.tables.operators import OPERATOR_DETAILS as OPERATOR_DETAILS
from stepscope.tables.kernels import KERNELS as KERNELS
from stepscope.tables.kernels import KERNEL_COUNTERS as KERNEL_COUNTERS
from stepscope.tables.kernels import KERNEL_RESOURCES as KERNEL_RESOURCES
from stepscope.tables.communication import COLLECTIVES as COLLECTIVES
from stepscope.tables.communication import COLLECTIVE_SPLITS as COLLECTIVE_SPLITS
from stepscope.tables.communication import COMMUNICATION_TASKS as COMMUNICATION_TASKS
from stepscope.tables.communication import LINKS as LINKS
from stepscope.tables.communication import TRANSPORTS as TRANSPORTS
from stepscope.tables.memory import ALLOCATIONS as ALLOCATIONS
from stepscope.tables.memory import MEMORY_CURVE as MEMORY_CURVE
from stepscope.tables.slices import FLOWS as FLOWS
from stepscope.tables.slices import SYNCHRONIZATIONS as SYNCHRONIZATIONS
from stepscope.tables.slices import THREADS as THREADS
from stepscope.tables.slices import PYTHON_CALLS as PYTHON_CALLS
from stepscope.tables.steps import STEP_TOTALS as STEP_TOTALS
from stepscope.tables.operators import OPERATOR_TOTALS as OPERATOR_TOTALS
from stepscope.tables.host import COUNTERS as COUNTERS
from stepscope.tables.slices import STACKS as STACKS
from stepscope.tables.communication import COMMUNICATION_TOTALS as COMMUNICATION_TOTALS
from stepscope.tables.operators import OPERATOR_STEPS as OPERATOR_STEPS
from stepscope.tables.graphs import GRAPHS as GRAPHS
from stepscope.tables.graphs import GRAPH_NODES as GRAPH_NODES
from stepscope.tables.graphs import GRAPH_TENSORS as GRAPH_TENSORS
from stepscope.tables.parallel_graphs import PARALLEL_GRAPHS as PARALLEL_GRAPHS
from stepscope.tables.parallel_graphs import PARALLEL_NODES as PARALLEL_NODES
from stepscope.tables.operators import FLOP_SCOPES as FLOP_SCOPES
from stepscope.tables.host import HOST_EVENTS as HOST_EVENTS
from stepscope.tables.ranks import RANK_FIGURES as RANK_FIGURES
from stepscope.tables.input_pipeline import PIPELINE_OPERATORS as PIPELINE_OPERATORS
from stepscope.tables.input_pipeline import INPUT_PIPELINE as INPUT_PIPELINE
from stepscope.tables.host import HOST_USAGE as HOST_USAGE
from stepscope.tables.recorded_calls import RECORDED_CALLS as RECORDED_CALLS
from stepscope.tables.light_ranges import LIGHT_RANGES as LIGHT_RANGES
from stepscope.tables.timelines import TIMELINES as TIMELINES
from stepscope.tables.issues import ISSUES as ISSUES

TABLES: dict[str, Table] = {table.name: table for table in list(vars().values()) if isinstance(table, Table)}
