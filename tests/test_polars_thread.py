"""Work inside the thread of Polars."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import polars as pl
import pytest

from stepscope.ingest.polars_thread import in_polars_thread
from stepscope.processes import WorkerProcess, starting


def test_its_result_comes_back_from_another_thread() -> None:
    here = threading.get_ident()

    assert in_polars_thread(lambda: (threading.get_ident() == here, "text")) == (False, "text")


@pytest.mark.parametrize("error", [ValueError("so it is"), MemoryError(), KeyboardInterrupt(), SystemExit(3)])
def test_what_it_raises_keeps_its_type(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        in_polars_thread(fail)

    assert raised.value is error


def test_a_panic_in_polars_is_raised_as_such() -> None:
    def panic() -> None:
        pl.DataFrame({"a": [1]}).with_columns(pl.col("a").map_batches(_panic, return_dtype=pl.Int64), b=1)

    with pytest.raises(pl.exceptions.PanicException):
        in_polars_thread(panic)


def _panic(_: pl.Series) -> pl.Series:
    raise pl.exceptions.PanicException("as if Polars had one")


QUERIES = """
import polars as pl
from stepscope.ingest.polars_thread import in_polars_thread

def queries():
    frame = pl.DataFrame({"key": ["a", "b"] * 50_000, "value": range(100_000)})
    for engine in ("in-memory", "streaming"):
        grouped = frame.lazy().filter(pl.col("value") % 3 == 0).group_by("key").agg(pl.col("value").sum())
        assert grouped.sort("value", "key").collect(engine=engine).height == 2
    joined = frame.join(frame, on="value").sort("key", "value")
    assert joined.partition_by("key")[0].height == 50_000
    return frame.filter(pl.col("key") == "a").height

assert pl.thread_pool_size() == 1
print(in_polars_thread(queries))
"""


def test_queries_of_all_kinds_finish_where_polars_has_one_thread() -> None:
    one = {**os.environ, "POLARS_MAX_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", QUERIES], env=one, capture_output=True, timeout=60, check=False)

    assert (done.stdout, done.stderr) == (b"50000\n", b"")


def nest() -> None:
    """What a worker does: parse very deep JSON inside the thread of Polars."""
    sys.setrecursionlimit(100_000)
    depth = 30_000
    in_polars_thread(lambda: json.loads("[" * depth + "]" * depth))
    sys.stdout.write("parsed")
    sys.stdout.flush()


def test_workers_have_room_for_deep_recursion() -> None:
    worker = WorkerProcess(starting(f"{nest.__module__}:nest"), 1)
    try:
        assert worker.stdout.read() == b"parsed"
    finally:
        worker.end()
