"""Own times of ranks with noise, faults and random stalls."""

from __future__ import annotations

import random

import polars as pl

MS = 1_000_000


def cells(kind: str, ranks: int, steps: int, slow=None, *, stalls: float = 0.0) -> pl.DataFrame:
    """Own times of about 50 ms with noise of 1 % and stalls of 5 ms, the same at every call.

    Args:
        slow: Factors by rank and step, counted from 1.
    """
    chance, rows = random.Random(kind), []
    for step in range(1, steps + 1):
        common = 50 * chance.gauss(1, 0.05)
        for rank in range(ranks):
            ms = common * (slow or {}).get((rank, step), 1) * chance.gauss(1, 0.01) + 5 * (chance.random() < stalls)
            rows.append((rank, step, kind, round(ms * MS)))
    schema = {"rank": pl.Int32, "step": pl.Int32, "kind": pl.String, "own_ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")
