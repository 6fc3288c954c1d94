"""Device work: joined with its launches, checked for damage, and as rows of `kernels`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from stepscope.present import plural
from stepscope.sources.base import Sink
from stepscope.sources.distinct import Distinct
from stepscope.sources.kineto.communication import is_communication
from stepscope.sources.kineto.details import write_resources
from stepscope.sources.kineto.facts import Facts
from stepscope.sources.kineto.host import HostTree
from stepscope.sources.kineto.segments import Segment
from stepscope.sources.matching import first_match
from stepscope.tables import KERNELS

# without copies and fills: those of no bytes have no device event
LAUNCH = r"^(cuda|cu|hip|hipExt|hipModule|hipExtModule)Launch(Cooperative)?Kernel"
_LOST_SHARE = 0.01


@dataclass
class DeviceCounts:
    """Counts over the device work of all segments, reported once."""

    rows: int = 0
    unset: int = 0
    too_long: int = 0
    empty: int = 0
    overlapping: int = 0
    launches: int = 0
    without_work: int = 0
    ranges: int = 0
    """Counter ranges, recorded instead of device work."""
    by_device: dict[int, int] = field(default_factory=dict)
    """Pieces of work on each device."""

    @property
    def found(self) -> int:
        """Device events, with those that were left out."""
        return self.rows + self.unset + self.too_long

    @property
    def used_device(self) -> bool:
        """Whether a device did anything, recorded or not."""
        return self.found > 0 or self.launches > 0 or self.ranges > 0

    @property
    def main_device(self) -> int | None:
        """The device of most work."""
        return min(self.by_device, key=lambda d: (-self.by_device[d], d), default=None)


def device_work(
    segment: Segment, tree: HostTree, facts: Facts, base_ns: int, counts: DeviceCounts
) -> pl.DataFrame | None:
    """All device work of a segment in start order, with launch, step and kind; None if it has none.

    Args:
        segment: The segment.
        tree: Its host ranges.
        facts: Those of the whole trace.
        base_ns: The value of a missing time in damaged traces.
        counts: Takes what was found.
    """
    work = segment.whole("device")
    if not work.height:
        _count_launches(segment, None, counts)
        return None
    work = _without_damage(work, facts, base_ns, counts)
    copies = Distinct(work["category"]).judged(lambda some: some.str.to_lowercase().str.contains("memcpy|memset"))
    others = pl.when(is_communication(work)).then(pl.lit("communication")).otherwise(pl.lit("compute"))
    work = work.with_columns(
        correlation=pl.when(pl.col("correlation") > 0).then("correlation"),
        kind=pl.when(copies).then(pl.lit("memory")).otherwise(others),
    )
    work = work.with_columns(_launches(work["correlation"], segment, tree))
    work = work.with_columns(step=facts.steps.of(work["launch_start_ns" if facts.has_launches else "start_ns"]))
    number = pl.int_range(counts.rows, counts.rows + pl.len(), dtype=pl.Int64)
    work = work.sort("start_ns", maintain_order=True).with_columns(kernel=number)
    work = work.with_columns(external_id=_operator_ids(work, segment, tree, facts))
    _count(work, counts)
    _count_launches(segment, work, counts)
    return work


def write_kernels(work: pl.DataFrame, sink: Sink) -> None:
    """Write the rows of `kernels`, and of `kernel_resources`."""
    occupancy = (pl.col("occupancy_percent") / 100).clip(0, 1)
    wanted = {c.name for c in KERNELS.columns} & set(work.columns)
    sink.write(KERNELS, work.select(*sorted(wanted), occupancy_ratio=occupancy))
    write_resources(work, sink)


def _launches(correlations: pl.Series, segment: Segment, tree: HostTree) -> list[pl.Series]:
    """Of each piece of work the host call that launched it: the first with its correlation, null if there is none."""
    calls = segment.whole("runtime", ["start_ns", "duration_ns", "correlation"])
    row = first_match(correlations, calls["correlation"])
    start, duration = calls["start_ns"].gather(row), calls["duration_ns"].gather(row)
    launch_row = row + tree.offsets["runtime"]
    named = {"launch_start_ns": start, "launch_end_ns": start + duration, "launch_row": launch_row}
    return [column.alias(name) for name, column in named.items()]


def _operator_ids(work: pl.DataFrame, segment: Segment, tree: HostTree, facts: Facts) -> pl.Series:
    """The id of the operator that launched each piece of work.

    Some versions (2022 to 2023) put the correlation there instead; then it is that of the operator around the launch.
    """
    recorded = work["external_id"]
    if not facts.ids_are_correlations:
        return recorded
    if not tree.operators:
        return recorded
    ids = pl.concat([segment.whole(name, ["external_id"]) for name in ("operator", "call")]).to_series()
    rows = tree.climb(work["launch_row"], pl.int_range(0, tree.operators, dtype=pl.Int64, eager=True))
    return ids.gather(rows)


def _without_damage(work: pl.DataFrame, facts: Facts, base_ns: int, counts: DeviceCounts) -> pl.DataFrame:
    """Leave out device work whose times cannot be true."""
    if facts.host is None or facts.host[1] <= facts.host[0]:
        return work
    first, last = facts.host
    if facts.device_starts is not None:
        first, last = min(first, facts.device_starts[0]), max(last, facts.device_starts[1])
    unset = (pl.col("start_ns") == base_ns) & pl.lit(facts.host[0] > base_ns + 3600 * 10**9)
    too_long = (pl.col("duration_ns") > last - first) & ~unset
    without_time, long = work.select(unset=unset.sum(), too_long=too_long.sum()).row(0)
    counts.unset += without_time
    counts.too_long += long
    return work.filter(~unset & ~too_long) if without_time or long else work


def _count(work: pl.DataFrame, counts: DeviceCounts) -> None:
    """Count what looks incomplete or doubtful."""
    counts.rows += work.height
    counts.empty += int((work["duration_ns"] == 0).sum())
    counts.overlapping += _overlapping(work)
    for device, rows in work["device"].drop_nulls().value_counts().iter_rows():
        counts.by_device[device] = counts.by_device.get(device, 0) + rows


def report(counts: DeviceCounts, sink: Sink, file: Path) -> None:
    """Report damaged, incomplete and doubtful device work of all segments."""
    unusable = (counts.unset, "no start time"), (counts.too_long, "longer than the whole recording")
    for count, damage in unusable:
        if count:
            problem = f"{plural(count, 'device event')} left out: {damage}"
            remedy = "Update the profiler or the driver; device times of this recording may be damaged."
            sink.issue("warning", file, problem, remedy, lost=count)
    if counts.empty:
        problem = f"{plural(counts.empty, 'device event')} with a duration of 0"
        sink.issue("note", file, problem, "They were shorter than the clock's tick, or the profiler lost their end.")
    if counts.overlapping:
        problem = f"{plural(counts.overlapping, 'device event')} overlapping the previous one on the stream"
        remedy = "Busy time is a union, so nothing is counted twice; single durations may be too long."
        sink.issue("note", file, problem, remedy)
    lost, launches = counts.without_work, counts.launches
    if launches and not counts.found and not counts.ranges:
        problem = f"none of {launches} launches has a device event: what the device did is not recorded"
        remedy = "Record device activities, and check permissions and that no other profiler holds CUPTI."
        sink.issue("warning", file, problem, remedy, place=KERNELS.name, lost=launches)
    if counts.found and lost > 10 and lost > _LOST_SHARE * launches:
        problem = f"{lost} of {launches} launches have no device event: device work is missing in this recording"
        remedy = "Record fewer steps, after a warm-up (schedule(warmup=1)); sums of device time are too small."
        sink.issue("warning", file, problem, remedy, lost=lost)


def _overlapping(work: pl.DataFrame) -> int:
    """Pieces of work that start before the previous one on their stream has ended."""
    earlier = (pl.col("start_ns") + pl.col("duration_ns")).cum_max().shift(1).over("device", "stream")
    known = pl.col("stream").is_not_null()
    return int(work.select(((pl.col("start_ns") < earlier) & known).sum()).item() or 0)


def _count_launches(segment: Segment, work: pl.DataFrame | None, counts: DeviceCounts) -> None:
    """Count the launches of a segment, and those without device work."""
    calls = segment.whole("runtime", ["name", "correlation", "slice"])
    is_launch = (calls["slice"] >= segment.first_slice) & Distinct(calls["name"]).matching(LAUNCH)
    made = calls["correlation"].filter(is_launch).drop_nulls().unique()
    counts.launches += len(made)
    counts.without_work += len(made) if work is None else first_match(made, work["correlation"]).null_count()
