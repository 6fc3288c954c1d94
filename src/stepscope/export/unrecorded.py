"""A classic file of which only Ascend's own tools know the content: said to be missing, with the reason."""

from __future__ import annotations

from stepscope.export.job import Job


def write_unrecorded(job: Job) -> None:
    """Say why there is none."""
    job.leave_out(
        f"parallel_strategy_{job.rank}.json",
        "the sharded graph is not recorded: frameworks give it for automatic parallelism on Ascend only",
    )
