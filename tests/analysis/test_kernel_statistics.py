"""Statistics of kernels, framework operators and calls of the runtime, of each rank and over all ranks."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import KERNELS, OPERATOR_TOTALS, OPERATORS, SLICES

US = 1_000


def _run(types: bool = True) -> Run:
    """Rank 1 takes twice as long for `gemm` as rank 0, and runs an `add` of its own."""
    frames: dict[int, dict[str, pl.DataFrame]] = {}
    for rank in (0, 1):
        names = ["gemm", "gemm", "all_reduce", *["add"] * rank]
        lengths = [10 * (rank + 1), 30 * (rank + 1), 500, *[7] * rank]
        frames[rank] = {
            "kernels": KERNELS.frame(
                kernel=range(len(names)),
                start_ns=[k * 1000 * US for k in range(len(names))],
                duration_ns=[length * US for length in lengths],
                kind=["communication" if name == "all_reduce" else "compute" for name in names],
                name=names,
                type=[name.upper() if types else None for name in names],
                input_shapes=["4,4", "8,8", None, *["4"] * rank],
            ),
            "operators": OPERATORS.frame(
                slice=[0],
                start_ns=[0],
                duration_ns=[(rank + 1) * US],
                name=["aten::mm"],
            ),
            "slices": SLICES.frame(
                slice=range(3),
                start_ns=[0, 10, 20],
                duration_ns=[(rank + 1) * US, 3 * US, 5 * US],
                category=["runtime", "runtime", "operator"],
                name=["AscendCL@aclnnMm", "Node@launch", "aten::mm"],
            ),
        }
    return Run.from_frames(frames)


def test_types_over_all_ranks() -> None:
    rows = _run().analyse("kernel_type_statistics").to_dicts()

    gemm, add = rows  # without communication
    assert {name: gemm[name] for name in ("type", "count", "total_ns", "mean_ns", "ranks", "min_rank", "max_rank")} == {
        "type": "GEMM", "count": 4, "total_ns": 120 * US, "mean_ns": 30 * US, "ranks": 2, "min_rank": 0, "max_rank": 1
    }  # fmt: skip
    assert (gemm["min_ns"], gemm["q1_ns"], gemm["median_ns"], gemm["q3_ns"], gemm["max_ns"]) == (
        *(10 * US, 10 * US, 20 * US, 30 * US, 60 * US),
    )
    assert gemm["std_ns"] == 21_602
    assert (add["type"], add["std_ns"], add["ranks"], add["min_rank"]) == ("ADD", None, 1, 1)
    assert [row["share_ratio"] for row in rows] == pytest.approx([120 / 127, 7 / 127])


def test_names_and_shapes_over_all_ranks() -> None:
    found = _run().analyse("kernel_statistics")

    assert found.select("name", "input_shapes", "total_ns").rows() == [
        ("gemm", "8,8", 90 * US), ("gemm", "4,4", 30 * US), ("add", "4", 7 * US)
    ]  # fmt: skip


def test_each_rank() -> None:
    run = _run()

    assert run.analyse("kernel_type_totals").select("rank", "type", "total_ns", "max_ns").rows() == [
        (0, "GEMM", 40 * US, 30 * US), (1, "GEMM", 80 * US, 60 * US), (1, "ADD", 7 * US, 7 * US)
    ]  # fmt: skip
    shapes = run.analyse("kernel_shape_totals").filter(pl.col("rank") == 1)
    assert shapes.select("input_shapes", "total_ns").rows() == [("8,8", 60 * US), ("4,4", 20 * US), ("4", 7 * US)]
    assert shapes["share_ratio"].sum() == pytest.approx(1)


def test_without_types_there_are_statistics_by_name_only() -> None:
    run = _run(types=False)

    for question in ("kernel_type_statistics", "kernel_type_totals"):
        with pytest.raises(Unavailable, match="without operator types"):
            run.analyse(question)
    assert run.analyse("kernel_statistics")["name"].to_list() == ["gemm", "gemm", "add"]


def test_operators_over_all_ranks() -> None:
    (row,) = _run().analyse("operator_statistics").to_dicts()

    assert (row["name"], row["count"], row["total_ns"], row["max_rank"]) == ("aten::mm", 2, 3 * US, 1)


def test_calls_of_the_runtime_by_layer() -> None:
    run = _run()
    rows = run.analyse("api_statistics").select("layer", "name", "count", "total_ns", "max_rank", "share_ratio").rows()

    assert rows == [("Node", "launch", 2, 6 * US, 0, 1.0), ("AscendCL", "aclnnMm", 2, 3 * US, 1, 1.0)]
    assert run.analyse("api_totals").select("rank", "name", "total_ns").rows() == [
        (0, "launch", 3 * US), (0, "aclnnMm", US), (1, "launch", 3 * US), (1, "aclnnMm", 2 * US)
    ]  # fmt: skip


def test_without_calls_of_a_runtime_there_is_a_reason() -> None:
    slices = SLICES.frame(slice=[0], start_ns=[0], duration_ns=[1], category=["operator"], name=["aten::mm"])
    run = Run.from_frames({0: {"slices": slices}})

    for question in ("api_statistics", "api_totals"):
        with pytest.raises(Unavailable, match="no calls of a runtime"):
            run.analyse(question)


def test_totals_of_types_are_summed_over_ranks() -> None:
    frames = {
        rank: {
            "operator_totals": OPERATOR_TOTALS.frame(
                level=["operator", "operator"],
                type=["MatMul", "Cast"],
                unit=["AI_CORE"] * 2,
                name=["MatMul", "Cast"],
                count=[4, 2],
                total_ns=[40 * (rank + 1) * US, 5 * US],
            )
        }
        for rank in (0, 1)
    }
    rows = Run.from_frames(frames).analyse("operator_type_ranks").to_dicts()

    assert [(row["type"], row["count"], row["total_ns"], row["mean_ns"], row["ranks"]) for row in rows] == [
        ("MatMul", 8, 120 * US, 15 * US, 2), ("Cast", 4, 10 * US, 2_500, 2)
    ]  # fmt: skip
    assert (rows[0]["min_rank"], rows[0]["min_ns"], rows[0]["max_rank"], rows[0]["max_ns"]) == (0, 10 * US, 1, 20 * US)
    assert (rows[1]["min_rank"], rows[1]["max_rank"]) == (0, 0)
