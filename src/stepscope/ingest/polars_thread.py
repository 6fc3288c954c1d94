"""Work inside the thread of Polars, so that its many small steps need no change of threads.

Polars hands most operations to threads of its own and waits for them. That costs some 100 us each time, ten times
what an operation on a small table takes. What already runs in such a thread is carried out where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import polars as pl

Result = TypeVar("Result")

_ROW = pl.DataFrame({"asked": [0], "other": [0]})
"""Of several columns Polars makes each in one of its threads, of a single one in the caller's."""


def in_polars_thread(work: Callable[[], Result]) -> Result:
    """What `work` returns or raises, carried out in a thread of Polars.

    Only for a process in which Polars has one thread, and for work that waits for no other thread that uses Polars:
    that one would wait for its turn forever. Ctrl-C comes through only afterwards.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def carry_out(column: pl.Series) -> pl.Series:
        try:
            results.append(work())
        except BaseException as error:  # raised below, as Polars would change its type
            errors.append(error)
        return column

    _ROW.select(pl.col("asked").map_batches(carry_out, return_dtype=pl.Int64), "other")
    for error in errors:
        raise error
    return results[0]
