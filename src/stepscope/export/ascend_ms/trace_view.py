"""trace_view.json: the timeline as a list of Chrome trace events, never larger than the limit and always complete."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec

from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.trace_device import communication_events, kernel_events, overlap_events
from stepscope.export.ascend_ms.trace_host import counter_events, host_events, step_events
from stepscope.export.ascend_ms.trace_tracks import Event, Tracks
from stepscope.export.rank_export import RankExport
from stepscope.export.timelines import SEPARATOR, CappedList


def trace_view(export: RankExport) -> Iterator[str]:
    """The file, in parts. What explains the job comes first, so that a timeline that is cut still shows the steps;
    the names of a track stand before the first event on it.

    Raises:
        Unavailable: If there is nothing to show.
    """
    tracks = Tracks(export)
    kinds = (step_events, overlap_events, communication_events, kernel_events, counter_events, host_events)
    events = chain.from_iterable(make(export, tracks) for make in kinds)
    first = next(events, None)
    if first is None:
        raise Unavailable("nothing with a time was recorded")
    entries = (SEPARATOR.join(map(_json, [*tracks.new_names(), event])) for event in chain([first], events))
    return _with_note(export, CappedList(entries, export.timeline_limit_bytes))


def _with_note(export: RankExport, text: CappedList) -> Iterator[str]:
    """The text; notes afterwards what did not fit."""
    yield from text
    if text.cut:
        limit = f"timeline_limit ({export.timeline_limit_bytes} bytes)"
        reason = f"holds the first {text.written} of {text.written + text.cut} events, as many as {limit} allows"
        export.leave_out("trace_view.json", reason)


def _json(event: Event) -> str:
    return msgspec.json.encode(event).decode()
