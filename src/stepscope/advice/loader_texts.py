"""What to change about a data loader, by what is known of its workers."""

from __future__ import annotations

from typing import Any

from stepscope.analysis.loader import HOST_CPU, NO_WORKERS, READING, WORKER_CPU

GENERAL = "Raise the number of loader workers, prefetch, pin memory, cache or pre-process the data set."

ACTIONS = {
    NO_WORKERS: (
        "Give the DataLoader workers (num_workers=4 to begin with, persistent_workers=True): without any, the training "
        "loop itself reads and prepares each batch."
    ),
    WORKER_CPU: "{who} busy ({used:.0%} of a processor each): use more, or make the transforms cheaper or do them in "
    "advance.",
    HOST_CPU: (
        "All processors of the host are busy, so its workers wait for one ({used:.0%} of a processor each): stop what "
        "else runs there, spread ranks over hosts, or make the transforms cheaper."
    ),
    READING: "{who} mostly waiting ({used:.0%} of a processor each), so they read slowly: use faster or nearer "
    "storage, larger files, more workers to overlap reads, and a higher prefetch_factor.",
}


def loader_action(row: dict[str, Any] | None) -> str:
    """Advice about the loader of a row of `loader`; general where nothing is known of its workers."""
    text = GENERAL if row is None else ACTIONS.get(row["limited_by"], GENERAL)
    if row is None or not row["workers"]:
        return text
    who = "Its worker is" if row["workers"] == 1 else f"Its {row['workers']} workers are"
    return text.format(who=who, used=row["processors_per_worker"] or 0.0)


def loader_facts(row: dict[str, Any] | None) -> dict[str, Any]:
    """The figures of the loader, as evidence."""
    names = (
        "loader",
        "limited_by",
        "workers",
        "processors_per_worker",
        "ready",
        "queue_capacity",
        "median_wait_ns",
        "wait_ratio",
    )
    return {} if row is None else {name: row[name] for name in names}
