"""Classic files of which only Ascend's own tools know the content: said to be missing, with the reason."""

from __future__ import annotations

from stepscope.export.job import Job


def write_unrecorded(job: Job) -> None:
    """Say why there is none."""
    job.leave_out(
        f"parallel_strategy_{job.rank}.json",
        "the sharded graph is not recorded: frameworks give it for automatic parallelism on Ascend only",
    )
    if job.run.has("collectives"):
        job.leave_out(
            f"hccl_raw_{job.rank}.csv",
            "it tells of links between devices and of waiting on them, which only Ascend records; the calls are in the "
            "step trace and the timeline",
        )
