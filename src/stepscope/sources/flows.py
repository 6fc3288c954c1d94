"""Rows of `flows` from the two ends of recorded flows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import polars as pl

from stepscope.tables import FLOWS

PART_ROWS = 1_000_000
"""About as many ends are matched at a time."""


def matched_flows(kind: str, ends: Callable[[], Iterable[pl.DataFrame]], count: int) -> Iterator[pl.DataFrame]:
    """Flows that have both ends, as rows of `flows`.

    Args:
        kind: What they mean.
        ends: Gives the ends, any number of times: `phase` (`s` or `f`), `id`, `start_ns`, `thread`. Of several ends
            with one id and phase the first counts.
        count: How many ends there are.
    """
    parts = 1 + count // PART_ROWS
    part = pl.col("id").hash(seed=0) % parts
    for number in range(parts):
        frames = list(ends() if parts == 1 else (frame.filter(part == number) for frame in ends()))
        if not frames:
            return
        known = pl.concat(frames).drop_nulls(["id", "start_ns"])
        tails = known.filter(pl.col("phase") == "s").unique("id", keep="first", maintain_order=True)
        heads = known.filter(pl.col("phase") == "f").unique("id", keep="first", maintain_order=True)
        pairs = tails.join(heads, on="id", suffix="_to").sort("start_ns", "id")
        yield FLOWS.shaped(
            pairs.select(
                kind=pl.lit(kind),
                flow="id",
                from_ns="start_ns",
                from_thread="thread",
                to_ns="start_ns_to",
                to_thread="thread_to",
            )
        )
