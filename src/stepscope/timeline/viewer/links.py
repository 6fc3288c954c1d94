"""Links to a time range and a track of a timeline that is open in the viewer.

The page reads what follows `#`, so that a link to another place in the same timeline scrolls the page that is open,
without loading the timeline again. Times are whole nanoseconds, which numbers in JavaScript cannot hold; the page reads
them as `BigInt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from stepscope.errors import StepscopeError


def link_to(
    base_url: str,
    start_ns: int | None = None,
    end_ns: int | None = None,
    track: str | Sequence[str] | None = None,
    *,
    relative: bool = False,
) -> str:
    """A link that opens the viewer at a time range, or at a track, or both.

    Args:
        base_url: Address of the viewer's page (`TimelineServer.url`).
        start_ns: Start of the range in nanoseconds, on the timeline's clock: as it stands in the file, and in the UI's
            SQL tables (`slice.ts`). A timeline that stepscope wrote counts from `Written.base_ns`. None: all of it.
        end_ns: End of the range; None shows a fiftieth of the timeline around the start.
        track: Name of the track to show; or the names from the outermost group to the track, if several tracks have the
            same name (`("rank 3", "stream 7")`). A range of the track with exactly this start and end is selected.
        relative: Whether times count from the start of the timeline, as the UI's ruler shows them by default.

    Raises:
        StepscopeError: If the range ends before it starts, or has no start.
    """
    if end_ns is not None and (start_ns is None or end_ns < start_ns):
        raise StepscopeError(f"a link to {start_ns} ns until {end_ns} ns: the end needs a start before it")
    times = {"start_ns": start_ns, "end_ns": end_ns}
    fields = [(name, str(time)) for name, time in times.items() if time is not None]
    if relative:
        fields.append(("relative", "1"))
    names = [track] if isinstance(track, str) else (track or ())
    fields.extend(("track", name) for name in names)
    return f"{base_url.partition('#')[0]}#{urlencode(fields)}"
