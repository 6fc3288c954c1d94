"""Counters in trace_view.json: clocks and memory rates of the device under the names and units of the format.

It writes 1 MiB/s as MB/s, and a ratio under a name with %. Other counters, which it has no names for, are shown under
their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from stepscope.export.ascend_ms.trace_tracks import CLOCK, COUNTERS, Tracks
from stepscope.export.rank_export import RankExport
from stepscope.timeline.writing.events import sample

_MIB = 1 << 20
_FREQUENCY = "ai_core_frequency_mhz"
_MEMORY = re.compile(r"(hbm|ddr|llc)((?:_[a-z0-9]+)*?)_(bytes_per_s|hit_ratio)")
_RATES = {"read": "Read(MB/s)", "write": "Write(MB/s)"}
_THROUGHPUT, _HITS = "Throughput(MB/s)", "Hit Rate(%)"


def counter_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """Samples in order of time. The tracks of `stepscope timeline` are titles; the format has names and units apart."""
    rows = export.rows("counters").sort("time_ns", maintain_order=True).select("name", "time_ns", "value")
    for counter, time, value in rows.iter_rows():
        process, name, unit, factor = _placed(counter)
        told = value / factor
        whole = int(told) if float(told).is_integer() else told
        yield sample(name, (tracks.process(process), 0), time, whole, key=unit, as_text=True)
    others = sorted(name for name in rows["name"].unique() if _placed(name)[0] == COUNTERS)
    if others:
        reason = f"the format has no names for {', '.join(others)}; they have their own, which readers may not know"
        export.leave_out("trace_view.json (counters)", reason)


@cache
def _placed(counter: str) -> tuple[str, str, str, int]:
    """Process, name and unit of a counter, and what its values are divided by.

    Examples:
        >>> _placed("hbm_1_read_bytes_per_s"), _placed("llc_0_write_hit_ratio")
        (('HBM', 'HBM 1/Read', 'Read(MB/s)', 1048576), ('LLC', 'LLC 0 Write/Hit Rate', 'Hit Rate(%)', 1))
    """
    if counter == _FREQUENCY:
        return CLOCK, CLOCK, "MHz", 1
    known = _MEMORY.fullmatch(counter)
    if known is None:
        return COUNTERS, counter, "value", 1
    part, words, what = known[1].upper(), known[2].split("_")[1:], known[3]
    titled = [part, *(word.capitalize() for word in words)]
    if what == "hit_ratio":
        return part, f"{' '.join(titled)}/Hit Rate", _HITS, 1
    if part == "LLC" or not words or words[-1] not in _RATES:
        return part, f"{' '.join(titled)}/Throughput", _THROUGHPUT, _MIB
    return part, f"{' '.join(titled[:-1])}/{titled[-1]}", _RATES[words[-1]], _MIB
