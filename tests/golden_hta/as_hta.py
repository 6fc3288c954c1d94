"""Recordings as HTA sees them: in whole microseconds, and without what begins in the last of several steps."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope import Run

RECORDINGS = {
    "cpu_ddp4_straggler_r2": "cpu_gloo_4rank_straggler_r2",
    "hta_nccl_data_r0": "single/nccl_data.json.gz",
    "hta_trace_filter_2rank": "sampled_2of128",
    "param_dlrm_8rank": "dlrm_8rank_v100",
    "tracelens_b200": "single/b200_eager_trace.json.gz",
}
"""Names of HTA's results, and the traces that they are of."""

US = 1000


def trace_of(shared: Path, name: str) -> Path:
    """The traces that a result of HTA is about."""
    return shared / "data" / "pytorch" / RECORDINGS[name]


def result_of(shared: Path, name: str, file: str) -> Path:
    """A file with a result of HTA."""
    return shared / "golden" / "hta" / name / file


def as_hta_reads(run: Run, *, rounded: bool = True) -> Run:
    """The run as HTA sees it: without what begins or is launched in the last step, starts rounded up, ends down."""
    frames: dict[int, dict[str, pl.DataFrame]] = {}
    for rank in run.ranks:
        steps = rank.table("steps").collect()
        last_ns = steps["start_ns"].max() if steps.height > 1 else 2**63 - 1
        tables = {"steps": steps, "ranks": rank.table("ranks").collect()}
        for name, began in (("kernels", "launch_start_ns"), ("operators", "start_ns"), ("slices", "start_ns")):
            if name in rank.rows:
                is_kept = (pl.col(began) < last_ns) | pl.col(began).is_null()
                rows = rank.table(name).filter(is_kept).collect()
                tables[name] = in_whole_us(rows) if rounded else rows
        frames[rank.rank] = tables
    return Run.from_frames(frames)


def in_whole_us(rows: pl.DataFrame) -> pl.DataFrame:
    """Ranges and their launches with starts rounded up to whole microseconds, and ends down."""
    start, end = _up("start_ns"), (pl.col("start_ns") + pl.col("duration_ns")) // US * US
    launch = [_up("launch_start_ns"), pl.col("launch_end_ns") // US * US] if "launch_start_ns" in rows.columns else []
    return rows.with_columns(start, *launch, duration_ns=(end - start).clip(lower_bound=0))


def _up(name: str) -> pl.Expr:
    return (-(-pl.col(name) // US) * US).alias(name)
