"""Host work in a database: framework operators, API calls, garbage collection and marked ranges."""

from __future__ import annotations

import polars as pl

from stepscope.sources.ascend.database import Database
from stepscope.sources.ascend.recording import HOST, OPERATOR_STARTS, shaped
from stepscope.sources.ascend.slice_tables import annotated

NO_CONNECTION = 4294967295
_OPERATOR = {
    "start_ns": "startNs",
    "end_ns": "endNs",
    "global_thread": "globalTid",
    "connections": "connectionId",
    "name": "name",
    "sequence": "sequenceNumber",
    "forward_thread": "fwdThreadId",
    "input_types": "inputDtypes",
    "input_shapes": "inputShapes",
    "chain": "callchainId",
    "kind": "type",
}
_API = {
    "start_ns": "startNs",
    "end_ns": "endNs",
    "kind": "type",
    "global_thread": "globalTid",
    "correlation": "connectionId",
    "name": "name",
}
API_WORDS = {"acl": "AscendCL", "model": "Model", "node": "Node", "communication": "HCCL", "runtime": "Runtime"}
"""Level of an API call to the word that the text export puts before its name."""
_API_TYPES = {20000: "acl", 15000: "model", 10000: "node", 5500: "communication", 5000: "runtime"}
_OPERATOR_TYPES = {50001: "op", 50002: "queue", 50003: "trace", 50004: "mstx"}
_CATEGORIES = {"op": "operator", "queue": "queue", "trace": "python", "mstx": "annotation"}


def read_operators(database: Database) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Framework ranges as rows of `HOST`, and when the operator began behind each connection id."""
    kinds = {**_OPERATOR_TYPES, **database.enumeration("ENUM_API_TYPE")}
    rows = database.read_ranges("PYTORCH_API", _OPERATOR, needed=("name",))
    rows = database.named("PYTORCH_API", database.with_texts(rows, ["name", "input_types", "input_shapes"]))
    rows = rows.join(_stacks(database), on="chain", how="left", maintain_order="left")
    kind = pl.col("kind").replace_strict(kinds, default="op", return_dtype=pl.String).fill_null("op")
    links = database.read("CONNECTION_IDS", {"connections": "id", "correlation": "connectionId"})
    links = links.drop_nulls().filter(pl.col("correlation") != NO_CONNECTION)
    rows = _on_thread(rows).with_columns(
        category=annotated(kind.replace_strict(_CATEGORIES, default="other", return_dtype=pl.String), pl.col("name")),
        process=pl.lit("Python"),
        sequence=pl.when(pl.col("sequence") >= 0).then("sequence"),
        forward_thread=pl.when(pl.col("forward_thread") > 0).then("forward_thread"),
    )
    starts = rows.join(links, on="connections", how="inner").filter(pl.col("category") != "queue")
    # Only queue ranges carry their number; an operator may own several device tasks.
    first = links.unique("connections", keep="first")
    rows = rows.join(first, on="connections", how="left", maintain_order="left").with_columns(
        correlation=pl.when(pl.col("category") == "queue").then("correlation")
    )
    began = starts.sort("start_ns").select("correlation", operator_start_ns="start_ns")
    return shaped(rows, HOST), shaped(began.unique("correlation", keep="first"), OPERATOR_STARTS)


def read_api(database: Database) -> pl.DataFrame:
    """API calls below the framework as rows of `HOST`, named as the text export names them."""
    words = {
        number: API_WORDS[level]
        for number, level in {**_API_TYPES, **database.enumeration("ENUM_API_TYPE")}.items()
        if level in API_WORDS
    }
    rows = database.read_ranges("CANN_API", _API, needed=("name",))
    rows = _on_thread(database.named("CANN_API", database.with_texts(rows, ["name"])))
    word = pl.col("kind").replace_strict(words, default=None, return_dtype=pl.String)
    return shaped(
        rows.with_columns(
            category=pl.lit("runtime"),
            process=pl.lit("CANN"),
            name=pl.when(word.is_not_null()).then(word + "@" + pl.col("name")).otherwise("name"),
            correlation=pl.when(~pl.col("correlation").is_in([0, NO_CONNECTION])).then("correlation"),
        ),
        HOST,
    )


def read_collections(database: Database) -> pl.DataFrame:
    """Garbage collections as rows of `HOST`."""
    wanted = {"start_ns": "startNs", "end_ns": "endNs", "global_thread": "globalTid"}
    rows = _on_thread(database.read_ranges("GC_RECORD", wanted).with_columns(name=pl.lit("GC")))
    return shaped(rows.with_columns(category=pl.lit("gc"), process=pl.lit("Python GC")), HOST)


def read_marks(database: Database) -> pl.DataFrame:
    """Ranges that the user marked, as rows of `HOST`; instants are left out."""
    wanted = {"start_ns": "startNs", "end_ns": "endNs", "global_thread": "globalTid", "name": "message"}
    columns = {**wanted, "correlation": "connectionId"}
    rows = database.read_ranges("MSTX_EVENTS", columns, where="endNs IS NOT NULL")
    rows = _on_thread(database.with_texts(rows, ["name"]).drop_nulls("name")).filter(pl.col("duration_ns") > 0)
    return shaped(
        rows.with_columns(
            category=pl.lit("annotation"),
            process=pl.lit("MSTX"),
            correlation=pl.when(pl.col("correlation") != NO_CONNECTION).then("correlation"),
        ),
        HOST,
    )


def _on_thread(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with their thread: a global thread id is the process id and the thread's."""
    return rows.with_columns(thread=pl.col("global_thread").mod(1 << 32).cast(pl.String))


def _stacks(database: Database) -> pl.DataFrame:
    """Call stacks by number, one frame a line, innermost first."""
    rows = database.read("PYTORCH_CALLCHAINS", {"chain": "id", "frame": "stack", "depth": "stackDepth"})
    frames = database.with_texts(rows, ["frame"]).drop_nulls(["chain", "frame"])
    return frames.sort("chain", "depth").group_by("chain").agg(stack=pl.col("frame").str.join("\n"))
