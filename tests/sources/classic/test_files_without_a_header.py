"""CSV files whose first row is data: they are read as if their header stood above it, and lose no row."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from every_kind import NAMES, texts, write_every_kind

from parts import read_rank

TABULAR = (
    *("cluster_steps", "device_types", "device_operators", "framework", "flops", "ai_cpu", "pynative_types"),
    *("gpu_types", "gpu_operators", "gpu_activities", "timeline", "calls", "cpu_types", "cpu_operators", "cpu_memory"),
    *("pipeline_raw", "ai_cpu_queue", "get_next", "host_info", "host_dataset"),
)
"""Kinds with a header and rows of one known order. `step_trace` names its calls in its header."""
ALONE = {
    "flops": ("device_types", "device_operators"),
    "framework": ("device_types", "device_operators"),
    "cluster_steps": ("step_trace",),
    "host_info": ("flops_summary",),
    "host_dataset": ("flops_summary",),
}
"""Kinds that are kept only if others are there."""
Tables = dict[str, pl.DataFrame]


def read(directory: Path, files: dict[str, bytes]) -> tuple[Tables, list[tuple[str, str]]]:
    """Tables and issues of files by kind."""
    return read_rank(write_every_kind(directory, files))


def rows_of(tables: Tables) -> dict[str, list[tuple[object, ...]]]:
    return {name: frame.rows() for name, frame in tables.items()}


def without_header(text: bytes) -> bytes:
    return text.split(b"\n", 1)[1]


@pytest.mark.parametrize("kind", TABULAR)
def test_the_first_row_is_kept(tmp_path: Path, kind: str) -> None:
    files = {name: texts()[name] for name in (*ALONE.get(kind, ()), kind)}

    stated, before = read(tmp_path / "stated", files)
    bare, after = read(tmp_path / "bare", files | {kind: without_header(files[kind])})

    assert rows_of(bare) == rows_of(stated)
    named = Path(NAMES[kind]).name
    assert [issue for issue in after if issue not in before] in ([], [("note", named)])


@pytest.mark.parametrize("kind", TABULAR)
@pytest.mark.parametrize("front", [b"\xef\xbb\xbf", b"\n\n", b"\xef\xbb\xbf\r\n"])
def test_marks_and_blank_lines_above_the_first_row_change_nothing(tmp_path: Path, kind: str, front: bytes) -> None:
    files = {name: texts()[name] for name in (*ALONE.get(kind, ()), kind)}

    plain, _ = read(tmp_path / "plain", files)
    marked, _ = read(tmp_path / "marked", files | {kind: front + files[kind]})

    assert rows_of(marked) == rows_of(plain)


def test_memory_of_operators_has_its_first_row(tmp_path: Path) -> None:
    row = "MatMul,4,1714528800000000.125,1714528800000010.5,,10.375,,1,2,3,1,2,3,187651234,NPU:3\n"

    tables, issues = read(tmp_path, {"operator_memory": row.encode(), "flops_summary": texts()["flops_summary"]})

    assert tables["allocations"].select("name", "size_bytes", "device").rows() == [("MatMul", 4096, 3)]
    assert issues == [("note", "operator_memory_0.csv")]


def test_commas_at_the_end_of_rows_are_no_columns(tmp_path: Path) -> None:
    text = b"Conv2D,0.9,3,0.6,,\nMatMul,0.6,3,0.4,,\n"

    tables, issues = read(tmp_path, {"device_types": text})

    totals = tables["operator_totals"].select("name", "total_ns", "count")
    assert totals.rows() == [("Conv2D", 900_000, 3), ("MatMul", 600_000, 3)]
    assert issues == [("note", "aicore_intermediate_0_type.csv")]


@pytest.mark.parametrize("text", [b"1,2,3,4,5,6,7\n", b"Conv2D,many,3,0.6\nMatMul,0.6,3,0.4\n"])
def test_an_order_that_nobody_knows_or_that_lacks_numbers_is_told_and_not_guessed(tmp_path: Path, text: bytes) -> None:
    tables, issues = read(tmp_path, {"device_types": text, "cpu_memory": texts()["cpu_memory"]})

    assert "operator_totals" not in tables
    assert ("error", "aicore_intermediate_0_type.csv") in issues


def test_a_step_trace_without_a_header_has_its_steps(tmp_path: Path) -> None:
    text = b"1,1000,3000,2000,1000,2500,0,1500,500\n2,3000,5000,2000,3100,4500,100,1400,500\n-,2,3,1,2,3,0,1,0\n"

    tables, _ = read(tmp_path, {"step_trace": text})

    steps = tables["steps"].select("step", "start_ns", "end_ns", "forward_start_ns", "backward_end_ns")
    assert steps.rows() == [(1, 10_000, 30_000, 10_000, 25_000), (2, 30_000, 50_000, 31_000, 45_000)]


@pytest.mark.parametrize(
    "text",
    [
        b"Kernel Type,Total-Time,ExecutionFrequency,PERCENT\nConv2D,0.9,3,0.6\n",
        b'"kernel_type", total_time,execution_frequency\nConv2D,0.9,3\n',
    ],
)
def test_headers_may_be_spelled_otherwise(tmp_path: Path, text: bytes) -> None:
    tables, _ = read(tmp_path, {"device_types": text})

    assert tables["operator_totals"].select("name", "total_ns", "count").rows() == [("Conv2D", 900_000, 3)]
