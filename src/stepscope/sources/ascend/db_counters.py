"""Samples of a device's hardware counters in a database: clocks, memory, caches, links and network ports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from stepscope.sources.ascend.database import TEXT_ID, Database, Types
from stepscope.sources.ascend.exported_rank import shaped
from stepscope.tables import COUNTERS

_RATE = "bytes_per_s"


@dataclass(frozen=True)
class Sampled:
    """A table of samples.

    Args:
        table: Its name.
        counters: Recorded column to the name of our counter, in which `{unit}` and `{kind}` stand for what `unit` and
            `kind` hold.
        unit: Column with the number of the unit or port that was sampled.
        kind: Column with a text: what was sampled.
    """

    table: str
    counters: Mapping[str, str]
    unit: str = ""
    kind: str = ""


def _port(name: str) -> dict[str, str]:
    """What is counted at a network port, in both directions."""
    counted = {
        "PacketRate": "packets_per_s",
        "ByteRate": _RATE,
        "Packets": "packets",
        "Bytes": "bytes",
        "Errors": "errors",
        "Dropped": "dropped",
    }
    sides = {
        f"{side}{column}": f"{name}_{{unit}}_{side}_{what}" for side in ("rx", "tx") for column, what in counted.items()
    }
    return {"bandwidth": f"{name}_{{unit}}_{_RATE}", **sides}


_PCIE = {
    f"{side}{column}{how.capitalize()}": f"pcie_{side}_{what}" + (f"_{how}" if how != "avg" else "")
    for side, column, what in (
        *((side, "Post", f"posted_{_RATE}") for side in ("tx", "rx")),
        *((side, "Nonpost", f"nonposted_{_RATE}") for side in ("tx", "rx")),
        *((side, "Cpl", f"completion_{_RATE}") for side in ("tx", "rx")),
        ("tx", "NonpostLatency", "nonposted_latency_ns"),
    )
    for how in ("avg", "min", "max")
}

SAMPLED = (
    Sampled("AICORE_FREQ", {"freq": "ai_core_frequency_mhz"}),
    Sampled("HBM", {"bandwidth": f"hbm_{{unit}}_{{kind}}_{_RATE}"}, "hbmId", "type"),
    Sampled("DDR", {way: f"ddr_{way}_{_RATE}" for way in ("read", "write")}),
    Sampled(
        "LLC",
        {"throughput": f"llc_{{unit}}_{{kind}}_{_RATE}", "hitRate": "llc_{unit}_{kind}_hit_ratio"},
        "llcId",
        "mode",
    ),
    Sampled("SOC_BANDWIDTH_LEVEL", {"l2BufferBwLevel": "l2_bandwidth_level", "mataBwLevel": "mata_bandwidth_level"}),
    Sampled("NPU_MEM", {"ddr": "{kind}_ddr_bytes", "hbm": "{kind}_hbm_bytes"}, kind="type"),
    Sampled("HCCS", {f"{side}Throughput": f"hccs_{side}_{_RATE}" for side in ("tx", "rx")}),
    Sampled("PCIE", _PCIE),
    Sampled("NIC", _port("nic"), "funcId"),
    Sampled("ROCE", _port("roce"), "funcId"),
    Sampled(
        "ACC_PMU",
        {
            "readBwLevel": "accelerator_{unit}_read_bandwidth_level",
            "writeBwLevel": "accelerator_{unit}_write_bandwidth_level",
            "readOstLevel": "accelerator_{unit}_read_outstanding_level",
            "writeOstLevel": "accelerator_{unit}_write_outstanding_level",
        },
        "accId",
    ),
    Sampled(
        "SAMPLE_PMU_TIMELINE",
        {
            "usage": "{kind}_{unit}_usage_ratio",
            "freq": "{kind}_{unit}_frequency_mhz",
            "totalCycle": "{kind}_{unit}_cycles",
        },
        "coreId",
        "coreType",
    ),
)
"""Rates are in bytes a second, shares in percent, as the profiler's documentation of its databases says; here shares
are ratios."""


def read_counters(database: Database) -> pl.DataFrame:
    """Rows of `counters`."""
    known = [sampled for sampled in SAMPLED if database.has(sampled.table)]
    return pl.concat([COUNTERS.frame(), *(rows for sampled in known for rows in _samples(database, sampled))])


def _samples(database: Database, sampled: Sampled) -> Iterator[pl.DataFrame]:
    """Rows of `counters` from one table."""
    named = {name: column for name, column in (("unit", sampled.unit), ("kind", sampled.kind)) if column}
    wanted = {
        "time_ns": "timestampNs",
        "device": "deviceId",
        **named,
        **{column: column for column in sampled.counters},
    }
    types: Types = {**dict.fromkeys(sampled.counters, pl.Float64), **({"kind": TEXT_ID} if sampled.kind else {})}
    for rows in database.read_batches(sampled.table, wanted, types, needed=("time_ns",)):
        timed = database.timed(sampled.table, rows, "time_ns")
        for column, counter in sampled.counters.items():
            samples = timed.select("time_ns", "device", *named, value=column).drop_nulls("value")
            if samples.height:
                yield shaped(samples.with_columns(_scaled(counter), name=_name(counter)), COUNTERS.stored_schema)


def _scaled(counter: str) -> pl.Expr:
    """`value` in the counter's unit."""
    return pl.col("value") / 100 if counter.endswith("_ratio") else pl.col("value")


def _name(counter: str) -> pl.Expr:
    """The counter's name with what was sampled."""
    held = {"unit": pl.col("unit").cast(pl.String), "kind": pl.col("kind").str.to_lowercase()}
    parts = [part for part in re.split(r"[{}]", counter) if part]
    return pl.concat_str([held[part].fill_null("unknown") if part in held else pl.lit(part) for part in parts])
