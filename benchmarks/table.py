"""Figures of a benchmark as rows, a printed table, and one line that says what limits stepscope."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from cases import COLD, OPENED, PARTS, ROWS
from measure import Cost

BUSY_CORES = 1.3  # processor time per wall time below which a case is held to run on one core
MOSTLY = 0.6  # share of a cold analysis from which reading is what matters


@dataclass(frozen=True)
class Row:
    """One case on one input.

    Args:
        input: What it ran on.
        case: What ran.
        wall_s: Median wall time.
        cpu_s: Median processor time.
        peak_bytes: Largest peak memory.
        rounds: Number of runs.
        failure: Why there are no figures, else None.
    """

    input: str
    case: str
    wall_s: float
    cpu_s: float
    peak_bytes: int
    rounds: int
    failure: str | None = None


def summarise(label: str, case: str, costs: Sequence[Cost], failure: str | None) -> Row:
    """Medians of time and the largest memory over the rounds of one case."""
    return Row(
        input=label,
        case=case,
        wall_s=statistics.median(cost.wall_s for cost in costs),
        cpu_s=statistics.median(cost.cpu_s for cost in costs),
        peak_bytes=max(cost.peak_bytes for cost in costs),
        rounds=len(costs),
        failure=failure,
    )


def print_rows(rows: Sequence[Row]) -> None:
    """Print the rows of one input; ratios are to stepscope's cold analysis, or to the first row without it."""
    good = [row for row in rows if not row.failure]
    base = next((row for row in good if row.case == COLD), good[0] if good else None)
    if rows:
        print(f"{rows[0].input}, median of {rows[0].rounds}")
    print(f"  {'':34}{'wall s':>9}{'cpu s':>9}{'peak MB':>9}{'wall x':>9}{'cpu x':>9}{'memory x':>9}")
    for row in rows:
        if row.failure or base is None:
            print(f"  {row.case:34}failed: {row.failure}")
            continue
        print(
            f"  {row.case:34}{row.wall_s:9.2f}{row.cpu_s:9.2f}{row.peak_bytes / 1e6:9.0f}"
            f"{row.wall_s / base.wall_s:9.2f}{row.cpu_s / base.cpu_s:9.2f}{row.peak_bytes / base.peak_bytes:9.2f}"
        )
    print()


def rate(rows: Sequence[Row], size_bytes: int) -> str:
    """One line: how fast the input becomes rows in the store; empty if that was not measured.

    The processor time is that of reading into an empty store less that of opening the same input from the store.
    """
    read, opened = _case(rows, ROWS), _case(rows, OPENED)
    if read is None or opened is None or read.cpu_s <= opened.cpu_s:
        return ""
    cpu_s = read.cpu_s - opened.cpu_s
    return f"  into the store: {size_bytes / 1e6 / cpu_s:.0f} MB/s a core ({cpu_s:.2f} s of processor time)"


def stages(rows: Sequence[Row]) -> str:
    """One line: what each stage of a cold analysis takes of processor time, by differences of cases."""
    imported, decoded, dropped, answered, advised = (_case(rows, name) for name in PARTS.values())
    read, opened = _case(rows, ROWS), _case(rows, OPENED)
    ends = {
        "start-up and imports": (imported, None),
        "decoding": (decoded, imported),
        "rows" if decoded else "decoding and rows": (dropped, decoded or imported),
        "writing": (read, dropped),
        "answers": (answered, opened),
        "advice": (advised, answered),
    }
    told = []
    for name, (end, begin) in ends.items():
        if end is not None and (begin is not None or name == "start-up and imports"):
            told.append(f"{name} {end.cpu_s - (begin.cpu_s if begin else 0):.2f} s")
    return f"  processor time of a cold analysis: {', '.join(told)}" if told else ""


def limits(rows: Sequence[Row]) -> str:
    """One line: what a cold analysis of the largest input spends its time on."""
    colds = [row for row in rows if row.case == COLD and not row.failure]
    cold = max(colds, key=lambda row: row.wall_s, default=None)
    if cold is None:
        return "What limits stepscope: unknown, it did not run."
    cores = cold.cpu_s / cold.wall_s
    read = _case([row for row in rows if row.input == cold.input], ROWS)
    if read is None:
        where = "reading and analysis were not measured apart"
    else:
        share = read.wall_s / cold.wall_s
        more = "" if share >= MOSTLY else ", so analysis and start-up are the larger part"
        where = f"reading takes {share:.0%} of it{more}"
    how = "one core at a time" if cores < BUSY_CORES else f"{cores:.1f} cores on average"
    return (
        f"What limits stepscope on '{cold.input}': {cold.wall_s:.1f} s cold; {where}; it uses {how} "
        f"and {cold.peak_bytes / 1e6:.0f} MB."
    )


def _case(rows: Sequence[Row], name: str) -> Row | None:
    """The row of a case that did not fail."""
    return next((row for row in rows if row.case == name and not row.failure), None)
