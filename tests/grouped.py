"""Recordings for grouping into jobs, and what became of them."""

from __future__ import annotations

from typing import Any

from builders import EPOCH_NS, toy_recording
from stepscope.run.job import Job
from stepscope.run.jobs import group
from stepscope.store import MemoryRecording

S = 1_000_000_000


def at(path: str, start_s: float, length_s: float = 1.0, **facts: Any) -> MemoryRecording:
    """A recording with a window in seconds after the tests' epoch."""
    start = EPOCH_NS + int(start_s * S)
    return toy_recording(path, start_ns=start, end_ns=start + int(length_s * S), **facts)


def members(job: Job) -> dict[int, str]:
    return {m.rank: str(m.recording.path.relative_to("/data")) for m in sorted(job.members, key=lambda m: m.rank)}


def all_members(*recordings: MemoryRecording) -> list[dict[int, str]]:
    return [members(job) for job in group(recordings)]
