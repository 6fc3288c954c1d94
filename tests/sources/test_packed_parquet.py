"""Parquet files of the compiled writer are read by Polars as what was written."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from stepscope.sources.native import library, parquet
from stepscope.sources.native.library import Refused
from stepscope.sources.native.parquet import write_packed

pytestmark = pytest.mark.skipif(not library.is_available(), reason="no compiled decoder here")

TEXT = st.one_of(st.text(max_size=30), st.sampled_from(["", "aten::mm", "cudaLaunchKernel", "é" * 40, "x" * 300]))
VALUES: dict[type[pl.DataType], st.SearchStrategy[Any]] = {
    pl.Int16: st.integers(-(2**15), 2**15 - 1),
    pl.Int32: st.one_of(st.integers(-3, 9), st.integers(-(2**31), 2**31 - 1)),
    pl.Int64: st.one_of(st.integers(-3, 9), st.integers(-(2**63), 2**63 - 1)),
    pl.Float64: st.floats(),
    pl.Boolean: st.booleans(),
    pl.String: TEXT,
}


def read_back(frame: pl.DataFrame, directory: Path) -> pl.DataFrame:
    write_packed(frame, directory / "rows.parquet")
    return pl.read_parquet(directory / "rows.parquet")


@given(dtype=st.sampled_from(list(VALUES)), data=st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_values_come_back(tmp_path: Path, dtype: type[pl.DataType], data: st.DataObject) -> None:
    some = data.draw(st.lists(st.one_of(st.none(), VALUES[dtype]), min_size=1, max_size=20))
    turns = data.draw(st.lists(st.tuples(st.integers(0, len(some) - 1), st.integers(1, 70)), min_size=1, max_size=12))
    values = [some[place] for place, times in turns for _ in range(times)]
    frame = pl.DataFrame({"a": pl.Series(values, dtype=dtype), "n": range(len(values))})

    assert_frame_equal(read_back(frame, tmp_path), frame)


def made_up(rows: int, seed: int) -> pl.DataFrame:
    """Columns like those of tables, with repeated and rising values, runs and nulls."""
    rng = random.Random(seed)
    names = [f"operator {n}" * (n % 4) for n in range(50)]
    start = 1_700_000_000 * 10**9
    columns: dict[str, pl.Series] = {
        "start_ns": pl.Series([start := start + rng.randrange(10**6) for _ in range(rows)]),
        "row": pl.Series(range(rows)),
        "back": pl.Series(range(rows, 0, -1), dtype=pl.Int32),
        "duration_ns": pl.Series([rng.choice((1, 5, 1000, 123_456)) for _ in range(rows)]),
        "any": pl.Series([rng.randrange(-(2**63), 2**63) for _ in range(rows)]),
        "name": pl.Series([names[n % 37 if n % 11 else rng.randrange(50)] for n in range(rows)]),
        "shape": pl.Series([rng.choice((None, "[[2, 3]]", "[[2, 3], [3, 5], [], 7]")) for _ in range(rows)]),
        "step": pl.Series([n // 100 if n % 1000 < 900 else None for n in range(rows)], dtype=pl.Int32),
        "ratio": pl.Series([rng.choice((None, 0.5, 1.0)) for _ in range(rows)], dtype=pl.Float64),
        "exact": pl.Series([rng.random() for _ in range(rows)]),
        "late": pl.Series([None] * (rows - 1) + [7], dtype=pl.Int16),
        "is_late": pl.Series([rng.choice((None, True, False)) for _ in range(rows)], dtype=pl.Boolean),
        "none": pl.Series([None] * rows, dtype=pl.String),
    }
    return pl.DataFrame(columns)


@pytest.mark.parametrize("rows", [1, 2, 31, 32, 33, 127, 128, 129, 130, 257, 1000, 20_000])
def test_columns_of_any_length_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    frame = made_up(rows, rows)

    assert_frame_equal(read_back(frame, tmp_path), frame)
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 100)
    assert_frame_equal(read_back(frame, tmp_path), frame)


def test_parts_of_columns_and_columns_in_pieces_come_back(tmp_path: Path) -> None:
    frame = made_up(3000, 1)
    pieces = pl.concat([frame[5:17], frame[200:1000], frame[13:14]], rechunk=False)

    assert_frame_equal(read_back(pieces, tmp_path), pieces)
    assert_frame_equal(read_back(frame[7:2001], tmp_path), frame[7:2001])


def test_rows_are_found_by_queries(tmp_path: Path) -> None:
    frame = made_up(5000, 2)
    write_packed(frame, tmp_path / "rows.parquet")

    wanted = pl.col("step").is_between(3, 7) & (pl.col("shape") == "[[2, 3]]")
    found = pl.scan_parquet(tmp_path / "rows.parquet").filter(wanted).select("name", "row").collect()

    assert_frame_equal(found, frame.filter(wanted).select("name", "row"))


def test_other_columns_are_left_to_polars(tmp_path: Path) -> None:
    texts = pl.Series([f"call {n}" for n in range(50_000)])
    for column in (pl.Series([[1]]), pl.Series([1], dtype=pl.UInt8), texts, pl.Series([], dtype=pl.Int64)):
        with pytest.raises(Refused):
            write_packed(pl.DataFrame({"n": column}), tmp_path / "rows.parquet")
    assert not (tmp_path / "rows.parquet").exists()
