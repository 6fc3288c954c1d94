"""Small known runs, and a toy format whose files do what a test wants."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.run import Run
from stepscope.sources.base import Found, Input, Sink
from stepscope.store import MemoryRecording
from stepscope.tables import COLLECTIVES, KERNELS, RANKS, SLICES, STEPS

EPOCH_NS = 1_700_000_000_000_000_000
MS = 1_000_000


def make_run(
    ranks: int = 4,
    steps: int = 3,
    *,
    step_ns: int = 100 * MS,
    compute_ns: int = 60 * MS,
    collective_ns: int = 20 * MS,
    late: dict[int, int] | None = None,
    size_bytes: int = 1 << 20,
) -> Run:
    """A run in memory: each step is one compute kernel and one all-reduce that ends on all ranks together.

    Args:
        ranks: Number of ranks.
        steps: Number of steps, numbered from 1.
        step_ns: Length of a step.
        compute_ns: Length of its compute kernel.
        collective_ns: Length of the all-reduce on the rank that arrives last.
        late: Rank to ns by which its compute kernel is longer in each step.
        size_bytes: Payload of the all-reduce.
    """
    delays = {rank: (late or {}).get(rank, 0) for rank in range(ranks)}
    length = step_ns + max(delays.values())
    starts = [EPOCH_NS + step * length for step in range(steps)]
    numbers = list(range(1, steps + 1))
    frames: dict[int, dict[str, pl.DataFrame]] = {}
    for rank, delay in delays.items():
        computing = compute_ns + delay
        waiting = max(delays.values()) - delay
        arrivals = [start + computing for start in starts]
        frames[rank] = {
            "ranks": RANKS.frame(
                rank=[rank],
                world_size=[ranks],
                device_kind=["cuda"],
                start_ns=[starts[0]],
                end_ns=[starts[-1] + length],
            ),
            "steps": STEPS.frame(
                step=numbers,
                start_ns=starts,
                end_ns=[start + length for start in starts],
                window_start_ns=starts,
                window_end_ns=[start + length for start in starts],
                window=["device"] * steps,
            ),
            "kernels": KERNELS.frame(
                kernel=range(2 * steps),
                start_ns=[time_ns for pair in zip(starts, arrivals, strict=True) for time_ns in pair],
                duration_ns=[computing, collective_ns + waiting] * steps,
                kind=["compute", "communication"] * steps,
                name=["gemm", "all_reduce"] * steps,
                device=[rank] * (2 * steps),
                stream=[7, 20] * steps,
                step=[step for step in numbers for _ in range(2)],
            ),
            "collectives": COLLECTIVES.frame(
                collective=range(steps),
                group=["world"] * steps,
                sequence=range(steps),
                operation=["all_reduce"] * steps,
                name=["all_reduce"] * steps,
                size_bytes=[size_bytes] * steps,
                group_size=[ranks] * steps,
                start_ns=arrivals,
                duration_ns=[collective_ns + waiting] * steps,
                on_device=[True] * steps,
                stream=[20] * steps,
                step=numbers,
            ),
        }
    return Run.from_frames(frames)


def write_toy(path: Path, **content: Any) -> Path:
    """Write a file in the toy format.

    Args:
        path: Where.
        **content: `rank`, `world_size`, `start_ns`, `end_ns`, `process`, `host`; `steps` (how many); and what
            goes wrong: `fail` (an exception's text), `unreadable`, `kill`, `sleep_s`, `damaged` (rows lost).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"toy": 1, **content}))
    return path


class ToySource:
    """Reads the toy format: JSON objects with a `toy` key, or directories with a `toy.json`."""

    name = "toy"
    version = 1
    family = "toy"
    reasons: Mapping[str, str] = {}
    own_tables = frozenset[str]()

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:
        """A directory with a `toy.json`."""
        return Found((Input(self.name, directory, (directory / "toy.json",)),)) if "toy.json" in names else None

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """A JSON object that starts with `toy`."""
        return Input(self.name, file, (file,)) if head.startswith(b'{"toy"') else None

    def read(self, item: Input, sink: Sink) -> None:
        """Do what the file says."""
        content = json.loads(item.files[0].read_bytes())
        time.sleep(content.get("sleep_s", 0))
        if content.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if "fail" in content:
            raise RuntimeError(content["fail"])
        if "unreadable" in content:
            raise UnreadableInput(item.path, content["unreadable"], "Record again")
        facts = {name: [content[name]] for name in RANKS.schema if name in content}
        sink.write(RANKS, RANKS.frame(**{"rank_origin": ["content"], "rank": [None], **facts}))
        steps = range(1, content.get("steps", 2) + 1)
        sink.write(
            STEPS,
            STEPS.frame(
                step=steps,
                start_ns=[step * 100 for step in steps],
                end_ns=[step * 100 + 90 for step in steps],
                window_start_ns=[step * 100 for step in steps],
                window_end_ns=[step * 100 + 100 for step in steps],
                window=["host"] * len(steps),
            ),
        )
        for step in steps:
            sink.write(SLICES, toy_slices(step))
        if "damaged" in content:
            sink.issue("error", item.path, "damaged", "Record again", place="byte 7", lost=content["damaged"])


def toy_slices(step: int) -> pl.DataFrame:
    """Two slices of one step."""
    return SLICES.frame(
        slice=[2 * step, 2 * step + 1],
        start_ns=[step * 100, step * 100 + 50],
        duration_ns=[40, 40],
        category=["operator", "operator"],
        name=["a", "b"],
        step=[step, step],
    )


def toy_recording(path: str = "job/rank0.json", source: str = "toy", **facts: Any) -> MemoryRecording:
    """A recording without rows, for grouping."""
    return MemoryRecording(
        source, Path("/data") / path, (Path("/data") / path,), {**dict.fromkeys(RANKS.schema), **facts}, {}
    )
