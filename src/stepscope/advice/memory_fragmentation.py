"""The allocator holds far more memory than is ever in use."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.base import Finding, rule
from stepscope.advice.memory_texts import of_what
from stepscope.advice.platforms import CUDA, MINDSPORE, NPU, PYTORCH, ROCM, Choices, platform_of
from stepscope.advice.ranks import named, on_rank, place
from stepscope.analysis.memory.memory_hints import FRAGMENTATION
from stepscope.present import size

_SHAPES = "keep shapes the same from step to step (padding, buckets)."
ACTIONS: Choices = {
    (PYTORCH, CUDA): f"Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or max_split_size_mb; {_SHAPES}",
    (PYTORCH, ROCM): f"Set PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:512, or garbage_collection_threshold; {_SHAPES}",
    (PYTORCH, NPU): f"Set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, or max_split_size_mb; {_SHAPES}",
    (MINDSPORE, NPU): f"Set MS_ALLOC_CONF=enable_vmm:True, so that pieces are joined; {_SHAPES}",
    (None, None): _SHAPES.capitalize(),
}


@rule("memory-fragmentation")
def memory_fragmentation(memory_hints: pl.DataFrame, ranks: pl.LazyFrame | None = None) -> Iterator[Finding]:
    """Report reserved memory that was never in use (limits: `memory_hints`)."""
    rows = memory_hints.filter(pl.col("kind") == FRAGMENTATION).sort("bytes", descending=True)
    if rows.is_empty():
        return
    worst = rows.row(0, named=True)
    numbers = rows["rank"].to_list()
    where = on_rank(worst["rank"], numbers)
    yield Finding(
        rule="memory-fragmentation",
        summary=(
            f"{named(numbers, 'reserves', 'reserve')} memory{of_what(worst)} that is never in use: "
            f"{size(worst['bytes'])}, {worst['ratio']:.0%} of what is reserved{where}."
        ),
        cause=(
            f"The allocator reserved {size(worst['forced_bytes'])} more although as much lay free: free memory lies in "
            "pieces between blocks in use, too small for what is asked for."
        ),
        action=platform_of(ranks, numbers).pick(ACTIONS),
        saving_ns=0,
        saving_ratio=0.0,
        where=place(numbers),
        evidence={
            name: worst[name] for name in ("bytes", "ratio", "forced_bytes", "peak_bytes", "capacity_bytes", "device")
        },
    )
