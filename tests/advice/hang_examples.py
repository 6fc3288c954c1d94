"""Answers about hangs, to give to the rule `hang`."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.hangs.hangs import COLUMNS as HANGS
from stepscope.analysis.hangs.hangs import KINDS, NO_DUMP, UNFINISHED
from stepscope.analysis.hangs.unfinished_calls import COLUMNS as UNFINISHED_CALLS
from stepscope.tables.base import schema_of


def hangs() -> pl.DataFrame:
    """A call that hangs of each kind, and one that hangs because of the first."""
    row: dict[str, Any] = dict.fromkeys(schema_of(HANGS))
    row |= {"group": "0 _g", "group_name": "_g", "operation": "_o", "sequence": 3, "is_point_to_point": False}
    row |= {"members_known": False, "since_ns": 10**18, "waited_ns": 10**9, "waiting_ranks": "0", "unknown_ranks": "1"}
    row |= {"missing_ranks": "2"}
    known = [kind for kind in KINDS if kind not in (NO_DUMP, UNFINISHED)]
    rows = [{**row, "call": at, "kind": kind} for at, kind in enumerate(KINDS)]
    rows = [{**one, "ranks": "1" if one["kind"] in known else None} for one in rows]
    sent = {**rows[0], "call": len(rows) + 1, "sender": 0, "receiver": 1, "ranks": "2"}
    return pl.DataFrame([*rows, {**rows[0], "call": len(rows), "cause_call": 0}, sent], schema=schema_of(HANGS))


def unfinished_calls() -> pl.DataFrame:
    row: dict[str, Any] = dict.fromkeys(schema_of(UNFINISHED_CALLS))
    row |= {"group": "0 _g", "group_name": "_g", "operation": "_o", "sequence": 3, "is_point_to_point": False}
    row |= {"members_known": False, "own_group_name": "_g", "own_sequence": 2, "own_is_done": True}
    culprit = {**row, "rank": 1, "role": "missing", "own_operation": "_p", "place": "_f (x.py:3)"}
    waiting = {**row, "rank": 0, "role": "waits", "own_operation": "_o", "place": "_g (x.py:9)", "next_operation": "_p"}
    sides = [{**culprit, "size_bytes": 5, "element_type": "_h"}, {**waiting, "size_bytes": 9, "element_type": "_t"}]
    calls = range(len(KINDS) + 2)
    return pl.DataFrame([{**one, "call": at} for at in calls for one in sides], schema=schema_of(UNFINISHED_CALLS))
