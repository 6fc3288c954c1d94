"""How the clock of an exported raw profile relates to that of MindSpore's own files beside it, and the graphs of steps.

MindSpore's step trace counts ticks of the device; the raw profile, and what MindSpore notes on the host, has times of
the epoch. Both have the same iterations, whose ends therefore tell one clock from the other. Only the raw profile says
which graph (`Model ID`) an iteration is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.raw_steps import read_raw_steps, read_step_events
from stepscope.sources.classic.step_trace import StepTrace, peek_steps
from stepscope.sources.sinks import SilentSink

_AGREES_NS = 2_000
"""Times of the epoch in us were rounded to quarters of one."""
_MOST = 0.9


@dataclass(frozen=True)
class RawClock:
    """The clock of a raw profile.

    Args:
        shift_ns: What is added to its times, for those of MindSpore's step trace.
        first_ns: Start of its first iteration, by its own clock.
        last_ns: End of its last one.
        graphs: `start_ns` (of a step in MindSpore's step trace), and its `graph`.
    """

    shift_ns: int
    first_ns: int
    last_ns: int
    graphs: pl.DataFrame

    def shift_of(self, times: pl.Series) -> int:
        """What is added to times that are of the raw profile's clock, if most lie where it recorded; 0 for others.

        Times of the epoch do not lie there by chance.
        """
        room = self.last_ns - self.first_ns
        near = times.is_between(self.first_ns - room, self.last_ns + room).sum()
        return self.shift_ns if len(times) and 2 * near >= len(times) else 0


def raw_trace(files: RankFiles, sink: Sink) -> StepTrace | None:
    """The steps and calls that the raw profile of a rank states; None if it states none."""
    stated, marks = files.all("device_steps"), files.all("device_step_events")
    if not files.all("iterations"):
        stated, marks = newest(stated), newest(marks)
    return read_raw_steps(stated, sink) or read_step_events(marks, sink)


def newest(paths: Sequence[Path]) -> list[Path]:
    """The parts of the export that has the latest time in its name."""
    times = {path: path.stem.rsplit("_", 1)[-1] for path in paths}
    return [path for path in paths if times[path] == max(times.values())]


def raw_clock(files: RankFiles) -> RawClock | None:
    """The clock of a rank's raw profile; None if it has none, or none is known to belong to its step trace."""
    if not files.all("device_steps") and not files.all("device_step_events"):
        return None
    own = peek_steps(files)
    return None if own.is_empty() else related(own, raw_trace(files, SilentSink()))


def related(own: pl.DataFrame, raw: StepTrace | None) -> RawClock | None:
    """How two step traces relate, if they are of the same iterations.

    Args:
        own: The steps of MindSpore's step trace.
        raw: Those of the raw profile.

    Returns:
        None unless nine of ten steps have the same distance and, if they have phases, the same ones.
    """
    if raw is None or own.is_empty():
        return None
    pairs = _paired(own, raw.steps)
    apart = pl.col("end_ns") - pl.col("end_ns_raw")
    agrees = (apart - apart.median()).abs() <= _AGREES_NS
    known = 0
    for point in ("forward_start_ns", "backward_end_ns"):
        within = pl.col("end_ns") - pl.col(point), pl.col("end_ns_raw") - pl.col(f"{point}_raw")
        known += pairs.select((within[0] - within[1]).count()).item()
        agrees &= ((within[0] - within[1]).abs() <= 2 * _AGREES_NS).fill_null(value=True)
    if pairs.height < 2 and not known:  # nothing shows that one step is the other
        return None
    same = pairs.filter(agrees)
    if same.height < _MOST * max(pairs.height, 1) or same.is_empty():
        return None
    shift = int(same.select(apart.median()).item())
    first, last = raw.steps.select(pl.min("start_ns"), pl.max("end_ns")).row(0)
    return RawClock(shift, first, last, same.select("start_ns", graph="graph_raw").drop_nulls())


def _paired(own: pl.DataFrame, raw: pl.DataFrame) -> pl.DataFrame:
    """Steps of both: by their order if they are as many, else by their numbers, if these do not come again."""
    points = ("end_ns", "forward_start_ns", "backward_end_ns")
    ours = own.sort("end_ns").select("start_ns", *points, "step", place=pl.int_range(pl.len()))
    theirs = raw.sort("end_ns").select(*points, "graph", "step", place=pl.int_range(pl.len()))
    key = "place" if own.height == raw.height else "step"
    return ours.unique(key, keep="none").join(
        theirs.unique(key, keep="none").rename({name: f"{name}_raw" for name in (*points, "graph")}), on=key
    )
