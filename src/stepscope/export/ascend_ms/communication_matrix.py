"""communication_matrix.json: what went between which ranks in each step, as far as that is recorded."""

from __future__ import annotations

from collections import defaultdict

import polars as pl

from stepscope.export.ascend_ms.communication import (
    BANDWIDTH,
    NS_PER_MS,
    SIZE,
    TRANSIT,
    Entry,
    full_name,
    moving_ns,
    rate,
    step_of,
    stepped_calls,
)
from stepscope.export.ascend_ms.identity import json_text
from stepscope.export.ascend_ms.units import MEGABYTE
from stepscope.export.rank_export import RankExport

TRANSPORT = "Transport Type"
HERE: Entry = {TRANSPORT: "LOCAL", SIZE: 0.0, TRANSIT: 0.0, BANDWIDTH: 0.0}
"""A rank's link to itself, over which nothing went: readers take from it which rank of its group wrote the file."""


def communication_matrix(export: RankExport) -> str:
    """Links between ranks, counted within their group: those of sends and receives, whose other side is recorded.

    Which ranks a collective moves data between is the library's choice and not recorded, so it has no links here.

    Raises:
        Unavailable: If no calls were recorded.
    """
    calls = stepped_calls(export)
    steps: dict[str, dict[str, dict[str, dict[str, Entry]]]] = {}
    for row in calls.iter_rows(named=True):
        steps.setdefault(step_of(row), {"p2p": {}, "collective": {}})
    for (step, _, link, here), rows in _by_link(export, calls).items():
        word = rows[0]["word"].lower()
        for place, entry in _picked(rows).items():
            steps[step]["p2p"].setdefault(full_name(f"{word}-{place}", rows[0]), {here: HERE})[link] = entry
    return json_text(export, steps)


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
            links[step_of(row), full_name(row["word"].lower(), row), link, f"{here}-{here}"].append(row)
    return links


def _picked(rows: list[Entry]) -> dict[str, Entry]:
    """Of the calls over a link the fastest, the middle one and the slowest, and the sum of all."""
    entries = sorted((_link_entry(row) for row in rows), key=lambda entry: -entry[BANDWIDTH])
    picked = {"top1": entries[0], "middle": entries[len(entries) // 2]}
    picked |= {f"bottom{number}": entry for number, entry in enumerate(entries[:-4:-1], 1)}
    size, time = (sum(entry[title] for entry in entries) for title in (SIZE, TRANSIT))
    total = {TRANSPORT: entries[0][TRANSPORT], SIZE: size, TRANSIT: time, BANDWIDTH: rate(size, time)}
    return {**picked, "total": total}


def _link_entry(row: Entry) -> Entry:
    size, time = row["size_bytes"] / MEGABYTE, moving_ns(row) / NS_PER_MS
    moved = {SIZE: size, TRANSIT: time, BANDWIDTH: rate(size, time)}
    return {TRANSPORT: row["transport"], **moved, "Op Name": row["call"]}
