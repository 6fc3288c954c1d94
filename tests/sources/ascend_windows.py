"""Recordings with operator windows of an Ascend device, each a job of its own to the device's profiler."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from test_agree import STEP_NS, job, write_database, write_text

from recordings import EPOCH_NS as RECORDED_NS
from recordings import Raw
from traces import EPOCH_NS, RankTrace, Span

WRITERS: dict[str, Callable[[Path, RankTrace], None]] = {"text": write_text, "db": write_database}
STEPS = (3, 4, 5)
MARKED_NS = EPOCH_NS - RECORDED_NS
"""Added to times after the traces' epoch to get those that `Raw` takes."""


def part(trace: RankTrace, steps: Sequence[int], *, numbered: bool = True) -> RankTrace:
    """Some steps of a job, numbered anew from 0, as the device's profiler has them in a window of their own."""
    chosen = [span for number, span in trace.steps if number in steps]

    def within(span: Span) -> bool:
        return any(own.start_ns <= span.start_ns < own.end_ns for own in chosen)

    ranges = [(k, replace(span, name=f"ProfilerStep#{k}")) for k, span in enumerate(chosen)]
    work = [work for work in trace.work if work.launch is not None and within(work.launch)]
    operators = [span for span in trace.operators if within(span)]
    return replace(trace, steps=ranges if numbered else (), operators=operators, work=work)


def recording(root: Path, trace: RankTrace, framework: str = "torch", offset_ns: int = 0) -> Raw:
    """A recording with the marks of all steps and no windows yet; its clock is `offset_ns` behind rank 0's."""
    clock = {"offset_ns": offset_ns, "error_ns": 10, "method": "test"} if offset_ns else None
    about = {"device_kind": "npu", "framework": framework, "world_size": trace.world_size, "clock": clock}
    raw = Raw(root, rank=trace.rank, pid=100 + trace.rank, about=about)
    for number, span in trace.steps:
        start = span.start_ns - RECORDED_NS
        raw.mark("step", str(number), start, start + STEP_NS, number)
        raw.mark("forward", "Net", start + 1000, start + 500_000, number)
    return raw


def bounds(steps: Sequence[int]) -> tuple[int, int]:
    """Start and end of a window of these steps, as `Raw` takes them."""
    return MARKED_NS + (steps[0] - 3) * STEP_NS, MARKED_NS + (steps[-1] - 2) * STEP_NS


def add_window(
    raw: Raw, number: int, steps: Sequence[int], write: Callable[[Path, RankTrace], None] | None, trace: RankTrace
) -> Path:
    """Add a window of these steps with what its profiler wrote; returns the window's directory."""
    raw.window(number, *bounds(steps), "ascend", {})
    directory = raw.directory / "windows" / f"{number:06d}"
    if write is not None:
        write(directory, trace)
    return directory


def make_raw(directory: Path) -> None:
    """Turn the exports in a window into raw data that nobody exported."""
    for rank in directory.iterdir():
        shutil.rmtree(rank / "ASCEND_PROFILER_OUTPUT")
        (rank / "FRAMEWORK").mkdir()
        (rank / "FRAMEWORK" / "torch.op_range").write_bytes(b"\0" * 64)


def as_mindspore(directory: Path) -> None:
    """Name what is in a window as MindSpore does."""
    for rank in list(directory.iterdir()):
        for database in rank.glob("*/ascend_pytorch_profiler_*.db"):
            database.rename(database.with_name(database.name.replace("pytorch", "mindspore")))
        rank.rename(rank.with_name(rank.name.replace("_ascend_pt", "_ascend_ms")))


WINDOWS = ((3, 4), (5,))
"""The steps of each window of a recording, unless a test names others."""


def windowed(
    root: Path,
    trace: RankTrace,
    form: str,
    windows: Sequence[Sequence[int]] = WINDOWS,
    *,
    framework: str = "torch",
    numbered: bool = True,
) -> Raw:
    """A recording with windows of these steps."""
    raw = recording(root, trace, framework)
    for number, steps in enumerate(windows):
        directory = add_window(raw, number, steps, WRITERS[form], part(trace, steps, numbered=numbered))
        if framework == "mindspore":
            as_mindspore(directory)
    return raw


def whole_job(root: Path, form: str) -> list[Raw]:
    """All ranks of the job, each with its windows."""
    return [windowed(root, trace, form) for trace in job()]
