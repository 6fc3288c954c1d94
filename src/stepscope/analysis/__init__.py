"""The analyses, grouped by subject: each takes tables and returns one table. None reads files or writes text.

Importing this package registers all of them in `ANALYSES`.
"""

from stepscope.analysis.communication.arrival import arrival as arrival
from stepscope.analysis.communication.clocks import clocks as clocks
from stepscope.analysis.communication.communication import communication as communication
from stepscope.analysis.communication.exposed_calls import exposed_calls as exposed_calls
from stepscope.analysis.communication.slow_groups import slow_groups as slow_groups
from stepscope.analysis.communication.slow_links import slow_links as slow_links
from stepscope.analysis.communication.step_reduces import step_reduce_statistics as step_reduce_statistics
from stepscope.analysis.communication.step_reduces import step_reduces as step_reduces
from stepscope.analysis.flops.flop_tree import flop_tree as flop_tree
from stepscope.analysis.flops.flops import flops as flops
from stepscope.analysis.flops.model_flops import model_flops as model_flops
from stepscope.analysis.flops.operator_flops import operator_flops as operator_flops
from stepscope.analysis.host.cpu_utilization import cpu_summary as cpu_summary
from stepscope.analysis.host.cpu_utilization import cpu_utilization as cpu_utilization
from stepscope.analysis.host.functions import functions as functions
from stepscope.analysis.host.functions import idle_functions as idle_functions
from stepscope.analysis.host.functions import python_threads as python_threads
from stepscope.analysis.host.host_calls import host_calls as host_calls
from stepscope.analysis.host.host_memory import host_memory as host_memory
from stepscope.analysis.host.host_memory import host_memory_curve as host_memory_curve
from stepscope.analysis.host.host_time import host_time as host_time
from stepscope.analysis.input.input_operators import input_operators as input_operators
from stepscope.analysis.input.input_operators import input_samples as input_samples
from stepscope.analysis.input.input_queues import input_batches as input_batches
from stepscope.analysis.input.input_queues import input_queues as input_queues
from stepscope.analysis.input.input_stages import input_stages as input_stages
from stepscope.analysis.input.loader import loader as loader
from stepscope.analysis.input.loader import loader_steps as loader_steps
from stepscope.analysis.job.counter_steps import counter_steps as counter_steps
from stepscope.analysis.job.kernel_classes import kernel_classes as kernel_classes
from stepscope.analysis.job.kernel_patterns import kernel_patterns as kernel_patterns
from stepscope.analysis.job.outlier_steps import outlier_steps as outlier_steps
from stepscope.analysis.job.outlier_steps import step_lengths as step_lengths
from stepscope.analysis.job.rank_counters import rank_counters as rank_counters
from stepscope.analysis.job.rank_host_calls import host_patterns as host_patterns
from stepscope.analysis.job.rank_host_calls import rank_host_calls as rank_host_calls
from stepscope.analysis.job.rank_kernels import rank_kernels as rank_kernels
from stepscope.analysis.job.segments import segments as segments
from stepscope.analysis.job.slow_rank_causes import slow_kinds as slow_kinds
from stepscope.analysis.job.slow_rank_causes import slow_rank_causes as slow_rank_causes
from stepscope.analysis.job.slow_ranks import slow_ranks as slow_ranks
from stepscope.analysis.job.time_by_rank import time_by_rank as time_by_rank
from stepscope.analysis.memory.memory_breakdown import memory_breakdown as memory_breakdown
from stepscope.analysis.memory.memory_hints import memory_hints as memory_hints
from stepscope.analysis.memory.memory_usage import memory_peak as memory_peak
from stepscope.analysis.memory.memory_usage import memory_usage as memory_usage
from stepscope.analysis.operators.dynamic_shapes import dynamic_shape_types as dynamic_shape_types
from stepscope.analysis.operators.dynamic_shapes import dynamic_shapes as dynamic_shapes
from stepscope.analysis.operators.dynamic_shapes import shape_costs as shape_costs
from stepscope.analysis.operators.dynamic_shapes import shape_executions as shape_executions
from stepscope.analysis.operators.kernel_totals import kernel_totals as kernel_totals
from stepscope.analysis.operators.kernel_totals import kernel_type_totals as kernel_type_totals
from stepscope.analysis.operators.kernel_totals import operator_summary as operator_summary
from stepscope.analysis.operators.operator_instances import operator_instances as operator_instances
from stepscope.analysis.operators.operator_instances import operator_types as operator_types
from stepscope.analysis.registry import ANALYSES as ANALYSES
from stepscope.analysis.registry import Analysis as Analysis
from stepscope.analysis.registry import analysis as analysis
from stepscope.analysis.registry import check_registered
from stepscope.analysis.replay.slowdowns import slowdowns as slowdowns
from stepscope.analysis.replay.slowdowns import step_slowdowns as step_slowdowns
from stepscope.analysis.step.activity import activity as activity
from stepscope.analysis.step.breakdown import breakdown as breakdown
from stepscope.analysis.step.compile_time import compile_time as compile_time
from stepscope.analysis.step.gap_ends import gap_ends as gap_ends
from stepscope.analysis.step.gaps import gaps as gaps
from stepscope.analysis.step.idle import idle as idle
from stepscope.analysis.step.idle import idle_marked as idle_marked
from stepscope.analysis.step.idle import idle_pieces as idle_pieces
from stepscope.analysis.step.idle import single_pauses as single_pauses
from stepscope.analysis.step.iterations import iterations as iterations
from stepscope.analysis.step.lost_time import lost_time as lost_time
from stepscope.analysis.step.marked_steps import timed_steps as timed_steps
from stepscope.analysis.step.marks import marks as marks
from stepscope.analysis.step.outer_steps import all_steps as all_steps
from stepscope.analysis.step.outer_steps import device_steps as device_steps
from stepscope.analysis.step.outer_steps import outer_steps as outer_steps
from stepscope.analysis.step.phase_ranges import phase_ranges as phase_ranges
from stepscope.analysis.step.step_statistics import step_statistics as step_statistics
from stepscope.analysis.step.step_trace import step_trace as step_trace

check_registered()
