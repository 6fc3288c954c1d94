"""The operator data of each window as the framework wrote it, for those who ask for it (`data_simplification=False`).

All that people read is made from this data, and it lies in the recording anyway, so it is left out by default.
"""

from __future__ import annotations

import polars as pl

from stepscope.export.job import Job


def write_window_originals(job: Job) -> None:
    """Copy the finished windows to `windows_<rank>/<window>/`."""
    if job.data_simplification:
        return
    rows = job.raw("windows").filter(pl.col("state") == "complete")
    for number in rows["window"].drop_nulls():
        directory = job.recording / "windows" / f"{number:06d}"
        for file in sorted(path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()):
            job.copy(f"windows_{job.rank}/{directory.name}/{file.relative_to(directory)}", file)
