"""Samples over time: memory blocks and curves, and counters of the device."""

from __future__ import annotations

import re

import polars as pl

from stepscope.export.ascend_db.rank import RankDatabase
from stepscope.sources.ascend.db_counters import SAMPLED, Sampled
from stepscope.sources.ascend.db_extras import MODULES

_ALLOCATORS = {"pytorch": "PTA", "mindspore": "MindSpore"}
"""What the format calls the allocator of a framework."""
_OF_MODULE = pl.col("component").is_in(list(MODULES.values())) & pl.col("allocated_bytes").is_null()
_AI_CORE = "AICORE_FREQ"


def write_memory(rank: RankDatabase) -> None:
    """Write OP_MEMORY, MEMORY_RECORD and NPU_MODULE_MEM."""
    for batch in rank.parts(rank.lazy("allocations")):
        allocation = pl.col("allocation_ns")
        blocks = batch.select(
            "name",
            size="size_bytes",
            allocationTime=allocation,
            releaseTime="release_ns",
            activeReleaseTime="active_release_ns",
            duration=pl.col("release_ns") - allocation,
            activeDuration=pl.col("active_release_ns") - allocation,
            deviceId="device",
        )
        rank.out.add("OP_MEMORY", rank.out.numbered(blocks, "name"))
    framework = str(rank.export.facts.get("framework"))
    numbers = {name: number for number, name in MODULES.items()}
    for batch in rank.parts(rank.lazy("memory_curve")):
        totals = batch.filter(~_OF_MODULE).select(
            component=pl.col("component").fill_null(_ALLOCATORS.get(framework, framework)),
            timestamp="time_ns",
            totalAllocated="allocated_bytes",
            totalReserved="reserved_bytes",
            totalActive="active_bytes",
            deviceId="device",
        )
        rank.out.add("MEMORY_RECORD", rank.out.numbered(totals, "component"))
        modules = batch.filter(_OF_MODULE).select(
            moduleId=pl.col("component").replace_strict(numbers, default=None, return_dtype=pl.Int64),
            timestampNs="time_ns",
            totalReserved="reserved_bytes",
            deviceId=pl.col("device").fill_null(rank.device),
        )
        rank.out.add("NPU_MODULE_MEM", modules)


def write_counters(rank: RankDatabase) -> None:
    """Write samples of counters, a table for each part of the device; those of other devices have no table."""
    for batch in rank.parts(rank.lazy("counters")):
        names = batch["name"].unique(maintain_order=True).to_list()
        places = {name: place for name in names if (place := _place(name)) is not None}
        unknown = batch.filter(~pl.col("name").is_in(list(places)))
        for name in unknown["name"].unique(maintain_order=True).to_list():
            rank.lose(f"samples of {name}", unknown.filter(pl.col("name") == name).height)
        for sampled in SAMPLED:
            found = [name for name in names if name in places and places[name][0] is sampled]
            if found:
                _write_samples(rank, sampled, batch.filter(pl.col("name").is_in(found)), places)


def _place(name: str) -> tuple[Sampled, str, str | None, str | None] | None:
    """The table and column of a counter, and the unit and kind in its name."""
    for sampled in SAMPLED:
        for column, template in sampled.counters.items():
            pattern = re.escape(template).replace(r"\{unit\}", r"(?P<unit>\d+)").replace(r"\{kind\}", r"(?P<kind>.+?)")
            if match := re.fullmatch(pattern, name):
                return sampled, column, match.groupdict().get("unit"), match.groupdict().get("kind")
    return None


def _write_samples(
    rank: RankDatabase,
    sampled: Sampled,
    rows: pl.DataFrame,
    places: dict[str, tuple[Sampled, str, str | None, str | None]],
) -> None:
    """Rows of one table: the counters of one unit at one time are columns of one row."""
    known = pl.DataFrame(
        [(name, column, unit, kind) for name, (of, column, unit, kind) in places.items() if of is sampled],
        schema={"name": pl.String, "column": pl.String, "unit": pl.Int64, "kind": pl.String},
        orient="row",
        strict=False,
    )
    is_ratio = pl.col("name").str.ends_with("_ratio")
    value = pl.when(is_ratio).then(pl.col("value") * 100).otherwise(pl.col("value"))
    long = rows.with_columns(value=value).join(known, on="name", how="inner", maintain_order="left")
    named = [pl.col("unit").alias(sampled.unit)] if sampled.unit else []
    if sampled.kind:
        long = long.with_columns(rank.out.numbers(long["kind"]))
        named.append(pl.col("kind").alias(sampled.kind))
    columns = list(sampled.counters)
    # Several samples of one moment are rows of their own.
    again = pl.int_range(pl.len()).over("time_ns", "device", "unit", "kind", "column")
    long = long.with_columns(again=again)
    index = ["time_ns", "device", "unit", "kind", "again"]
    wide = long.pivot(on="column", index=index, values="value", aggregate_function="first", maintain_order=True)
    wide = wide.select(
        pl.col("time_ns").alias("timestampNs"),
        pl.col("device").fill_null(rank.device).alias("deviceId"),
        *named,
        *(column for column in columns if column in wide.columns),
    )
    if sampled.table == _AI_CORE:
        wide = wide.with_columns(pl.lit(-1).alias("dieId"), pl.col("freq").round(0).cast(pl.Int64))
    else:
        every = ["deviceId", "timestampNs", *(name for name in (sampled.unit, sampled.kind) if name), *columns]
        rank.out.create(sampled.table, ", ".join(f'"{name}" NUMERIC' for name in every))
    rank.out.add(sampled.table, wide)
