"""Questions and their answers, one a module: tables in, a table out; no files, no text for people.

Importing this package registers all of them in `ANALYSES`.
"""

from stepscope.analysis.activity import activity
from stepscope.analysis.arrival import arrival
from stepscope.analysis.base import ANALYSES, Analysis, analysis
from stepscope.analysis.breakdown import breakdown
from stepscope.analysis.clocks import clocks
from stepscope.analysis.communication import communication
from stepscope.analysis.flops import flops
from stepscope.analysis.idle import idle
from stepscope.analysis.kernel_totals import kernel_totals, kernel_type_totals
from stepscope.analysis.marks import marks
from stepscope.analysis.operator_instances import operator_instances
from stepscope.analysis.operator_summary import operator_summary
from stepscope.analysis.operator_types import operator_types
from stepscope.analysis.phase_ranges import phase_ranges
from stepscope.analysis.segments import segments
from stepscope.analysis.slow_groups import slow_groups
from stepscope.analysis.slow_links import slow_links
from stepscope.analysis.slow_ranks import slow_ranks
from stepscope.analysis.step_reduces import step_reduce_statistics, step_reduces
from stepscope.analysis.step_statistics import step_statistics
from stepscope.analysis.step_trace import step_trace

__all__ = [
    "ANALYSES",
    "Analysis",
    "activity",
    "analysis",
    "arrival",
    "breakdown",
    "clocks",
    "communication",
    "flops",
    "idle",
    "kernel_totals",
    "kernel_type_totals",
    "marks",
    "operator_instances",
    "operator_summary",
    "operator_types",
    "phase_ranges",
    "segments",
    "slow_groups",
    "slow_links",
    "slow_ranks",
    "step_reduce_statistics",
    "step_reduces",
    "step_statistics",
    "step_trace",
]
