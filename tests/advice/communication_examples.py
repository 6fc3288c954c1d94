"""Answers to give to the rules about communication, so that each uses all of its words."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.communication.contended_calls import COLUMNS as CONTENDED
from stepscope.analysis.communication.data_parallelism import COLUMNS as PARALLEL
from stepscope.analysis.communication.data_parallelism import DDP, THREADS
from stepscope.analysis.communication.gradient_buckets import COLUMNS as BUCKETS
from stepscope.analysis.communication.retransmissions import COLUMNS as AGAIN
from stepscope.analysis.communication.retransmissions import SIGNS
from stepscope.analysis.communication.sharded_gathers import COLUMNS as GATHERS
from stepscope.analysis.communication.transfer_sizes import COLUMNS as SIZES
from stepscope.analysis.communication.transmission import COLUMNS as SENT
from stepscope.analysis.communication.unaligned_transfers import COLUMNS as UNALIGNED
from stepscope.tables import COUNTERS
from stepscope.tables.base import schema_of


def steps() -> pl.DataFrame:
    row = {"rank": 0, "step": 1, "window": "device", "window_ns": 10**9, "communication_not_overlapped_ns": 10**9}
    row |= {"computing_ns": 10**9, "overlapped_ns": 0}
    return pl.DataFrame([row])


def again() -> pl.DataFrame:
    """Calls of each sign, several of one, on two ranks."""
    row = {"group": "g", "group_name": "dp", "step": 1, "rank": 0, "operation": "all_reduce", "size_bytes": 8}
    row |= {"start_ns": 0, "duration_ns": 5 * 10**9, "transmit_ns": 5 * 10**9, "typical_ns": 10**6}
    row |= {"rdma_bytes": 10**9, "rdma_ns": 5 * 10**9, "rdma_bytes_per_s": 2e8, "excess_ns": 4 * 10**9}
    rows = [
        {**row, "name": f"_{sign}_{n}", "sign": sign} for sign in SIGNS for n in range(5 if sign == SIGNS[0] else 1)
    ]
    return pl.DataFrame([*rows, {**rows[-1], "rank": 1}], schema=schema_of(AGAIN))


def contended(*, is_slower: bool, alone: float | None) -> pl.DataFrame:
    row = {"group": "g", "group_name": "dp", "ranks": "0, 1", "operation": "all_reduce", "size_bytes": 10**8}
    row |= {"members": 2, "beside": 9, "alone": 5, "transmit_ns": 3 * 10**6, "alone_ns": 10**6, "slowdown_factor": 3.0}
    row |= {"sdma_bytes": 10**8, "sdma_bytes_per_s": 1e10, "alone_sdma_bytes_per_s": alone, "excess_ns": 10**8}
    rows = [{**row, "is_slower": is_slower, "exposed_ns": 10**8, "group": group} for group in ("g", "h")]
    return pl.DataFrame(rows, schema=schema_of(CONTENDED))


def unaligned(aligned: float | None) -> pl.DataFrame:
    row = {
        "rank": 0,
        "call": "_call",
        "task": "Memcpy",
        "link": "HCCS",
        "least_bytes": 1000,
        "tasks": 9,
        "unaligned": 8,
    }
    row |= {"total_bytes": 9000, "total_ns": 900, "unaligned_bytes": 8000, "unaligned_ns": 800}
    row |= {"bandwidth_bytes_per_s": 1e10, "aligned_bytes_per_s": aligned, "excess_ns": 400 if aligned else None}
    return pl.DataFrame([row], schema=schema_of(UNALIGNED))


def sizes() -> pl.DataFrame:
    row = {"rank": 0, "transport": "SDMA", "least_bytes": 16_000_000, "calls": 9, "small": 8, "small_ratio": 0.9}
    row |= {"total_ns": 900, "small_ns": 800, "small_time_ratio": 0.9, "small_bytes": 1000}
    row |= {"small_bytes_per_s": 1e9, "large_bytes_per_s": 1e10}
    return pl.DataFrame([row], schema=schema_of(SIZES))


def sent() -> pl.DataFrame:
    row = {"group": "g", "group_name": "dp", "ranks": "0, 1", "operation": "all_reduce", "size_bytes": 1000}
    row |= {"members": 2, "calls": 99.0, "transmit_ns": 50_000, "bandwidth_bytes_per_s": 1e7, "latency_ns": 4 * 10**7}
    row |= {"large_bytes_per_s": 1e10, "exposed_latency_ns": 4 * 10**7}
    return pl.DataFrame([row, {**row, "group": "h"}], schema=schema_of(SENT))


def parallel() -> pl.DataFrame:
    """A rank with threads that communicates on the host, and one that sums gradients after each micro-batch."""
    row = {"backend": "gloo", "forwards": 8, "optimizer_steps": 2, "reduced": 8, "device_calls": 0, "host_calls": 9}
    row |= {"host_ns": 10**8, "all_reduces": 8, "mean_bytes": None, "copies": 9, "copies_ns": 10**8}
    row |= {"searches": 9, "searches_ns": 10**8}
    rows = [{**row, "rank": rank, "wrapper": wrapper} for rank, wrapper in enumerate((THREADS, DDP))]
    return pl.DataFrame(rows, schema=schema_of(PARALLEL))


def gathers(module: str | None, size: int) -> pl.DataFrame:
    """All-gathers of FSDP that are late in both passes, of two ranks."""
    row = {"module": module, "calls": 12, "ahead": 1, "gathered_bytes": size, "sent_ns": 2 * 10**8, "unsplit_ns": 0}
    row |= {"transmit_ns": 2 * 10**8, "late_ns": 10**8}
    rows = [{**row, "rank": rank, "phase": phase} for rank in (0, 1) for phase in ("forward", "backward")]
    return pl.DataFrame(rows, schema=schema_of(GATHERS))


def buckets(size: int, count: int, left_ns: int) -> pl.DataFrame:
    """Buckets of DistributedDataParallel on two ranks, one of which is twice as large."""
    row = {"group": "g", "calls": 2, "sent_ns": 10**7, "transmit_ns": 10**8, "unsplit_ns": 0, "backward_ns": 10**8}
    rows = [
        {**row, "rank": rank, "bucket": at, "size_bytes": size * (10 if at == 0 else 1), "left_ns": left_ns}
        for rank in (0, 1)
        for at in range(count)
    ]
    return pl.DataFrame(rows, schema=schema_of(BUCKETS))


def communication_examples() -> dict[str, list[dict[str, Any]]]:
    """By rule."""
    ports = COUNTERS.frame(rank=[0, 1], time_ns=[0, 0], name=["roce_0_rx_errors"] * 2, value=[3.0, 4.0]).lazy()
    exposed = pl.DataFrame({"rank": [0], "collective": [0], "transmit_ns": [10**8]})
    names = pl.DataFrame({"rank": [0], "collective": [0], "name": ["_call__690_0_1"]})
    roomy = pl.DataFrame({"rank": [0, 1], "device": [0, 0], "used_ratio": [0.3, 0.4], "capacity_bytes": [10**11] * 2})
    return {
        "retransmission": [{"retransmissions": again(), "breakdown": steps(), "counters": ports}],
        "bandwidth-contention": [
            {"contended_calls": contended(is_slower=slower, alone=alone), "breakdown": steps()}
            for slower, alone in ((True, 2e10), (False, 1.2e10), (False, None), (False, 2e10))
        ],
        "byte-alignment": [
            {
                "unaligned_transfers": unaligned(aligned),
                "breakdown": steps(),
                "exposed_calls": exposed,
                "arrival": names,
            }
            for aligned in (2e10, None)
        ],
        "data-parallel": [
            {
                "data_parallelism": parallel(),
                "breakdown": steps(),
                "exposed_calls": exposed.with_columns(operation=pl.lit("all_reduce")),
                "sharded_gathers": gathers(module, size),
                "memory_peak": memory,
            }
            for module, size, memory in (("layers.0", 10**8, None), (None, 10**4, None), (None, 10**8, roomy))
        ]
        + [
            {
                **{"data_parallelism": parallel(), "breakdown": steps()},
                "gradient_buckets": buckets(size, count, left).with_columns(unsplit_ns=pl.lit(unsplit, pl.Int64)),
            }
            for size, count, left in ((10**5, 20, 10**7), (10**7, 2, 0))
            for unsplit in (0, 10**7)
        ],
        "small-packets": [
            {"breakdown": steps(), "transfer_sizes": sizes(), "transmission": transmission}
            for transmission in (sent(), None)
        ],
    }
