"""A rank with a GPU, each with figures of its own, for what is asked of several ranks together."""

from __future__ import annotations

import polars as pl

from stepscope.tables import KERNEL_RESOURCES, RANKS, STEPS
from tests.analysis.device.launched import US, Range, Work, tables_of


def on_gpu(rank: int) -> dict[str, pl.DataFrame]:
    """Products with and without tensor cores, few blocks, pageable copies, and waits for the device; the last rank has
    only a fill."""
    if rank == 2:
        return {**_steps(), **tables_of([Work("Memset (Device)", 5, 9 + rank, kind="memory")], [])}
    ranges = [
        Range("train.py(3): step", 0, 1900, category="python"),
        Range("aten::mm", 10, 40, parent=0),
        Range("aten::item", 50, 400 + rank, parent=0),
        Range("cudaStreamSynchronize", 60, 390 + rank, parent=2, category="runtime"),
        Range(f"Torch-Compiled Region: {rank}/0", 405, 420 + rank, parent=0),
        Range("aten::add_", 1010, 1040, parent=0),
        Range("aten::item", 1050, 1400, parent=0),
        Range("cudaStreamSynchronize", 1060, 1390, parent=6, category="runtime"),
    ]
    work = [
        Work("volta_sgemm_128x32_nn", 100, 300 + rank, (20, 25), operator=1),
        Work("Memcpy DtoH (Device -> Pageable)", 310, 380, (55, 58), operator=2, kind="memory", size=4),
        Work("volta_s884gemm_fp16_128x64_ldg8_nn", 1100, 1300, (1020, 1025), operator=5),
        Work("Memcpy HtoD (Pageable -> Device)", 1310, 1380, (1052, 1058), operator=6, kind="memory", size=4096),
    ]
    tables = tables_of(work, ranges)
    resources = KERNEL_RESOURCES.frame(
        kernel=[0, 2], blocks_per_sm=[0.1 + rank, 4.0], warps_per_sm=[0.8, 32.0], registers_per_thread=[32, 64]
    )
    half = pl.when(pl.col("start_ns") < 1000 * US).then(1).otherwise(2).cast(pl.Int32)
    for name in ("kernels", "slices", "operators"):
        tables[name] = tables[name].with_columns(step=half)
    about = RANKS.frame(rank=[rank], device_kind=["cuda"], device_name=["Tesla V100"], framework=["pytorch"])
    return {**tables, **_steps(), "kernel_resources": resources, "ranks": about}


def _steps() -> dict[str, pl.DataFrame]:
    ends = {"start_ns": [0, 1000 * US], "end_ns": [1000 * US, 2000 * US]}
    windows = {"window_start_ns": [0, 1000 * US], "window_end_ns": [1000 * US, 2000 * US], "window": ["host"] * 2}
    return {"steps": STEPS.frame(step=[1, 2], **ends, **windows)}
