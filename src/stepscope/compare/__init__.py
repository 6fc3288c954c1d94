"""Comparisons: questions about two sides, a base and what is compared with it. None reads files or writes text.

Importing this package registers all of them in `COMPARISONS`.
"""

from stepscope.compare.call_trees import call_tree_differences as call_tree_differences
from stepscope.compare.gate import Verdict as Verdict
from stepscope.compare.gate import judged as judged
from stepscope.compare.kernels import kernel_change as kernel_change
from stepscope.compare.kernels import kernel_differences as kernel_differences
from stepscope.compare.pair import Pair as Pair
from stepscope.compare.pair import compare as compare
from stepscope.compare.registry import COMPARISONS as COMPARISONS
from stepscope.compare.settings import compared_sides as compared_sides
from stepscope.compare.settings import setting_differences as setting_differences
from stepscope.compare.step_time import rank_differences as rank_differences
from stepscope.compare.step_time import time_differences as time_differences
