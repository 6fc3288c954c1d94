"""Printing what could not be read and what is doubtful."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.present import plural
from stepscope.tables.issues import OTHER_RUNS

if TYPE_CHECKING:
    from stepscope.cli.output import Output
    from stepscope.pages.answering import Subject

LISTED = 8
"""Lines of each kind before the rest is only counted."""

STYLES = {"error": "red", "warning": "yellow", "note": "dim"}
"""By severity, in the order in which issues are printed."""


def show_warnings(out: Output, run: Subject, *, quiet: bool = False) -> None:
    """Print unread inputs, then issues: errors first, the same issue of several files once.

    If `quiet`, show errors only, and count unread files that may not be recordings.
    """
    unread = sorted(run.unread, key=lambda u: u.severity != "error")
    listed = [u for u in unread if not quiet or u.severity == "error"][:LISTED]
    for item in listed:
        text = f"unread: {_below(item.file, run.path)}: {item.problem}. {item.remedy}"
        out.say(text, STYLES[item.severity], indent=2)
    where = "; `stepscope info` names them" if quiet else ""
    _rest(out, sum(issue.inputs for issue in unread[len(listed) :]), "unread input", where, more=bool(listed))
    for warning in run.warnings:
        out.say(f"warning: {warning}", STYLES["warning"], indent=2)
    groups = [group for group in _issue_groups(run) if not quiet or group["severity"] == "error"]
    for group in groups[:LISTED]:
        first, *more = group["file"]
        where = f"{Path(first).name} and {len(more)} more" if more else _below(first, run.path)
        severity = group["severity"]
        out.say(f"{severity}: {where}: {group['problem']}. {group['remedy']}", STYLES[severity], indent=2)
    _rest(out, len(groups) - LISTED, "issue", "; `stepscope sql PATH 'SELECT * FROM issues'` lists all")


def _below(file: str, folder: Path) -> str:
    """A path from the input on, if it is there."""
    path = Path(file)
    return str(path.relative_to(folder)) if path != folder and path.is_relative_to(folder) else file


def _issue_groups(run: Subject) -> list[dict[str, Any]]:
    """Issues with all files that have them, without unread inputs and other runs, which are reported by themselves."""
    unread = {(each.file, each.problem) for each in run.unread}
    places = run.issues.select("file", "problem", "place").iter_rows()
    kept = [
        (file, problem) not in unread and not (run.others and place == OTHER_RUNS) for file, problem, place in places
    ]
    order = {severity: number for number, severity in enumerate(STYLES)}
    grouped = run.issues.filter(kept).group_by("severity", "problem", "remedy", maintain_order=True)
    files = grouped.agg(pl.col("file").unique(maintain_order=True))
    return files.sort(pl.col("severity").replace_strict(order), maintain_order=True).to_dicts()


def _rest(out: Output, count: int, what: str, where: str = "", *, more: bool = True) -> None:
    if count > 0:
        out.say(f"... and {plural(count, 'more ' + what)}{where}" if more else f"{plural(count, what)}{where}", "dim")
