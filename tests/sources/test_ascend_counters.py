"""Samples of hardware counters in both exports of Ascend devices."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from ascend_files import (
    EPOCH_NS,
    Tables,
    TraceEvents,
    make_database,
    rank_directory,
    read_db,
    read_text,
    sql,
    write_database,
)
from polars.testing import assert_frame_equal

from stepscope.sources.ascend.kernel_tables import measured

MIB = 1 << 20
TEXTS = {1007: "Read", 1008: "write", 1009: "AIC", 1010: "app"}
PORT = "deviceId, timestampNs, bandwidth, rxPacketRate, rxByteRate, rxErrors, txBytes, txDropped, funcId"
SAMPLED: Tables = {
    "HBM": (
        "deviceId, timestampNs, bandwidth, hbmId, type",
        [(3, EPOCH_NS, 5 * MIB, 1, 1007), (3, EPOCH_NS, 2.5, 0, 1008)],
    ),
    "DDR": ("deviceId, timestampNs, read, write", [(3, EPOCH_NS, 100, None)]),
    "LLC": ("deviceId, llcId, timestampNs, hitRate, throughput, mode", [(3, 0, EPOCH_NS, 50.6, 67.5 * MIB, 1007)]),
    "SOC_BANDWIDTH_LEVEL": ("l2BufferBwLevel, mataBwLevel, timestampNs, deviceId", [(2, 3, EPOCH_NS, 3)]),
    "HCCS": ("deviceId, timestampNs, txThroughput, rxThroughput", [(3, EPOCH_NS, 11, 12)]),
    "PCIE": ("deviceId, timestampNs, txPostMin, txPostAvg, txNonpostLatencyMax", [(3, EPOCH_NS, 1, 2, 30)]),
    "NIC": (PORT, [(3, EPOCH_NS, 1000, 1, 2, 3, 4, 5, 0)]),
    "ROCE": (PORT, [(3, EPOCH_NS, 1000, 1, 2, 3, 4, 5, 1)]),
    "SAMPLE_PMU_TIMELINE": (
        "deviceId, timestampNs, totalCycle, usage, freq, coreId, coreType",
        [(3, EPOCH_NS, 9, 25, 1800, 4, 1009)],
    ),
    "NPU_MEM": ("type, ddr, hbm, timestampNs, deviceId", [(1010, 0, 4 * MIB, EPOCH_NS, 3)]),
}
EXPECTED = {
    "hbm_1_read_bytes_per_s": 5 * MIB,
    "hbm_0_write_bytes_per_s": 2.5,
    "ddr_read_bytes_per_s": 100,
    "llc_0_read_hit_ratio": 0.506,
    "llc_0_read_bytes_per_s": 67.5 * MIB,
    "l2_bandwidth_level": 2,
    "mata_bandwidth_level": 3,
    "hccs_tx_bytes_per_s": 11,
    "hccs_rx_bytes_per_s": 12,
    "pcie_tx_posted_bytes_per_s": 2,
    "pcie_tx_posted_bytes_per_s_min": 1,
    "pcie_tx_nonposted_latency_ns_max": 30,
    **{
        f"{name}_{port}_{counter}": value
        for name, port in (("nic", 0), ("roce", 1))
        for counter, value in {
            "bytes_per_s": 1000,
            "rx_packets_per_s": 1,
            "rx_bytes_per_s": 2,
            "rx_errors": 3,
            "tx_bytes": 4,
            "tx_dropped": 5,
        }.items()
    },
    "aic_4_usage_ratio": 0.25,
    "aic_4_frequency_mhz": 1800,
    "aic_4_cycles": 9,
    "app_ddr_bytes": 0,
    "app_hbm_bytes": 4 * MIB,
}


def with_database(directory: Path, tables: Tables) -> Path:
    """A rank directory whose database has some more tables."""
    output = rank_directory(directory)
    path = write_database(output)
    sql(path, *(f"INSERT INTO STRING_IDS VALUES ({number}, '{text}')" for number, text in TEXTS.items()))
    make_database(path, tables)
    return output.parent


def sampled(tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Samples of other counters than the clock."""
    return tables["counters"].filter(pl.col("name") != "ai_core_frequency_mhz")


def test_every_table_of_samples_is_read(tmp_path: Path) -> None:
    rows = sampled(read_db(with_database(tmp_path, SAMPLED)))

    assert dict(rows.select("name", "value").iter_rows()) == pytest.approx(EXPECTED)
    assert rows["time_ns"].unique().to_list() == [EPOCH_NS]
    assert rows["device"].unique().to_list() == [3]


def test_samples_of_unknown_units_are_kept_and_those_at_impossible_times_reported(tmp_path: Path) -> None:
    samples = [(3, EPOCH_NS, 1, None, 5555), (3, 5, 2, 0, 1007), (3, None, 3, 0, 1007)]
    tables = {"HBM": ("deviceId, timestampNs, bandwidth, hbmId, type", samples)}

    read = read_db(with_database(tmp_path, tables))

    assert sampled(read).select("name", "value").rows() == [("hbm_unknown_unknown_bytes_per_s", 1.0)]
    problems = read["issues"].filter(pl.col("problem").str.contains("table HBM"))
    assert problems["lost"].to_list() == [2]


def test_the_text_export_has_the_same_samples(tmp_path: Path) -> None:
    both = {name: table for name, table in SAMPLED.items() if name in ("HBM", "DDR", "LLC")}
    output = rank_directory(tmp_path / "text")
    trace = TraceEvents()
    process = (99 << 10) | 3
    for name, key, value in (
        ("HBM 1/Read", "Read(MB/s)", 5),
        ("HBM 0/Write", "Write(MB/s)", 2.5 / MIB),
        ("DDR/Read", "Read(MB/s)", 100 / MIB),
        ("LLC 0 Read/Hit Rate", "Hit Rate(%)", 0.506),
        ("LLC 0 Read/Throughput", "Throughput(MB/s)", 67.5),
        ("Another counter", "Throughput(MB/s)", 1),
    ):
        trace.events.append(
            {"name": name, "pid": process, "tid": 0, "ts": f"{EPOCH_NS // 1000}.000", "ph": "C", "args": {key: value}}
        )
    trace.write(output)

    text, database = sampled(read_text(output.parent)), sampled(read_db(with_database(tmp_path / "db", both)))

    assert_frame_equal(text, database, check_row_order=False)


def test_a_kernel_with_any_counter_is_measured_whichever_the_others_have() -> None:
    rows = pl.DataFrame({"kernel": [0, 1, 2], "a": [None, 1.0, None], "b": [None, 2.0, 3.0], "c": [4.0, None, None]})
    assert measured(rows)["kernel"].to_list() == [0, 1, 2]
    assert measured(rows.head(2).with_columns(c=None))["kernel"].to_list() == [1]
    assert measured(rows.select("kernel", "a", "b"))["kernel"].to_list() == [1, 2]
