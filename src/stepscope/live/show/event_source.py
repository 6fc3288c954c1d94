"""From what a manager notices to events: what has changed, each change once."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from stepscope.live.control.status import RankChange
from stepscope.live.messages import Captured, Pulse
from stepscope.live.show import event_types as events
from stepscope.live.show.outbox import Outbox
from stepscope.live.show.sentences import action, circumstances, headline
from stepscope.live.show.view import View, view_of
from stepscope.live.show.watched import RequestedState, Watched
from stepscope.live.verdicts import Verdict

log = logging.getLogger("stepscope")

Sink = Callable[[events.AnyEvent], None]

FIGURES_EVERY_NS = 30_000_000_000
"""A verdict of which only figures change is reported again after this time at the earliest."""
MOST_VERDICTS = 1000
"""If more are known, those that are over are forgotten."""
LOOK_EVERY_NS = 50_000_000
"""As long as ranks have not applied the switches, their state is looked at this often at most."""


class EventSource:
    """Makes the events of one manager and hands them to sinks, in its event loop; sinks must not block.

    Args:
        view: Of the manager.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._sinks: list[Sink] = []
        self._number = 0
        self.opened: Counter[str] = Counter()
        """Verdicts that were opened, by cause."""
        self._verdicts: dict[str, tuple[Verdict, int]] = {}
        self._problems: dict[int, str] = {}
        self._unsettled: RequestedState | None = None
        self._failed: set[tuple[int, str]] = set()
        self._looked_at_ns = 0
        view.manager.listen(self.take)
        view.manager.capture_begun.append(self._capture_begun)

    def add(self, sink: Sink) -> None:
        """Hand each event from now on to a function as well."""
        self._sinks.append(sink)

    def remove(self, sink: Sink) -> None:
        """Hand no more events to a function."""
        if sink in self._sinks:
            self._sinks.remove(sink)

    def take(self, event: Any) -> None:
        """Something has happened."""
        if isinstance(event, Verdict):
            self._verdict(event)
        elif isinstance(event, Pulse):
            self._pulse(event)
        elif isinstance(event, RankChange):
            self._rank(event)
        elif isinstance(event, Captured):
            files = [str(file) for file in event.files]
            self._emit(events.CaptureEnded, capture=event.capture, rank=event.rank, files=files, error=event.error)
        elif isinstance(event, RequestedState):
            self._requested(event)
        if self._unsettled is not None and time.time_ns() - self._looked_at_ns > LOOK_EVERY_NS:
            self._look_at_switches(self._unsettled)

    def _capture_begun(self, capture: str, ranks: list[int]) -> None:
        """Some ranks were asked for a profile."""
        self._emit(events.CaptureBegun, capture=capture, ranks=sorted(ranks))

    def _emit(self, kind: Any, **fields: Any) -> None:
        self._number += 1
        event = kind(job=self._view.manager.job, at_ns=time.time_ns(), number=self._number, **fields)
        for sink in list(self._sinks):
            try:
                sink(event)
            except Exception:  # one sink must not cost the others their events
                log.exception("an event could not be passed on")

    def _verdict(self, verdict: Verdict) -> None:
        before, reported_ns = self._verdicts.get(verdict.key, (None, 0))
        now_ns = time.time_ns()
        if before is None or (before.is_over and not verdict.is_over):
            kind: Any = events.VerdictOpened
            self.opened[verdict.cause.value] += 1
        elif verdict.is_over:
            if before.is_over:
                return
            kind = events.VerdictOver
        elif _meaning(verdict) == _meaning(before) and now_ns - reported_ns < FIGURES_EVERY_NS:
            return
        else:
            kind = events.VerdictChanged
        self._verdicts[verdict.key] = (verdict, now_ns)
        if len(self._verdicts) > MOST_VERDICTS:
            self._verdicts = {key: one for key, one in self._verdicts.items() if not one[0].is_over}
        framework, device = self._view.platform_of(verdict)
        self._emit(
            kind,
            verdict=verdict,
            headline=headline(verdict),
            circumstances=circumstances(verdict),
            action=action(verdict, framework, device),
        )

    def _pulse(self, pulse: Pulse) -> None:
        if self._problems.get(pulse.rank, "") == pulse.problem:
            return
        self._problems[pulse.rank] = pulse.problem
        known = self._view.manager.ranks.get(pulse.rank)
        host = known.hello.host if known is not None else ""
        self._emit(events.StorageProblem, rank=pulse.rank, host=host, problem=pulse.problem, dropped=pulse.dropped)

    def _rank(self, change: RankChange) -> None:
        who = {"rank": change.rank, "host": change.host}
        if change.change == "joined":
            self._emit(events.RankJoined, **who)
        elif change.change == "lost":
            self._emit(events.RankLost, **who)
        elif change.change == "left":
            self._emit(events.RankLeft, **who)
        else:
            self._emit(events.RankReturned, **who, restarted=change.change == "restarted")

    def _requested(self, requested: RequestedState) -> None:
        self._unsettled = requested
        self._failed.clear()
        on = requested.switches.as_names()
        self._emit(events.SwitchRequested, revision=requested.revision, on=on, by=requested.by)

    def _look_at_switches(self, requested: RequestedState) -> None:
        self._looked_at_ns = time.time_ns()
        said = self._view.manager.board.acknowledged
        for rank, state in said.items():
            if state.error and (rank, state.error) not in self._failed:
                self._failed.add((rank, state.error))
                self._emit(events.SwitchFailed, revision=requested.revision, rank=rank, error=state.error)
        if not said or any(state.error or state.revision < requested.revision for state in said.values()):
            return
        self._unsettled = None
        took_ns = max(max(state.at_ns for state in said.values()) - requested.at_ns, 0)
        self._emit(events.SwitchApplied, revision=requested.revision, ranks=len(said), took_ns=took_ns)


_sources: WeakKeyDictionary[Any, EventSource] = WeakKeyDictionary()


def source_of(manager: Watched) -> EventSource:
    """The events of a manager, which all that follow it share."""
    source = _sources.get(manager)
    if source is None:
        source = _sources[manager] = EventSource(view_of(manager))
    return source


def deliver(manager: Watched, box: Outbox[events.AnyEvent]) -> Callable[[], None]:
    """Queue each event of a manager for delivery from now on.

    Returns:
        A function that delivers what is queued, for a short time, and ends.
    """
    source = source_of(manager)
    source.add(box.put)

    def close() -> None:
        source.remove(box.put)
        box.close()

    return close


def _meaning(verdict: Verdict) -> tuple[object, ...]:
    """What is worth another event at once when it changes."""
    return verdict.cause, verdict.ranks, verdict.hosts, verdict.group, verdict.intermittent, verdict.explanation
