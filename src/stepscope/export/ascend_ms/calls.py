"""Communication calls under the names of the format, on which all its files agree."""

from __future__ import annotations

import re

import polars as pl

from stepscope.export.communication_calls import transport
from stepscope.export.rank_export import RankExport
from stepscope.sources.ascend.groups import group_key

WORDS = {
    "all_reduce": "allReduce",
    "all_gather": "allGather",
    "reduce_scatter": "reduceScatter",
    "broadcast": "broadcast",
    "all_to_all": "alltoall",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
    "send": "send",
    "recv": "receive",
    "send_recv": "batchSendRecv",
}
"""Our word for an operation to the format's; other words stay as recorded."""


def named_calls(export: RankExport) -> pl.DataFrame:
    """The calls of this rank in order of start.

    Returns:
        Columns of `collectives`, and `call` (`hcom_allReduce__690_12_1`: operation, last digits of the group's key,
        position in the group), `word` (`allReduce`), `key` (behind the `@` of a call's name; null if the group is
        unknown) and `transport`.
    """
    rows = export.rows("collectives").sort("start_ns")
    words = {operation: _word(operation) for operation in rows["operation"].unique()}
    groups = {group: group_key(group) for group in rows["group"].drop_nulls().unique()}
    key = pl.col("group").replace_strict(groups, default=None, return_dtype=pl.String)
    tag = key.str.tail(3).cast(pl.Int64).cast(pl.String).fill_null("0")
    word = pl.col("operation").replace_strict(words, default=None, return_dtype=pl.String)
    return rows.with_columns(
        call=pl.format("hcom_{}__{}_{}_1", word, tag, pl.col("sequence")),
        word=word,
        key=key,
        transport=transport(export),
    )


def _word(operation: str) -> str:
    """An operation without what would make its name be taken apart wrongly."""
    return WORDS.get(operation) or re.sub(r"[^A-Za-z0-9]+", "", operation) or "call"
