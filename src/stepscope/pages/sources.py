"""Where the figures of a page come from: what the profile states, or its timeline; and where the two differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from stepscope.present import duration
from stepscope.selection import named_numbers

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

STATED, TIMELINE, BOTH = ", stated by the profile", ", from the timeline", ", in part stated by the profile"

_BELIEVED = {
    "timeline has fewer calls": "Believe the profile: it has {stated} calls a step, the timeline {shown}.",
    "profile states fewer calls": "Believe the timeline: it has {shown} calls a step, the profile {stated}.",
    "timeline shows less": "Believe the profile: the timeline may lack work.",
    "timeline shows each": "Believe the timeline: it shows when each piece began and ended.",
}

_BOTH = ("step_totals", "communication_totals")
"""Tables of what profiles state beside their timeline."""


def source_of(rows: pl.DataFrame, column: str) -> str:
    """What to add to a heading: where the figures of its rows come from, by a column that says so; empty if unknown."""
    found = {*rows[column].drop_nulls()} if column in rows.columns else set()
    words = {"stated": STATED, "timeline": TIMELINE}
    return BOTH if len(found) > 1 else "".join(words[one] for one in found)


def unknown_waits(run: Run, found: pl.DataFrame) -> Iterable[str]:
    """Notes of a section of calls: what it means that waiting is unknown, if the profile states some."""
    if run.has("communication_totals") and found["wait_ns"].null_count():
        yield (
            "Without `wait`: calls that match no recorded call of another rank, so the timeline does not tell how long "
            "they wait. What the profile states of it is in «`stepscope communication`», by rank and operator."
        )


def together(*notes: Callable[[Run, pl.DataFrame], Iterable[str]]) -> Callable[[Run, pl.DataFrame], Iterable[str]]:
    """Several kinds of notes of one section."""
    return lambda run, found: (note for kind in notes for note in kind(run, found))


OVERLAP = 0.05
"""Share of the time of a rank's calls from which it is told that they overlap."""


def overlapping(run: Run, found: pl.DataFrame) -> Iterable[str]:  # noqa: ARG001 - one signature for all
    """Notes of a section of ranks: whose calls overlap, so that their times sum up to more than passes."""
    known = found.drop_nulls("overlap_ns")
    rows = known.filter(known["overlap_ns"] >= OVERLAP * known["total_ns"].clip(1)).sort("overlap_ns", descending=True)
    if rows.is_empty():
        return
    row, ranks = rows.row(0, named=True), rows["rank"].n_unique()
    took = f"{duration(row['total_ns'])}" + ("" if row["step"] is None else f" in {{step}} {row['step']}")
    yield (
        f"Calls of {ranks} {'rank' if ranks == 1 else 'ranks'} overlap, and `total` counts each of them: those of rank "
        f"{row['rank']} take {took}, in which {duration(row['total_ns'] - row['overlap_ns'])} pass."
    )


_LEFT_OUT = {
    "long": "is far longer than the others",
    "unmeasured": "is the first that was recorded, so that its interval is unknown",
    "": "was recorded only in part",
}


def left_out(run: Run, found: pl.DataFrame) -> Iterable[str]:
    """Notes of a section of means: which steps they leave out (column `left_out`), and why."""
    from stepscope.analysis.rank_lists import listed

    known = found.select("rank", "left_out").drop_nulls().sort("rank").unique(maintain_order=True).rows()
    if not known:
        return
    reasons = {(rank, step): reason for rank, step, reason in run.analyse("left_out_steps").iter_rows()}
    ranks: dict[tuple[int, str], list[int]] = defaultdict(list)
    for rank, steps in known:
        for step in listed(steps):
            ranks[step, reasons.get((rank, step), "")].append(rank)
    for (step, reason), those in sorted(ranks.items()):
        yield f"The mean of {named_numbers('rank', those)} leaves out {{step}} {step}, which {_LEFT_OUT[reason]}."


def differing(*figures: str) -> Callable[[Run, pl.DataFrame], Iterable[str]]:
    """Notes of a section about those of these figures that differ between what is stated and the timeline."""

    def notes(run: Run, found: pl.DataFrame) -> Iterable[str]:
        if found.is_empty() or not any(run.has(table) for table in _BOTH):
            return
        for row in run.analyse("differing_sources").iter_rows(named=True):
            if row["figure"] in figures:
                yield _note(row)

    return notes


def _note(row: Mapping[str, Any]) -> str:
    from stepscope.analysis.rank_lists import listed

    ranks = listed(row["ranks"])
    of = f", of rank {row['rank']}" if len(ranks) > 1 else ""
    counts = {
        name: f"{row[column] or 0:.0f}" for name, column in (("stated", "stated_calls"), ("shown", "timeline_calls"))
    }
    return (
        f"{row['figure'].capitalize()} of {named_numbers('rank', ranks)} differs{of}: {duration(row['stated_ns'])} in "
        f"{{a_step}} as the profile states it, {duration(row['timeline_ns'])} in the timeline. "
        f"{_BELIEVED[row['why']].format(**counts)}"
    )
