"""communication.json and communication_matrix.json: the calls of each step with their sums, and who sent to whom."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.communication_calls import WORDS, transport
from stepscope.export.rank_export import RankExport
from stepscope.sources.ascend.groups import group_key
from stepscope.tables.communication import POINT_TO_POINT
from stepscope.text_columns import filled_in

_WORDS = {operation: word[0].lower() + word[1:] for operation, word in WORDS.items()}
_WORDS |= {"all_to_all": "alltoall", "send_recv": "batchSendRecv"}

TIMES = "Communication Time Info"
BANDS = "Communication Bandwidth Info"
START, ELAPSE = "Start Timestamp(us)", "Elapse Time(ms)"
TRANSIT, WAIT, SYNCHRONISATION = "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)"
SIZE, BANDWIDTH, PACKETS = "Transit Size(MB)", "Bandwidth(GB/s)", "Size Distribution"
NS_PER_MS = 1_000_000

MEGABYTE = 1_000_000
"""Of communication; memory files count in units of 2^20."""

Entry = dict[str, Any]

TRANSPORT = "Transport Type"
HERE: Entry = {TRANSPORT: "LOCAL", SIZE: 0.0, TRANSIT: 0.0, BANDWIDTH: 0.0}
"""A rank's link to itself, over which nothing went: readers take from it which rank of its group wrote the file."""


def communication(export: RankExport) -> str:
    """Calls by step, and their sums. A time that is not recorded (how long a call waited) has no key.

    A call's bandwidth entry is named after the library that ran it, and holds the payload over the time of the
    call (while others were waited for, too), since what went over which link is not recorded.
    """
    steps: defaultdict[str, dict[str, dict[str, Entry]]] = defaultdict(lambda: {"p2p": {}, "collective": {}})
    for row in _stepped_calls(export).iter_rows(named=True):
        kind = "p2p" if row["operation"] in POINT_TO_POINT else "collective"
        bands = {} if row["size_bytes"] is None else {row["transport"]: {**_moved(row), PACKETS: {}}}
        steps[row["step_key"]][kind][_full_name(row["call"], row)] = {TIMES: _times(row), BANDS: bands}
    for kinds in steps.values():
        for entries in kinds.values():
            if entries:
                entries["Total Op Info"] = _total(list(entries.values()))
    return export.json_text(dict(steps))


def _stepped_calls(export: RankExport) -> pl.DataFrame:
    """`named_calls` in steps, with the key of the step (`step_key`; without a number if the recording has no steps)."""
    calls = named_calls(export)
    if calls.is_empty():
        raise Unavailable(export.run.missing("collectives") or "no communication calls in the wanted steps")
    number = pl.col("step").cast(pl.String) if export.has_steps else pl.lit("")
    return calls.with_columns(step_key="step" + number).drop_nulls("step_key")


def _full_name(call: str, row: Entry) -> str:
    """A call, or a class of calls, with the key of its group, which may be unknown."""
    return f"{call}@{row['key'] or ''}"


def _times(row: Entry) -> Entry:
    known = {TRANSIT: "transmit_ns", WAIT: "wait_ns", SYNCHRONISATION: "synchronization_ns"}
    times: Entry = {START: row["start_ns"] / 1000, ELAPSE: row["duration_ns"] / NS_PER_MS}
    times |= {title: row[name] / NS_PER_MS for title, name in known.items() if row[name] is not None}
    return times | _ratios(times)


def _ratios(times: Entry) -> Entry:
    """Waiting as a share of waiting and transmitting, if both are known."""
    ratios = {}
    for part, title in ((WAIT, "Wait Time Ratio"), (SYNCHRONISATION, "Synchronization Time Ratio")):
        if {part, TRANSIT} <= times.keys():
            whole = times[part] + times[TRANSIT]
            ratios[title] = round(times[part] / whole, 4) if whole else 0.0
    return ratios


def _moved(row: Entry) -> Entry:
    """What a call moved; in the time that is stated for it, else in all of the call's time."""
    time_ns = row["duration_ns"] if row["transmit_ns"] is None else row["transmit_ns"]
    size, time = row["size_bytes"] / MEGABYTE, time_ns / NS_PER_MS
    return {SIZE: size, TRANSIT: time, BANDWIDTH: _rate(size, time)}


def _rate(size_mb: float, time_ms: float) -> float:
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
        band[BANDWIDTH] = _rate(band[SIZE], band[TRANSIT])
    return {TIMES: times | _ratios(times), BANDS: bands}


def communication_matrix(export: RankExport) -> str:
    """Links between ranks, counted within their group: those of sends and receives, whose other side is recorded.

    Which ranks a collective moves data between is the library's choice and not recorded, so it has no links here.
    """
    calls = _stepped_calls(export)
    steps: dict[str, dict[str, dict[str, dict[str, Entry]]]] = {
        step: {"p2p": {}, "collective": {}} for step in calls["step_key"].unique(maintain_order=True)
    }
    for (step, _, link, here), rows in _by_link(export, calls).items():
        word = rows[0]["word"].lower()
        for place, entry in _picked(rows).items():
            steps[step]["p2p"].setdefault(_full_name(f"{word}-{place}", rows[0]), {here: HERE})[link] = entry
    return export.json_text(steps)


def _by_link(export: RankExport, calls: pl.DataFrame) -> dict[tuple[str, str, str, str], list[Entry]]:
    """Calls between two known ranks, by step, operation, link, and this rank's link to itself."""
    members = {
        group: list(ranks or ()) for group, ranks in export.rows("groups").select("group", "members").iter_rows()
    }
    links: defaultdict[tuple[str, str, str, str], list[Entry]] = defaultdict(list)
    known = calls.filter(pl.col("peer").is_not_null() & pl.col("size_bytes").is_not_null())
    for row in known.iter_rows(named=True):
        group = members.get(row["group"], [])
        if export.rank in group and row["peer"] in group:
            here, there = group.index(export.rank), group.index(row["peer"])
            link = f"{there}-{here}" if row["operation"] == "recv" else f"{here}-{there}"
            links[row["step_key"], _full_name(row["word"].lower(), row), link, f"{here}-{here}"].append(row)
    return links


def _picked(rows: list[Entry]) -> dict[str, Entry]:
    """Of the calls over a link the fastest, the middle one and the slowest, and the sum of all."""
    entries = [{TRANSPORT: row["transport"], **_moved(row), "Op Name": row["call"]} for row in rows]
    entries.sort(key=lambda entry: -entry[BANDWIDTH])
    picked = {"top1": entries[0], "middle": entries[len(entries) // 2]}
    picked |= {f"bottom{number}": entry for number, entry in enumerate(entries[:-4:-1], 1)}
    size, time = (sum(entry[title] for entry in entries) for title in (SIZE, TRANSIT))
    total = {TRANSPORT: entries[0][TRANSPORT], SIZE: size, TRANSIT: time, BANDWIDTH: _rate(size, time)}
    return {**picked, "total": total}


def named_calls(export: RankExport) -> pl.DataFrame:
    """The calls of this rank in order of start.

    Returns:
        Columns of `collectives`, and `call` (`hcom_allReduce__690_12_1`: operation, last digits of the group's key,
        position in the group), `word` (`allReduce`), `key` (behind the `@` of a call's name; null if the group is
        unknown) and `transport`.
    """
    rows = export.rows("collectives").sort("start_ns", maintain_order=True)
    words = {operation: _word(operation) for operation in rows["operation"].unique()}
    groups = {group: group_key(group) for group in rows["group"].drop_nulls().unique()}
    key = pl.col("group").replace_strict(groups, default=None, return_dtype=pl.String)
    tag = key.str.tail(3).cast(pl.Int64).cast(pl.String).fill_null("0")
    word = pl.col("operation").replace_strict(words, default=None, return_dtype=pl.String)
    return rows.with_columns(
        call=filled_in("hcom_{}__{}_{}_1", word, tag, pl.col("sequence")),
        word=word,
        key=key,
        transport=transport(export),
    )


def _word(operation: str) -> str:
    """An operation without what would make its name be taken apart wrongly."""
    return _WORDS.get(operation) or re.sub(r"[^A-Za-z0-9]+", "", operation) or "call"
