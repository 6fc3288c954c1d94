"""The same recording gets the same answers, whatever the order of rows, hashes and threads happen to be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

import asking
from every_format import FORMATS, SHARED
from stepscope import Run
from unordered import shuffled_polars

EVERYTHING = "STEPSCOPE_TEST_EVERY_RECORDING"
"""Set this variable to ask about all recordings beside the repository."""

SEEDS = (1, 2) if os.environ.get(EVERYTHING) else (1,)
PROCESSES: tuple[Mapping[str, str], ...] = tuple(
    {"PYTHONHASHSEED": seed, "POLARS_MAX_THREADS": threads, "STEPSCOPE_WORKERS": threads}
    for seed, threads in (("0", "1"), ("77", "8"))
)
"""Reading uses as many threads as Polars, and so does answering (`asking.py`)."""

IN_ORDER: Mapping[str, tuple[str, ...]] = {
    "memory_curve": ("time_ns", "component", "device"),  # what an allocator did at one moment, it did in this order
    "input_pipeline": ("operator", "time_ns"),  # samples without a time
    "operator_steps": ("rank",),  # executions have no times
}
"""Rows of a table that agree in these columns have an order of their own; others may come in any."""


def recordings(shared: Path) -> list[Path]:
    """Recordings beside the repository."""
    if not os.environ.get(EVERYTHING):
        return [shared / "data" / name for name in SHARED]
    folders = ("ascend", "mindspore", "mindspore_profiles", "pytorch", "pytorch/single")
    found = [path for folder in folders for path in sorted((shared / "data" / folder).iterdir())]
    return [path for path in found if path.suffix != ".md" and path.name != "single"]


def assert_same(path: Path) -> None:
    """That reading a recording, and asking about it, gives the same in any order of rows."""
    for run in asking.opened(path):
        rows = asking.tables(run)
        frames = {rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in run.ranks}
        told = asking.answers(Run.from_frames(frames))  # such a run knows less of where it comes from
        for seed in SEEDS:
            with shuffled_polars(seed):
                (again,) = [one for one in asking.opened(path) if one.path == run.path and one.name == run.name]
                differing(rows, asking.tables(again))
                differing(told, asking.answers(Run.from_frames(frames)))
            mixed = {rank: {name: shuffled(name, t, seed) for name, t in of.items()} for rank, of in frames.items()}
            differing(told, asking.answers(Run.from_frames(mixed)))


def differing(told: Mapping[str, object], again: Mapping[str, object]) -> None:
    """Name the answers that differ."""
    assert told.keys() == again.keys()
    assert [question for question in told if told[question] != again[question]] == []


def shuffled(name: str, table: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The rows of a table in another order, except those that have one of their own."""
    order = pl.int_range(table.height, eager=True).alias("row").shuffle(seed=seed)
    if name in IN_ORDER:
        rows = table[order].with_columns(row=order)
        order = rows.select(pl.col("row").sort().over(IN_ORDER[name])).to_series()
    return table[order]


@pytest.mark.parametrize("name", FORMATS)
def test_answers_depend_on_no_order_of_rows(tmp_path: Path, name: str) -> None:
    FORMATS[name](tmp_path)

    assert_same(tmp_path)


def test_answers_about_real_recordings_depend_on_no_order_of_rows(shared: Path) -> None:
    for path in recordings(shared):
        assert_same(path)


def test_every_process_gives_the_same_answers(tmp_path: Path) -> None:
    for name, write in FORMATS.items():
        write(tmp_path / name)
    paths = [tmp_path / name for name in FORMATS]
    shared = Path(__file__).parents[2] / "shared"
    if shared.is_dir():
        paths += recordings(shared)

    told = [told_by(process, paths) for process in PROCESSES]

    assert told[0]
    for again in told[1:]:
        differing(told[0], again)


def told_by(process: Mapping[str, str], paths: list[Path]) -> dict[str, str]:
    """What a process with these variables answers."""
    done = subprocess.run(
        [sys.executable, asking.__file__, *map(str, paths)],
        env={**os.environ, **process},
        stdout=subprocess.PIPE,
        check=True,
    )
    told: dict[str, str] = json.loads(done.stdout)
    return told
