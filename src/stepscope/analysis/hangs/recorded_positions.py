"""How far each rank has come in each process group."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import RECORDED_CALLS
from stepscope.tables.base import Column

NO_DUMP = (
    "there is no dump of PyTorch's flight recorder here, or it lists no call; PyTorch writes them where "
    "TORCH_FR_BUFFER_SIZE is set"
)

COLUMNS = columns(
    "rank",
    Column("group", "string", "Process group: name and members."),
    Column("group_name", "string", "Description of the group, else its number."),
    Column(
        "is_point_to_point", "bool", "True for `send`, `recv` and their batches; false for collectives.", title="p2p"
    ),
    Column("calls", "int64", "Calls that the dump still has."),
    Column("first_sequence", "int64", "Lowest sequence number among them.", title="first"),
    Column("last_sequence", "int64", "Highest sequence number among them.", title="last"),
    Column("open_calls", "int64", "Calls that the rank has not left.", title="open"),
    Column("open_sequence", "int64", "Lowest sequence number of those; null if there is none.", title="first open"),
    Column("first_created_ns", "int64", "When it made the first of these calls.", moment=True, importance=5),
    Column("last_record", "int64", "Number of the last of these calls among all calls of the rank."),
    Column("last_operation", "string", "Operation of the last of these calls."),
    Column("last_is_done", "bool", "Whether the rank has left that call."),
    Column("last_created_ns", "int64", "When it made that call.", moment=True),
    Column("last_stack", "int64", "Row of `stacks` of that call."),
    Column("is_overwritten", "bool", "Whether earlier calls of the rank are missing from its dump."),
    keep="group_name last_sequence open_sequence last_operation calls open_calls",
)


@analysis("rank", COLUMNS, together=True, as_recorded=True, nothing=NO_DUMP)
def recorded_positions(recorded_calls: pl.LazyFrame | None) -> pl.DataFrame:
    """Find the first, last and first unfinished call of each rank in each process group: one row per rank and group,
    collectives and point-to-point calls apart.

    Raises:
        Unavailable: If there is no dump with calls.
    """
    calls = RECORDED_CALLS.or_empty(recorded_calls)
    is_open = ~pl.col("is_done")
    last = pl.col("record") == pl.col("record").max()
    found = (
        calls.group_by("rank", "group", "group_name", "is_point_to_point")
        .agg(
            calls=pl.len().cast(pl.Int64),
            first_sequence=pl.col("sequence").min(),
            last_sequence=pl.col("sequence").max(),
            open_calls=is_open.sum().cast(pl.Int64),
            open_sequence=pl.col("sequence").filter(is_open).min(),
            first_created_ns=pl.col("created_ns").min(),
            last_record=pl.col("record").max(),
            **{
                f"last_{name}": pl.col(name).filter(last).first()
                for name in ("operation", "is_done", "created_ns", "stack")
            },
            first=pl.col("record").min(),
        )
        .collect()
    )
    if found.is_empty():
        raise Unavailable(NO_DUMP)
    counted = found.group_by("rank").agg(
        kept=pl.col("calls").sum(), begins=pl.col("first").min(), ends=pl.col("last_record").max()
    )
    is_whole = (pl.col("begins") == 0) & (pl.col("kept") == pl.col("ends") + 1)
    return (
        found.join(counted, on="rank")
        .with_columns(is_overwritten=~is_whole)
        .select(column.name for column in COLUMNS)
        .sort("rank", "group", "is_point_to_point")
    )
