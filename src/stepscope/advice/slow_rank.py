"""One rank (or several) holds all others up."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.advice.platforms import CPU, MINDSPORE, PYTORCH, Choices, platform_of
from stepscope.advice.units import unit_of

CAUSES: dict[str, Choices] = {
    "computing": {(None, None): "its computing takes longer than on the other ranks"},
    "data_loading": {(None, None): "its training loop waits longer for the next batch"},
    "compile": {(None, None): "its compiler runs longer than on the other ranks"},
    "checkpoint": {(None, None): "it stops longer to write checkpoints"},
    "garbage_collection": {(None, None): "Python collects garbage there for longer"},
    "dispatch": {
        (None, None): "its host launches work late, so its device stands idle",
        (None, CPU): "it spends longer outside of the framework's operators",
    },
    "memory": {(None, None): "its memory copies take longer"},
}
VERBS: dict[str, Choices] = {
    "computing": {(None, None): "computes slowly"},
    "data_loading": {(None, None): "waits for data"},
    "compile": {(None, None): "spends time compiling"},
    "checkpoint": {(None, None): "spends time on checkpoints"},
    "garbage_collection": {(None, None): "spends time on garbage collection"},
    "dispatch": {(None, None): "dispatches late", (None, CPU): "spends time outside of operators"},
    "memory": {(None, None): "copies memory slowly"},
}
_INPUT = "Look at that rank's input: storage, file sizes, CPU load and worker count of its host. "
_HOST = "Look at that host: other processes on its CPUs, CPU frequency, NUMA binding, garbage collection, "
_COMPILES = (
    "Look at what only that rank compiles: its batches may have other sizes, or its compiler's cache may be empty. "
)
_SAVES = "Let every rank save its own part, save less often or without stopping for it, and to local storage first."
_COLLECTS = (
    "Look for what only that rank keeps or collects: calls of gc.collect(), lists of results or logs that grow. "
    "Call gc.freeze() after warm-up, or let all ranks collect in the same step."
)
ACTIONS: dict[str, Choices] = {
    "computing": {
        (None, None): (
            "Compare its kernels with another rank's: if all are slower by one factor, look at clock, power cap and "
            "temperature of that device; if only some are, look at their input shapes (uneven batches or sequences)."
        ),
        (None, CPU): (
            "Compare its operators with another rank's: if all are slower by one factor, look at other processes on "
            "its processors, their frequency, the number of threads (OMP_NUM_THREADS) and NUMA binding; if only some "
            "are, look at their input shapes (uneven batches or sequences)."
        ),
    },
    "data_loading": {
        (PYTORCH, None): _INPUT
        + "More DataLoader workers (num_workers), prefetching or moving the slow transform offline removes the wait.",
        (MINDSPORE, None): _INPUT
        + "More workers of the dataset operators (num_parallel_workers), prefetching or writing the data set to "
        "MindRecord in advance removes the wait.",
        (None, None): _INPUT
        + "More loader workers, prefetching or moving the slow transform offline removes the wait.",
    },
    "compile": {
        (PYTORCH, None): _COMPILES
        + "Find what changed with TORCH_LOGS=recompiles on that rank; use torch.compile(dynamic=True), or pad its "
        "batches to the sizes that the other ranks have.",
        (MINDSPORE, None): _COMPILES
        + "Declare sizes as dynamic (Cell.set_inputs with None in the shape), or pad its batches to the sizes that the "
        "other ranks have.",
        (None, None): _COMPILES
        + "Declare sizes as dynamic, or pad its batches to the sizes that the other ranks have.",
    },
    "checkpoint": {(None, None): _SAVES},
    "garbage_collection": {(None, None): _COLLECTS},
    "dispatch": {
        (PYTORCH, None): _HOST
        + "synchronising calls (`.item()`, prints of tensors) or logging that only this rank does.",
        (MINDSPORE, None): _HOST
        + "synchronising calls (`.asnumpy()`, prints of tensors) or logging that only this rank does.",
        (None, None): _HOST + "calls that wait for the device, or logging that only this rank does.",
        (PYTORCH, CPU): _HOST + "or logging and checkpoints that only this rank does.",
        (MINDSPORE, CPU): _HOST + "or logging and checkpoints that only this rank does.",
        (None, CPU): _HOST + "or logging and checkpoints that only this rank does.",
    },
    "memory": {
        (None, None): "Look at host memory (pinned or pageable), the PCIe link and the NUMA placement of that rank.",
        (None, CPU): "Look at the NUMA placement of that rank and at what else uses the memory of its host.",
    },
}


@rule("slow-rank")
def slow_rank(
    slow_ranks: pl.DataFrame, breakdown: pl.DataFrame, ranks: pl.LazyFrame | None = None
) -> Iterator[Finding]:
    """Name each rank that `slow_ranks` accuses.

    The saving is the part of the step that the job loses because of it (`cost_ns`); it is what remains for this
    rank when the delay is shared with other slow ranks.
    """
    if breakdown.is_empty():
        return
    worst: int | None = None
    unit = unit_of(breakdown)
    for row in slow_ranks.iter_rows(named=True):
        kind, rank = row["kind"], row["rank"]
        platform = platform_of(ranks, [rank])
        last = f", arrives last in {row['times_last']} of {row['calls']} collectives" if row["calls"] else ""
        worst = rank if worst is None else worst
        hidden = row["calls"] and not row["times_last"] and rank != worst
        shared = f" Masked by rank {worst}: fix both to get this saving." if hidden else ""
        yield Finding(
            rule="slow-rank",
            summary=f"Rank {rank} {platform.pick(VERBS[kind])}: {ms(row['excess_ns'])} {unit.each} more than the "
            f"typical rank{last}.",
            cause=f"Rank {rank} is slow because {platform.pick(CAUSES[kind])} "
            f"({ms(row['typical_ns'] + row['excess_ns'])} against {ms(row['typical_ns'])} {unit.each}).{shared}",
            action=platform.pick(ACTIONS[kind]),
            saving_ns=row["cost_ns"],
            saving_ratio=row["cost_ratio"],
            where={"rank": rank},
            evidence={
                **{name: row[name] for name in row if name not in ("rank", "cost_ns", "cost_ratio")},
                "device_kind": platform.device,
            },
            per=unit.per,
        )
