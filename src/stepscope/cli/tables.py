"""The tables that `analyze` shows: answers shortened to what fits a screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from stepscope.advice.units import unit_of
from stepscope.analysis.job.time_by_rank import LIMITS, PARTS, time_by_rank
from stepscope.present import plural

if TYPE_CHECKING:
    from stepscope.report.answers import Answers

ROWS, RANK_ROWS = 8, 16
"""Rows of a table, and of the table of ranks."""

CALL_COLUMNS = (
    "group_name",
    "operation",
    "size_bytes",
    "ranks",
    "count",
    "total_ns",
    "median_ns",
    "wait_ns",
    "transmit_ns",
    "wait_ratio",
    "bandwidth_bytes_per_s",
)


def tables_of(found: Answers) -> Iterator[tuple[str, pl.DataFrame]]:
    """Headings and tables, in the order of the questions that people ask."""
    get = found.tables.get
    if (breakdown := get("breakdown")) is not None:
        averages = time_by_rank(breakdown, found.outer_steps, found.limits_of("time_by_rank", LIMITS))
        per = unit_of(breakdown).per
        steps = plural(max(averages["steps"].to_list()), per)
        left = averages["left_out_step"].drop_nulls()
        without = f" without {per} {left[0]}" if left.len() else ""
        which = " with operators" if found.timed_steps is not None and found.timed_steps["by_phases"].any() else ""
        of_what = "whole recording" if per == "recording" else f"mean of {steps}{which}{without}"
        by_rank = averages.select("rank", *PARTS)
        yield _shortened("Time by rank", by_rank, f", {of_what}", rows=RANK_ROWS)
    if (slow := get("slow_ranks")) is not None:
        yield _shortened("Slow ranks", slow)
    if (links := get("slow_links")) is not None:
        yield _shortened("Slow links", links)
    if (groups := get("slow_groups")) is not None and (links is None or links.is_empty()):
        yield _shortened("Slow groups", _named(groups))
    if (idle := get("idle")) is not None:
        causes = idle.group_by("cause").agg(pl.col("idle_ns", "gaps").sum()).sort("idle_ns", descending=True)
        yield "Idle time by cause, all ranks and steps", causes.with_columns(share_ratio=_share("idle_ns"))
    if (calls := get("communication")) is not None:
        yield _shortened("Communication", _told(_named(calls).select(CALL_COLUMNS)))
    if (kernels := get("kernel_totals")) is not None:
        yield _kernels(kernels)
    if (operators := get("operator_summary")) is not None:
        dearest = _over_ranks(operators, ["name"], "self_ns")
        yield _shortened("Operators", dearest, ", all ranks, by their own host time")


def _kernels(kernels: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    """Kernels but those of communication, which have a table of their own; shares are of all device work."""
    every = _over_ranks(kernels, ["kind", "name", "type", "core"])
    others = every.filter(pl.col("kind") != "communication")
    apart = "" if others.height == every.height else " (communication kernels: see Communication)"
    return _shortened("Kernels", _told(others), f", all ranks, share of all device work{apart}")


def _over_ranks(table: pl.DataFrame, keys: list[str], by: str = "total_ns") -> pl.DataFrame:
    """Sum of a per-rank table over ranks, the dearest rows first; shares are of the sum of `by`."""
    sums = list(dict.fromkeys(["count", by, "total_ns"]))
    summed = table.group_by(keys).agg(
        pl.col(sums).sum(),
        mean_ns=(pl.col("total_ns").sum() / pl.col("count").sum()).round(),
        min_ns=pl.col("min_ns").min(),
        max_ns=pl.col("max_ns").max(),
    )
    shared = summed.with_columns(share_ratio=_share(by))
    dearest = shared.sort(by, *keys, descending=[True] + [False] * len(keys), nulls_last=True)
    return dearest.select(*keys, *sums, "share_ratio", "mean_ns", "min_ns", "max_ns")


def _share(column: str) -> pl.Expr:
    """The share of each row; of nothing, none has any."""
    total = pl.col(column).sum()
    return pl.when(total > 0).then(pl.col(column) / total).otherwise(0.0)


def _named(table: pl.DataFrame) -> pl.DataFrame:
    """Groups by their name for people, where they have one."""
    return table.with_columns(group_name=pl.coalesce("group_name", "group")).drop("group")


def _told(table: pl.DataFrame) -> pl.DataFrame:
    """The table without columns in which nothing is known."""
    return table.select(c for c in table.columns if table[c].count())


def _shortened(what: str, table: pl.DataFrame, more: str = "", *, rows: int = ROWS) -> tuple[str, pl.DataFrame]:
    """The first rows, under a heading that says of how many."""
    cut = f": {rows} of {table.height}" if table.height > rows else ""
    return f"{what}{cut}{more}", table.head(rows)
