"""When each operator ran, and on what shapes."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.side_files import AGAIN, report_unreadable
from stepscope.tables.base import with_schema
from stepscope.text_columns import filled_in

EXECUTIONS = {
    "name": pl.String,
    "short": pl.String,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "thread": pl.String,
    "type": pl.String,
    "input_shapes": pl.String,
}
"""`name` is the operator's place in the model, `short` its last part; `input_shapes` JSON."""

_LAUNCH = r"^[^;]*;[^;]*;\d+;(?:.*;)?$"
"""Type and name, which may be empty, process and inputs."""
_LARGEST_NS = 9 * 10**18


def read_executions(times: Path, launches: Path | None, sink: Sink) -> pl.DataFrame:
    """Each time an operator ran, in order of start, by the clock of the file.

    Args:
        times: `cpu_op_execute_timestamp`.
        launches: `cpu_framework`; needed for shapes.

    Returns:
        A frame with the columns of `EXECUTIONS`.
    """
    lines = _lines(times, sink)
    calls = _calls(lines)
    if lines.is_empty():
        sink.issue("note", times, "lists no operator executions", "Nothing to do if none ran on the CPU")
    readable = pl.col("start_ns").is_between(0, _LARGEST_NS) & (pl.col("duration_ns") >= 0)
    rows = calls.drop_nulls(["thread", "name"]).filter(readable)
    if lost := calls.height - rows.height:
        problem = f"{lost} operator executions have no readable time and are left out"
        sink.issue("warning", times, problem, "The rest is complete", lost=lost)
    typed = rows.with_columns(type=pl.col("name").str.extract(r"([^/]+?)(?:-op\d+)?$", 1))
    ordered = typed.sort("start_ns", maintain_order=True)
    return with_schema(ordered if launches is None else _with_shapes(ordered, launches, sink), EXECUTIONS)


def _with_shapes(rows: pl.DataFrame, launches: Path, sink: Sink) -> pl.DataFrame:
    """Executions, in order of start, with `input_shapes`.

    `cpu_framework` has a line a launch, in launch order, with the last part of the name: the k-th launch of a name is
    the k-th of its executions. If a window's edge cut the one or the other off, shapes are given only if all agree.
    """
    lines = _lines(launches, sink)
    is_launch = lines.str.contains(_LAUNCH)
    if lost := int((~is_launch).sum()):
        problem = f"{lost} of {len(lines)} lines are not operator launches; shapes are incomplete"
        sink.issue("warning", launches, problem, AGAIN, lost=lost)
    parts = pl.col("line").str.split(";")
    inputs = pl.col("line").str.extract_all(r":(\[[^\]]*\]|NoShape);").list.join("")
    shapes = inputs.str.replace_all("NoShape", "null").str.strip_chars(":;").str.replace_all(";:", ", ", literal=True)
    counted = {"order": pl.int_range(pl.len()).over("short"), "runs": pl.len().over("short")}
    launched = (
        lines.filter(is_launch)
        .to_frame()
        .select(short=parts.list.get(1, null_on_oob=True), input_shapes=filled_in("[{}]", shapes))
        .filter(pl.col("short") != "")
        .with_columns(**counted)
    )
    shape = pl.col("input_shapes")
    common = launched.group_by("short").agg(common=pl.when(shape.n_unique() == 1).then(shape.first()))
    ordered = rows.with_columns(**counted)
    exact = ordered.join(launched, on=["short", "order", "runs"], how="left", maintain_order="left")
    joined = exact.join(common, on="short", how="left", maintain_order="left")
    return joined.with_columns(input_shapes=pl.coalesce("input_shapes", "common"))


def _calls(lines: pl.Series) -> pl.DataFrame:
    """A row each time an operator ran; unreadable values are null.

    A line is `name;HostCpuOps;<start ns>,<duration ms>,<thread> <start>,...`.
    """
    parts = pl.col("line").str.splitn(";", 3).struct
    one = pl.col("call").str.split_exact(",", 2).struct
    return (
        lines.to_frame()
        .select(name=parts.field("field_0"), call=parts.field("field_2").str.strip_chars().str.split(" "))
        .explode("call")
        .filter(pl.col("call").fill_null("x") != "")
        .select(
            "name",
            short=pl.col("name").str.extract(r"([^/]+)$", 1),
            start_ns=one.field("field_0").cast(pl.Int64, strict=False),
            duration_ns=(one.field("field_1").cast(pl.Float64, strict=False) * 1e6)
            .round()
            .cast(pl.Int64, strict=False),
            thread=one.field("field_2"),
        )
    )


def _lines(file: Path, sink: Sink) -> pl.Series:
    """The lines of a file that hold anything, the last one also without an end."""
    try:
        text = file.read_bytes().decode("utf-8-sig", "replace")
    except OSError as error:
        report_unreadable(error, file, sink)
        return pl.Series("line", [], dtype=pl.String)
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    if text and not text.endswith("\n"):
        sink.issue("warning", file, "its last line has no line end and may be truncated", AGAIN)
    return pl.Series("line", lines, dtype=pl.String)
