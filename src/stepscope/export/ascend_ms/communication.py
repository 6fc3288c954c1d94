"""communication.json and communication_matrix.json: the calls of each step, and the links that are known."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.calls import POINT_TO_POINT, named_calls
from stepscope.export.ascend_ms.identity import json_text
from stepscope.export.ascend_ms.units import MEGABYTE, has_steps, step_word
from stepscope.export.job import Job

TIMES = "Communication Time Info"
BANDS = "Communication Bandwidth Info"
START, ELAPSE = "Start Timestamp(us)", "Elapse Time(ms)"
TRANSIT, WAIT, SYNCHRONISATION = "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)"
SIZE, BANDWIDTH, PACKETS = "Transit Size(MB)", "Bandwidth(GB/s)", "Size Distribution"
NS_PER_MS = 1_000_000

Entry = dict[str, Any]


def communication(job: Job) -> str:
    """Calls by step, and their sums. A time that is not recorded (how long a call waited) has no key.

    A call's bandwidth entry is named after the library that ran it, and holds the payload over the time of the
    call (while others were waited for, too), since what went over which link is not recorded.

    Raises:
        Unavailable: If no calls were recorded.
    """
    steps: defaultdict[str, dict[str, dict[str, Entry]]] = defaultdict(lambda: {"p2p": {}, "collective": {}})
    for row in _calls(job).iter_rows(named=True):
        kind = "p2p" if row["operation"] in POINT_TO_POINT else "collective"
        steps[_step(row)][kind][_key(row["call"], row)] = {TIMES: _times(row), BANDS: _bands(row)}
    for kinds in steps.values():
        for entries in kinds.values():
            if entries:
                entries["Total Op Info"] = _total(list(entries.values()))
    return json_text(job, dict(steps))


def communication_matrix(job: Job) -> str:
    """Links between ranks, counted within their group: those of sends and receives, whose other side is recorded.

    Which ranks a collective moves data between is the library's choice and not recorded, so it has no links here.

    Raises:
        Unavailable: If no calls were recorded.
    """
    calls = _calls(job)
    steps: dict[str, dict[str, dict[str, dict[str, Entry]]]] = {}
    for row in calls.iter_rows(named=True):
        steps.setdefault(_step(row), {"p2p": {}, "collective": {}})
    members = {group: list(ranks or ()) for group, ranks in job.rows("groups").select("group", "members").iter_rows()}
    known = calls.filter(pl.col("peer").is_not_null() & pl.col("size_bytes").is_not_null())
    links: defaultdict[tuple[str, str, str], list[Entry]] = defaultdict(list)
    for row in known.iter_rows(named=True):
        if link := _link(row, job.rank, members.get(row["group"], [])):
            links[_step(row), _key("{}", row), link].append({**row, "link": link})
    for (step, key, link), rows in links.items():
        word = rows[0]["word"].lower()
        for place, entry in _picked(rows).items():
            steps[step]["p2p"].setdefault(key.format(f"{word}-{place}"), {})[link] = entry
    return json_text(job, steps)


def _calls(job: Job) -> pl.DataFrame:
    calls = named_calls(job)
    if calls.is_empty():
        raise Unavailable(job.run.missing("collectives") or "no communication calls in the wanted steps")
    step = pl.col("step").cast(pl.String) if has_steps(job) else pl.lit("")
    return calls.with_columns(numbered=step).drop_nulls("numbered")


def _step(row: Entry) -> str:
    return step_word(row["numbered"])


def _key(call: str, row: Entry) -> str:
    return f"{call}@{row['key'] or ''}"


def _times(row: Entry) -> Entry:
    known = {TRANSIT: "transmit_ns", WAIT: "wait_ns", SYNCHRONISATION: "synchronization_ns"}
    times: Entry = {START: row["start_ns"] / 1000, ELAPSE: row["duration_ns"] / NS_PER_MS}
    times |= {title: row[name] / NS_PER_MS for title, name in known.items() if row[name] is not None}
    return times | _ratios(times)


def _ratios(times: Entry) -> Entry:
    """Waiting as a share of waiting and transmitting, where both are known."""
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
    size, time = row["size_bytes"] / MEGABYTE, _moving_ns(row) / NS_PER_MS
    band = {SIZE: size, TRANSIT: time, BANDWIDTH: _rate(size, time), "Large Packet Ratio": 0.0, PACKETS: {}}
    return {row["transport"]: band}


def _moving_ns(row: Entry) -> int:
    return int(row["duration_ns"] if row["transmit_ns"] is None else row["transmit_ns"])


def _rate(size_mb: float, time_ms: float) -> float:
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
        band[BANDWIDTH] = _rate(band[SIZE], band[TRANSIT])
    return {TIMES: times | _ratios(times), BANDS: bands}


def _link(row: Entry, rank: int, members: list[int]) -> str | None:
    """`source-destination`; None if the members of the group are not known."""
    if rank not in members or row["peer"] not in members:
        return None
    here, there = members.index(rank), members.index(row["peer"])
    return f"{there}-{here}" if row["operation"] == "recv" else f"{here}-{there}"


def _picked(rows: list[Entry]) -> dict[str, Entry]:
    """Of the calls over a link the fastest, the middle one and the slowest, and the sum of all."""
    entries = sorted((_link_entry(row) for row in rows), key=lambda entry: -entry[BANDWIDTH])
    picked = {"top1": entries[0], "middle": entries[len(entries) // 2]}
    picked |= {f"bottom{number}": entry for number, entry in enumerate(entries[:-4:-1], 1)}
    size, time = (sum(entry[title] for entry in entries) for title in (SIZE, TRANSIT))
    total = {"Transport Type": entries[0]["Transport Type"], SIZE: size, TRANSIT: time, BANDWIDTH: _rate(size, time)}
    return {**picked, "total": total}


def _link_entry(row: Entry) -> Entry:
    size, time = row["size_bytes"] / MEGABYTE, _moving_ns(row) / NS_PER_MS
    moved = {SIZE: size, TRANSIT: time, BANDWIDTH: _rate(size, time)}
    return {"Transport Type": row["transport"], **moved, "Op Name": row["call"]}
