"""A status as lines of text: the verdict first, then who takes part, switches, ranks and storage."""

from __future__ import annotations

import time
from collections.abc import Iterator

from stepscope.live.messages import MOST_TEXT
from stepscope.live.show.sentences import action, circumstances, headline, short_job, short_name
from stepscope.live.show.status import RankStatus, Status, VerdictStatus
from stepscope.live.show.view import worst_first
from stepscope.live.show.words import CALM, KINDS
from stepscope.present import Language, duration, listed, plural, size
from stepscope.selection import describe_numbers

SHOWN_RANKS = 10
"""Ranks with a line of their own; the others are counted."""
SHOWN_OVER = 3
NARROWEST = 40


def lines_of(status: Status, width: int = 80, language: Language = "en") -> list[str]:
    """The status in lines.

    Args:
        width: That of the table of ranks; sentences are to be wrapped by whoever prints them.
        language: Of the verdicts.
    """
    return [
        *_verdicts(status, language),
        "",
        *_job(status),
        *_idle(status),
        *_switches(status),
        "",
        *_ranks(status, max(width, NARROWEST)),
        *_storage(status),
        *_captures(status),
    ]


def summary_of(status: Status) -> str:
    """One line: job, ranks and step."""
    ranks = len(status.ranks)
    states = [f"{count} {state}" for state in ("late", "lost") if (count := status.count(state))]
    hosts = len({rank.host for rank in status.ranks})
    parts = [
        f"job {short_job(status.job) or '(unknown)'}",
        f"{plural(ranks, 'rank')} on {plural(hosts, 'host')}" if ranks else "no rank has registered yet",
        *states,
        *([] if status.step is None else [f"step {status.step:,}"]),
        *([] if status.step_ns is None else [f"{duration(status.step_ns)} a step"]),
    ]
    return ", ".join(parts)


def calm(status: Status, language: Language = "en") -> str:
    """What it means that no verdict is open."""
    return CALM[_calm(status)].of(language)


def _calm(status: Status) -> str:
    if status.lag_ns is None:
        return "no_detector"
    if not any(rank.step_ns is not None for rank in status.ranks):
        return "no_steps"
    if all(rank.state == "lost" for rank in status.ranks):
        return "no_rank"
    idle, alive = sum(rank.is_idle for rank in status.ranks), status.count("alive")
    return "idle" if alive and idle == alive else "none_slow"


def verdict_lines(one: VerdictStatus, language: Language = "en") -> list[str]:
    """A verdict in three lines: who and what; since when and how sure; what to do."""
    verdict = one.verdict
    lines = [
        headline(verdict, language),
        f"  {circumstances(verdict, language)}",
    ]
    if verdict.explanation:
        lines.append(f"  {short_name(verdict.explanation, MOST_TEXT)}")
    if not verdict.is_over:
        lines.append(f"  {action(verdict, one.framework, one.device, language)}")
    return lines


def _verdicts(status: Status, language: Language) -> Iterator[str]:
    if not status.open:
        yield calm(status, language)
    for one in status.open:
        yield from verdict_lines(one, language)
    for one in status.over[:SHOWN_OVER]:
        yield f"Over: {headline(one.verdict, language)} ({circumstances(one.verdict, language)})"


def _job(status: Status) -> Iterator[str]:
    text = summary_of(status)
    yield text[0].upper() + text[1:]
    missing = (status.world_size or 0) - len(status.ranks)
    if missing > 0:
        yield f"{plural(missing, 'rank')} of {status.world_size:,} have not registered"
    for state, told in (("late", "not heard for some seconds"), ("lost", "taking part no more")):
        numbers = [rank.rank for rank in status.ranks if rank.state == state]
        if numbers:
            yield f"{state.capitalize()} ({told}): {describe_numbers(numbers)}"


def _idle(status: Status) -> Iterator[str]:
    """Where training does not go on, ranks that are in the same call together."""
    places: dict[str, list[RankStatus]] = {}
    for rank in status.ranks:
        if rank.is_idle:
            places.setdefault(rank.inside.rpartition(" for ")[0], []).append(rank)
    for inside, ranks in list(places.items())[:SHOWN_RANKS]:
        longest = duration(max(rank.idle_ns for rank in ranks))
        where = f"in {inside}" if inside else "outside of all that is traced"
        yield f"Nothing has happened for {longest} in {_named([rank.rank for rank in ranks])}: {where}"


def _switches(status: Status) -> Iterator[str]:
    switches = status.switches
    on = listed([KINDS[kind].en for kind in switches.on]) or "nothing"
    off = listed([KINDS[kind].en for kind in switches.off])
    text = f"Recording {on}" + (f"; off: {off}" if off else "")
    if switches.revision:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(switches.at_ns / 1e9))
        text += f" (requested by {switches.by or 'unknown'}, {at})"
    yield text
    taking_part = switches.applied + len(switches.pending) + len(switches.failed)
    if switches.pending:
        pending = describe_numbers(switches.pending)
        yield f"Not applied yet by {len(switches.pending)} of {plural(taking_part, 'rank')}: {pending}"
    for failed in switches.failed[:SHOWN_RANKS]:
        yield f"Rank {failed.rank} cannot apply the switches: {failed.error}"
    if (more := len(switches.failed) - SHOWN_RANKS) > 0:
        yield f"{plural(more, 'more rank')} cannot apply the switches"


def _ranks(status: Status, width: int) -> Iterator[str]:
    if not status.ranks:
        return
    shown = worst_first(status.ranks, status.blamed)[:SHOWN_RANKS]
    room = max(width - 71, 8)
    yield (
        f"{'rank':>6} {'host':<{room}} {'state':<5} {'step':>8} {'time':>9} {'data':>9} {'forward':>9} "
        f"{'comm.':>9} {'own':>5}"
    )[:width]
    for one in shown:
        yield _rank_line(one, room)[:width].rstrip()
    if (more := len(status.ranks) - len(shown)) > 0:
        yield f"       and {plural(more, 'rank')} more, none of them worse"[:width]


def _rank_line(one: RankStatus, room: int) -> str:
    host = one.host if len(one.host) <= room else f"{one.host[: room - 1]}~"
    times = (one.step_ns, one.data_ns, one.forward_ns, one.communication_ns)
    told = " ".join(f"{'-' if ns is None else duration(ns):>9}" for ns in times)
    ratio = "-" if one.own_ratio is None else f"{one.own_ratio:.2f}x" if one.own_ratio < 100 else ">99x"
    return f"{one.rank:>6} {host:<{room}} {one.state:<5} {one.step:>8,} {told} {ratio:>5}"


def _storage(status: Status) -> Iterator[str]:
    storage = status.storage
    if storage.directories:
        more = len(storage.directories) - 1
        text = f"Records: {storage.directories[0]}" + (f" and {plural(more, 'other')}" if more else "")
        if storage.used_bytes is not None:
            text += f"; all jobs use {size(storage.used_bytes)}"
        yield text
    if storage.dropped:
        yield f"{plural(storage.dropped, 'record')} could not be written"
    by_problem: dict[str, list[int]] = {}
    for each in storage.problems:
        by_problem.setdefault(each.problem, []).append(each.rank)
    for problem, ranks in list(by_problem.items())[:SHOWN_RANKS]:
        yield f"No records from {_named(ranks)}: {problem}"


def _captures(status: Status) -> Iterator[str]:
    for one in status.captures[:SHOWN_OVER]:
        yield f"Capture {one.capture} of {_named(one.ranks)}: {one.error or one.state}"
        directories = sorted({_capture_directory(file, one.capture) for file in one.files})
        yield from (f"  {directory}" for directory in directories[:SHOWN_OVER])
        if (more := len(directories) - SHOWN_OVER) > 0:
            yield f"  and {more} more"


def _capture_directory(file: str, capture: str) -> str:
    """The directory of a capture in which a file lies; else that of the file."""
    before, found, _ = file.rpartition(f"/{capture}/")
    return f"{before}/{capture}" if found else file.rpartition("/")[0] or file


def _named(ranks: list[int]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {describe_numbers(ranks)}"
