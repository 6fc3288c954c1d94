"""Ranges as they are stored: rows of `light_ranges`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.recording_format import marks
from stepscope.recording_format.light import Call, call_in, kind_of
from stepscope.recording_format.light_ranges import LightRange
from stepscope.sources.base import Sink
from stepscope.sources.kineto.steps import Steps
from stepscope.sources.plausible import Times
from stepscope.sources.spool import Spool
from stepscope.tables import LIGHT_RANGES

KINDS: Mapping[str, str] = {
    marks.STEP: "step",
    marks.FORWARD: "forward",
    marks.DATA: "dataloader",
    marks.CHECKPOINT: "checkpoint",
    marks.COLLECTIVE: "communication",
}
"""What ranges are called that the recorder's marks of a kind correspond to."""
OTHER = "other"
FAR_NS = 365 * 86_400 * 10**9
"""Times that are further from the middle are impossible: records are of weeks, at most."""
_KEY = "ranges"
_MIDDLE = "middle_ns"
_COLUMNS = {name: dtype for name, dtype in LIGHT_RANGES.stored_schema.items() if name != "step"} | {_MIDDLE: pl.Int64()}
_NO_CALL = (None,) * 6
_MOST_DEVICE = 2**31


class StoredRanges:
    """Ranges on their way into `light_ranges`: a row of each on the host, and one more if it was timed on the device.

    Args:
        scratch: Gives the directory for what does not fit memory.
    """

    def __init__(self, scratch: Callable[[], Path]) -> None:
        self._rows: Spool[str] = Spool(scratch)
        self._times = Times()

    def add(self, ranges: Sequence[LightRange]) -> None:
        """Take more ranges."""
        rows = pl.DataFrame([row for one in ranges for row in _rows(one)], schema=_COLUMNS, orient="row")
        self._times.add(rows["start_ns"])
        self._rows.add(_KEY, rows)

    def drop_strays(self) -> int:
        """Leave out what has an impossible time, from which no timeline could begin; how many rows that were."""
        if not self._times.has_strays:
            return 0
        middle = self._times.middle_ns or 0
        near = pl.col("start_ns").is_between(middle - FAR_NS, middle + FAR_NS)
        return sum(self._rows.keep_only(near).values())

    def span(self) -> tuple[int, int] | None:
        """The first and the last start; None without ranges."""
        starts = [rows["start_ns"] for rows in self._rows.frames(_KEY, ["start_ns"]) if rows.height]
        if not starts:
            return None
        times = pl.concat(starts)
        return int(times.min()), int(times.max())  # type: ignore[arg-type]

    def write(self, steps: Steps, sink: Sink) -> None:
        """Write all rows, each in its step."""
        for rows in self._rows.batches(_KEY):
            sink.write(LIGHT_RANGES, rows.drop(_MIDDLE).with_columns(step=steps.of(rows[_MIDDLE])))


def _rows(one: LightRange) -> Iterator[tuple[Any, ...]]:
    known = kind_of(one.name, one.domain)
    kind = OTHER if known is None else KINDS[known[0]]
    name, call = one.name, _NO_CALL
    if kind == "communication":
        found = call_in(one.name)
        name, call = found.operation, _told(found)
    who = (kind, name, one.domain, str(one.process), str(one.thread))
    length = None if one.end_ns is None else one.end_ns - one.start_ns
    if one.device_start_ns is None or one.device_end_ns is None:
        middle = one.start_ns + (length or 0) // 2
        yield (one.place, False, one.start_ns, length, *who, None, None, None, *call, middle)
        return
    # As in the other tables, the step of a range is that in which the device ran it.
    middle = (one.device_start_ns + one.device_end_ns) // 2
    delay = one.device_start_ns - one.start_ns
    yield (one.place, False, one.start_ns, length, *who, None, None, delay, *call, middle)
    device = one.device if one.device is not None and one.device < _MOST_DEVICE else None
    place = (device, one.stream, delay)
    on_device = one.device_end_ns - one.device_start_ns
    yield (one.place, True, one.device_start_ns, on_device, *who, *place, *call, middle)


def _told(call: Call) -> tuple[Any, ...]:
    return call.group, call.group_size, call.size_bytes, call.element_type, call.peer, call.is_async
