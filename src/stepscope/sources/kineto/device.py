"""Device work: launches joined to it, damage in it told, and rows of `kernels`."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.communication import IS_COMMUNICATION
from stepscope.sources.kineto.host import HostTree
from stepscope.sources.kineto.spool import Spool
from stepscope.sources.kineto.steps import Steps
from stepscope.tables import KERNELS

# copies and fills are not among them: those of no bytes have no device event
_LAUNCH = r"^(cuda|cu|hip|hipExt|hipModule|hipExtModule)Launch(Cooperative)?Kernel"
_LOST_SHARE = 0.01


def device_work(spool: Spool, tree: HostTree, steps: Steps, sink: Sink, file: Path) -> pl.DataFrame | None:
    """All device work in start order, with launch, step and kind; None if the recording has none."""
    work = spool.whole("device")
    if work is None or not work.height:
        return None
    work = _without_damage(work, spool, sink, file)
    launches = _launches(spool, tree)
    work = work.with_columns(
        correlation=pl.when(pl.col("correlation") > 0).then("correlation"),
        kind=_kind(),
    ).join(launches, on="correlation", how="left")
    if launches.height:
        work = work.with_columns(step=steps.of(work["launch_start_ns"]))
    else:
        work = work.with_columns(step=steps.of(work["start_ns"]))
    work = work.sort("start_ns", maintain_order=True).with_columns(kernel=pl.int_range(pl.len(), dtype=pl.Int64))
    work = work.with_columns(external_id=_operator_ids(work, spool, tree))
    _tell(work, spool, sink, file)
    return work


def write_kernels(work: pl.DataFrame, sink: Sink) -> None:
    """Write the rows of `kernels`."""
    occupancy = (pl.col("occupancy_percent") / 100).clip(0, 1)
    wanted = {c.name for c in KERNELS.columns} & set(work.columns)
    sink.write(KERNELS, work.select(*sorted(wanted), occupancy_ratio=occupancy))


def _kind() -> pl.Expr:
    copies = pl.col("category").str.to_lowercase().str.contains("memcpy|memset")
    return (
        pl.when(copies)
        .then(pl.lit("memory"))
        .when(IS_COMMUNICATION)
        .then(pl.lit("communication"))
        .otherwise(pl.lit("compute"))
    )


def _launches(spool: Spool, tree: HostTree) -> pl.DataFrame:
    """For each correlation the host call that launched its work."""
    calls = spool.whole("runtime", ["start_ns", "duration_ns", "correlation"])
    if calls is None:
        schema = {"correlation": pl.Int64, "launch_start_ns": pl.Int64}
        return pl.DataFrame(schema={**schema, "launch_end_ns": pl.Int64, "launch_slice": pl.Int64})
    first = tree.offsets["runtime"]
    return (
        calls.select(
            "correlation",
            launch_start_ns="start_ns",
            launch_end_ns=pl.col("start_ns") + pl.col("duration_ns"),
            launch_slice=pl.int_range(first, first + calls.height, dtype=pl.Int64),
        )
        .filter(pl.col("correlation") > 0)
        .unique("correlation", keep="first", maintain_order=True)
    )


def _operator_ids(work: pl.DataFrame, spool: Spool, tree: HostTree) -> pl.Series:
    """The id of the launching operator, for each piece of work.

    Some versions (2022 to 2023) put the correlation there instead; then the operator is looked up around the
    launch.
    """
    stated = work["external_id"]
    known = stated.drop_nulls()
    if not len(known) or not (work["external_id"] == work["correlation"]).drop_nulls().all():
        return stated
    ids = [
        frame["external_id"]
        for name in ("operator", "call")
        for frame in spool.frames(name, ["start_ns", "external_id"])
    ]
    if not ids or not tree.rows:
        return stated
    operators = pl.int_range(0, tree.offsets["annotation"], dtype=pl.Int64, eager=True)
    rows = tree.climb(work["launch_slice"], operators)
    return pl.concat(ids).gather(rows).alias("external_id")


def _without_damage(work: pl.DataFrame, spool: Spool, sink: Sink, file: Path) -> pl.DataFrame:
    """Leave out device work whose times cannot be true."""
    starts, ends = _host_span(spool)
    if starts is None or ends is None or ends <= starts:
        return work
    timed = work.filter(pl.col("start_ns") > spool.base_ns)
    earliest, latest = timed.select(pl.min("start_ns"), last=pl.max("start_ns")).row(0)
    first, last = min(starts, earliest or starts), max(ends, latest or ends)
    unset = (pl.col("start_ns") == spool.base_ns) & pl.lit(starts > spool.base_ns + 3600 * 10**9)
    too_long = pl.col("duration_ns") > last - first
    for problem, test in (
        ("have no start time", unset),
        ("last longer than the whole recording", too_long & ~unset),
    ):
        count = int(work.select(test.sum()).item())
        if count:
            sink.issue(
                "warning",
                file,
                f"{count} device events {problem}; they are left out",
                "Update the profiler or the driver; device times of this recording may be damaged.",
                lost=count,
            )
    return work.filter(~unset & ~too_long)


def _host_span(spool: Spool) -> tuple[int | None, int | None]:
    spans = [
        frame.select(first=pl.col("start_ns").min(), last=(pl.col("start_ns") + pl.col("duration_ns")).max())
        for name in ("operator", "call", "annotation", "python", "runtime", "other")
        for frame in spool.frames(name, ["start_ns", "duration_ns"])
    ]
    if not spans:
        return None, None
    return pl.concat(spans).select(pl.min("first"), pl.max("last")).row(0)


def _tell(work: pl.DataFrame, spool: Spool, sink: Sink, file: Path) -> None:
    """Issues for what looks incomplete or doubtful."""
    empty = int((work["duration_ns"] == 0).sum())
    if empty:
        sink.issue(
            "note",
            file,
            f"{empty} device events have a duration of 0",
            "They were shorter than the clock's tick, or the profiler lost their end.",
        )
    overlapping = _overlapping(work)
    if overlapping:
        sink.issue(
            "note",
            file,
            f"{overlapping} device events overlap the one before on their stream",
            "Busy times are computed as unions, so this does not count twice; single durations may be too long.",
        )
    lost, launches = _without_work(work, spool)
    if lost > 10 and lost > _LOST_SHARE * launches:
        sink.issue(
            "warning",
            file,
            f"{lost} of {launches} launches have no device event: device work is missing in this recording",
            "Record fewer steps, after a warm-up (schedule(warmup=1)); sums of device time are too small.",
            lost=lost,
        )


def _overlapping(work: pl.DataFrame) -> int:
    """Pieces of work that start before the previous one on their stream has ended."""
    earlier = (pl.col("start_ns") + pl.col("duration_ns")).cum_max().shift(1).over("device", "stream")
    known = pl.col("stream").is_not_null()
    return int(work.select(((pl.col("start_ns") < earlier) & known).sum()).item() or 0)


def _without_work(work: pl.DataFrame, spool: Spool) -> tuple[int, int]:
    """Launches without device work, and all launches."""
    frames = [
        frame.filter(pl.col("name").str.contains(_LAUNCH)).select("correlation")
        for frame in spool.frames("runtime", ["start_ns", "name", "correlation"])
    ]
    if not frames:
        return 0, 0
    launches = pl.concat(frames).drop_nulls().unique()
    return launches.join(work.select("correlation"), on="correlation", how="anti").height, launches.height
