"""Device work and the host calls that launch it, made up for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.run import Run
from stepscope.tables import KERNELS, OPERATORS, RANKS, SLICES

US = 1000


@dataclass(frozen=True)
class Work:
    """A piece of device work; times in us.

    Args:
        call: Start and end of the call that launches it; None if it was not recorded.
        operator: Number of its operator (see `run_of`).
        graph: Number of the launch that it shares with others.
    """

    name: str
    start: int
    end: int
    call: tuple[int, int] | None = None
    stream: int = 7
    operator: int | None = None
    kind: str = "compute"
    size: int | None = None
    graph: int | None = None


@dataclass(frozen=True)
class Range:
    """A range of the host on one thread; times in us, `parent` the number of the one around it."""

    name: str
    start: int
    end: int
    parent: int | None = None
    category: str = "operator"
    correlation: int | None = None
    process: str | None = None


def run_of(work: Sequence[Work], ranges: Sequence[Range] = (), device_kind: str = "cuda") -> Run:
    """A run of `tables_of` a rank."""
    return Run.from_frames({0: tables_of(work, ranges, device_kind)})


def tables_of(work: Sequence[Work], ranges: Sequence[Range], device_kind: str = "cuda") -> dict[str, pl.DataFrame]:
    """A rank with one device; operators share their number with the work that they launch."""
    kernels = KERNELS.frame(
        kernel=list(range(len(work))),
        start_ns=[one.start * US for one in work],
        duration_ns=[(one.end - one.start) * US for one in work],
        kind=[one.kind for one in work],
        name=[one.name for one in work],
        device=[0] * len(work),
        stream=[one.stream for one in work],
        correlation=[number + 1000 if one.graph is None else one.graph for number, one in enumerate(work)],
        external_id=[one.operator for one in work],
        launch_start_ns=[None if one.call is None else one.call[0] * US for one in work],
        launch_end_ns=[None if one.call is None else one.call[1] * US for one in work],
        size_bytes=[one.size for one in work],
    )
    slices = SLICES.frame(
        slice=list(range(len(ranges))),
        start_ns=[one.start * US for one in ranges],
        duration_ns=[(one.end - one.start) * US for one in ranges],
        category=[one.category for one in ranges],
        name=[one.name for one in ranges],
        process=[one.process for one in ranges],
        thread=["1"] * len(ranges),
        parent=[one.parent for one in ranges],
        correlation=[one.correlation for one in ranges],
    )
    called = slices.filter(pl.col("category") == "operator")
    operators = OPERATORS.conform(
        called.select("slice", "start_ns", "duration_ns", "name", "thread", external_id=pl.col("slice"))
    )
    ranks = RANKS.frame(rank=[0], device_kind=[device_kind])
    tables = {"kernels": kernels, "ranks": ranks, "slices": slices, "operators": operators}
    return {name: rows for name, rows in tables.items() if rows.height}
