"""Operators by their place in the tree of calls: what is around them, their shapes, waits and kernels."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.run import Run
from stepscope.tables import KERNELS, OPERATORS, SLICES, STEPS

Row = tuple[str, str, int, int, int | None]
"""Category, name, start, end, and the number of the range around it."""


def recorded(ranges: list[Row], kernels: list[dict[str, Any]], shapes: dict[int, str] | None = None) -> Run:
    """A rank with one step of some ranges on one thread, and device work by the operators that launched it."""
    slices = [
        {"slice": number, "category": category, "name": name, "start_ns": start, "duration_ns": end - start,
         "parent": around, "thread": "1", "step": 1}
        for number, (category, name, start, end, around) in enumerate(ranges)
    ]  # fmt: skip
    operators = [
        {**{key: row[key] for key in ("slice", "name", "start_ns", "duration_ns", "thread", "step")},
         "external_id": row["slice"], "input_shapes": (shapes or {}).get(int(str(row["slice"])))}
        for row in slices
        if row["category"] == "operator"
    ]  # fmt: skip
    tables = {
        "slices": SLICES.conform(pl.DataFrame(slices)),
        "operators": OPERATORS.conform(pl.DataFrame(operators)),
        "steps": STEPS.frame(
            step=[1], start_ns=[0], end_ns=[1000], window_start_ns=[0], window_end_ns=[1000], window=["host"]
        ),
    }
    if kernels:
        rows = [{"kernel": number, "step": 1, **kernel} for number, kernel in enumerate(kernels)]
        tables["kernels"] = KERNELS.conform(pl.DataFrame(rows, infer_schema_length=None))
    return Run.from_frames({0: tables})


def kernel(operator: int, length: int, kind: str = "compute", **more: Any) -> dict[str, Any]:
    return {"external_id": operator, "start_ns": 500, "duration_ns": length, "kind": kind, "name": "k", **more}


def paths(run: Run, *columns: str) -> dict[str, Any]:
    rows = run.analyse("operator_paths")
    return {path: tuple(values) for path, *values in rows.select("path", *columns).iter_rows()}


def test_functions_and_ranges_between_operators_are_no_part_of_the_path() -> None:
    run = recorded(
        [
            ("operator", "MyBackward", 0, 100, None),
            ("python", "train.py(3): backward", 10, 90, 0),
            ("annotation", "## mm ##", 20, 80, 1),
            ("operator", "aten::mm", 30, 70, 2),
        ],
        [],
    )

    assert paths(run, "self_ns") == {"MyBackward": (60,), "MyBackward > aten::mm": (40,)}


def test_shapes_are_told_apart_unless_there_are_very_many() -> None:
    ranges: list[Row] = [("operator", "mm", 10 * n, 10 * n + 5, None) for n in range(70)]
    few = recorded(ranges[:3], [], {0: "[[1]]", 1: "[[2]]", 2: "[[2]]"}).analyse("operator_paths")
    many = recorded(ranges, [], {n: f"[[{n}]]" for n in range(70)}).analyse("operator_paths")

    assert few.select("input_shapes", "count").rows() == [("[[1]]", 1), ("[[2]]", 2)]
    assert many.select("input_shapes", "count").rows() == [(None, 70)]


def test_waits_count_for_the_operator_that_makes_them_and_all_around_it() -> None:
    ranges: list[Row] = [
        ("operator", "clip", 0, 100, None),
        ("operator", "aten::item", 10, 90, 0),
        ("runtime", "cudaStreamSynchronize", 20, 80, 1),
        ("runtime", "cudaLaunchKernel", 92, 95, 0),
    ]
    run = recorded(ranges, [kernel(0, 5)])

    assert paths(run, "wait_ns", "own_wait_ns") == {"clip": (60, 0), "clip > aten::item": (60, 60)}


def test_a_wait_that_a_lower_layer_records_as_well_counts_once() -> None:
    ranges: list[Row] = [
        ("operator", "aten::item", 0, 100, None),
        ("runtime", "AscendCL@aclrtSynchronizeStream", 10, 90, 0),
        ("runtime", "Runtime@StreamSynchronize", 20, 80, 1),
    ]

    assert paths(recorded(ranges, [kernel(0, 5)]), "wait_ns") == {"aten::item": (80,)}


def test_without_calls_of_the_runtime_reading_a_value_is_a_wait() -> None:
    ranges: list[Row] = [
        ("operator", "aten::item", 0, 100, None),
        ("operator", "aten::_local_scalar_dense", 10, 90, 0),
        ("operator", "aten::add", 110, 150, None),
    ]

    assert paths(recorded(ranges, [kernel(2, 5)]), "wait_ns", "own_wait_ns") == {
        "aten::item": (80, 0),
        "aten::item > aten::_local_scalar_dense": (80, 80),
        "aten::add": (0, 0),
    }


def test_reading_a_value_of_a_cpu_is_no_wait() -> None:
    assert paths(recorded([("operator", "aten::item", 0, 100, None)], []), "wait_ns") == {"aten::item": (0,)}


def test_device_work_is_without_communication_which_waits_for_others() -> None:
    ranges: list[Row] = [("operator", "aten::mm", 0, 10, None), ("operator", "c10d::allreduce_", 20, 30, None)]
    run = recorded(ranges, [kernel(0, 7), kernel(1, 900, "communication")])

    assert paths(run, "device_ns") == {"aten::mm": (7,), "c10d::allreduce_": (0,)}
