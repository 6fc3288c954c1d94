"""Printing what could not be read and what is doubtful."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.present import plural
from stepscope.report.unread import below, issue_groups

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
        text = f"unread: {below(item.file, run.path)}: {item.problem}. {item.remedy}"
        out.say(text, STYLES[item.severity], indent=2)
    count = sum(issue.inputs for issue in unread[len(listed) :])
    where = f"; `stepscope info` names {'it' if count == 1 else 'them'}" if quiet else ""
    _rest(out, count, "unread input", where, more=bool(listed))
    for warning in run.warnings:
        out.say(f"warning: {warning}", STYLES["warning"], indent=2)
    groups = [group for group in issue_groups(run) if not quiet or group["severity"] == "error"]
    for group in groups[:LISTED]:
        first, *more = group["file"]
        where = f"{Path(first).name} and {len(more)} more" if more else below(first, run.path)
        severity = group["severity"]
        out.say(f"{severity}: {where}: {group['problem']}. {group['remedy']}", STYLES[severity], indent=2)
    _rest(out, len(groups) - LISTED, "issue", "; `stepscope sql PATH 'SELECT * FROM issues'` lists all")


def _rest(out: Output, count: int, what: str, where: str = "", *, more: bool = True) -> None:
    if count > 0:
        out.say(f"... and {plural(count, 'more ' + what)}{where}" if more else f"{plural(count, what)}{where}", "dim")
