"""What all timelines have: when the rank computed and communicated, and a size limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import polars as pl

from stepscope.analysis.methods.intervals import union
from stepscope.analysis.step.activity import split

SEPARATOR = ",\n"

OVERLAPS: dict[str, pl.Expr] = {
    "computing": pl.col("computing"),
    "communication_alone": pl.col("communication") & ~pl.col("computing"),
    "communication": pl.col("communication"),
    "free": ~(pl.col("computing") | pl.col("communication")),
}


def overlaps(activity: pl.DataFrame, windows: pl.LazyFrame) -> dict[str, pl.DataFrame]:
    """The ranges (`start_ns`, `end_ns`) of one rank in which each of `OVERLAPS` holds.

    Args:
        activity: What the rank was doing when.
        windows: Where to look, as for `split`.
    """
    end = pl.col("start_ns") + pl.col("duration_ns")
    cut = split(activity, windows).with_columns(end_ns=end).collect().lazy()
    return {part: union(cut.filter(where)).collect() for part, where in OVERLAPS.items()}


def capped(
    entries: Iterable[str], limit: int, note: Callable[[int, int], None], opening: str = "[", closing: str = "]"
) -> Iterator[str]:
    """The text of a JSON list that ends before it grows beyond a limit, and is valid JSON in any case.

    Args:
        entries: The entries, each as JSON.
        limit: Most bytes of the text; an empty list is always written.
        note: Called at the end if entries did not fit: how many were written, and how many were not.
        opening: What the list begins with.
        closing: What it ends with.
    """
    left = limit - len(opening) - len(closing)
    written = cut = 0
    for entry in entries:
        left -= 0 if cut else len(entry.encode()) + len(SEPARATOR)
        if left < 0:
            cut += 1
            continue
        yield (SEPARATOR if written else opening) + entry
        written += 1
    yield closing if written else "[]"
    if cut:
        note(written, cut)
