"""Dynamic shapes and recommendations of a classic profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parts import read_part
from stepscope.sources.classic.dynamic_shapes import write_dynamic_shapes
from stepscope.sources.classic.figures import write_recommendation
from stepscope.sources.classic.reading import of_kind

READ_SHAPES, READ_ADVICE = (
    of_kind("dynamic_shapes", write_dynamic_shapes),
    of_kind("recommendation", write_recommendation),
)
SHAPES, ADVICE = "dynamic_shape_info_0.json", "msadvisor/device_0/recommendation/AICPUModel_1.json"
ASCEND = {
    "MatMul": [{"MatMul-op1": {"op_exe_time": [0.12, 0.2], "op_shape": ["{a: 1}"], "op_exe_occurrences": 2}}],
    "Add": [{"Add-op2": {"op_exe_time": [1], "op_shape": [[2, 3]], "op_exe_occurrences": 1}}],
    "op_type": {"MatMul": [0.12, 0.2]},
}
OPERATOR = {
    "step": 3,
    "op_side": "gpu",
    "op_type": "Add",
    "op_name": "Add-op6",
    "dur": 75.616,
    "shape_info": ["[32, 1]"],
}
KERNEL = {"step": 3, "op_type": "cuLaunchKernel", "op_name": "k<float>", "op_full_name": "Default/Add-op6", "dur": 3.9}
KERNEL |= {"block_dim": "256,1,1", "grid_dim": "1,1,1"}


def test_executions_on_ascend_are_numbered_from_one_with_ms_in_ns(tmp_path: Path) -> None:
    tables, issues = read_part(READ_SHAPES, tmp_path, {SHAPES: json.dumps(ASCEND)})

    rows = tables["operator_steps"].select("step", "unit", "type", "name", "duration_ns", "input_shapes").rows()
    assert rows == [
        (1, "AI_CORE", "MatMul", "MatMul-op1", 120_000, "{a: 1}"),
        (2, "AI_CORE", "MatMul", "MatMul-op1", 200_000, None),
        (1, "AI_CORE", "Add", "Add-op2", 1_000_000, "[2, 3]"),
    ]
    assert issues == []


def test_operators_and_kernels_of_a_gpu_have_their_step_with_us_in_ns(tmp_path: Path) -> None:
    host = OPERATOR | {"op_side": "cpu", "op_name": "Cast-op1"}
    text = json.dumps({"operator": {"3": [OPERATOR, host]}, "kernel": {"3": [KERNEL]}})

    tables, issues = read_part(READ_SHAPES, tmp_path, {SHAPES: text})

    columns = ("step", "unit", "name", "full_name", "duration_ns", "input_shapes", "block", "grid")
    assert tables["operator_steps"].select(columns).rows() == [
        (3, "GPU", "Add-op6", None, 75_616, '["[32, 1]"]', None, None),
        (3, "HOST_CPU", "Cast-op1", None, 75_616, '["[32, 1]"]', None, None),
        (3, "CUDA", "k<float>", "Default/Add-op6", 3_900, None, "256,1,1", "1,1,1"),
    ]
    assert issues == []


@pytest.mark.parametrize(
    ("text", "rows", "severity"),
    [
        ("", 0, "error"),
        (json.dumps(ASCEND)[:90], 0, "error"),
        ("[]", 0, "error"),
        ("{}", 0, "warning"),
        ('{"a":' * 100_000, 0, "error"),
        (json.dumps(ASCEND).replace("0.12,", '"soon",', 1), 2, "error"),
        (json.dumps(ASCEND | {"Mul": 5}), 3, "error"),
        (json.dumps(ASCEND).replace("0.12,", "1e300,", 1), 2, "error"),
        (json.dumps({"operator": {"3": [OPERATOR, OPERATOR | {"step": "x"}, 5]}}), 1, "error"),
        (json.dumps({"kernel": {"3": [KERNEL | {"dur": "x"}]}, "operator": []}), 0, "error"),
    ],
)
def test_damaged_shapes_are_told_and_the_rest_is_read(tmp_path: Path, text: str, rows: int, severity: str) -> None:
    tables, issues = read_part(READ_SHAPES, tmp_path, {SHAPES: text})

    assert ("operator_steps" in tables and tables["operator_steps"].height) == (rows or False)
    assert issues == [(severity, SHAPES)]


def test_the_newest_recommendation_is_kept_as_json(tmp_path: Path) -> None:
    newest = ADVICE.replace("_1", "_2")

    tables, issues = read_part(
        READ_ADVICE,
        tmp_path,
        {ADVICE: '{"model": {"old": 1}}', newest: '{"model": {"AICPUModel": {"x": [1]}}}'},
    )

    assert tables["rank_figures"].select("name", "text").rows() == [("recommendation", '{"AICPUModel": {"x": [1]}}')]
    assert issues == []


@pytest.mark.parametrize(
    ("text", "severity"), [("", "error"), ("{", "error"), ("{}", "warning"), ('{"model": 5}', "warning")]
)
def test_a_recommendation_that_is_none_is_told(tmp_path: Path, text: str, severity: str) -> None:
    tables, issues = read_part(READ_ADVICE, tmp_path, {ADVICE: text})

    assert (tables, issues) == ({}, [(severity, Path(ADVICE).name)])


def test_nothing_to_read_is_nothing_written(tmp_path: Path) -> None:
    for part in (READ_SHAPES, READ_ADVICE):
        assert read_part(part, tmp_path, {}) == ({}, [])
