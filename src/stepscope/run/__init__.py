"""A run: one recorded training job with its ranks, tables and answers."""

from stepscope.run.engine import Engine, Processes, Ray, Threads, engine_of
from stepscope.run.opening import named, open_run, open_runs, run_of
from stepscope.run.rank import Rank
from stepscope.run.run import Run
from stepscope.run.watching import Cancellation, watched

__all__ = [
    "Cancellation",
    "Engine",
    "Processes",
    "Rank",
    "Ray",
    "Run",
    "Threads",
    "engine_of",
    "named",
    "open_run",
    "open_runs",
    "run_of",
    "watched",
]
