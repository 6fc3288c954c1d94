"""Any job that was recorded can be exported, and the files agree with our own tables."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
from exports import export, read_back
from hypothesis import HealthCheck, given, settings
from polars.testing import assert_frame_equal

from made_up_jobs import Job, jobs
from stepscope import Run, open_run
from stepscope.errors import Unavailable
from traces import write_kineto

SUMS = ["computing_ns", "communication_ns", "overlapped_ns", "communication_not_overlapped_ns", "stage_ns", "bubble_ns"]
OPERATOR = ["rank", "start_ns", "duration_ns", "name", "thread"]
CALL = ["rank", "sequence", "operation", "start_ns", "duration_ns", "on_device", "size_bytes"]


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(job=jobs())
def test_any_job_is_exported_and_read_back(job: Job) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for trace in job.traces:
            write_kineto(Path(folder) / "job", trace, job.dialect)
        run = open_run(Path(folder) / "job", use_store=False)
        exported = export(run, Path(folder) / "out")
        again = read_back(Path(folder) / "out")

        for rank in exported.values():
            assert not any("Error" in reason for reason in rank.left_out.values())
        for table, columns in (("operators", OPERATOR), ("collectives", CALL)):
            if run.has(table):
                assert_frame_equal(rows(run, table, columns), rows(again, table, columns))
        assert stated(again) == ours(run)
        # how much of a step its work spans is a fact of the job, not of how it was exported
        told = again.issues.filter(pl.col("severity") != "note", ~pl.col("problem").str.contains("spans only"))
        assert told.is_empty()


def rows(run: Run, table: str, columns: list[str]) -> pl.DataFrame:
    return run.table(table).select(columns).collect().sort(pl.all())


def stated(run: Run) -> list[tuple[int, ...]]:
    if not run.has("step_totals"):
        return []
    return run.table("step_totals").collect().sort("rank", "step").select(SUMS).rows()


def ours(run: Run) -> list[tuple[int, ...]]:
    """What the ranks that can answer answer; the others have no file."""
    try:
        return run.analyse("breakdown").sort("rank", "step").select(SUMS).rows()
    except Unavailable:
        return []
