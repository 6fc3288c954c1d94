"""Calls that get memory from a device's driver, or give it back."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.names import named
from stepscope.analysis.methods.stopping_calls import COLUMNS, stopping_calls
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable

NO_CALLS = "no call of the driver that allocates or frees memory was recorded"

DRIVER_MEMORY = (
    r"(?i)^(\w+@)?((cuda|hip|cu|aclrt|acl|rt)(Mem)?(Malloc|Free|Alloc)\w*"
    r"|(cu|hip)Mem(Create|Map|Unmap|Release|SetAccess)$|(cuda|hip)Host(Alloc|Register|Unregister)$"
    r"|(aclrt|rt)(ReserveMemAddress|MapMem|UnmapMem|ReleaseMemAddress))"
)
"""Such calls."""

MAPPING = r"(?i)mem(map|unmap)$|(un)?mapmem$"
"""Those of them that map memory into reserved addresses: the allocator's segments can already grow."""

ON_STREAM = r"Async"
"""Those of them that order memory from a pool on a stream, which stop nothing."""


@analysis("rank", COLUMNS, together=True, nothing=NO_CALLS)
def memory_calls(
    slices: pl.LazyFrame,
    idle_pieces: pl.DataFrame | None = None,
    operators: pl.LazyFrame | None = None,
    stacks: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Sum up the host's calls that get memory from the driver or give it back: one row per rank, step and name.

    A framework keeps what it frees, so after warm-up there should be none.

    Raises:
        Unavailable: If there are none.
    """
    calls = slices.filter(pl.col("category") == "runtime")
    name = pl.col("name")
    is_one = name.str.contains(DRIVER_MEMORY) & ~name.str.contains(ON_STREAM)
    wanted = named(calls, allocates=is_one)["allocates"]
    found = stopping_calls(slices, (pl.col("category") == "runtime") & wanted, idle_pieces, operators, stacks)
    if found.is_empty():
        raise Unavailable(NO_CALLS)
    return found
