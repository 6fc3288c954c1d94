"""`parallel_strategy`: the graph with its shardings, which only a compiler that shards graphs knows."""

from __future__ import annotations

from stepscope.export.job import Job


def write_strategy(job: Job) -> None:
    """Say why there is none."""
    job.leave_out(
        f"parallel_strategy_{job.rank}.json",
        "the sharded graph is not recorded: frameworks give it for automatic parallelism on Ascend only",
    )
