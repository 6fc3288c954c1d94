"""Communication calls that the framework marked, for databases in which the device's own calls were not recorded.

At the level of profiling that records marks alone, each call is a range of the domain `communication`. Its message is
a JSON object of texts: `opName`, `groupName`, `count`, `dataType` and others; case and spelling vary by framework.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.json_files import value_in
from stepscope.json_values import as_text, object_of, whole_number
from stepscope.sources.ascend.collective_tables import with_payload
from stepscope.sources.ascend.database import CONNECTION, TEXT_ID, Database
from stepscope.sources.ascend.db_device import with_group
from stepscope.sources.ascend.exported_rank import COMMUNICATION, shaped

_MARK = {"name": "message", "correlation": "connectionId", "domain": "domainId"}
_TYPES = {"float16": "FP16", "float32": "FP32", "float64": "FP64", "bfloat16": "BFP16", "bf16": "BFP16"}
"""Spellings of types by frameworks, in lower case, to the device's; others differ in case alone."""


def read_marked_calls(database: Database, tasks: pl.DataFrame) -> pl.DataFrame:
    """Marked calls as rows of `COMMUNICATION`, with the times at which the device ran their marks.

    Args:
        database: Of the rank.
        tasks: `read_tasks`; marks on the device are among them, joined by the connection id.
    """
    marks = database.ranges("MSTX_EVENTS", _MARK, {"name": TEXT_ID, "domain": TEXT_ID})
    marks = marks.filter(pl.col("domain") == "communication").select("name", correlation=CONNECTION)
    if marks.is_empty():
        return shaped(marks.clear(), COMMUNICATION)
    messages = marks["name"].drop_nulls().unique().to_list()
    called = pl.DataFrame(
        [(message, *_call(object_of(value_in(message)))) for message in messages],
        schema={"message": pl.String, "type": pl.String, "communicator": pl.String, "element_type": pl.String}
        | {"count": pl.Int64},
        orient="row",
    ).drop_nulls("type")
    end_ns = pl.col("start_ns") + pl.col("duration_ns")
    on_device = (
        tasks.filter(pl.col("task_type").str.starts_with("MSTX"))
        .group_by("correlation", "device")
        .agg(pl.min("start_ns"), end_ns=end_ns.max())  # the beginning and the end of a range may be tasks of their own
    )
    calls = marks.join(called, left_on="name", right_on="message", how="inner", maintain_order="left")
    once = calls.drop_nulls("correlation").unique("correlation", keep="first", maintain_order=True)
    timed = once.join(on_device, on="correlation", how="inner", maintain_order="left")
    if lost := calls.height - timed.height:
        problem = f"marks {lost} communication calls that no task of the device belongs to; they are left out"
        database.note("MSTX_EVENTS", problem, "Record marks together with the device's activities.")
    if timed.height:
        problem = "gives the communication calls, by the framework's marks: the device's own calls were not recorded"
        database.note("MSTX_EVENTS", problem, "Nothing to do. A higher level of profiling records links as well.")
    rows = timed.with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"), name="type")
    return shaped(with_payload(with_group(rows)), COMMUNICATION)


def _call(message: dict[str, Any]) -> tuple[str | None, str | None, str | None, int | None]:
    """Operation, communicator, type and number of elements in a mark's message."""
    element = as_text(message.get("dataType"))
    kind = element and _TYPES.get(element.lower(), element.upper())
    return as_text(message.get("opName")), as_text(message.get("groupName")), kind, whole_number(message.get("count"))
