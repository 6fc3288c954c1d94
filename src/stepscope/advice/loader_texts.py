"""What to change about a data loader, by what is known of its workers and of the framework."""

from __future__ import annotations

from typing import Any

from stepscope.advice.platforms import CPU, MINDSPORE, PYTORCH, Choices, Platform
from stepscope.analysis.input.loader import HOST_CPU, NO_WORKERS, READING, WORKER_CPU

GENERAL: Choices = {
    (PYTORCH, None): (
        "Raise the number of DataLoader workers (num_workers), prefetch (prefetch_factor), pin memory "
        "(pin_memory=True), cache or pre-process the data set."
    ),
    (PYTORCH, CPU): (
        "Raise the number of DataLoader workers (num_workers), prefetch (prefetch_factor), cache or pre-process the "
        "data set."
    ),
    (MINDSPORE, None): (
        "Raise num_parallel_workers of the slow dataset operators, prefetch (prefetch_size in "
        "mindspore.dataset.config), cache the data set or write it to MindRecord in advance."
    ),
    (None, None): "Raise the number of loader workers, prefetch, cache or pre-process the data set.",
}

ACTIONS: dict[str, Choices] = {
    NO_WORKERS: {
        (PYTORCH, None): (
            "Give the DataLoader workers (num_workers=4 to begin with, persistent_workers=True): without any, the "
            "training loop itself reads and prepares each batch."
        ),
        (MINDSPORE, None): (
            "Give the dataset workers (num_parallel_workers): without any, the training loop itself reads and prepares "
            "each batch."
        ),
        (None, None): (
            "Give the loader workers (num_workers of a DataLoader): without any, the training loop itself reads and "
            "prepares each batch."
        ),
    },
    WORKER_CPU: {
        (None, None): "{who} busy ({used:.0%} of a processor each): use more, or make the transforms cheaper or do "
        "them in advance.",
    },
    HOST_CPU: {
        (None, None): (
            "All processors of the host are busy, so its workers wait for one ({used:.0%} of a processor each): stop "
            "what else runs there, spread ranks over hosts, or make the transforms cheaper."
        ),
    },
    READING: {
        (PYTORCH, None): "{who} mostly waiting ({used:.0%} of a processor each), so they read slowly: use faster or "
        "nearer storage, larger files, more workers to overlap reads, and a higher prefetch_factor.",
        (MINDSPORE, None): "{who} mostly waiting ({used:.0%} of a processor each), so they read slowly: use faster or "
        "nearer storage, larger files, more workers to overlap reads, and a higher prefetch_size.",
        (None, None): "{who} mostly waiting ({used:.0%} of a processor each), so they read slowly: use faster or "
        "nearer storage, larger files, more workers to overlap reads, and more prefetching.",
    },
}


def loader_action(row: dict[str, Any] | None, platform: Platform) -> str:
    """Advice about the loader of a row of `loader`; general where nothing is known of its workers."""
    text = platform.pick(GENERAL if row is None else ACTIONS.get(row["limited_by"], GENERAL))
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
        "mean_wait_ns",
        "median_wait_ns",
        "wait_ratio",
    )
    return {} if row is None else {name: row[name] for name in names}
