"""One rank (or several) holds all others up."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.base import Finding, ms, rule

CAUSES = {
    "computing": "its device work takes longer than on the other ranks",
    "data_loading": "its training loop waits longer for the next batch",
    "dispatch": "its host launches work late, so its device stands idle",
    "memory": "its memory copies take longer",
}
VERBS = {
    "computing": "computes slowly",
    "data_loading": "waits for data",
    "dispatch": "dispatches late",
    "memory": "copies memory slowly",
}
ACTIONS = {
    "computing": (
        "Compare its kernels with another rank's: if all are slower by one factor, look at clock, power cap and "
        "temperature of that device; if only some are, look at their input shapes (uneven batches or sequences)."
    ),
    "data_loading": (
        "Look at that rank's input: storage, file sizes, CPU load and worker count of its host. More DataLoader "
        "workers, prefetching or moving the slow transform offline removes the wait."
    ),
    "dispatch": (
        "Look at that host: other processes on its CPUs, CPU frequency, NUMA binding, garbage collection, "
        "synchronising calls (`.item()`, prints of tensors) or logging that only this rank does."
    ),
    "memory": "Look at host memory (pinned or pageable), the PCIe link and the NUMA placement of that rank.",
}


@rule("slow-rank")
def slow_rank(slow_ranks: pl.DataFrame, breakdown: pl.DataFrame) -> Iterator[Finding]:
    """Name each rank that `slow_ranks` accuses.

    The saving is the part of the step that the job loses because of it (`cost_ns`); it is what remains for this
    rank when the delay is shared with other slow ranks.
    """
    if breakdown.is_empty():
        return
    worst: int | None = None
    for row in slow_ranks.iter_rows(named=True):
        kind, rank = row["kind"], row["rank"]
        last = f", arrives last in {row['times_last']} of {row['calls']} collectives" if row["calls"] else ""
        worst = rank if worst is None else worst
        hidden = row["calls"] and not row["times_last"] and rank != worst
        shared = f" It hides behind rank {worst}: the saving comes when both are mended." if hidden else ""
        yield Finding(
            rule="slow-rank",
            summary=f"Rank {rank} {VERBS[kind]}: {ms(row['excess_ns'])} a step more than the typical rank{last}.",
            cause=f"Rank {rank} is slow because {CAUSES[kind]} "
            f"({ms(row['typical_ns'] + row['excess_ns'])} against {ms(row['typical_ns'])} a step).{shared}",
            action=ACTIONS[kind],
            saving_ns=row["cost_ns"],
            saving_ratio=row["cost_ratio"],
            where={"rank": rank},
            evidence={name: row[name] for name in row if name not in ("rank", "cost_ns", "cost_ratio")},
        )
