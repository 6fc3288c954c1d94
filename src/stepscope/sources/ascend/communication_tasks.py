"""`communication_tasks`: the parts of communication calls on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from stepscope.sources.ascend.collective_tables import NO_TYPE
from stepscope.sources.ascend.exported_rank import Schema, nothing, shaped
from stepscope.sources.ascend.groups import Groups, read_call_name
from stepscope.sources.spool import Spool
from stepscope.tables import COMMUNICATION_TASKS

_TASK: Schema = {
    **{name: dtype for name, dtype in COMMUNICATION_TASKS.stored_schema.items() if name != "call"},
    "track": pl.String,
    "calls": pl.String,
}
_CALL = {"track": pl.String, "calls": pl.String, "start_ns": pl.Int64, "call": pl.String, "until": pl.Int64}
_NO_CALLS = nothing(_CALL)
_KNOWN = (
    *(
        pl.col("members").list.get(pl.when(pl.col(end) >= 0).then(end), null_on_oob=True).alias(end)
        for end in ("source", "destination")
    ),
    *(pl.when(~pl.col(kind).is_in(NO_TYPE)).then(kind).alias(kind) for kind in ("transport", "element_type")),
    pl.when(~pl.col("link").is_in(NO_TYPE)).then(pl.col("link").str.to_uppercase()).alias("link"),
)
"""Ranks, and words that mean something, of tasks with the `members` of their group."""


def communication_tasks(parts: pl.DataFrame, groups: Groups) -> pl.DataFrame:
    """Rows of `communication_tasks`.

    Args:
        parts: Columns of the table as recorded, where ranks are positions in the group of the call, and `group`, the
            key of that group, if it is recorded.
        groups: Members by key. Ranks in groups of unknown members are unknown.
    """
    calls = {name: read_call_name(name).tag for name in parts["call"].unique().to_list() if name is not None}
    tagged = {name: group for name, tag in calls.items() if tag and (group := groups.of_tag(tag))}
    by_name = pl.col("call").replace_strict(tagged, default=None, return_dtype=pl.String)
    key = pl.coalesce("group", by_name) if "group" in parts.columns else by_name
    known = {name: members for name, members in groups.members.items() if members}
    members = pl.DataFrame(
        {"group": list(known), "members": list(known.values())}, {"group": pl.String, "members": pl.List(pl.Int32)}
    )
    rows = parts.with_columns(key.alias("group")).join(members, on="group", how="left", maintain_order="left")
    return shaped(rows.with_columns(*_KNOWN), COMMUNICATION_TASKS.stored_schema)


class CallParts:
    """The tasks of calls in a trace, which are on tracks of their own, while the calls are not all known.

    Args:
        scratch: Gives the directory for what does not fit memory.
    """

    def __init__(self, scratch: Callable[[], Path]) -> None:
        self._tasks: Spool[str] = Spool(scratch)
        self._calls = [_NO_CALLS()]

    def add_calls(self, calls: pl.DataFrame) -> None:
        """Take calls: their process is `track`."""
        until = pl.col("start_ns") + pl.col("duration_ns")
        self._calls.append(calls.select("track", calls="thread", start_ns="start_ns", call="name", until=until))

    def add_tasks(self, tasks: pl.DataFrame) -> None:
        """Take tasks: their process is `track`, `calls` the thread of the calls of their group."""
        if tasks.height:
            recorded = {"size_bytes": "moved_bytes", "element_type": "moved_type", "plane": "number"}
            named = {name: given for name, given in recorded.items() if given in tasks.columns}
            others = [name for name in tasks.columns if name in _TASK and name not in recorded]
            self._tasks.add("tasks", shaped(tasks.select(*others, **named), _TASK))

    def rows(self, groups: Groups) -> Iterator[pl.DataFrame]:
        """Rows of `communication_tasks`: a task is part of the call of its group that goes on when it starts."""
        calls = pl.concat(self._calls).sort("start_ns", maintain_order=True)
        for tasks in self._tasks.batches("tasks"):
            placed = tasks.sort("start_ns", maintain_order=True)
            placed = placed.join_asof(calls, on="start_ns", by=["track", "calls"], check_sortedness=False)
            within = pl.col("start_ns") < pl.col("until")
            yield communication_tasks(placed.with_columns(pl.when(within).then("call")), groups)
