"""Host work in a database: framework operators, API calls, garbage collection and marked ranges."""

from __future__ import annotations

import polars as pl

from stepscope.sources.ascend.database import CONNECTION, NO_CONNECTION, TEXT_ID, Database
from stepscope.sources.ascend.exported_rank import HOST, OPERATOR_STARTS, first_of_each, shaped
from stepscope.sources.ascend.kernel_tables import API_WORDS
from stepscope.sources.ascend.placeholders import NOT_RECORDED
from stepscope.sources.ascend.slice_tables import framework_ranges
from stepscope.sources.ascend.timeline import Timeline
from stepscope.tables.slices import MARKS, MODULE_MARKS

_THREAD = {"global_thread": "globalTid"}
_OPERATOR = {
    **_THREAD,
    "connections": "connectionId",
    "name": "name",
    "sequence": "sequenceNumber",
    "forward_thread": "fwdThreadId",
    "input_types": "inputDtypes",
    "input_shapes": "inputShapes",
    "chain": "callchainId",
    "kind": "type",
}
_API = {**_THREAD, "kind": "type", "correlation": "connectionId", "name": "name"}
_API_TYPES = {20000: "acl", 15000: "model", 10000: "node", 5500: "communication", 5000: "runtime"}
_OPERATOR_TYPES = {50001: "op", 50002: "queue", 50003: "trace", 50004: "mstx"}
_CATEGORIES = {"op": "operator", "queue": "queue", "trace": "python", "mstx": "annotation"}


def read_operators(database: Database, timeline: Timeline) -> pl.DataFrame:
    """Put framework ranges into a timeline as rows of `HOST`; returns when each connection's operator began."""
    kinds = {**_OPERATOR_TYPES, **database.enumeration("ENUM_API_TYPE")}
    links = database.read("CONNECTION_IDS", {"connections": "id", "correlation": "connectionId"})
    links = links.filter(pl.col("correlation") != NO_CONNECTION).drop_nulls()
    # An operator may own several device tasks: it carries the number of the first one.
    first = first_of_each(links, "connections")
    stacks = _stacks(database)
    kind = pl.col("kind").replace_strict(kinds, default="op", return_dtype=pl.String).fill_null("op")
    category = kind.replace_strict(_CATEGORIES, default="other", return_dtype=pl.String)
    began = [pl.DataFrame(schema=OPERATOR_STARTS)]
    texts = dict.fromkeys(("name", "input_types", "input_shapes"), TEXT_ID)
    for named in database.named_ranges("PYTORCH_API", _OPERATOR, texts):
        rows = named if stacks.is_empty() else named.join(stacks, on="chain", how="left", maintain_order="left")
        rows = framework_ranges(_on_thread(rows).with_columns(category=category, process=pl.lit("Python")))
        starts = rows.filter(pl.col("category") != "queue").join(links, on="connections", how="inner")
        began.append(shaped(starts.select("correlation", operator_start_ns="start_ns"), OPERATOR_STARTS))
        rows = rows.join(first, on="connections", how="left", maintain_order="left").with_columns(
            correlation=pl.when(pl.col("category").is_in(["queue", "operator", "annotation"])).then("correlation")
        )
        timeline.add("host", shaped(rows, HOST))
    return first_of_each(pl.concat(began).sort("operator_start_ns"), "correlation")


def read_api(database: Database, timeline: Timeline) -> None:
    """Put API calls below the framework into a timeline as rows of `HOST`, named as the text export names them."""
    words = {
        number: API_WORDS[level]
        for number, level in {**_API_TYPES, **database.enumeration("ENUM_API_TYPE")}.items()
        if level in API_WORDS
    }
    word = pl.col("kind").replace_strict(words, default=None, return_dtype=pl.String)
    for rows in database.named_ranges("CANN_API", _API, {"name": TEXT_ID}):
        calls = _on_thread(rows.filter(pl.col("name") != NOT_RECORDED)).with_columns(
            category=pl.lit("runtime"),
            process=pl.lit("CANN"),
            name=pl.when(word.is_not_null()).then(word + "@" + pl.col("name")).otherwise("name"),
            correlation=CONNECTION.replace({0: None}),
        )
        timeline.add("host", shaped(calls, HOST))


def read_collections(database: Database) -> pl.DataFrame:
    """Garbage collections as rows of `HOST`."""
    rows = _on_thread(database.ranges("GC_RECORD", _THREAD))
    return shaped(rows.with_columns(name=pl.lit("GC"), category=pl.lit("gc"), process=pl.lit("Python GC")), HOST)


def read_marks(database: Database) -> pl.DataFrame:
    """Ranges and points that the user marked, as rows of `HOST`."""
    wanted = {**_THREAD, "name": "message", "correlation": "connectionId", "domain": "domainId"}
    rows = database.ranges("MSTX_EVENTS", wanted, {"name": TEXT_ID, "domain": TEXT_ID}, filled="end_ns")
    is_point = pl.col("duration_ns") == 0
    return shaped(
        _on_thread(rows.drop_nulls("name")).with_columns(
            category=pl.when(is_point).then(pl.lit("mark")).otherwise(pl.lit("annotation")),
            process=pl.when(pl.col("domain") == "Module").then(pl.lit(MODULE_MARKS)).otherwise(pl.lit(MARKS)),
            correlation=CONNECTION,
        ),
        HOST,
    )


def _on_thread(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with their thread: a global thread id is the process id and the thread's."""
    return rows.with_columns(thread=pl.col("global_thread").mod(1 << 32).cast(pl.String))


def _stacks(database: Database) -> pl.DataFrame:
    """Call stacks by number, one frame a line, innermost first."""
    wanted = {"chain": "id", "frame": "stack", "depth": "stackDepth"}
    frames = database.read("PYTORCH_CALLCHAINS", wanted, {"frame": TEXT_ID}).drop_nulls(["chain", "frame"])
    if frames.is_empty():
        return frames
    return frames.sort("chain", "depth").group_by("chain").agg(stack=pl.col("frame").str.join("\n"))
