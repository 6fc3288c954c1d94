"""Hardware counters by operator, and operations for each byte."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COUNTERS, KERNEL_COUNTERS
from tests.analysis.device.launched import US, Range, Work, tables_of

RANGES = [
    Range("aten::linear", 0, 50),
    Range("aten::mm", 10, 40, parent=0),
    Range("cudaLaunchKernel", 15, 16, parent=1, category="runtime"),
    Range("cudaLaunchKernel", 45, 46, parent=0, category="runtime"),
]
WORK = [
    Work("mm", 100, 110, (15, 16), operator=1),
    Work("mm", 110, 140, (20, 21), operator=1),
    Work("bias", 150, 160, (45, 46), operator=0),
]


def of_kernels() -> Run:
    """Three kernels with counters, of which one has no share."""
    counted = KERNEL_COUNTERS.frame(
        kernel=[0, 1, 2],
        aic_mac_ratio=[0.8, 0.4, None],
        cube_fops=[4000.0, 8000.0, 0.0],
        vector_fops=[0.0, 0.0, 60.0],
        read_main_memory_bytes=[100.0, 200.0, 20.0],
        write_main_memory_bytes=[50.0, 50.0, 10.0],
    )
    return Run.from_frames({0: {**tables_of(WORK, RANGES), "kernel_counters": counted}})


def at_launches(*more: tuple[int, str, float]) -> Run:
    """Counters at the launches, without kernels."""
    ffma, fadd = (f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum" for op in ("ffma", "fadd"))
    rows = [
        (15, ffma, 100.0), (15, fadd, 10.0), (15, "dram__bytes_read.sum", 50.0),
        (45, ffma, 5.0), (45, "dram__bytes_write.sum", 20.0), (45, "temperature_celsius", 60.0), *more,
    ]  # fmt: skip
    time, name, value = zip(*rows, strict=True)
    counters = COUNTERS.frame(time_ns=[one * US for one in time], name=list(name), value=list(value))
    tables = {name: rows for name, rows in tables_of([], RANGES).items() if name != "kernels"}
    return Run.from_frames({0: {**tables, "counters": counters}})


def test_counters_are_summed_by_operator_and_kernel() -> None:
    rows = of_kernels().analyse("operator_counters").filter(pl.col("counter") == "aic_mac_ratio").to_dicts()

    (row,) = rows
    assert (row["operator"], row["name"], row["count"], row["total"]) == ("aten::mm", "mm", 2, None)
    assert row["mean"] == pytest.approx(0.6)
    assert row["mean_by_time"] == pytest.approx((0.8 * 10 + 0.4 * 30) / 40)
    assert (row["min"], row["max"], row["kernel_ns"]) == (0.4, 0.8, 40 * US)


def test_what_adds_up_has_a_total() -> None:
    rows = of_kernels().analyse("operator_counters").filter(pl.col("counter") == "cube_fops")

    assert rows.select("operator", "total").rows() == [("aten::mm", 12_000.0), ("aten::linear", 0.0)]


def test_kernels_count_to_the_outermost_operator_on_request() -> None:
    rows = of_kernels().analyse("operator_counters", outer=True).filter(pl.col("counter") == "cube_fops")

    assert rows.select("operator", "name", "total").rows() == [
        ("aten::linear", "mm", 12_000.0), ("aten::linear", "bias", 0.0)
    ]  # fmt: skip


def test_operations_are_set_against_bytes() -> None:
    rows = of_kernels().analyse("roofline")

    assert rows.select("operator", "counted_flops", "moved_bytes", "flops_per_byte").rows() == [
        ("aten::mm", 12_000.0, 400.0, 30.0), ("aten::linear", 60.0, 30.0, 2.0)
    ]  # fmt: skip
    assert rows["flops_per_s"][0] == pytest.approx(12_000 / 40e-6)


def test_counters_at_launches_belong_to_the_operator_around_them() -> None:
    run = at_launches()

    rows = run.analyse("operator_counters").filter(pl.col("counter").str.contains("ffma"))
    bound = run.analyse("roofline")

    assert rows.select("operator", "count", "total", "kernel_ns").rows() == [
        ("aten::linear", 1, 5.0, None), ("aten::mm", 1, 100.0, None)
    ]  # fmt: skip
    assert bound.select("operator", "counted_flops", "moved_bytes", "flops_per_s").rows() == [
        ("aten::mm", 210.0, 50.0, None), ("aten::linear", 10.0, 20.0, None)
    ]  # fmt: skip


def test_operations_are_unknown_where_tensor_cores_ran() -> None:
    bound = at_launches((15, "sm__inst_executed_pipe_tensor.sum", 7.0)).analyse("roofline")

    assert bound.select("operator", "counted_flops", "flops_per_byte").rows()[0] == ("aten::mm", None, None)


def test_there_is_no_answer_without_counters() -> None:
    run = Run.from_frames({0: tables_of(WORK, RANGES)})

    with pytest.raises(Unavailable, match="no hardware counters of kernels"):
        run.analyse("operator_counters")


def test_bytes_alone_are_no_roofline() -> None:
    counted = KERNEL_COUNTERS.frame(kernel=[0], read_main_memory_bytes=[100.0])
    run = Run.from_frames({0: {**tables_of(WORK, RANGES), "kernel_counters": counted}})

    with pytest.raises(Unavailable, match="do not have both operations and bytes"):
        run.analyse("roofline")
