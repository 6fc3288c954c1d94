"""What the page of a running job says of it: the job in a line, who is slow, its ranks, switches and profiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.errors import StepscopeError
from stepscope.selection import describe_numbers, named_numbers
from stepscope.web.ui.context import Context
from stepscope.web.ui.frame import overview_link
from stepscope.web.ui.pages.live_figures import measure_of
from stepscope.web.ui.pages.live_words import said

if TYPE_CHECKING:
    from stepscope.live.control.client import Answers
    from stepscope.live.show.status import CaptureStatus, RankStatus, Status
    from stepscope.web.catalogue import Entry

SHOWN_RANKS = 64
"""Ranks of the table, the worst first."""


def summary(status: Status, context: Context) -> str:
    """The job in a line; what to do if there is none."""
    from stepscope.live.show.sentences import short_job
    from stepscope.present import duration, plural

    if not status.ranks:
        return said(context, "nobody")
    hosts = len({rank.host for rank in status.ranks})
    text = said(context, "summary").format(
        job=short_job(status.job) or "-",
        alive=status.count("alive"),
        ranks=status.world_size or len(status.ranks),
        hosts=plural(hosts, "host") if context.language == "en" else f"{hosts} 台主机",
    )
    if status.step is None or status.step_ns is None:
        return text
    return text + said(context, "pace").format(step=f"{status.step:,}", time=duration(status.step_ns))


def absent(status: Status, context: Context) -> list[str]:
    """Which ranks do not take part as they should."""
    missing = (status.world_size or 0) - len(status.ranks)
    notes = []
    if status.ranks and missing > 0:
        notes.append(said(context, "missing").format(count=missing, world=status.world_size))
    for state in ("late", "lost"):
        ranks = [rank.rank for rank in status.ranks if rank.state == state]
        if ranks:
            notes.append(said(context, f"some_{state}").format(ranks=named(ranks)))
    return notes


def figure_hint(status: Status, drawn: Sequence[int], context: Context) -> str:
    """What to know of the figures: that no rank is chosen, or what step times of ranks that wait do not show."""
    if not drawn:
        there = describe_numbers(rank.rank for rank in status.ranks)
        return said(context, "none_chosen").format(ranks=context.state.get("ranks"), there=there)
    return said(context, "waits") if measure_of(context.state) == "step" else ""


def not_up_to_date(problem: StepscopeError | None, context: Context) -> str:
    """Why what is shown is not up to date; empty if it is."""
    if problem is None:
        return ""
    target, reason = getattr(problem, "target", None), getattr(problem, "reason", "")
    text = str(problem) if target is None else said(context, "no_manager").format(target=target, reason=reason)
    return said(context, "old").format(problem=text)


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
        "calm": "" if status.open or not status.ranks else calm(status, language),
    }


def rank_rows(status: Status, context: Context) -> list[dict[str, Any]]:
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
            "state": said(context, one.state),
            "step": f"{one.step:,}",
            "times": [time(ns) for ns in times],
            "own": "-" if one.own_ratio is None else f"{one.own_ratio:.2f}x",
            "inside": one.problem or (one.inside if one.state != "lost" else "-"),
            "is_blamed": one.rank in blamed,
        }

    return [row(one) for one in worst_first(status.ranks, blamed)[:SHOWN_RANKS]]


def switch_notes(status: Status, context: Context) -> list[str]:
    """Who asked for the switches, and who has applied them."""
    switches = status.switches
    there = switches.applied + len(switches.pending) + len(switches.failed)
    by = said(context, "asked_by").format(by=switches.by) if switches.by else ""
    key = "unswitched" if not switches.revision else "revision" if there else "nobody_follows"
    known = {"revision": switches.revision, "applied": switches.applied, "there": there, "by": by}
    notes = [said(context, key).format(**known)]
    if switches.pending:
        notes.append(said(context, "pending").format(ranks=named(switches.pending)))
    notes += [said(context, "failed").format(rank=one.rank, error=one.error) for one in switches.failed[:10]]
    return notes


def captured(made: Answers, context: Context) -> list[str]:
    """What has come of a profile, as sentences."""
    texts = []
    for one in made.results:
        directory, error, note = (getattr(one, name, "") for name in ("directory", "error", "note"))
        said_of = said(context, "unprofiled" if error else "profiled").format(
            rank=one.rank, place=directory, error=error
        )
        texts.append(" ".join(filter(None, [said_of, note])))
    if made.pending:
        texts.append(said(context, "unfinished").format(ranks=named(made.pending)))
    return texts


def capture_places(one: CaptureStatus) -> list[str]:
    """The directories of a profile, each on the host of its rank."""
    places = []
    for file in one.files:
        before, found, _ = file.rpartition(f"/{one.capture}/")
        places.append(f"{before}/{one.capture}" if found else file.rpartition("/")[0])
    return list(dict.fromkeys(places))


def run_at(context: Context, place: str) -> str | None:
    """The run that a directory has become, if it lies below a served directory."""
    directory = Path(place)
    entries = context.web.catalogue.entries()
    return next((entry.id for entry in entries if entry.path.is_relative_to(directory)), None)


def is_served(context: Context, place: str) -> bool:
    """Whether a directory lies below a served one, so that it becomes a run."""
    return any(Path(place).is_relative_to(root) for root in context.web.catalogue.roots)


def records(context: Context) -> list[dict[str, Any]]:
    """Runs that are light records, which also grow while a job runs."""
    from stepscope.present import plural

    def facts(entry: Entry) -> list[str]:
        counts = [(entry.ranks, "rank", "rank"), (entry.steps, "step", "步")]
        known = [(count, one, other) for count, one, other in counts if count]
        if context.language == "zh":
            texts = [f"{count:,} {other}" for count, _, other in known]
        else:
            texts = [plural(count, one) for count, one, _ in known]
        return texts if entry.state == "ready" else [*texts, context.word(f"state_{entry.state}")]

    return [
        {
            "name": entry.name,
            "url": overview_link(context, entry.id),
            "facts": facts(entry),
            "problem": entry.problem_in(context.language),
        }
        for entry in context.web.catalogue.entries()
        if "light" in entry.formats
    ]


def named(ranks: Sequence[int]) -> str:
    """Some ranks in words, e.g. `ranks 0-3`."""
    return named_numbers("rank", list(ranks))
