"""Comparisons: questions about two sides, a base and what is compared with it. None reads files or writes text.

Importing this package registers all of them in `COMPARISONS`.
"""

from stepscope.compare.apis import api_differences as api_differences
from stepscope.compare.call_trees import call_tree_differences as call_tree_differences
from stepscope.compare.communication import communication_differences as communication_differences
from stepscope.compare.gate import Verdict as Verdict
from stepscope.compare.gate import judged as judged
from stepscope.compare.kernels import kernel_change as kernel_change
from stepscope.compare.kernels import kernel_differences as kernel_differences
from stepscope.compare.memory import memory_differences as memory_differences
from stepscope.compare.modules import module_differences as module_differences
from stepscope.compare.operators import operator_differences as operator_differences
from stepscope.compare.pair import OneSide as OneSide
from stepscope.compare.pair import Pair as Pair
from stepscope.compare.pair import compare as compare
from stepscope.compare.registry import COMPARISONS as COMPARISONS
from stepscope.compare.settings import compared_sides as compared_sides
from stepscope.compare.settings import setting_differences as setting_differences
from stepscope.compare.side_names import BASE as BASE
from stepscope.compare.side_names import NEW as NEW
from stepscope.compare.side_names import SideName as SideName
from stepscope.compare.step_time import own_work_difference as own_work_difference
from stepscope.compare.step_time import rank_differences as rank_differences
from stepscope.compare.step_time import time_differences as time_differences
from stepscope.compare.totals import operator_type_differences as operator_type_differences
