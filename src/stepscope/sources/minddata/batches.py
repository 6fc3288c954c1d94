"""What each batch cost, of text files of whole numbers, one line a record, without quotes or commas.

`device_queue_profiling_N.txt` and `dataset_iterator_profiling_N.txt` are about the host. Four lines a batch, five
numbers each, without a header: `type extra batch value time`. Type 0 is a cost in ms, of getting the batch from the
pipeline (extra 0), of pushing it (1) and of all of it (2); type 1 is the queue before the device, its capacity (extra)
and its fill (value). The time is that of the host's monotonic clock in ms.

`minddata_aicpu_N.txt` and `minddata_getnext_profiling_N.txt` have what getting a batch cost the device: lines
`node_name start_time end_time queue_size`, up to 1.x without a header that says so; those whose name begins with
`GetNext` count.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.minddata.files import Clock
from stepscope.sources.side_files import AGAIN, report_unreadable
from stepscope.tables import INPUT_PIPELINE

_MS = 1_000_000
_FIELDS = ("type", "extra", "batch", "value", "time")
_COSTS = {0: "get_ns", 1: "push_ns", 2: "duration_ns"}
_LARGEST = 9_000_000_000_000
"""No count, no ms and no us since a machine's start is larger; times 1e6 it still fits an int64."""
_CUT = "cut"
"""Marks a line that is not a record."""
_DOUBTFUL = 30
"""The device takes batches as often as the host gives them: a pace that differs by more than the square root of a
thousand is closer to the next unit."""


def write_batches(operator: str, file: Path, clock: Clock, sink: Sink) -> int | None:
    """Write the batches of the host in one file, as rows of `operator` (`device_queue` or `dataset_iterator`).

    Returns:
        The usual time from one batch to the next in ns; None if unknown.
    """
    batches = _batches(_read_lines(file, _FIELDS, sink))
    if not batches.height:
        return None
    # several windows of one profile go on counting, and a device's queue may begin with any number
    number = batches["batch"] - batches["batch"].min() + 1
    time_ns = batches["time_ns"] + clock.shift_ns
    # Times are cut off to whole ms, and a batch is taken where a step begins: the latest moment that it may be counts.
    steps = clock.steps(time_ns + _MS - 1, number)
    sink.write(INPUT_PIPELINE, batches.with_columns(time_ns, steps, operator=pl.lit(operator)))
    return _usual_pace(batches["time_ns"])


def write_get_next(file: Path, unit_ns: int, pace_ns: int | None, clock: Clock, sink: Sink) -> None:
    """Write the batches of the device in one file, numbered as they come.

    Its times are usually in units of `unit_ns`; the usual time from batch to batch on the host settles it, if known.
    """
    lines = _read_lines(file, ("start", "end", "queue_size"), sink, has_word=True)
    rows = lines.filter(pl.col("word").str.starts_with("GetNext"))
    if not rows.height:
        return
    unit_ns = _settled(file, unit_ns, _usual_pace(rows["start"]), pace_ns, sink)
    time_ns = (rows["end"] * unit_ns + clock.shift_ns).alias("time_ns")
    batch = pl.Series("batch", range(1, rows.height + 1))
    batches = rows.select(
        "queue_size",
        time_ns,
        batch,
        clock.steps(time_ns, batch),
        duration_ns=(pl.col("end") - pl.col("start")) * unit_ns,
        operator=pl.lit("get_next"),
    )
    sink.write(INPUT_PIPELINE, batches)


def _read_lines(file: Path, fields: Sequence[str], sink: Sink, *, has_word: bool = False) -> pl.DataFrame:
    """The lines of whole numbers, a column a field, and of the `word` before them if there is one; reports damage.

    The first line is a header if it has no number of its own: some files of a kind have one, and others do not. None
    is negative. A last line without an end was cut, so its last number may be another one.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig", "replace")
    except OSError as error:
        report_unreadable(error, file, sink)
        return pl.DataFrame(schema={"word": pl.String, **dict.fromkeys(fields, pl.Int64)})
    whole, _, cut = text.rpartition("\n")
    listed = [*whole.splitlines(), _CUT] if cut.strip() else whole.splitlines()
    lines = pl.Series("line", listed, dtype=pl.String).str.strip_chars().to_frame()
    lines = lines.with_row_index("number", 1).filter(pl.col("line") != "")
    if lines.height and _is_header(lines["line"][0]):
        lines = lines.slice(1)
    word = r"(?P<word>\S+)\s+" if has_word else "(?P<word>)"
    pattern = "^" + word + r"\s+".join(rf"(?P<{name}>\d{{1,18}})" for name in fields) + "$"
    read = lines.select("number", pl.col("line").str.extract_groups(pattern)).unnest("line")
    read = read.with_columns(pl.col(fields).cast(pl.Int64, strict=False))
    is_sound = pl.all_horizontal(pl.col(fields).is_between(0, _LARGEST)).fill_null(False)
    damaged = read.filter(~is_sound)["number"]
    sound = read.filter(is_sound).drop("number")
    again = "Profile for longer, or copy the file again; everything else is read."
    if not text.strip():
        sink.issue("warning", file, "is empty", again)
    elif sound.is_empty() and damaged.is_empty():
        sink.issue("warning", file, "has a header but no rows", again)
    if lost := len(damaged):
        problem = f"{lost} lines are damaged and left out"
        sink.issue("warning", file, problem, AGAIN, place=f"first: line {damaged[0]}", lost=lost)
    return sound


def _is_header(line: str) -> bool:
    """Whether a first line names columns: it has several words, and no digit."""
    return len(line.split()) > 1 and not any(letter.isdigit() for letter in line)


def _usual_pace(times: pl.Series) -> int | None:
    """The median difference of times in ns; None for fewer than three, or if they do not go on."""
    median = times.sort().diff().drop_nulls().median() if len(times) > 2 else None
    return int(median) if isinstance(median, (int, float)) and median > 0 else None


def _batches(lines: pl.DataFrame) -> pl.DataFrame:
    """A row a batch; the second time that a batch has the same line, it is another one of that number."""
    is_queue = pl.col("type") == 1
    lines = lines.filter(is_queue | ((pl.col("type") == 0) & pl.col("extra").is_in(list(_COSTS))))
    part = pl.when(is_queue).then(-1).otherwise("extra")
    costs = {name: (pl.col("value") * _MS).filter(pl.col("part") == extra).first() for extra, name in _COSTS.items()}
    queue = pl.col("part") == -1
    return (
        lines.with_columns(part=part)
        .with_columns(again=pl.int_range(pl.len()).over("batch", "part"))
        .group_by("batch", "again", maintain_order=True)
        .agg(
            (pl.col("time").max() * _MS).alias("time_ns"),
            pl.col("value").filter(queue).first().alias("queue_size"),
            pl.col("extra").filter(queue).first().alias("queue_capacity"),
            **costs,
        )
        .drop("again")
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
