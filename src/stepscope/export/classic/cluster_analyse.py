"""`gpu_cluster_analyse`: computing and communication of each step in ms, for the pages that compare the ranks of a job.

Readers use it for jobs that are not data parallel; they take mode, stages and ranks from the name of the file. The last
line is the mean of all steps but the first; a single step has no such line. Receives count only as far as computing
does not hide them, as in the files of real devices; `bubble_ns` of the analysis `breakdown` is all of their time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.analysis.methods.step_windows import known_steps, step_windows
from stepscope.analysis.step.activity import split
from stepscope.errors import Unavailable
from stepscope.export.formatting import csv_text, ms
from stepscope.export.rank_export import RankExport
from stepscope.json_values import as_index

COLUMNS = "computation_time,communication_alone_time"
PIPELINE_COLUMNS = f"{COLUMNS},stage_time,receive_alone_time,collective_communication_alone_time"
_MODEL_PARALLEL = ("auto_parallel", "semi_auto_parallel", "hybrid_parallel")
_PIPELINE = "pipeline-parallel"


def write_cluster_analyse(export: RankExport) -> None:
    """Write it for a GPU job of several ranks; other devices have no such page."""
    ranks = export.facts["world_size"] or 1
    if not export.on_gpu or ranks < 2:
        return
    mode, stages = _mode(export)
    name = f"gpu_cluster_analyse_{mode}_{stages}_{ranks}_{export.rank}.csv"
    steps = export.numbered_steps
    if steps.is_empty() or known_steps(steps.lazy()).collect().height < steps.height:
        export.leave_out(name, "device work was not recorded in each step")
        return
    try:
        sums = _sums(export, steps)
    except Unavailable as reason:
        export.leave_out(name, str(reason))
        return
    rows = [list(row) for row in sums.iter_rows()]
    if len(rows) > 1:
        rows.append([sum(column) / (len(rows) - 1) for column in zip(*rows[1:], strict=True)])
    pipeline = mode == _PIPELINE
    cells = [[ms(cell) for cell in (row if pipeline else row[:2])] for row in rows]
    export.write(name, csv_text(PIPELINE_COLUMNS if pipeline else COLUMNS, cells))


def _mode(export: RankExport) -> tuple[str, int]:
    """Kind of parallelism and pipeline stages, as far as the recorder knows them."""
    parallel = export.parallel
    stages = stage_count(parallel)
    if stages > 1:
        return _PIPELINE, stages
    return ("model-parallel" if parallel.get("parallel_mode") in _MODEL_PARALLEL else "data-parallel"), stages


def stage_count(parallel: Mapping[str, Any]) -> int:
    """Pipeline stages as a recorder states them: of MindSpore, or of Megatron; 1 if it states none."""
    stated = (parallel.get(name) for name in ("stage_num", "pipeline_model_parallel_size"))
    return next((number for each in stated if (number := as_index(each))), 1)


def _sums(export: RankExport, steps: pl.DataFrame) -> pl.DataFrame:
    """The columns of the file for each step, in ns; raises `Unavailable` if what the rank did is not known."""
    activity = export.run.analyse("activity")
    receives = export.lazy("collectives").filter((pl.col("operation") == "recv") & pl.col("on_device"))
    receives = receives.select("rank", "start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns"))
    windows = step_windows(steps.lazy())
    alone = pl.col("communication") & ~pl.col("computing")
    time = pl.col("duration_ns")
    sums = (
        split(activity, windows.lazy(), receive=receives)
        .group_by("window")
        .agg(whole=time.sum(), alone=time.filter(alone).sum(), receive=time.filter(alone & pl.col("receive")).sum())
    )
    both = windows.lazy().join(sums, on="window", how="left").sort("step")
    whole, lone, receive = (pl.col(name).fill_null(0) for name in ("whole", "alone", "receive"))
    return both.select(
        computation=whole - lone, alone=lone, stage=whole - receive, receive=receive, collective=lone - receive
    ).collect()
