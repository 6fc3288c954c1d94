"""Jobs as they are given to the product: rows in memory, or traces on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from simulated.ascend import AscendJob
from simulated.frames import run_of
from simulated.kineto import write
from simulated.on_cpu import cpu_tables
from simulated.truth import Job
from stepscope import open_run
from stepscope.run import Run


@contextmanager
def recorded(job: Job | AscendJob) -> Iterator[Run]:
    """The run of a job; what is on disk is read anew each time."""
    if isinstance(job, Job) and job.on_cpu:
        groups = job.network.groups
        tables = {rank: cpu_tables(job.times, job.shape, groups, rank) for rank in range(job.shape.ranks)}
        yield Run.from_frames(tables, name=job.name)
        return
    if isinstance(job, Job) and not job.on_disk:
        yield run_of(job)
        return
    with TemporaryDirectory() as directory:
        if isinstance(job, Job):
            write(job, Path(directory))
        else:
            job.write(Path(directory))
        yield open_run(directory, use_store=False)
