"""operator_memory.csv, memory_record.csv and npu_module_mem.csv: memory blocks with their lifetimes, and the curves."""

from __future__ import annotations

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.formatting import instants, microseconds
from stepscope.export.rank_export import RankExport
from stepscope.text_columns import filled_in

KIB, MIB = 1 << 10, 1 << 20
_LEVELS = {"Allocated": "allocated_bytes", "Reserved": "reserved_bytes", "Active": "active_bytes"}
_OF_MODULE = pl.col("component").is_not_null() & pl.col("allocated_bytes").is_null() & pl.col("active_bytes").is_null()
_COMPONENTS = {"pytorch": "PyTorch", "mindspore": "MindSpore"}


def operator_memory(export: RankExport) -> str:
    """Blocks in order of allocation, with what was in use when each was allocated and released, as far as known."""
    blocks = export.allocator_rows("allocations")
    if blocks.is_empty():
        raise Unavailable(export.run.missing("allocations") or "no memory blocks in the wanted steps")
    for when in ("allocation", "release"):
        blocks = _with_levels(blocks, export.allocator_rows("memory_curve"), when)
    rows = blocks.sort("allocation_ns", maintain_order=True).select(
        pl.col("name").alias("Name"),
        (pl.col("size_bytes") / KIB).alias("Size(KB)"),
        instants("allocation_ns").alias("Allocation Time(us)"),
        instants("release_ns").alias("Release Time(us)"),
        instants("active_release_ns").alias("Active Release Time(us)"),
        microseconds(pl.col("release_ns") - pl.col("allocation_ns")).alias("Duration(us)"),
        microseconds(pl.col("active_release_ns") - pl.col("allocation_ns")).alias("Active Duration(us)"),
        *(
            (pl.col(f"{when}_{name}") / MIB).alias(f"{when.title()} Total {level}(MB)")
            for when in ("allocation", "release")
            for level, name in _LEVELS.items()
        ),
        pl.lit(None, pl.String).alias("Stream Ptr"),
        _device(export).alias("Device Type"),
    )
    return rows.write_csv()


def memory_record(export: RankExport) -> str:
    """The curve of memory in use and held."""
    curve = export.allocator_rows("memory_curve").filter(~_OF_MODULE).sort("time_ns", maintain_order=True)
    if curve.is_empty():
        raise Unavailable(export.run.missing("memory_curve") or "no memory was recorded")
    framework = str(export.facts.get("framework"))
    rows = curve.select(
        pl.col("component").fill_null(_COMPONENTS.get(framework, framework)).alias("Component"),
        instants("time_ns").alias("Timestamp(us)"),
        *((pl.col(name) / MIB).alias(f"Total {level}(MB)") for level, name in _LEVELS.items()),
        _device(export).alias("Device Type"),
    )
    return rows.write_csv()


def module_memory(export: RankExport) -> str:
    """What modules of the device's software hold, such as HCCL: these state no more than that."""
    curve = export.allocator_rows("memory_curve").filter(_OF_MODULE).sort("time_ns", maintain_order=True)
    if curve.is_empty():
        raise Unavailable("no memory of the device's modules was recorded")
    return curve.select(
        pl.col("device").alias("Device_id"),
        pl.col("component").alias("Component"),
        instants("time_ns").alias("Timestamp(us)"),
        (pl.col("reserved_bytes") / MIB).alias("Total Reserved(MB)"),
        _device(export).alias("Device"),
    ).write_csv()


def _device(export: RankExport) -> pl.Expr:
    """`CPU`, or the kind of device with its index: `CUDA:0`."""
    kind = str(export.facts.get("device_kind") or "device").upper()
    named = filled_in("{}:{}", pl.lit("DEVICE" if kind == "CPU" else kind), pl.col("device"))
    return pl.when(pl.col("device").is_null()).then(pl.lit("CPU")).otherwise(named)


def _with_levels(blocks: pl.DataFrame, curve: pl.DataFrame, when: str) -> pl.DataFrame:
    """Blocks with what was in use on their device when each was allocated or released."""
    time, key = f"{when}_ns", "device_key"
    keyed = blocks.with_columns(pl.col("device").fill_null(-1).alias(key)).sort(time, maintain_order=True)
    levels = curve.sort("time_ns", maintain_order=True).select(
        pl.col("time_ns").alias(time),
        pl.col("device").fill_null(-1).alias(key),
        *(pl.col(name).alias(f"{when}_{name}") for name in _LEVELS.values()),
    )
    known = keyed.filter(pl.col(time).is_not_null())
    joined = known.join_asof(levels, on=time, by=key, check_sortedness=False)
    return pl.concat([joined, keyed.filter(pl.col(time).is_null())], how="diagonal").drop(key)
