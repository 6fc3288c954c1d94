"""Dumps of a flight recorder, as PyTorch writes them."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

BASE_NS = 1_790_000_000_000_000_000
STEP_NS = 10**6
"""Between two calls of a rank."""

Call = dict[str, Any]


def call(operation: str = "all_reduce", group: str = "0", **changed: Any) -> Call:
    """A call of NCCL that has ended; `ended=False` makes it one that has not."""
    ended = changed.pop("ended", True)
    return {
        "profiling_name": f"nccl:{operation}",
        "process_group": (group, "default_pg" if group == "0" else f"sub{group}"),
        "input_sizes": [[1024]],
        "input_dtypes": ["Float"],
        "output_sizes": [[1024]],
        "output_dtypes": ["Float"],
        "state": "completed" if ended else "started",
        "retired": ended,
        **changed,
    }


def waits(operation: str = "all_reduce", group: str = "0", **changed: Any) -> Call:
    return call(operation, group, ended=False, **changed)


def send(rank: int, peer: int, **changed: Any) -> Call:
    return call(f"send {rank}->{peer}", is_p2p=True, **changed)


def receive(rank: int, peer: int, **changed: Any) -> Call:
    return call(f"recv {rank}<-{peer}", is_p2p=True, **changed)


def dump(
    calls: Sequence[Call],
    groups: Mapping[str, Sequence[int]] | None = None,
    *,
    ring: int | None = None,
) -> dict[str, Any]:
    """What a rank dumps.

    Args:
        calls: All calls that it made, in order.
        groups: Members of groups.
        ring: The last so many of them are still there.
    """
    counts: dict[tuple[str, bool], int] = {}
    entries = []
    for record, one in enumerate(calls):
        key = (one["process_group"][0], one.get("is_p2p") is True)
        counts[key] = counts.get(key, 0) + 1
        created = BASE_NS + record * STEP_NS
        is_done = one["state"] == "completed"
        frames = [
            {"filename": "/venv/site-packages/torch/distributed/c10d.py", "line": 9, "name": "all_reduce"},
            {"filename": "/home/me/train.py", "line": 100 + record, "name": "step"},
        ]
        entries.append(
            {
                "record_id": record,
                "pg_id": int(key[0]),
                "collective_seq_id": counts.get((key[0], False), 0),
                "p2p_seq_id": counts.get((key[0], True), 0),
                "op_id": record,
                "time_created_ns": created,
                "time_discovered_started_ns": created,
                "time_discovered_completed_ns": created + 1000 if is_done else None,
                "timeout_ms": 600_000,
                "is_p2p": False,
                "frames": frames,
                **one,
            }
        )
    members = {"0": range(4)} if groups is None else groups
    config = {
        name: {"name": name, "desc": "default_pg" if name == "0" else f"sub{name}", "ranks": json.dumps(list(ranks))}
        for name, ranks in members.items()
    }
    return {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries[-ring if ring else 0 :]}


def write_dump(folder: Path, rank: int, content: Mapping[str, Any], *, protocol: int = 2, waited_s: float = 60) -> Path:
    """Write a dump, some time after the base of all calls."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"nccl_trace_rank_{rank}"
    file.write_bytes(pickle.dumps(content, protocol=protocol))
    written = BASE_NS + int(waited_s * 1e9)
    os.utime(file, ns=(written, written))
    return file


def write_job(
    folder: Path, ranks: Mapping[int, Sequence[Call]], groups: Mapping[str, Sequence[int]] | None = None, **options: Any
) -> Path:
    """Write the dumps of a job; `waited_s` is an option of `write_dump`, others those of `dump`."""
    waited = {"waited_s": options.pop("waited_s")} if "waited_s" in options else {}
    for rank, calls in ranks.items():
        write_dump(folder, rank, dump(calls, groups, **options), **waited)
    return folder
