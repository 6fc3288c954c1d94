"""What the page of a running job says of it: the job in a line, who is slow, its ranks, switches and profiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.web.ui.context import Context
from stepscope.web.ui.pages.live_words import said

if TYPE_CHECKING:
    from stepscope.live.control.client import Answers
    from stepscope.live.show.status import CaptureStatus, RankStatus, Status

SHOWN_RANKS = 64
"""Ranks of the table, the worst first."""


def summary(status: Status, context: Context) -> str:
    """The job in a line."""
    from stepscope.live.show.sentences import short_job
    from stepscope.present import duration, plural

    hosts = len({rank.host for rank in status.ranks})
    return said(context, "summary").format(
        job=short_job(status.job) or "-",
        alive=status.count("alive"),
        ranks=status.world_size or len(status.ranks),
        hosts=plural(hosts, "host") if context.language == "en" else f"{hosts} 台主机",
        step="-" if status.step is None else f"{status.step:,}",
        time="-" if status.step_ns is None else duration(status.step_ns),
    )


def verdicts(status: Status | None, context: Context) -> dict[str, Any]:
    """Verdicts that last, with what to do, and those that are over; what it means that there are none."""
    from stepscope.live.show.sentences import circumstances, headline
    from stepscope.live.show.status_lines import calm, verdict_lines

    if status is None:
        return {"open": [], "over": [], "calm": ""}
    language = context.language
    return {
        "open": [verdict_lines(one, language) for one in status.open],
        "over": [
            f"{headline(one.verdict, language)} ({circumstances(one.verdict, language)})" for one in status.over[:3]
        ],
        "calm": "" if status.open else calm(status),
    }


def rank_rows(status: Status) -> list[dict[str, Any]]:
    """Rows of the table of ranks, the worst first."""
    from stepscope.live.show.view import worst_first
    from stepscope.present import duration

    blamed = status.blamed

    def time(ns: int | None) -> str:
        return "-" if ns is None else duration(ns)

    def row(one: RankStatus) -> dict[str, Any]:
        times = (one.step_ns, one.data_ns, one.forward_ns, one.communication_ns)
        return {
            "rank": one.rank,
            "host": one.host,
            "state": one.state,
            "step": f"{one.step:,}",
            "times": [time(ns) for ns in times],
            "own": "-" if one.own_ratio is None else f"{one.own_ratio:.2f}x",
            "inside": one.problem or one.inside,
            "is_blamed": one.rank in blamed,
        }

    return [row(one) for one in worst_first(status.ranks, blamed)[:SHOWN_RANKS]]


def switch_notes(status: Status, context: Context) -> list[str]:
    """Who asked for the switches, and who has applied them."""
    switches = status.switches
    there = switches.applied + len(switches.pending) + len(switches.failed)
    by = said(context, "asked_by").format(by=switches.by) if switches.by else ""
    notes = [said(context, "revision").format(revision=switches.revision, applied=switches.applied, there=there, by=by)]
    if switches.pending:
        notes.append(said(context, "pending").format(ranks=named(switches.pending)))
    notes += [said(context, "failed").format(rank=one.rank, error=one.error) for one in switches.failed[:10]]
    return notes


def captured(made: Answers, context: Context) -> list[str]:
    """What has come of a profile, as sentences."""
    texts = []
    for one in made.results:
        directory, error = getattr(one, "directory", ""), getattr(one, "error", "")
        texts.append(f"rank {one.rank}: {error or directory}.")
    if made.pending:
        texts.append(said(context, "pending").format(ranks=named(made.pending)))
    return texts


def capture_place(one: CaptureStatus) -> str:
    """The directory of a profile, on the host of its rank."""
    for file in one.files:
        before, found, _ = file.rpartition(f"/{one.capture}/")
        return f"{before}/{one.capture}" if found else file.rpartition("/")[0]
    return ""


def run_at(context: Context, place: str) -> str | None:
    """The run that a directory has become, if it lies below a served directory."""
    directory = Path(place)
    entries = context.web.catalogue.entries()
    return next((entry.id for entry in entries if entry.path.is_relative_to(directory)), None)


def named(ranks: Sequence[int]) -> str:
    """Some ranks in words, e.g. `ranks 0-3`."""
    from stepscope.selection import named_numbers

    return named_numbers("rank", list(ranks))
