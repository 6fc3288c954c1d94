"""Every layout of a CSV file: its orders of columns have what it needs, and are known without a header above them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.sources.ascend import headers
from stepscope.sources.classic import calls, flops, gpu_operators, host_info, operators, raw_steps
from stepscope.sources.classic.operator_rows import TYPES
from stepscope.sources.csv_files.heading import header_of
from stepscope.sources.csv_files.layout import FileLayout
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.minddata import pipeline
from stepscope.sources.mindspore_cpu import totals
from stepscope.store import MemorySink

MODULES = (headers, calls, flops, gpu_operators, host_info, operators, raw_steps, pipeline, totals)
LAYOUTS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": layout
    for module in MODULES
    for name, layout in vars(module).items()
    if isinstance(layout, FileLayout) and layout.orders
} | {"operator_rows.TYPES": TYPES}
CASES = [
    pytest.param(layout, at, id=f"{name}-{at}") for name, layout in LAYOUTS.items() for at in range(len(layout.orders))
]
TEXTS = ("text", "shape", "device")


def row(layout: FileLayout, order: tuple[str, ...]) -> str:
    """A row with words where the layout reads text, and another number in each other column."""
    words = {name for field in layout.fields if field.kind in TEXTS for name in field.headers}
    return ",".join(f"w{at}" if key in words else f"{at + 3}" for at, key in enumerate(order))


def read(path: Path, layout: FileLayout) -> tuple[pl.DataFrame | None, list[str]]:
    sink = MemorySink("test")
    found = read_csv(path, layout, sink)
    issues = sink.close().get("issues", pl.DataFrame({"severity": []}))
    return found, issues["severity"].to_list()


@pytest.mark.parametrize(("layout", "at"), CASES)
def test_a_file_without_its_header_reads_the_same(tmp_path: Path, layout: FileLayout, at: int) -> None:
    order = layout.orders[at]
    stated, bare = tmp_path / "stated.csv", tmp_path / "bare.csv"
    stated.write_text(f"{','.join(order)}\n{row(layout, order)}\n")
    bare.write_text(f"{row(layout, order)}\n")

    expected, _ = read(stated, layout)
    found, issues = read(bare, layout)

    assert expected is not None
    assert found is not None
    assert found.rows() == expected.rows()
    assert issues == ["note"]
    assert header_of(bare, layout) == list(order)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_other_numbers_of_columns_are_refused(tmp_path: Path, layout: FileLayout) -> None:
    path = tmp_path / "bare.csv"
    longest = max(map(len, layout.orders))
    path.write_text(",".join(str(at) for at in range(longest + 2)) + "\n")

    found, issues = read(path, layout)

    assert found is None
    assert issues == ["error"]


def left_out(path: Path, layout: FileLayout, text: str) -> tuple[pl.DataFrame, list[tuple[str, str]]]:
    """What is read of a text, and the severity and problem of its issues."""
    path.write_text(text)
    sink = MemorySink("test")
    found = read_csv(path, layout, sink)
    assert found is not None
    issues = sink.close().get("issues")
    return found, [] if issues is None else issues.select("severity", "problem").rows()


@pytest.mark.parametrize(
    ("header", "repeated"),
    [
        pytest.param("kernel_type,total_time(ms),execution_frequency,total_time(us)", "total_time", id="the same name"),
        pytest.param("kernel_type,total_time,execution_frequency,TotalTime", "totaltime", id="written differently"),
        pytest.param("kernel_type,total_time,execution_frequency,execution_time", "execution_time", id="another name"),
    ],
)
def test_a_column_that_means_the_same_as_the_one_that_is_read_is_told(
    tmp_path: Path, header: str, repeated: str
) -> None:
    found, issues = left_out(tmp_path / "types.csv", TYPES, f"{header}\nMatMul,2.0,4,2000.0\n")

    assert found["total_ns"].to_list() == [2_000_000]
    assert issues == [("warning", f"columns that mean the same as others, which are read, are left out: {repeated}")]


def test_columns_that_files_have_side_by_side_are_not_told(tmp_path: Path) -> None:
    text = "op_full_name,FLOPs,FLOPS,FLOPS_Utilization\nDefault/MatMul-op1,5.0,3.0,0.1\n"

    found, issues = left_out(tmp_path / "flops.txt", flops._LAYOUT, text)

    assert found.height == 1
    assert issues == []
