"""Questions and their answers, one a module: tables in, a table out; no files, no text for people.

Importing this package registers all of them in `ANALYSES`.
"""

from stepscope.analysis.communication.arrival import arrival
from stepscope.analysis.communication.clocks import clocks
from stepscope.analysis.communication.communication import communication
from stepscope.analysis.communication.slow_groups import slow_groups
from stepscope.analysis.communication.slow_links import slow_links
from stepscope.analysis.communication.step_reduces import step_reduce_statistics, step_reduces
from stepscope.analysis.flops.flop_tree import flop_tree
from stepscope.analysis.flops.flops import flops
from stepscope.analysis.flops.model_flops import model_flops
from stepscope.analysis.flops.operator_flops import operator_flops
from stepscope.analysis.host.cpu_utilization import cpu_summary, cpu_utilization
from stepscope.analysis.host.functions import functions, idle_functions, python_threads
from stepscope.analysis.host.host_memory import host_memory, host_memory_curve
from stepscope.analysis.host.host_time import host_time
from stepscope.analysis.input.input_operators import input_operators, input_samples
from stepscope.analysis.input.input_queues import input_batches, input_queues
from stepscope.analysis.input.input_stages import input_stages
from stepscope.analysis.input.loader import loader, loader_steps
from stepscope.analysis.job.segments import segments
from stepscope.analysis.job.slow_ranks import slow_ranks
from stepscope.analysis.job.time_by_rank import time_by_rank
from stepscope.analysis.memory.memory_breakdown import memory_breakdown
from stepscope.analysis.memory.memory_hints import memory_hints
from stepscope.analysis.memory.memory_peak import memory_peak
from stepscope.analysis.memory.memory_usage import memory_usage
from stepscope.analysis.operators.dynamic_shapes import dynamic_shape_types, dynamic_shapes, shape_executions
from stepscope.analysis.operators.kernel_totals import kernel_totals, kernel_type_totals
from stepscope.analysis.operators.operator_instances import operator_instances
from stepscope.analysis.operators.operator_summary import operator_summary
from stepscope.analysis.operators.operator_types import operator_types
from stepscope.analysis.operators.shape_costs import shape_costs
from stepscope.analysis.registry import ANALYSES, Analysis, analysis, check_registered
from stepscope.analysis.step.activity import activity
from stepscope.analysis.step.breakdown import breakdown
from stepscope.analysis.step.compile_time import compile_time
from stepscope.analysis.step.device_steps import device_steps
from stepscope.analysis.step.idle import idle, idle_marked, idle_pieces, next_work
from stepscope.analysis.step.iterations import iterations
from stepscope.analysis.step.lost_time import lost_time
from stepscope.analysis.step.marked_steps import timed_steps
from stepscope.analysis.step.marks import marks
from stepscope.analysis.step.outer_steps import all_steps, outer_steps
from stepscope.analysis.step.phase_ranges import phase_ranges
from stepscope.analysis.step.single_pauses import single_pauses
from stepscope.analysis.step.step_statistics import step_statistics
from stepscope.analysis.step.step_trace import step_trace

check_registered()

__all__ = [
    "ANALYSES",
    "Analysis",
    "activity",
    "all_steps",
    "analysis",
    "arrival",
    "breakdown",
    "clocks",
    "communication",
    "compile_time",
    "cpu_summary",
    "cpu_utilization",
    "device_steps",
    "dynamic_shape_types",
    "dynamic_shapes",
    "flop_tree",
    "flops",
    "functions",
    "host_memory",
    "host_memory_curve",
    "host_time",
    "idle",
    "idle_functions",
    "idle_marked",
    "idle_pieces",
    "input_batches",
    "input_operators",
    "input_queues",
    "input_samples",
    "input_stages",
    "iterations",
    "kernel_totals",
    "kernel_type_totals",
    "loader",
    "loader_steps",
    "lost_time",
    "marks",
    "memory_breakdown",
    "memory_hints",
    "memory_peak",
    "memory_usage",
    "model_flops",
    "next_work",
    "operator_flops",
    "operator_instances",
    "operator_summary",
    "operator_types",
    "outer_steps",
    "phase_ranges",
    "python_threads",
    "segments",
    "shape_costs",
    "shape_executions",
    "single_pauses",
    "slow_groups",
    "slow_links",
    "slow_ranks",
    "step_reduce_statistics",
    "step_reduces",
    "step_statistics",
    "step_trace",
    "time_by_rank",
    "timed_steps",
]
