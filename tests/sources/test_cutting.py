"""Chunks of a spool have the same rows, whether parts are read where they are or written again."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from stepscope.sources.cutting import Bounds, Chunks
from stepscope.sources.spool import Spool

CHUNKS = 6


@pytest.mark.parametrize("disorder", [0, 10, 1000])
@pytest.mark.parametrize("memory_bytes", [0, 1 << 20])
def test_each_row_is_in_its_chunk_and_in_order(tmp_path: Path, disorder: int, memory_bytes: int) -> None:
    rng = random.Random(disorder)
    spool: Spool[str] = Spool(lambda: tmp_path, memory_bytes)
    rows = [(n, min(CHUNKS - 1, max(0, n + rng.randint(-disorder, disorder)) * CHUNKS // 1000)) for n in range(1000)]
    rows = [(n, None if n % 97 == 5 else chunk) for n, chunk in rows]
    for start in range(0, 1000, 50):
        spool.add("a", pl.DataFrame(rows[start : start + 50], schema=["n", "chunk"], orient="row"))
    parts = spool.taken_parts("a")
    known = [part.frame()["chunk"].drop_nulls().to_list() for part in parts]
    bounds = [
        Bounds(min(chunks), max(chunks), len(chunks) < part.rows) for chunks, part in zip(known, parts, strict=True)
    ]

    chunks = Chunks(parts, bounds, lambda _, frame: frame["chunk"], lambda: tmp_path)
    found = [[row for frame in chunks.take(number) for row in frame.rows()] for number in range(CHUNKS)]

    assert found == [[row for row in rows if row[1] == number] for number in range(CHUNKS)]
    assert not list(tmp_path.iterdir())


def test_parts_in_no_chunk_are_left_out(tmp_path: Path) -> None:
    spool: Spool[str] = Spool(lambda: tmp_path)
    spool.add("a", pl.DataFrame({"n": [1]}))
    spool.add("a", pl.DataFrame({"n": [2]}))

    chunks = Chunks(spool.taken_parts("a"), [None, Bounds(1, 1)], lambda _, frame: frame["n"], lambda: tmp_path)

    assert [[frame.rows() for frame in chunks.take(number)] for number in (0, 1)] == [[], [[(2,)]]]
