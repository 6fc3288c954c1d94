"""The part of a tree of calls that a flame graph shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from stepscope.errors import StepscopeError

Time = Literal["host", "device"]
TIMES: tuple[Time, ...] = ("host", "device")

LONGEST_NAME = 500
"""Characters of a name that files keep: some recordings have names of megabytes."""


@dataclass(frozen=True)
class Flame:
    """What one flame graph shows.

    Args:
        title: What it is of.
        time: Whose time it is.
        rows: Rows of `call_tree` that have such a time, with `whole_ns` and `own_ns`.
        total_ns: Time of the whole graph.
        left_out: Calls that are left out as they are too short to be seen.
    """

    title: str
    time: Time
    rows: pl.DataFrame
    total_ns: int
    left_out: int = 0


def flame_of(tree: pl.DataFrame, title: str, time: Time, least_ratio: float = 0.0) -> Flame:
    """The flame graph of a tree of calls.

    Args:
        tree: `call_tree`.
        title: What it is of.
        time: Whose time it shows.
        least_ratio: The least share of the whole that a call must have to be kept, with all calls around it.

    Raises:
        StepscopeError: If no time of this kind was recorded.
    """
    if time not in TIMES:
        raise StepscopeError(f"--time {time}: choose one of {', '.join(TIMES)}")
    timed = tree.filter(pl.col(f"{time}_ns") > 0)
    total = int(timed.filter(pl.col("parent").is_null())[f"{time}_ns"].sum())
    if not total:
        other = next(one for one in TIMES if one != time)
        raise StepscopeError(f"there is no {time} time in this recording. Try --time {other}")
    kept = timed.filter(pl.col(f"{time}_ns") >= least_ratio * total)
    name = pl.col("name").str.replace_all(r"[\x00-\x1f\x7f-\x9f\u{2028}\u{2029}]", " ").str.slice(0, LONGEST_NAME)
    rows = kept.with_columns(name=name, whole_ns=f"{time}_ns", own_ns=f"{time}_self_ns")
    return Flame(title, time, rows, total, timed.height - kept.height)
