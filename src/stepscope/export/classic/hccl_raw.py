"""`hccl_raw`: what communication costs in each step, by operator and link, in ms and KB (1000 bytes).

A line is a step, counted from 1 as in the pages of readers, which look a step up by that number; the last line is the
mean of all. The cost is the time of the calls without waiting for other ranks. Links are those of receives, whose
other side is recorded, so each stands in one file, that of the rank to which the data went, as in the files of real
devices; which ranks a collective moves data between is its library's choice and not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from stepscope.export.classic.step_trace import named_reduces
from stepscope.export.communication_calls import transport, with_waits
from stepscope.export.formatting import csv_text, ms
from stepscope.export.rank_export import RankExport
from stepscope.text_columns import filled_in

HEADER = "step_num,communication_cost,wait_cost,link_info,communication_operator_cost"
AVERAGE = "-"
MAX_CELL = 131_072
"""Characters that readers take in one cell, the limit of Python's `csv`."""

Entry = tuple[float, float, dict[str, dict[str, list[float]]]]
"""Cost and waiting in ms, and by link and library the time (ms), size (KB) and bandwidth (KB/s), in a step."""

_UNMATCHED = "the calls of the other ranks were not all recorded, or do not match"
_ALONE = "this needs the recordings of other ranks; analyse all ranks together (Profiler.offline_analyse)"


def write_hccl_raw(export: RankExport) -> None:
    """Write it."""
    name = f"hccl_raw_{export.rank}.csv"
    steps = export.step_numbers
    every = export.rows("collectives").sort("start_ns", maintain_order=True).with_columns(transport=transport(export))
    calls = named_reduces(export, with_waits(export, every))
    if calls.is_empty():
        export.leave_out(name, "no communication was recorded in any step")
        return
    if unknown := calls["wait_ns"].null_count():
        why = _ALONE if export.arrivals() is None else _UNMATCHED
        reason = f"{unknown} of {calls.height} calls count as if they did not wait: {why}"
        export.leave_out(f"{name} (wait_cost)", reason)
    lines, cut = _lines(calls, steps)
    export.write(name, csv_text(HEADER, lines))
    if cut:
        reason = f"the cheapest of a step, up to {cut}: readers take {MAX_CELL} characters a cell"
        export.leave_out(f"{name} (operators)", reason)


def _lines(calls: pl.DataFrame, steps: list[int]) -> tuple[list[list[object]], int]:
    """Each step, and the mean step; an operator's mean is that of the steps that have it.

    All ranks have the same lines, so steps without calls have one, too. Also: the most operators that did not fit.
    """
    wait = pl.min_horizontal(pl.col("wait_ns").fill_null(0), "duration_ns")
    costs = calls.with_columns(wait=wait, spent=pl.col("duration_ns") - wait, link=_link())
    sums = {step: entry for (step,), entry in _entries(costs, "step")}
    operators: dict[int, dict[str, Entry]] = {step: {} for step in steps}
    for (step, name), entry in _entries(costs, "step", "reduce"):
        operators[step][name] = entry
    rows = [(str(number), sums.get(step, (0.0, 0.0, {})), operators[step]) for number, step in enumerate(steps, 1)]
    means = {name: entry for (name,), entry in _entries(costs, "reduce")}
    rows += [(AVERAGE, entry, means) for _, entry in _entries(costs, "rank", steps=len(steps))]
    lines: list[list[object]] = []
    cut = 0
    for number, (spent, waited, links), named in rows:
        fitting = _fitting({name: [number, *entry] for name, entry in named.items()})
        cut = max(cut, len(named) - len(fitting))
        lines.append([number, spent, waited, json.dumps(links), json.dumps(fitting)])
    return lines, cut


def _entries(costs: pl.DataFrame, *by: str, steps: int | None = None) -> Iterator[tuple[tuple[Any, ...], Entry]]:
    """What the calls of each group cost in a step: of so many steps, else of those in which there are such calls."""
    groups = costs.group_by(by, maintain_order=True).agg(pl.col("spent", "wait").sum(), count=pl.col("step").n_unique())
    counts = {tuple(key): steps or count for *key, _, _, count in groups.iter_rows()}
    links: dict[tuple[Any, ...], dict[str, dict[str, list[float]]]] = {key: {} for key in counts}
    moved = costs.filter(pl.col("link").is_not_null() & (pl.col("spent") > 0))  # else how long it moved is not known
    moved = moved.group_by(*by, "link", "transport", maintain_order=True).agg(pl.col("spent", "size_bytes").sum())
    for *key, link, library, time, size in moved.iter_rows():
        count = counts[tuple(key)]
        figures = [ms(time / count), round(size / 1000 / count, 6), round(size * 1e6 / time, 6)]
        links[tuple(key)].setdefault(link, {})[library] = figures
    for *key, spent, wait, _ in groups.iter_rows():
        count = counts[tuple(key)]
        yield tuple(key), (ms(spent / count), ms(wait / count), links[tuple(key)])


def _fitting(entries: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """The costliest operators that fit into a cell, in their order."""
    room, kept = MAX_CELL - len("{}"), set()
    for name, entry in sorted(entries.items(), key=lambda one: -(one[1][1] + one[1][2])):
        room -= len(json.dumps({name: entry}))  # two braces for a comma and a space
        if room < 0:
            break
        kept.add(name)
    return {name: entry for name, entry in entries.items() if name in kept}


def _link() -> pl.Expr:
    """From whom to whom a call moved data, in ranks of the job; null if that is not recorded."""
    known = (pl.col("operation") == "recv") & pl.col("peer").is_not_null() & pl.col("size_bytes").is_not_null()
    return pl.when(known).then(filled_in("{}-{}", "peer", "rank"))
