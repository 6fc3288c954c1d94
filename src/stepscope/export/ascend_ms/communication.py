"""communication.json: the calls of each step, and their sums."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.calls import named_calls
from stepscope.export.ascend_ms.identity import json_text
from stepscope.export.ascend_ms.units import MEGABYTE, has_steps, step_word
from stepscope.export.rank_export import RankExport
from stepscope.tables.communication import POINT_TO_POINT

TIMES = "Communication Time Info"
BANDS = "Communication Bandwidth Info"
START, ELAPSE = "Start Timestamp(us)", "Elapse Time(ms)"
TRANSIT, WAIT, SYNCHRONISATION = "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)"
SIZE, BANDWIDTH, PACKETS = "Transit Size(MB)", "Bandwidth(GB/s)", "Size Distribution"
NS_PER_MS = 1_000_000

Entry = dict[str, Any]


def communication(export: RankExport) -> str:
    """Calls by step, and their sums. A time that is not recorded (how long a call waited) has no key.

    A call's bandwidth entry is named after the library that ran it, and holds the payload over the time of the
    call (while others were waited for, too), since what went over which link is not recorded.

    Raises:
        Unavailable: If no calls were recorded.
    """
    steps: defaultdict[str, dict[str, dict[str, Entry]]] = defaultdict(lambda: {"p2p": {}, "collective": {}})
    for row in stepped_calls(export).iter_rows(named=True):
        kind = "p2p" if row["operation"] in POINT_TO_POINT else "collective"
        steps[step_of(row)][kind][full_name(row["call"], row)] = {TIMES: _times(row), BANDS: _bands(row)}
    for kinds in steps.values():
        for entries in kinds.values():
            if entries:
                entries["Total Op Info"] = _total(list(entries.values()))
    return json_text(export, dict(steps))


def stepped_calls(export: RankExport) -> pl.DataFrame:
    """`named_calls` in steps, with the step as text (`numbered`; empty if the recording has no steps).

    Raises:
        Unavailable: If there are none.
    """
    calls = named_calls(export)
    if calls.is_empty():
        raise Unavailable(export.run.missing("collectives") or "no communication calls in the wanted steps")
    step = pl.col("step").cast(pl.String) if has_steps(export) else pl.lit("")
    return calls.with_columns(numbered=step).drop_nulls("numbered")


def step_of(row: Entry) -> str:
    """The key of a call's step."""
    return step_word(row["numbered"])


def full_name(call: str, row: Entry) -> str:
    """A call, or a class of calls, with the key of its group, which may be unknown."""
    return f"{call}@{row['key'] or ''}"


def _times(row: Entry) -> Entry:
    known = {TRANSIT: "transmit_ns", WAIT: "wait_ns", SYNCHRONISATION: "synchronization_ns"}
    times: Entry = {START: row["start_ns"] / 1000, ELAPSE: row["duration_ns"] / NS_PER_MS}
    times |= {title: row[name] / NS_PER_MS for title, name in known.items() if row[name] is not None}
    return times | _ratios(times)


def _ratios(times: Entry) -> Entry:
    """Waiting as a share of waiting and transmitting, if both are known."""
    titles = {WAIT: "Wait Time Ratio", SYNCHRONISATION: "Synchronization Time Ratio"}
    both = {
        title: (times[part], times[part] + times[TRANSIT])
        for part, title in titles.items()
        if {part, TRANSIT} <= times.keys()
    }
    return {title: round(part / whole, 4) if whole else 0.0 for title, (part, whole) in both.items()}


def _bands(row: Entry) -> Entry:
    if row["size_bytes"] is None:
        return {}
    size, time = row["size_bytes"] / MEGABYTE, moving_ns(row) / NS_PER_MS
    band = {SIZE: size, TRANSIT: time, BANDWIDTH: rate(size, time), PACKETS: {}}
    return {row["transport"]: band}


def moving_ns(row: Entry) -> int:
    """How long a call moved data: as stated, else all of its time."""
    return int(row["duration_ns"] if row["transmit_ns"] is None else row["transmit_ns"])


def rate(size_mb: float, time_ms: float) -> float:
    """MB a ms, which are GB/s."""
    return size_mb / time_ms if time_ms else 0.0


def _total(entries: list[Entry]) -> Entry:
    """Sums of calls."""
    times: Entry = {}
    bands: dict[str, Entry] = {}
    for entry in entries:
        for title, value in entry[TIMES].items():
            if title != START and "Ratio" not in title:
                times[title] = times.get(title, 0.0) + value
        for name, band in entry[BANDS].items():
            total = bands.setdefault(name, {SIZE: 0.0, TRANSIT: 0.0, PACKETS: {}})
            total[SIZE] += band[SIZE]
            total[TRANSIT] += band[TRANSIT]
    for band in bands.values():
        band[BANDWIDTH] = rate(band[SIZE], band[TRANSIT])
    return {TIMES: times | _ratios(times), BANDS: bands}
