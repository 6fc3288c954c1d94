"""Rows of input pipelines, processors, memory and host events, made up for tests."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.tables import HOST_EVENTS, HOST_USAGE, INPUT_PIPELINE, PIPELINE_OPERATORS, STEPS

MS = 1_000_000


def batches(
    queue: str, sizes: Sequence[int], *, capacity: int | None = 16, get_ms: Sequence[int] = (), every_ms: int = 10
) -> pl.DataFrame:
    """Batches of a queue, one every `every_ms`, that found it filled to `sizes`."""
    waits = [ms * MS for ms in get_ms] or [0] * len(sizes)
    return INPUT_PIPELINE.frame(
        operator=[queue] * len(sizes),
        batch=list(range(1, len(sizes) + 1)),
        time_ns=[(k + 1) * every_ms * MS for k in range(len(sizes))],
        queue_size=list(sizes),
        queue_capacity=[capacity] * len(sizes),
        get_ns=waits,
        push_ns=[MS] * len(sizes),
        duration_ns=[wait + MS for wait in waits],
    )


def samples(sizes: dict[str, Sequence[int]], *, capacity: int = 10) -> pl.DataFrame:
    """Samples of the queues behind dataset operators."""
    return pl.concat(
        INPUT_PIPELINE.frame(
            operator=[name] * len(values),
            time_ns=[k * MS for k in range(len(values))],
            queue_size=list(values),
            queue_capacity=[capacity] * len(values),
        )
        for name, values in sizes.items()
    )


def pipeline(parents: dict[str, str | None], *, without_queue: Sequence[str] = (), capacity: int = 10) -> pl.DataFrame:
    """Dataset operators named `<type>_<number>`, each with the one that takes from it."""
    names = list(parents)
    return PIPELINE_OPERATORS.frame(
        pipeline=[0] * len(names),
        operator=names,
        number=[int(name.rsplit("_", 1)[1]) for name in names],
        type=[name.rsplit("_", 1)[0] for name in names],
        parent=list(parents.values()),
        workers=[2] * len(names),
        queue_capacity=[None if name in without_queue else capacity for name in names],
        sample_interval_ns=[MS] * len(names),
    )


def chain(usage: dict[str, float], *, root: str = "DataQueueOp_0") -> dict[str, pl.DataFrame]:
    """A pipeline without branches, the operators from the root down, with the mean fill of their queues."""
    names = [root, *usage]
    parents = dict(zip(names, [None, *names[:-1]], strict=True))
    fills = {name: [round(10 * share)] * 4 for name, share in usage.items()}
    return {"pipeline_operators": pipeline(parents, without_queue=[root]), "input_pipeline": samples(fills)}


def usage_of(
    scope: str, busy: Sequence[float], *, name: str | None = None, processors: int = 4, every_ms: int = 10
) -> pl.DataFrame:
    """Samples of a scope whose user share is `busy`; the rest is idle."""
    count = len(busy)
    return HOST_USAGE.frame(
        time_ns=[k * every_ms * MS + every_ms * MS // 2 for k in range(count)],
        scope=[scope] * count,
        name=[name] * count,
        processors=[processors] * count,
        user_ratio=list(busy),
        system_ratio=[0.0] * count,
        idle_ratio=[1 - share if scope == "host" else None for share in busy],
    )


def steps(count: int, *, length_ms: int = 10, first_ms: int = 0) -> pl.DataFrame:
    """Steps one after the other."""
    starts = [(first_ms + k * length_ms) * MS for k in range(count)]
    ends = [start + length_ms * MS for start in starts]
    return STEPS.frame(
        step=list(range(1, count + 1)),
        start_ns=starts,
        end_ns=ends,
        window_start_ns=starts,
        window_end_ns=ends,
        window=["host"] * count,
    )


def events(rows: Sequence[tuple[str, str, int, int | None]]) -> pl.DataFrame:
    """Host events: module, event, start and length in ms, on one thread."""
    return HOST_EVENTS.frame(
        module=[row[0] for row in rows],
        event=[row[1] for row in rows],
        start_ns=[row[2] * MS for row in rows],
        duration_ns=[None if row[3] is None else row[3] * MS for row in rows],
        thread=[1] * len(rows),
        memory_start_bytes=[1000] * len(rows),
        memory_end_bytes=[None if row[3] is None else 1500 for row in rows],
    )
