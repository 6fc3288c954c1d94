"""COMMUNICATION_OP: communication calls, of the device and of the host, under the names that the format gives them."""

from __future__ import annotations

import polars as pl

from stepscope.export.ascend_db.rank import RankDatabase
from stepscope.export.ascend_db.schema import NO_TYPE, NOT_AVAILABLE, number_of
from stepscope.export.ascend_ms.communication import named_calls
from stepscope.export.communicators import communicator, key_of
from stepscope.export.rank_export import RankExport
from stepscope.sources.ascend.collective_tables import ELEMENT_BYTES
from stepscope.sources.ascend.kernel_tables import LAUNCH_LAYERS
from stepscope.sources.ascend.placeholders import MADE_UP_CONNECTION, NOT_RECORDED
from stepscope.tables.communication import POINT_TO_POINT
from stepscope.text_columns import filled_in

UNKNOWN_GROUP = "unknown group"
"""Communicator of calls whose group is not recorded."""
_CALL_NAME = r"^hcom_[A-Za-z]+__\d+_\d+_\d+$"
_BYTES = "UINT8"
"""Type of elements of calls of which only the size is known."""
_WORDS = {
    "INT8": ("signed char", "char", "int8"),
    "UINT8": ("unsigned char", "uint8", "bool", "byte"),
    "INT16": ("short", "short int", "int16"),
    "UINT16": ("uint16", "unsigned short"),
    "INT32": ("int", "int32"),
    "UINT32": ("uint32", "unsigned int"),
    "INT64": ("long", "long int", "int64", "long long"),
    "UINT64": ("uint64", "unsigned long"),
    "FP16": ("half", "float16", "c10::half"),
    "BFP16": ("bfloat16", "c10::bfloat16", "bf16"),
    "FP32": ("float", "float32"),
    "FP64": ("double", "float64"),
}
_TYPES = {
    **{element.lower(): element for element in ELEMENT_BYTES},
    **{word: element for element, words in _WORDS.items() for word in words},
}
"""Types of elements as frameworks spell them, in lower case, to those of the format."""


def calls_of(export: RankExport) -> pl.DataFrame:
    """The calls of a rank in order of start.

    Returns:
        Columns of `collectives`, and `call`, its name here; `word`, its operation; `communicator` and `key` of its
        group; `kind` (`p2p` or `collective`). `wait_ns` and `transmit_ns` are as recorded, else from when its members
        entered it, else null.
    """
    rows = named_calls(export)
    groups = [group for group in rows["group"].unique(maintain_order=True).to_list() if group is not None]
    texts = {group: communicator(group) for group in groups}
    keys = {group: key_of(group) for group in groups}
    rows = rows.with_columns(
        communicator=pl.col("group").replace_strict(texts, default=UNKNOWN_GROUP, return_dtype=pl.String),
        key=pl.col("group").replace_strict(keys, default=key_of(UNKNOWN_GROUP), return_dtype=pl.String),
        kind=pl.when(pl.col("operation").is_in(POINT_TO_POINT)).then(pl.lit("p2p")).otherwise(pl.lit("collective")),
    )
    tag = pl.col("key").str.tail(3).cast(pl.Int64).cast(pl.String)
    made = filled_in("hcom_{}__{}_{}_1", "word", tag, pl.col("sequence"))
    name = pl.when(pl.col("name").str.contains(_CALL_NAME)).then("name").otherwise(made)
    return _with_waits(export, rows.with_columns(call=name))


def _with_waits(export: RankExport, rows: pl.DataFrame) -> pl.DataFrame:
    """Fill in how long each call waited for its other members, where that is not recorded."""
    arrivals = export.arrivals() if rows.height else None
    if arrivals is not None:
        found = arrivals.select("collective", entered_wait_ns="wait_ns")
        rows = rows.join(found, on="collective", how="left", maintain_order="left")
        rows = rows.with_columns(wait_ns=pl.coalesce("wait_ns", "entered_wait_ns")).drop("entered_wait_ns")
    return rows.with_columns(transmit_ns=pl.coalesce("transmit_ns", pl.col("duration_ns") - pl.col("wait_ns")))


def write_calls(rank: RankDatabase, calls: pl.DataFrame) -> None:
    """Write COMMUNICATION_OP.

    Elements are counted by the recorded type; of calls of which only the size is known, bytes are counted. Tools find
    the step of a call by its launch on the host. Calls whose launch is not recorded, and those of the host, get a
    stand-in of no duration where they start, which our own reader leaves out; of several layers of the host that share
    the number of a call, one keeps it.
    """
    calls = _with_launches(rank, calls)
    known = {word: _TYPES[word.lower()] for word in _words(calls) if word.lower() in _TYPES}
    element = pl.col("element_type").replace_strict(known, default=None, return_dtype=pl.String)
    calls = calls.with_columns(element=element)
    each = pl.col("element").replace_strict(ELEMENT_BYTES, default=None, return_dtype=pl.Int64)
    is_whole = (pl.col("size_bytes") % each == 0).fill_null(value=False)
    size = pl.col("size_bytes")
    calls = calls.with_columns(
        element=pl.when(size.is_null() | is_whole).then("element").otherwise(pl.lit(_BYTES)),
        count=pl.when(is_whole).then(size // each).otherwise(size),
    )
    numbers = number_of("ENUM_HCCL_DATA_TYPE")
    rows = rank.ranges(calls).select(
        "startNs",
        "endNs",
        "count",
        "connectionId",
        opName="call",
        groupName="communicator",
        opId="collective",
        relay=pl.col("relayed").cast(pl.Int64),
        retry=pl.col("retried").cast(pl.Int64),
        dataType=pl.col("element").replace_strict(numbers, default=NO_TYPE, return_dtype=pl.Int64),
        algType=pl.col("algorithm").fill_null(NOT_AVAILABLE),
        opType=filled_in("hcom_{}_", "word"),
        deviceId=pl.lit(rank.device),
    )
    rank.out.add("COMMUNICATION_OP", rank.out.numbered(rows, "opName", "groupName", "algType", "opType"))


def _with_launches(rank: RankDatabase, calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with `connectionId`, the number of a call of the host in CANN_API; writes stand-ins of missing ones."""
    numbers = calls["correlation"].drop_nulls().unique()
    of_runtime = (pl.col("category") == "runtime") & pl.col("correlation").is_in(numbers.implode())
    around = rank.lazy("slices").filter(of_runtime).select("slice", "correlation", "name", "start_ns").collect()
    layers = (pl.when(pl.col("name").str.starts_with(word)).then(at) for at, word in enumerate(LAUNCH_LAYERS))
    ordered = around.with_columns(layer=pl.coalesce(*layers, len(LAUNCH_LAYERS))).sort("layer", "start_ns", "slice")
    rank.aliased = ordered.filter(~pl.col("correlation").is_first_distinct())["slice"]
    made_up = pl.col("collective") + MADE_UP_CONNECTION
    calls = calls.with_columns(connectionId=pl.coalesce("correlation", made_up))
    launched = ordered["correlation"].unique().implode()
    rest = calls.filter(~pl.col("correlation").is_in(launched).fill_null(value=False))
    stand_ins = rest.unique("connectionId", keep="first", maintain_order=True).select(
        "connectionId",
        startNs="start_ns",
        endNs="start_ns",
        type=pl.lit(number_of("ENUM_API_TYPE")["communication"]),
        globalTid=pl.lit(rank.process << 32),
        name=pl.lit(NOT_RECORDED),
    )
    rank.out.add("CANN_API", rank.out.numbered(stand_ins, "name"))
    return calls


def _words(calls: pl.DataFrame) -> list[str]:
    return [word for word in calls["element_type"].unique(maintain_order=True).to_list() if word is not None]
