"""communication.json and communication_matrix.json: the calls of each step with their sums, and who sent to whom."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.communication_calls import WORDS, transport
from stepscope.export.communicators import communicator
from stepscope.export.rank_export import RankExport
from stepscope.present import plural
from stepscope.sources.ascend.groups import group_key
from stepscope.tables.communication import POINT_TO_POINT
from stepscope.text_columns import filled_in

_WORDS = {operation: word[0].lower() + word[1:] for operation, word in WORDS.items()}
_WORDS |= {"all_to_all": "alltoall", "send_recv": "batchSendRecv"}

TIMES = "Communication Time Info"
BANDS = "Communication Bandwidth Info"
START, ELAPSE = "Start Timestamp(us)", "Elapse Time(ms)"
TRANSIT, WAIT, SYNCHRONISATION = "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)"
IDLE = "Idle Time(ms)"
"""Time of a call in which it neither waited nor transmitted."""
SIZE, BANDWIDTH, PACKETS = "Transit Size(MB)", "Bandwidth(GB/s)", "Size Distribution"
NS_PER_MS = 1_000_000

MEGABYTE = 1_000_000
"""Of communication; memory files count in units of 2^20."""

Entry = dict[str, Any]

TRANSPORTS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")
"""What the format has an entry for, used or not, if it is recorded what a call moved over each."""
NOTHING_MOVED: Entry = {SIZE: 0.0, TRANSIT: 0.0, BANDWIDTH: 0.0, PACKETS: {}}

TRANSPORT = "Transport Type"
HERE: Entry = {TRANSPORT: "LOCAL", SIZE: 0.0, TRANSIT: 0.0, BANDWIDTH: 0.0}
"""A rank's link to itself, over which nothing went: readers take from it which rank of its group wrote the file."""


def communication(export: RankExport) -> str:
    """Calls by step, and their sums. A time that is not recorded (how long a call waited) has no key.

    If it is recorded what a call moved over which transport (by devices of Ascend), its bandwidth entries say that.
    Otherwise it has one, which is named after the library that ran it, and holds the payload over the time of the call
    (while others were waited for, too).
    """
    steps: defaultdict[str, dict[str, dict[str, Entry]]] = defaultdict(lambda: {"p2p": {}, "collective": {}})
    recorded = _recorded_bands(export)
    for row in _stepped_calls(export).iter_rows(named=True):
        kind = "p2p" if row["operation"] in POINT_TO_POINT else "collective"
        bands = {} if row["size_bytes"] is None else {row["transport"]: {**_moved(row), PACKETS: {}}}
        if recorded:
            bands = dict.fromkeys(TRANSPORTS, NOTHING_MOVED) | recorded.get((row["step"], row["name"]), {})
        steps[row["step_key"]][kind][_full_name(row["call"], row)] = {TIMES: _times(row), BANDS: bands}
    for kinds in steps.values():
        for entries in kinds.values():
            if entries:
                entries["Total Op Info"] = _total(list(entries.values()))
    return export.json_text(dict(steps))


def _recorded_bands(export: RankExport) -> dict[tuple[int | None, str], dict[str, Entry]]:
    """By step and recorded name of a call, what it moved over each transport, as recorded."""
    found: defaultdict[tuple[int | None, str], dict[str, Entry]] = defaultdict(dict)
    columns = ("step", "name", "transport", "size_bytes", "duration_ns", "packet_bytes", "packets")
    for step, name, transport_name, size, time, packet, packets in (
        export.rows("transports").select(columns).iter_rows()
    ):
        band = found[step, name].setdefault(transport_name, {SIZE: 0.0, TRANSIT: 0.0, BANDWIDTH: 0.0, PACKETS: {}})
        size_mb, time_ms = (size or 0) / MEGABYTE, (time or 0) / NS_PER_MS
        band[SIZE] += size_mb
        band[TRANSIT] += time_ms
        band[BANDWIDTH] = _rate(band[SIZE], band[TRANSIT])
        if packet is not None:
            band[PACKETS][str(packet / MEGABYTE)] = [packets, time_ms]
    return dict(found)


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
    if row["transmit_ns"] is not None and row["wait_ns"] is not None:
        times[IDLE] = max(row["duration_ns"] - row["transmit_ns"] - row["wait_ns"], 0) / NS_PER_MS
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
    """Links between ranks, counted within their group.

    They are those that are recorded (by devices of Ascend). Otherwise they are those of sends and receives, whose other
    side is recorded: which ranks a collective moves data between is then the library's choice and unknown.
    """
    calls = _stepped_calls(export)
    if export.run.has("links"):
        return export.json_text(_recorded_links(export, calls))
    steps: dict[str, dict[str, dict[str, dict[str, Entry]]]] = {
        step: {"p2p": {}, "collective": {}} for step in calls["step_key"].unique(maintain_order=True)
    }
    for (step, _, link, here), rows in _by_link(export, calls).items():
        word = rows[0]["word"].lower()
        for place, entry in _picked(rows).items():
            steps[step]["p2p"].setdefault(_full_name(f"{word}-{place}", rows[0]), {here: HERE})[link] = entry
    return export.json_text(steps)


def _recorded_links(export: RankExport, calls: pl.DataFrame) -> dict[str, dict[str, dict[str, dict[str, Entry]]]]:
    """Recorded links by step, kind and class of call; ranks that are not in the group of their call have none."""
    places = {group: {rank: at for at, rank in enumerate(ranks)} for group, ranks in members(export).items()}
    named = dict(calls.unique("name", keep="first", maintain_order=True).select("name", "call").iter_rows())
    steps: defaultdict[str, dict[str, dict[str, dict[str, Entry]]]] = defaultdict(lambda: {"p2p": {}, "collective": {}})
    links: defaultdict[tuple[str, str, str, str, str], list[Entry]] = defaultdict(list)
    lost = 0
    for row in export.rows("links").iter_rows(named=True):
        place = places.get(row["group"], {})
        ends = {row["source"], row["destination"]}
        if row["operation"] is None or ends - place.keys() or (row["step"] is None and export.has_steps):
            lost += 1
            continue
        kind = "p2p" if row["operation"] in POINT_TO_POINT else "collective"
        group = f"@{group_key(communicator_of(row['group']))}"
        link = f"{place[row['source']]}-{place[row['destination']]}"
        here = place.get(export.rank)
        own = "" if here is None else f"{here}-{here}"
        step = f"step{row['step']}" if export.has_steps else "step"
        links[step, kind, f"{_word(row['operation']).lower()}{{}}{group}", link, own].append(row)
    for (step, kind, name, link, own), rows in links.items():
        for place_in_order, entry in _picked_links(rows, named).items():
            first = {own: HERE} if own else {}
            steps[step][kind].setdefault(name.format(f"-{place_in_order}"), first)[link] = entry
    if lost:
        reason = f"{plural(lost, 'link')} of calls whose operation, step or group (with the ranks in it) is unknown"
        export.leave_out("communication_matrix.json (links)", reason)
    if not steps:
        raise Unavailable("the recorded links are of calls whose group is unknown")
    return dict(steps)


def _picked_links(rows: list[Entry], named: dict[str, str]) -> dict[str, Entry]:
    """Of the recorded calls over a link up to five, by their bandwidth, and the total as recorded."""
    single, totals = ([row for row in rows if (row["name"] is None) is is_total] for is_total in (False, True))
    entries = [{**_link_entry(row), "Op Name": named.get(row["name"], row["name"])} for row in single]
    entries.sort(key=lambda entry: -entry[BANDWIDTH])
    if len(entries) < len(PLACES):
        picked = _in_places(entries) if entries else {}
    else:
        picked = dict(zip(PLACES, entries, strict=False))
    total = _link_entry(totals[0]) if totals else None
    return {**picked, **({"total": total} if total else {})}


def _link_entry(row: Entry) -> Entry:
    size, time = row["size_bytes"] / MEGABYTE, row["duration_ns"] / NS_PER_MS
    return {TRANSPORT: row["transport"] or "", SIZE: size, TRANSIT: time, BANDWIDTH: _rate(size, time)}


def members(export: RankExport) -> dict[str, list[int]]:
    """The ranks of each group, as far as they are known."""
    rows: Iterable[tuple[str, list[int] | None]] = export.rows("groups").select("group", "members").iter_rows()
    return {group: list(ranks or ()) for group, ranks in rows}


def _by_link(export: RankExport, calls: pl.DataFrame) -> dict[tuple[str, str, str, str], list[Entry]]:
    """Calls between two known ranks, by step, operation, link, and this rank's link to itself."""
    known_members = members(export)
    links: defaultdict[tuple[str, str, str, str], list[Entry]] = defaultdict(list)
    known = calls.filter(pl.col("peer").is_not_null() & pl.col("size_bytes").is_not_null())
    for row in known.iter_rows(named=True):
        group = known_members.get(row["group"], [])
        if export.rank in group and row["peer"] in group:
            here, there = group.index(export.rank), group.index(row["peer"])
            link = f"{there}-{here}" if row["operation"] == "recv" else f"{here}-{there}"
            links[row["step_key"], _full_name(row["word"].lower(), row), link, f"{here}-{here}"].append(row)
    return links


def _picked(rows: list[Entry]) -> dict[str, Entry]:
    """Of the calls over a link the fastest, the middle one and the slowest, and the sum of all."""
    entries = [{TRANSPORT: row["transport"], **_moved(row), "Op Name": row["call"]} for row in rows]
    entries.sort(key=lambda entry: -entry[BANDWIDTH])
    picked = _in_places(entries)
    size, time = (sum(entry[title] for entry in entries) for title in (SIZE, TRANSIT))
    total = {TRANSPORT: entries[0][TRANSPORT], SIZE: size, TRANSIT: time, BANDWIDTH: _rate(size, time)}
    return {**picked, "total": total}


PLACES = ("top1", "middle", "bottom3", "bottom2", "bottom1")
"""Places of calls in the order of their bandwidth, the fastest first."""


def _in_places(entries: list[Entry]) -> dict[str, Entry]:
    """The fastest of some calls, the middle one and the slowest; `entries` are in order, the fastest first."""
    picked = {"top1": entries[0], "middle": entries[len(entries) // 2]}
    return picked | {f"bottom{number}": entry for number, entry in enumerate(entries[:-4:-1], 1)}


def named_calls(export: RankExport) -> pl.DataFrame:
    """The calls of this rank in order of start.

    Returns:
        Columns of `collectives`, and `call` (`hcom_allReduce__690_12_1`: operation, last digits of the group's key,
        position in the group), `word` (`allReduce`), `key` (behind the `@` of a call's name; null if the group is
        unknown) and `transport`.
    """
    rows = export.rows("collectives").sort("start_ns", maintain_order=True)
    words = {operation: _word(operation) for operation in rows["operation"].unique()}
    groups = {group: group_key(communicator_of(group)) for group in rows["group"].drop_nulls().unique()}
    key = pl.col("group").replace_strict(groups, default=None, return_dtype=pl.String)
    tag = key.str.tail(3).cast(pl.Int64).cast(pl.String).fill_null("0")
    word = pl.col("operation").replace_strict(words, default=None, return_dtype=pl.String)
    return rows.with_columns(
        call=filled_in("hcom_{}__{}_{}_1", word, tag, pl.col("sequence")),
        word=word,
        key=key,
        transport=transport(export),
    )


def communicator_of(group: str) -> str:
    """The text that stands for a group: one with its key, if it has one of an Ascend device; else the group's name."""
    text = communicator(group)
    return text if group_key(text) == group else group


def _word(operation: str) -> str:
    """An operation without what would make its name be taken apart wrongly."""
    return _WORDS.get(operation) or re.sub(r"[^A-Za-z0-9]+", "", operation) or "call"
