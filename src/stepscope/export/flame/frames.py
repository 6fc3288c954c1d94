"""The part of a tree of calls that a flame graph shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import polars as pl

from stepscope.errors import StepscopeError

Time = Literal["host", "device"]
TIMES: tuple[Time, ...] = ("host", "device")

LONGEST_NAME = 500
"""Characters of a name that files keep: some recordings have names of megabytes."""


_BREAKING = r"[\x00-\x1f\x7f-\x9f\u{2028}\u{2029}\u{fffe}\u{ffff}]"
_BREAKING_IN_PYTHON = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]"
"""Characters that end a line, command a terminal, or that XML does not have."""


@dataclass(frozen=True)
class Flame:
    """What one flame graph shows.

    Args:
        title: What it is of.
        time: Whose time it is.
        rows: Rows of `call_tree` that have such a time, with `whole_ns` and `own_ns`.
        total_ns: Time of the whole graph.
        left_out: Calls that are left out as they are too short to be seen.
        compared: Of a differential graph, whether rows have the time of the other side (`other_ns`), and which of both
            is drawn.
        sides: What the base and the new side are called.
    """

    title: str
    time: Time
    rows: pl.DataFrame
    total_ns: int
    left_out: int = 0
    compared: Literal["", "base", "new"] = ""
    sides: tuple[str, str] = ("base", "new side")

    @property
    def drawn(self) -> str:
        """The side that is drawn."""
        return self.sides[self.compared == "new"]

    @property
    def other(self) -> str:
        """The side that it is compared with."""
        return self.sides[self.compared != "new"]


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
    total = _total(timed, f"{time}_ns")
    if not total:
        other = next(one for one in TIMES if one != time)
        raise StepscopeError(f"there is no {time} time in this recording. Try --time {other}")
    kept = timed.filter(pl.col(f"{time}_ns") >= least_ratio * total)
    rows = _named(kept).with_columns(whole_ns=f"{time}_ns", own_ns=f"{time}_self_ns")
    return Flame(plain(title), time, rows, total, timed.height - kept.height)


def difference_of(
    tree: pl.DataFrame,
    title: str,
    time: Time,
    drawn: Literal["base", "new"],
    least_ratio: float = 0.0,
    sides: tuple[str, str] = Flame.sides,
) -> Flame | None:
    """The differential flame graph of two trees of calls: drawn is one, coloured by its difference from the other.

    Args:
        tree: `call_tree_differences`.
        title: What it is of.
        time: Whose time it shows.
        drawn: Which of both sides.
        least_ratio: As of `flame_of`.
        sides: What both sides are called.

    Returns:
        The graph; None if the side has no such time.
    """
    other = "base" if drawn == "new" else "new"
    timed = tree.filter(pl.col(f"{drawn}_{time}_ns") > 0)
    total = _total(timed, f"{drawn}_{time}_ns")
    if not total:
        return None
    kept = timed.filter(pl.col(f"{drawn}_{time}_ns") >= least_ratio * total)
    rows = _named(kept).with_columns(
        calls=pl.lit(None, pl.Int64),
        whole_ns=f"{drawn}_{time}_ns",
        own_ns=f"{drawn}_{time}_self_ns",
        other_ns=pl.col(f"{other}_matched_{time}_ns").fill_null(0),
    )
    return Flame(plain(title), time, rows, total, timed.height - kept.height, drawn, sides)


def _total(rows: pl.DataFrame, column: str) -> int:
    return int(rows.filter(pl.col("parent").is_null())[column].sum())


def _named(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with names that break no line."""
    return rows.with_columns(name=pl.col("name").str.replace_all(_BREAKING, " ").str.slice(0, LONGEST_NAME))


def plain(text: str) -> str:
    """A text of a file, such as its title, that breaks no line."""
    return re.sub(_BREAKING_IN_PYTHON, " ", text)
