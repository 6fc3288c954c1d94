"""Chunks of a spool have the same rows, whether parts are read where they are or written again."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from stepscope.sources.cutting import Bounds, Chunks, ahead
from stepscope.sources.parts import HeldPart
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
    parts = [HeldPart(pl.DataFrame({"n": [n]})) for n in (1, 2)]

    chunks = Chunks(parts, [None, Bounds(1, 1)], lambda _, frame: frame["n"], lambda: tmp_path)

    assert [[frame.rows() for frame in chunks.take(number)] for number in (0, 1)] == [[], [[(2,)]]]


@pytest.mark.parametrize("workers", [1, 2])
def test_items_that_are_made_ahead_come_in_order_and_so_does_an_error(workers: int) -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise OSError("no room")

    found = []
    with pytest.raises(OSError, match="no room"):
        for item in ahead(items(), workers):
            found.append(item)
    assert found == [0, 1, 2]
    assert list(ahead(iter(range(3)), workers)) == [0, 1, 2]


def test_what_is_made_ahead_ends_with_its_user() -> None:
    before = threading.active_count()

    with closing(ahead(iter(range(9)), 2)) as items:
        assert next(items) == 0

    assert threading.active_count() == before
