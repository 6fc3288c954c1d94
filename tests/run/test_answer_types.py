"""What `Run.analyse` returns, for a type checker: mypy checks this file, and pytest runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import polars as pl

from stepscope.analysis import breakdown
from stepscope.run import Run
from stepscope.tables import KERNELS

if sys.version_info >= (3, 11):
    from typing import assert_type
else:
    from typing_extensions import assert_type


def lazy(kernels: pl.LazyFrame) -> pl.LazyFrame:
    return kernels


def count(kernels: pl.LazyFrame, least_ns: int = 0) -> int:
    return int(kernels.filter(pl.col("duration_ns") >= least_ns).collect().height)


def names(kernels: pl.LazyFrame) -> Iterator[str]:
    yield from kernels.collect()["name"]


def test_the_type_of_an_answer_is_that_of_the_question() -> None:
    kernel = KERNELS.frame(kernel=[0], start_ns=[0], duration_ns=[1], kind=["compute"], name=["k"])
    run = Run.from_frames({0: {"kernels": kernel}})

    by_name = assert_type(run.analyse("kernel_totals"), pl.DataFrame)
    number = assert_type(run.analyse(count, least_ns=1), int)
    listed = assert_type(run.analyse(names), list[str])
    frame = assert_type(run.analyse(lazy), pl.DataFrame)

    assert (by_name.height, number, listed, frame.height) == (1, 1, ["k"], 1)


def by_function(run: Run) -> pl.DataFrame:
    return assert_type(run.analyse(breakdown), pl.DataFrame)
