"""`minddata_aicpu_N.txt`, `minddata_getnext_profiling_N.txt`: what getting each batch cost the device.

Lines `node_name start_time end_time queue_size`, up to 1.x without a header that says so; those whose name begins with
`GetNext` count.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.minddata.batches import usual_pace
from stepscope.sources.minddata.files import Clock
from stepscope.sources.minddata.lines import numbers_of, report_damaged
from stepscope.sources.side_files import report_unreadable
from stepscope.tables import INPUT_PIPELINE

OPERATOR = "get_next"
_DOUBTFUL = 30
"""The device takes batches as often as the host gives them: a pace that differs by more than the square root of a
thousand is closer to the next unit."""


def write_get_next(file: Path, unit_ns: int, pace_ns: int | None, clock: Clock, sink: Sink) -> None:
    """Write the batches of one file, numbered as they come.

    Args:
        file: The file.
        unit_ns: What its times usually are in, in ns.
        pace_ns: The usual time from batch to batch on the host, which settles the unit; None if unknown.
        clock: Converts its times to those of the table.
        sink: Takes the rows and issues.
    """
    try:
        lines = numbers_of(file, 3, word=True)
    except OSError as error:
        report_unreadable(error, file, sink)
        return
    report_damaged(file, lines, sink)
    named = lines.values.rename(dict(zip(lines.values.columns, ("start", "end", "size"), strict=True)))
    rows = named.filter(lines.words.str.starts_with("GetNext"))
    if not rows.height:
        return
    unit_ns = _settled(file, unit_ns, usual_pace(rows["start"]), pace_ns, sink)
    time_ns = (rows["end"] * unit_ns + clock.shift_ns).alias("time_ns")
    batch = pl.int_range(1, rows.height + 1, eager=True)
    sink.write(
        INPUT_PIPELINE,
        pl.DataFrame(
            [
                time_ns,
                ((rows["end"] - rows["start"]) * unit_ns).alias("duration_ns"),
                rows["size"].alias("queue_size"),
                batch.alias("batch"),
                clock.steps(time_ns, batch),
            ]
        ).with_columns(operator=pl.lit(OPERATOR)),
    )


def _settled(file: Path, unit_ns: int, pace: int | None, pace_ns: int | None, sink: Sink) -> int:
    """The unit: the usual one unless the pace of the host only fits the other."""
    other = {1000: 1, 1: 1000}[unit_ns]
    if pace is None or pace_ns is None:
        return unit_ns
    off = max(pace * unit_ns / pace_ns, pace_ns / (pace * unit_ns))
    off_other = max(pace * other / pace_ns, pace_ns / (pace * other))
    if off < _DOUBTFUL or off <= off_other:
        return unit_ns
    names = {1: "ns", 1000: "us"}
    problem = f"its times are read as {names[other]}, not {names[unit_ns]}: only this matches the pace of the host"
    sink.issue("note", file, problem, "Nothing to do; compare with the length of a step if in doubt.")
    return other
