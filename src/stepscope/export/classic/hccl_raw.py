"""`hccl_raw`: what communication costs in each step, by operator and link, in ms and KB (1000 bytes).

A line is a step, counted from 1 as in the pages of readers, which look a step up by that number; the last line is the
mean of all. The cost is the time of the calls without waiting for other ranks. Links are those of receives, whose
other side is recorded, so each stands in one file, that of the rank to which the data went, as in the files of real
devices; which ranks a collective moves data between is its library's choice and not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from stepscope.export.classic.step_trace import named_reduces
from stepscope.export.communication_calls import transport, with_waits
from stepscope.export.formatting import csv_text, ms
from stepscope.export.rank_export import RankExport

HEADER = "step_num,communication_cost,wait_cost,link_info,communication_operator_cost"
AVERAGE = "-"
MAX_CELL = 131_072
"""Characters that readers take in one cell, the limit of Python's `csv`."""

_ALONE = "this needs the recordings of other ranks; analyse all ranks together (Profiler.offline_analyse)"


def write_hccl_raw(export: RankExport) -> None:
    """Write it."""
    name = f"hccl_raw_{export.rank}.csv"
    steps = export.step_numbers
    calls = named_reduces(export, _calls(export))
    if calls.is_empty():
        export.leave_out(name, "no communication was recorded in any step")
        return
    unknown = calls["wait_ns"].null_count()
    if unknown:
        why = (
            _ALONE
            if export.arrivals() is None
            else "the calls of the other ranks were not all recorded, or do not match"
        )
        export.leave_out(
            f"{name} (wait_cost)", f"{unknown} of {calls.height} calls count as if they did not wait: {why}"
        )
    table = _StepCosts(calls, steps)
    export.write(name, csv_text(HEADER, table.lines()))
    if table.cut:
        reason = f"the cheapest of a step, up to {table.cut}: readers take {MAX_CELL} characters a cell"
        export.leave_out(f"{name} (operators)", reason)


def _calls(export: RankExport) -> pl.DataFrame:
    calls = export.rows("collectives").sort("start_ns").with_columns(transport=transport(export))
    return with_waits(export, calls)


class _CallCosts:
    """What some calls cost in all."""

    def __init__(self) -> None:
        self.spent_ns = self.wait_ns = 0
        self._links: dict[tuple[str, str], tuple[int, int]] = {}

    def add(self, call: Mapping[str, Any]) -> None:
        """Add a call."""
        wait = min(call["wait_ns"] or 0, call["duration_ns"])
        spent = call["duration_ns"] - wait
        self.spent_ns += spent
        self.wait_ns += wait
        if call["link"] is not None and spent:  # else how long it moved data is not known
            key = (call["link"], call["transport"])
            time, size = self._links.get(key, (0, 0))
            self._links[key] = (time + spent, size + call["size_bytes"])

    def entry(self, steps: int) -> tuple[float, float, dict[str, dict[str, list[float]]]]:
        """Cost and waiting in ms, and links with time (ms), size (KB) and bandwidth (KB/s), of one of some steps."""
        links: dict[str, dict[str, list[float]]] = {}
        for (link, library), (time, size) in self._links.items():
            figures = [ms(time / steps), round(size / 1000 / steps, 6), round(size * 1e6 / time, 6)]
            links.setdefault(link, {})[library] = figures
        return ms(self.spent_ns / steps), ms(self.wait_ns / steps), links


class _StepCosts:
    """The lines of a file.

    Args:
        calls: Calls with their `reduce`, in the order in which operators are listed.
        steps: The steps, in order; those without calls have a line, too, so that all ranks have the same ones.
    """

    def __init__(self, calls: pl.DataFrame, steps: list[int]) -> None:
        self.cut = 0
        """The most operators that did not fit into one line."""
        self._numbers = {step: number for number, step in enumerate(steps, 1)}
        self._sums = {step: _CallCosts() for step in steps}
        self._operators: dict[int, dict[str, _CallCosts]] = {step: {} for step in steps}
        self._all: dict[str, _CallCosts] = {}
        self._total = _CallCosts()
        for call in calls.with_columns(link=_link()).iter_rows(named=True):
            name, step = call["reduce"], call["step"]
            mine = self._operators[step].setdefault(name, _CallCosts())
            for cost in (self._total, self._sums[step], self._all.setdefault(name, _CallCosts()), mine):
                cost.add(call)

    def lines(self) -> Iterable[list[object]]:
        """Each step, and the mean step; an operator's mean is that of the steps that have it."""
        for step, number in self._numbers.items():
            operators = {name: cost.entry(1) for name, cost in self._operators[step].items()}
            yield self._line(str(number), self._sums[step].entry(1), operators)
        counts = {name: sum(name in mine for mine in self._operators.values()) for name in self._all}
        means = {name: cost.entry(counts[name]) for name, cost in self._all.items()}
        yield self._line(AVERAGE, self._total.entry(len(self._numbers)), means)

    def _line(self, number: str, cost: tuple[Any, ...], operators: Mapping[str, tuple[Any, ...]]) -> list[object]:
        spent, wait, links = cost
        entries = {name: [number, *entry] for name, entry in operators.items()}
        return [number, spent, wait, json.dumps(links), json.dumps(self._fitting(entries))]

    def _fitting(self, entries: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        """The costliest operators that fit, in their order."""
        room, kept = MAX_CELL - len("{}"), set()
        for name, entry in sorted(entries.items(), key=lambda one: -(one[1][1] + one[1][2])):
            room -= len(json.dumps({name: entry}))  # two braces for a comma and a space
            if room < 0:
                break
            kept.add(name)
        self.cut = max(self.cut, len(entries) - len(kept))
        return {name: entry for name, entry in entries.items() if name in kept}


def _link() -> pl.Expr:
    """From whom to whom a call moved data, in ranks of the job; null if that is not recorded."""
    known = (pl.col("operation") == "recv") & pl.col("peer").is_not_null() & pl.col("size_bytes").is_not_null()
    return pl.when(known).then(pl.format("{}-{}", "peer", "rank"))
