"""Texts of a database, to which its other tables refer by number."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

MOST_RUNS = 8
"""Of numbers of texts, that are looked up one by one; beyond, by a join."""


class Texts:
    """The texts of a database by their numbers, which come in a few runs, one for each program that wrote some."""

    def __init__(self, rows: pl.DataFrame) -> None:
        ids = rows["id"]
        is_plain = len(ids) > 0 and ids.null_count() == 0 and ids.is_sorted() and ids[-1] - ids[0] + 1 == len(ids)
        if not (is_plain and ids.n_unique() == len(ids)):
            rows = rows.drop_nulls("id").sort("id", maintain_order=True).filter(pl.col("id").is_first_distinct())
            is_plain = False
        self._ids = rows["id"]
        self._texts = rows.select(pl.when(~pl.col("text").is_in(["N/A", ""])).then("text")).to_series()
        bounds = [0] if is_plain else self._ids.diff().ne_missing(1).arg_true().to_list()
        self._runs = [(begin, self._ids[begin], end - begin) for begin, end in pairwise([*bounds, len(self._ids)])]

    def at_once(self, numbers: pl.Series) -> pl.Series | None:
        """The texts of a column of numbers of one run, as most are; None for any other."""
        if not len(numbers) or numbers.null_count():
            return None
        least, most = int(numbers.min()), int(numbers.max())  # type: ignore[arg-type]
        for begin, first, length in self._runs[:MOST_RUNS]:
            if first <= least and most < first + length:
                texts: pl.Series = self._texts[numbers - (first - begin)]
                return texts.alias(numbers.name)
        return None

    def of(self, column: str) -> pl.Expr:
        """The texts of a column with numbers; null for those without."""
        number = pl.col(column)
        if not 0 < len(self._runs) <= MOST_RUNS:
            return number.replace_strict(self._ids, self._texts, default=None, return_dtype=pl.String)
        places = [
            pl.when(number.is_between(first, first + length - 1)).then(number - (first - begin))
            for begin, first, length in self._runs
        ]
        return pl.lit(self._texts).gather(pl.coalesce(*places)).alias(column)
