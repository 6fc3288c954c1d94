"""MindSpore's own files of its input pipeline, copied under the names that readers look for."""

from __future__ import annotations

import re
from pathlib import Path

from stepscope.export.job import Job

PIPELINE = "pipeline_profiling"
CPU = "minddata_cpu_utilization"
ITERATOR = "dataset_iterator_profiling"
_NAME = re.compile(
    rf"({PIPELINE}|{CPU}|{ITERATOR}|device_queue_profiling|minddata_aicpu|minddata_getnext_profiling)_\d+"
)


def write_minddata(job: Job) -> None:
    """Copy the files of the newest span from start to stop that has any.

    Queues and times of several spans have gaps between them that these files cannot tell, so they are not joined.
    """
    spans = [span for span in _spans(job.recording) if any(_NAME.fullmatch(file.stem) for file in span.iterdir())]
    if not spans:
        return
    for file in sorted(spans[-1].iterdir()):
        told = _NAME.fullmatch(file.stem)
        if told and file.is_file():
            job.copy(f"{told.group(1)}_{job.rank}{file.suffix}", file)
    if job.steps is not None:
        job.leave_out(f"{PIPELINE}_{job.rank}.json (steps)", "MindData samples by time: its files tell of all steps")
    if len(spans) > 1:
        job.leave_out(f"{PIPELINE}_{job.rank}.json (earlier)", f"{len(spans) - 1} earlier spans stay in minddata/")


def _spans(recording: Path) -> list[Path]:
    """Directories of spans by number."""
    try:
        found = [place for place in (recording / "minddata").iterdir() if place.is_dir() and place.name.isdigit()]
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda place: int(place.name))
