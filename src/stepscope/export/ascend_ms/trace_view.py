"""trace_view.json: the timeline as a list of Chrome trace events, never larger than the limit and always complete.

On a host alone, communication and overlap are what its threads did; there are no kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import polars as pl

from stepscope.analysis.methods.intervals import WINDOW
from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.trace_calls import CallTracks
from stepscope.export.ascend_ms.trace_counters import counter_events
from stepscope.export.ascend_ms.trace_device import kernel_events, launch_events
from stepscope.export.ascend_ms.trace_host import host_events, step_events
from stepscope.export.ascend_ms.trace_tracks import OVERLAP, Tracks, span
from stepscope.export.rank_export import RankExport
from stepscope.timeline.overlaps import overlaps
from stepscope.timeline.writing.events import SEPARATOR, capped

OVERLAPS = {
    "computing": "Computing",
    "communication": "Communication",
    "communication_alone": "Communication(Not Overlapped)",
    "free": "Free",
}
"""Rows of the overlap analysis, of each of `overlaps`."""
_WORK = ("computing", "communication")


def trace_view(export: RankExport) -> Iterator[str]:
    """The file, in parts. What explains the job comes first, so that a timeline that is cut still shows the steps;
    the names of a track stand before the first event on it."""
    tracks = Tracks(export)
    calls = CallTracks(export, tracks)
    events = chain(
        step_events(export, tracks),
        _overlap_events(export, tracks),
        calls.call_events(),
        kernel_events(export, tracks),
        counter_events(export, tracks),
        calls.task_events(),
        host_events(export, tracks),
        launch_events(export, tracks, calls),
    )
    first = next(events, None)
    if first is None:
        raise Unavailable("nothing with a time was recorded")
    entries = (SEPARATOR.join((*tracks.new_names(), event)) for event in chain([first], events))

    def note(written: int, cut: int) -> None:
        limit = f"timeline_limit ({export.timeline_limit_bytes} bytes)"
        reason = f"holds the first {written} of {written + cut} events, as many as {limit} allows"
        export.leave_out("trace_view.json", reason)

    return capped(entries, export.timeline_limit_bytes, note)


def _overlap_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """When the rank was computing, communicating, both, or neither.

    The format has this from the first of this work to the last, and not in steps, as `stepscope timeline` has it.
    """
    try:
        activity: pl.DataFrame = export.run.analyse("activity")
    except Unavailable:
        return
    work = activity.filter(pl.col("what").is_in(_WORK))
    if work.is_empty():
        return
    window = work.group_by("rank").agg(pl.min("start_ns"), pl.max("end_ns"), pl.lit(0, pl.Int64).alias(WINDOW))
    found = overlaps(activity, window.lazy())
    for place, (part, name) in enumerate(OVERLAPS.items()):
        for start, end in found[part].select("start_ns", "end_ns").iter_rows():
            yield span(name, tracks.thread(OVERLAP, str(place), name), start, end - start)
