"""trace_view.json: the timeline as a list of Chrome trace events, never larger than the limit and always complete."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.trace_device import communication_events, kernel_events, overlap_events
from stepscope.export.ascend_ms.trace_host import counter_events, host_events, step_events
from stepscope.export.ascend_ms.trace_tracks import Event, Tracks
from stepscope.export.job import Job

_OPEN, _BETWEEN, _CLOSE = "[", ",\n", "]"


def trace_view(job: Job) -> Iterator[str]:
    """The file, in parts. What explains the job comes first, so that a timeline that is cut still shows the steps.

    Raises:
        Unavailable: If there is nothing to show.
    """
    tracks = Tracks(job)
    kinds = (step_events, overlap_events, communication_events, kernel_events, counter_events, host_events)
    events = chain.from_iterable(make(job, tracks) for make in kinds)
    first = next(events, None)
    if first is None:
        raise Unavailable("nothing with a time was recorded")
    return _limited(job, tracks, chain([first], events))


def _limited(job: Job, tracks: Tracks, events: Iterator[Event]) -> Iterator[str]:
    """The events as text, up to the limit; names of tracks stand before the first event on them."""
    left = job.timeline_limit_bytes - len(_OPEN) - len(_CLOSE)
    before, written, lost = _OPEN, 0, 0
    for event in events:
        text = "".join(_BETWEEN + _json(part) for part in [*tracks.new_names(), event])[len(_BETWEEN) :]
        size = len(text.encode()) + len(_BETWEEN)
        if lost or size > left:
            lost += 1
            continue
        left -= size
        written += 1
        yield before + text
        before = _BETWEEN
    yield (_OPEN if before == _OPEN else "") + _CLOSE
    if lost:
        limit = f"timeline_limit ({job.timeline_limit_bytes} bytes)"
        told = f"holds the first {written} of {written + lost} events, as many as {limit} allows"
        job.leave_out("trace_view.json", told)


def _json(event: Any) -> str:
    return msgspec.json.encode(event).decode()
