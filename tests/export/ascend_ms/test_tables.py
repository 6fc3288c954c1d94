"""The CSV files: headers, units, totals."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest
from exports import EPOCH_NS, export, host_run, output

from builders import make_run
from stepscope import Run
from stepscope.tables import KERNELS, OPERATORS, SLICES


def rows(directory: Path, name: str) -> list[dict[str, str]]:
    with (output(directory) / name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_step_table_is_our_breakdown_in_microseconds(tmp_path: Path) -> None:
    run = make_run(ranks=1)
    export(run, tmp_path)

    first = rows(tmp_path, "step_trace_time.csv")[0]
    assert list(first) == [
        "Step",
        "Computing",
        "Communication(Not Overlapped)",
        "Overlapped",
        "Communication",
        "Free",
        "Stage",
        "Bubble",
        "Communication(Not Overlapped and Exclude Receive)",
        "Preparing",
    ]
    assert first["Computing"] == "60000.000"
    assert first["Free"] == "20000.000"


def test_free_holds_memory_operations(tmp_path: Path) -> None:
    run = make_run(ranks=1, steps=1)
    frames = {name: run.rank(0).table(name).collect() for name in run.rank(0).rows}
    copy = KERNELS.frame(
        kernel=[9], start_ns=[EPOCH_NS + 90_000_000], duration_ns=[4_000_000], kind=["memory"], name=["copy"], step=[1]
    )
    frames["kernels"] = pl.concat([frames["kernels"].drop("rank"), copy])
    export(Run.from_frames({0: frames}), tmp_path)

    assert rows(tmp_path, "step_trace_time.csv")[0]["Free"] == "20000.000"


def test_kernels_and_calls_are_listed_together(tmp_path: Path) -> None:
    export(make_run(ranks=1, steps=1), tmp_path)

    kernel, call = rows(tmp_path, "kernel_details.csv")
    assert (kernel["Name"], kernel["Accelerator Core"], kernel["Duration(us)"]) == ("gemm", "CUDA", "60000.000")
    assert kernel["Start Time(us)"] == f"{EPOCH_NS // 1000}.000\t"
    assert (call["Type"], call["Accelerator Core"]) == ("hcom_allReduce_", "COMMUNICATION")
    assert kernel["Input Shapes"] == "N/A"


def test_totals_of_kernels(tmp_path: Path) -> None:
    export(make_run(ranks=1, steps=3), tmp_path)

    (total,) = rows(tmp_path, "op_statistic.csv")
    assert total["OP Type"] == "gemm"
    assert (total["Count"], total["Total Time(us)"], total["Avg Time(us)"]) == ("3", "180000.000", "60000.0")
    assert total["Ratio(%)"] == "100.0"


def test_totals_of_a_host_are_self_times_of_operators(tmp_path: Path) -> None:
    export(host_run(steps=2), tmp_path)

    totals = {row["OP Type"]: row for row in rows(tmp_path, "op_statistic.csv")}
    assert {row["Core Type"] for row in totals.values()} == {"CPU"}
    assert totals["aten::linear"]["Total Time(us)"] == "399.998"
    assert totals["aten::mm"]["Count"] == "2"


def test_operators_know_the_device_time_of_those_inside(tmp_path: Path) -> None:
    operators = OPERATORS.frame(
        slice=[0, 1, 2, 3],
        start_ns=[0, 10, 50, 200],
        duration_ns=[100, 20, 50, 10],
        self_ns=[30, 20, 50, 10],
        name=["outer", "first", "second", "next"],
        thread=["1", "1", "1", "1"],
        input_shapes=["[1]"] * 4,
        external_id=[100, 101, 102, 103],
    )
    kernels = KERNELS.frame(
        kernel=[0, 1, 2, 3],
        start_ns=[500, 501, 502, 503],
        duration_ns=[1000, 2000, 4000, 8000],
        kind=["compute"] * 4,
        name=["k"] * 4,
        external_id=[101, 101, 102, 103],
        core=["AI_CORE", "AI_VECTOR_CORE", "AI_CORE", None],
    )
    export(Run.from_frames({0: {"operators": operators, "kernels": kernels}}), tmp_path)

    found = {row["Name"]: row for row in rows(tmp_path, "operator_details.csv")}
    device = {name: (r["Device Self Duration(us)"], r["Device Total Duration(us)"]) for name, r in found.items()}
    assert device == {
        "outer": ("0.000", "7.000"),
        "first": ("3.000", "3.000"),
        "second": ("4.000", "4.000"),
        "next": ("8.000", "8.000"),
    }
    assert found["outer"]["Device Total Duration With AICore(us)"] == "5.000"
    assert found["outer"]["Host Total Duration(us)"] == "0.100"


def test_operators_without_shapes_are_left_out_with_a_reason(tmp_path: Path) -> None:
    operators = OPERATORS.frame(slice=[0], start_ns=[0], duration_ns=[100], name=["mm"], thread=["1"])

    made = export(Run.from_frames({0: {"operators": operators}}), tmp_path)[0]

    assert made.left_out["operator_details.csv"] == "no shapes were recorded; record with record_shapes=True"


def test_totals_of_runtime_calls(tmp_path: Path) -> None:
    slices = SLICES.frame(
        slice=[0, 1],
        start_ns=[EPOCH_NS, EPOCH_NS + 50],
        duration_ns=[1000, 3000],
        category=["runtime"] * 2,
        name=["cudaLaunchKernel"] * 2,
    )
    export(Run.from_frames({0: {"slices": slices}}), tmp_path)

    (row,) = rows(tmp_path, "api_statistic.csv")
    assert (row["Level"], row["API Name"], row["Time(us)"], row["Count"]) == (
        "runtime",
        "cudaLaunchKernel",
        "4.000",
        "2",
    )
    assert (row["Avg(us)"], row["Variance"]) == ("2.0", "1.0")


def test_memory_blocks_know_what_was_in_use(tmp_path: Path) -> None:
    export(host_run(), tmp_path)

    first, second = rows(tmp_path, "operator_memory.csv")
    assert float(first["Size(KB)"]) == pytest.approx(1032 / 1024)
    assert float(first["Allocation Total Allocated(MB)"]) == pytest.approx(1032 / 2**20)
    assert float(first["Release Total Allocated(MB)"]) == pytest.approx(7 / 2**20)
    assert (first["Duration(us)"], first["Device Type"]) == ("0.004", "CPU")
    assert (second["Release Time(us)"], second["Release Total Allocated(MB)"]) == ("", "")
