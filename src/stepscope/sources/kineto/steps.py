"""Training steps: which there are, and which rows belong to which."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.events import Framed
from stepscope.sources.matching import holding
from stepscope.sources.windows import device_windows, own_spans
from stepscope.tables.steps import WHOLE_RECORDING

STEP_PREFIX = "ProfilerStep#"
_NAMED = 3
"""Steps that are named before the rest is only counted."""
_SCHEMA = {"step": pl.Int32(), "start_ns": pl.Int64(), "end_ns": pl.Int64()}


class Steps:
    """The steps of one recording, as ranges on the host that do not overlap: by default, none are marked."""

    def __init__(self, ranges: pl.DataFrame | None = None) -> None:
        self.ranges = pl.DataFrame(schema=_SCHEMA) if ranges is None else ranges
        """`step`, `start_ns`, `end_ns`, in order of time."""

    def of(self, times: pl.Series) -> pl.Series:
        """The step in which each time lies: null outside of all; 0 everywhere if there are no steps."""
        if not self.ranges.height:
            return pl.repeat(0, len(times), dtype=pl.Int32, eager=True).alias("step")
        return self.ranges["step"].gather(holding(times, self.ranges))


def find_steps(events: Framed) -> tuple[Steps, int]:
    """Steps from the host's `ProfilerStep#N` ranges, and how many of these overlapped and were cut.

    Ranges of that name on the device are spans of its work, not steps, and are not looked at.
    """
    found = [
        frame.filter(pl.col("name").str.starts_with(STEP_PREFIX)).select(
            step=pl.col("name").str.strip_prefix(STEP_PREFIX).cast(pl.Int32, strict=False),
            start_ns="start_ns",
            end_ns=pl.col("start_ns") + pl.col("duration_ns"),
        )
        for name in ("annotation", "operator")
        for frame in events.frames(name, ["name", "start_ns", "duration_ns"])
    ]
    marks = pl.concat([pl.DataFrame(schema=_SCHEMA), *found]).drop_nulls().filter(pl.col("end_ns") > pl.col("start_ns"))
    ranges = marks.sort("start_ns", "end_ns").unique("step", keep="first", maintain_order=True)
    cut = pl.min_horizontal("end_ns", pl.col("start_ns").shift(-1).fill_null(2**63 - 1))
    trimmed = ranges.with_columns(end_ns=cut).filter(pl.col("end_ns") > pl.col("start_ns"))
    overlapping = int((ranges["end_ns"] > ranges["start_ns"].shift(-1)).sum() or 0)
    return Steps(trimmed), overlapping


def report_overlaps(count: int, path: Path, sink: Sink) -> None:
    """Report how many steps overlapped and were cut."""
    if count:
        problem = f"{count} steps overlap the next one and are cut where it starts"
        remedy = "Call the profiler's step() once per step, from one thread."
        sink.issue("warning", path, problem, remedy, place="steps")


def step_rows(
    steps: Steps,
    device: pl.DataFrame,
    recording: tuple[int, int],
    worked: Collection[int] = (),
    recorded: pl.Series | None = None,
) -> pl.DataFrame:
    """Rows of `steps`.

    Args:
        steps: The steps on the host.
        device: Spans of device work as of `windows.stream_spans`, of any number of parts of it; empty on a CPU.
        recording: Start and end of the recording.
        worked: The steps in which operators ran.
        recorded: Of each step whether its operators were recorded; None if that is the same for all.
    """
    if not steps.ranges.height:
        first, last = recording
        if device.height:
            first, last = device.select(pl.min("first_ns"), pl.max("last_ns")).row(0)
        whole = {"step": 0, "start_ns": recording[0], "end_ns": recording[1]}
        return pl.DataFrame([{**whole, "window_start_ns": first, "window_end_ns": last, "window": WHOLE_RECORDING}])
    rows = steps.ranges if recorded is None else steps.ranges.with_columns(recorded=recorded)
    if not device.height:
        return _without_rest(_on_host(rows), worked)
    own = own_spans(device, rows["step"])
    joined = rows.join(own, on="step", how="left", maintain_order="left")
    if recorded is None:
        return _without_rest(_on_device(joined), worked)
    # of steps in between nothing is known, so no window reaches into them
    parts = joined.with_columns(part=pl.col("recorded").rle_id()).partition_by("part", include_key=False)
    laid = [_on_device(part) if part["recorded"][0] else _on_host(part.drop("first_ns", "last_ns")) for part in parts]
    return _without_rest(pl.concat(laid), worked)


def _without_rest(rows: pl.DataFrame, worked: Collection[int]) -> pl.DataFrame:
    """Rows of `steps` of which those without any work count as not recorded.

    Such are steps without device work where others have it, as its time lies in the window of the step before; and the
    last one on a host if no operator ran in it: the profiler was stopped when it had just begun.
    """
    is_last = pl.int_range(pl.len()) == pl.len() - 1
    on_device = (pl.col("window") == "device") & (pl.col("window_start_ns") == pl.col("window_end_ns"))
    on_host = (pl.col("window") == "host") & is_last & ~pl.col("step").is_in(list(worked)) & pl.lit(bool(worked))
    known = pl.col("recorded").fill_null(True) if "recorded" in rows.columns else pl.lit(True)
    recorded = rows.select(recorded=known & ~on_device & ~on_host).to_series()
    return rows if recorded.all() or not recorded.any() else rows.with_columns(recorded)


def report_rest(rows: pl.DataFrame, recorded: pl.Series | None, path: Path, sink: Sink) -> None:
    """Report the steps without any work among `rows`, which `step_rows` made with `recorded`."""
    if "recorded" not in rows.columns:
        return
    empty = rows.filter(~pl.col("recorded") & (True if recorded is None else recorded))
    if empty.height:
        first = ", ".join(str(step) for step in empty["step"][:_NAMED])
        more = ", ..." if empty.height > _NAMED else ""
        some = f"{empty.height} of {rows.height} steps ({first}{more})"
        problem = f"no work was recorded in {some}; they are left out when time is split"
        remedy = "Nothing to do if the profiler was stopped when a step had just begun"
        sink.issue("note", path, problem, remedy, place="steps")


def _on_host(steps: pl.DataFrame) -> pl.DataFrame:
    return steps.with_columns(window_start_ns="start_ns", window_end_ns="end_ns", window=pl.lit("host"))


def _on_device(steps: pl.DataFrame) -> pl.DataFrame:
    """Steps one behind the other with the spans of their device work."""
    bare = steps.drop("first_ns", "last_ns")
    if not steps["first_ns"].count():  # the device worked before or after the steps only
        return _on_host(bare)
    windows = device_windows(steps["first_ns"], steps.select(pl.col("last_ns").max()).item())
    return pl.concat([bare, windows], how="horizontal").with_columns(window=pl.lit("device"))
