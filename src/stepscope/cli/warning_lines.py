"""Printing what could not be read and what is doubtful."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.pages.run_issues import issue_groups
from stepscope.present import plural

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
        quiet: Show errors only, and count unread files that may not be recordings.
    """
    unread = sorted(run.unread, key=lambda u: u.severity != "error")
    listed = [u for u in unread if not quiet or u.severity == "error"][:LISTED]
    for item in listed:
        _line(out, "unread", f"{item.file}: {item.problem}. {item.remedy}", STYLES[item.severity])
    where = "; `stepscope info` names them" if quiet else ""
    _rest(out, sum(issue.inputs for issue in unread[len(listed) :]), "unread input", where, more=bool(listed))
    for warning in run.warnings:
        _line(out, "warning", warning, STYLES["warning"])
    groups = [group for group in issue_groups(run) if not quiet or group.severity == "error"]
    for group in groups[:LISTED]:
        _line(out, group.severity, f"{group.where}: {group.problem}. {group.remedy}", STYLES[group.severity])
    _rest(out, len(groups) - LISTED, "issue", "; `stepscope sql PATH 'SELECT * FROM issues'` lists all")


def _line(out: Output, label: str, text: str, style: str) -> None:
    out.say(f"{label}: {text}", style, indent=2)


def _rest(out: Output, count: int, what: str, where: str = "", *, more: bool = True) -> None:
    if count > 0:
        out.say(f"... and {plural(count, 'more ' + what)}{where}" if more else f"{plural(count, what)}{where}", "dim")
