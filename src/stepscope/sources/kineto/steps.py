"""Training steps: which there are, and which rows belong to which."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.events import Events
from stepscope.sources.windows import device_windows

STEP_PREFIX = "ProfilerStep#"
_SCHEMA = {"step": pl.Int32(), "start_ns": pl.Int64(), "end_ns": pl.Int64()}


class Steps:
    """The steps of one recording, as ranges on the host that do not overlap.

    Args:
        ranges: `step`, `start_ns`, `end_ns`, in time order; empty if the recording marks no steps.
    """

    def __init__(self, ranges: pl.DataFrame) -> None:
        self.ranges = ranges

    @classmethod
    def none(cls) -> Steps:
        """A recording that marks no steps."""
        return cls(pl.DataFrame(schema=_SCHEMA))

    def of(self, times: pl.Series) -> pl.Series:
        """The step in which each time lies: null outside of all; 0 everywhere if there are no steps."""
        if not self.ranges.height:
            return pl.repeat(0, len(times), dtype=pl.Int32, eager=True).alias("step")
        index = self.ranges["start_ns"].search_sorted(times, side="right").cast(pl.Int64) - 1
        known = pl.DataFrame({"time": times, "index": index}).with_columns(
            valid=(pl.col("index") >= 0) & pl.col("time").is_not_null(),
        )
        place = known["index"].clip(lower_bound=0)
        inside = known["valid"] & (times < self.ranges["end_ns"].gather(place))
        step = pl.DataFrame({"step": self.ranges["step"].gather(place), "inside": inside})
        return step.select(step=pl.when("inside").then("step")).to_series()


def find_steps(events: Events) -> tuple[Steps, int]:
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
    marks = pl.concat([pl.DataFrame(schema=_SCHEMA), *found]).drop_nulls()
    ranges = (
        marks.filter(pl.col("end_ns") > pl.col("start_ns"))
        .sort("start_ns", "end_ns")
        .unique("step", keep="first", maintain_order=True)
    )
    cut = pl.min_horizontal("end_ns", pl.col("start_ns").shift(-1).fill_null(2**63 - 1))
    trimmed = ranges.with_columns(end_ns=cut).filter(pl.col("end_ns") > pl.col("start_ns"))
    overlapping = int((ranges["end_ns"] > ranges["start_ns"].shift(-1)).sum() or 0)
    return Steps(trimmed), overlapping


def tell_overlaps(count: int, path: Path, sink: Sink) -> None:
    """Tell how many steps overlapped and were cut."""
    if count:
        sink.issue(
            "warning",
            path,
            f"{count} steps overlap the next one and are cut where it starts",
            "Call the profiler's step() once per step, from one thread.",
            place="steps",
        )


def step_rows(
    steps: Steps, device: pl.DataFrame, recording: tuple[int, int], recorded: pl.Series | None = None
) -> pl.DataFrame:
    """Rows of `steps`.

    Args:
        steps: The steps on the host.
        device: Spans of device work as of `windows.step_spans`, of any number of parts of it; empty on a CPU.
        recording: Start and end of the recording.
        recorded: Of each step whether its operators were recorded; None if that is the same for all.
    """
    work = None if not device.height else device.group_by("step").agg(pl.min("first_ns"), pl.max("last_ns"))
    if not steps.ranges.height:
        first, last = recording
        if work is not None:
            first, last = work.select(pl.min("first_ns"), pl.max("last_ns")).row(0)
        row = {
            "step": 0,
            "start_ns": recording[0],
            "end_ns": recording[1],
            "window_start_ns": first,
            "window_end_ns": last,
            "window": "recording",
        }
        return pl.DataFrame([row])
    rows = steps.ranges if recorded is None else steps.ranges.with_columns(recorded=recorded)
    if work is None:
        return _on_host(rows)
    joined = rows.join(work.drop_nulls("step"), on="step", how="left", maintain_order="left")
    if recorded is None:
        return _on_device(joined)
    # of steps in between nothing is known, so no window reaches into them
    parts = joined.with_columns(part=pl.col("recorded").rle_id()).partition_by("part", include_key=False)
    laid = [_on_device(part) if part["recorded"][0] else _on_host(part.drop("first_ns", "last_ns")) for part in parts]
    return pl.concat(laid)


def _on_host(steps: pl.DataFrame) -> pl.DataFrame:
    return steps.with_columns(window_start_ns="start_ns", window_end_ns="end_ns", window=pl.lit("host"))


def _on_device(steps: pl.DataFrame) -> pl.DataFrame:
    """Steps one behind the other with the spans of their device work."""
    bare = steps.drop("first_ns", "last_ns")
    if not steps["first_ns"].count():  # the device worked before or after the steps only
        return _on_host(bare)
    windows = device_windows(steps["first_ns"], steps.select(pl.col("last_ns").max()).item())
    return pl.concat([bare, windows], how="horizontal").with_columns(window=pl.lit("device"))
