"""What could not be read, and what had to be guessed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.present import plural
from stepscope.tables.issues import OTHER_RUNS

if TYPE_CHECKING:
    from stepscope.cli.output import Output
    from stepscope.run import Run

LISTED = 8
"""Lines of each kind before the rest is only counted."""

STYLES = {"error": "red", "warning": "yellow", "note": "dim"}


def show_warnings(out: Output, run: Run, *, quiet: bool = False) -> None:
    """Print unread inputs, then issues: errors first, the same issue of several files once.

    Args:
        out: Where to print.
        run: The run.
        quiet: Leave out issues that are no errors, and only count unread files that may be no recordings.
    """
    unread = sorted(run.unread, key=lambda u: u.severity != "error")
    listed = [u for u in unread if not quiet or u.severity == "error"][:LISTED]
    for item in listed:
        _line(out, "unread", f"{item.file}: {item.problem}. {item.remedy}", STYLES[item.severity])
    where = "; `stepscope info` names them" if quiet else ""
    _rest(out, sum(issue.inputs for issue in unread[len(listed) :]), "unread input", where, more=bool(listed))
    for warning in run.warnings:
        _line(out, "warning", warning, STYLES["warning"])
    rows = _issues(run)
    rows = [row for row in rows if not quiet or row["severity"] == "error"]
    for row in rows[:LISTED]:
        files = row["file"]
        where = files[0] if len(files) == 1 else f"{Path(files[0]).name} and {len(files) - 1} more"
        _line(out, row["severity"], f"{where}: {row['problem']}. {row['remedy']}", STYLES[row["severity"]])
    _rest(out, len(rows) - LISTED, "issue", "; `stepscope sql PATH 'SELECT * FROM issues'` lists all")


def _issues(run: Run) -> list[dict[str, Any]]:
    """The issues that nothing else has told, the same problem once with all its files."""
    told = {(u.file, u.problem) for u in run.unread}
    order = {severity: n for n, severity in enumerate(STYLES)}
    grouped = (
        run.issues.filter(
            [
                (file, problem) not in told and not (run.others and place == OTHER_RUNS)
                for file, problem, place in run.issues.select("file", "problem", "place").iter_rows()
            ]
        )
        .group_by("severity", "problem", "remedy", maintain_order=True)
        .agg(pl.col("file").unique(maintain_order=True))
        .sort(pl.col("severity").replace_strict(order, default=9), maintain_order=True)
    )
    return grouped.to_dicts()


def _line(out: Output, label: str, text: str, style: str) -> None:
    out.say(f"{label}: {text}", style, indent=2)


def _rest(out: Output, count: int, what: str, where: str = "", *, more: bool = True) -> None:
    if count > 0:
        out.say(f"... and {plural(count, 'more ' + what)}{where}" if more else f"{plural(count, what)}{where}", "dim")
