"""The allocator holds far more memory than is ever in use."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.base import Finding, rule
from stepscope.advice.memory_texts import of_what
from stepscope.advice.ranks import named, on_rank, place
from stepscope.analysis.memory_hints import FRAGMENTATION
from stepscope.present import size


@rule("memory-fragmentation")
def memory_fragmentation(memory_hints: pl.DataFrame) -> Iterator[Finding]:
    """Report reserved memory that was never in use (limits: `memory_hints`)."""
    rows = memory_hints.filter(pl.col("kind") == FRAGMENTATION).sort("bytes", descending=True)
    if rows.is_empty():
        return
    worst = rows.row(0, named=True)
    ranks = rows["rank"].to_list()
    where = on_rank(worst["rank"], ranks)
    yield Finding(
        rule="memory-fragmentation",
        summary=(
            f"{named(ranks, 'reserves', 'reserve')} memory{of_what(worst)} that is never in use: "
            f"{size(worst['bytes'])}, {worst['ratio']:.0%} of what is reserved{where}."
        ),
        cause="Free memory lies in pieces between blocks in use, too small for what is asked for next.",
        action=(
            "For PyTorch set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PYTORCH_NPU_ALLOC_CONF on Ascend), or "
            "max_split_size_mb; keep shapes the same from step to step (padding, buckets)."
        ),
        saving_ns=0,
        saving_ratio=0.0,
        where=place(ranks),
        evidence={name: worst[name] for name in ("bytes", "ratio", "peak_bytes", "capacity_bytes", "device")},
    )
