"""A run: one training job as it was recorded, with its ranks, its tables and its answers."""

from stepscope.run.opening import named, open_run, open_runs
from stepscope.run.rank import Rank
from stepscope.run.run import Run

__all__ = ["Rank", "Run", "named", "open_run", "open_runs"]
