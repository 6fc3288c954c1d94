"""What could not be read, and what had to be guessed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from rich.console import Console

    from stepscope.run import Run

LISTED = 8
"""Lines of each kind before the rest is only counted."""

STYLES = {"error": "red", "warning": "yellow", "note": "dim"}


def show_troubles(out: Console, run: Run, *, quiet: bool = False) -> None:
    """Print unread inputs, then issues: errors first, the same issue of several files once.

    Args:
        out: Where to print.
        run: The run.
        quiet: Leave out warnings and notes.
    """
    for unread in run.unread[:LISTED]:
        _line(out, "unread", f"{unread.file}: {unread.problem}. {unread.remedy}", "red")
    _rest(out, len(run.unread), "unread inputs")
    for warning in run.warnings:
        _line(out, "warning", warning, "yellow")
    if quiet:
        return
    told = {(u.file, u.problem) for u in run.unread}
    order = {severity: n for n, severity in enumerate(STYLES)}
    grouped = (
        run.issues.with_columns(order=pl.col("severity").replace_strict(order, default=9))
        .group_by("order", "severity", "problem", "remedy", maintain_order=True)
        .agg(pl.col("file"), pl.col("lost").sum())
        .sort("order", maintain_order=True)
    )
    lines = [row for row in grouped.iter_rows(named=True) if (row["file"][0], row["problem"]) not in told]
    for row in lines[:LISTED]:
        files = Path(row["file"][0]).name if len(row["file"]) > 1 else row["file"][0]
        more = f" and {len(row['file']) - 1} more" if len(row["file"]) > 1 else ""
        _line(out, row["severity"], f"{files}{more}: {row['problem']}. {row['remedy']}", STYLES[row["severity"]])
    _rest(out, len(lines), "issues; `stepscope sql PATH 'SELECT * FROM issues'` lists all")


def _line(out: Console, label: str, text: str, style: str) -> None:
    out.print(f"{label}: {text}", style=style, markup=False, highlight=False, soft_wrap=True)


def _rest(out: Console, count: int, what: str) -> None:
    if count > LISTED:
        out.print(f"... and {count - LISTED} more {what}", style="dim", markup=False, highlight=False)
