"""The same run, written as text and as database, becomes the same tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ascend_files import read

from stepscope.sources.ascend import AscendDb, AscendText

Both = tuple[dict[str, pl.DataFrame], dict[str, pl.DataFrame], dict[str, Any], dict[str, Any]]
ONLY_ONE_HOLDS = {
    "kernels": {"wait_ns", "launch_start_ns", "launch_end_ns"},
    "operators": {"slice", "self_ns", "sequence", "stack"},
}
"""Columns that one of the two exports of the generated run lacks for some rows; the reasons stand in the package."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    generator = Path(__file__).parents[3] / "shared" / "tools" / "gen_ascend.py"
    if not generator.is_file():
        pytest.skip("no generator of Ascend recordings beside the repository")
    folder = tmp_path_factory.mktemp("ascend")
    size = ["--ranks", "4", "--tp", "2", "--pp", "2", "--steps", "2", "--ops-per-step", "80"]
    for kind in ("text", "db"):
        subprocess.run(
            [sys.executable, str(generator), "--out", str(folder / kind), "--format", kind, *size, "--with-stack"],
            check=True,
            capture_output=True,
        )
    return folder


@pytest.fixture(scope="module", params=range(4))
def both(generated: Path, request: pytest.FixtureRequest) -> Both:
    """Tables and facts of one rank in both formats."""
    text, db = (sorted((generated / kind).glob("*_ascend_pt"))[request.param] for kind in ("text", "db"))
    tables, facts = read(AscendText(), text)
    others, other_facts = read(AscendDb(), db)
    return tables, others, facts, other_facts


@pytest.mark.parametrize(
    "name",
    ["steps", "step_totals", "kernels", "kernel_counters", "collectives", "groups", "transports", "links",
     "operators", "stacks", "counters"],
)  # fmt: skip
def test_a_table_is_the_same(both: Both, name: str) -> None:
    text, db, *_ = both
    kept = [column for column in text[name].columns if column not in ONLY_ONE_HOLDS.get(name, set())]

    differing = [column for column in kept if not text[name][column].equals(db[name][column], null_equal=True)]

    assert differing == []
    assert text[name].height == db[name].height > 0


RANGES = ["start_ns", "duration_ns", "category", "name", "process", "thread", "device", "stream", "step"]
KINDS = ["operator", "gc", "kernel", "memory", "communication"]


@pytest.mark.parametrize(
    ("name", "which", "columns"),
    [
        ("kernels", pl.col("kind") == "compute", ["launch_start_ns", "launch_end_ns"]),
        ("slices", pl.col("category").is_in(KINDS), RANGES),
        ("operator_totals", pl.col("level") == "kernel", pl.all()),
    ],
)
def test_rows_that_both_hold_are_the_same(both: Both, name: str, which: pl.Expr, columns: list[str] | pl.Expr) -> None:
    rows, others = (tables[name].filter(which).select(columns) for tables in both[:2])

    assert rows.equals(others, null_equal=True)


def test_nearly_all_kernels_have_the_same_wait(both: Both) -> None:
    compute, others = (tables["kernels"].filter(kind="compute") for tables in both[:2])

    assert (compute["wait_ns"] == others["wait_ns"]).mean() > 0.5


def test_the_rank_is_the_same_person(both: Both) -> None:
    *_, facts, other_facts = both

    differing = {name for name in facts if facts[name] != other_facts[name]}

    assert differing <= {"format", "device_name", "options"}


def test_windows_are_as_long_as_the_profiler_says(both: Both) -> None:
    text, *_ = both
    stated = text["step_totals"].select("step", length=pl.col("stage_ns") + pl.col("bubble_ns"))

    windows = text["steps"].select("step", length=pl.col("window_end_ns") - pl.col("window_start_ns"))

    both_lengths = windows.join(stated, on="step", suffix="_stated")
    assert both_lengths.height == 2
    assert (both_lengths["length"] - both_lengths["length_stated"]).abs().max() <= 1


def test_nothing_is_wrong_with_either(both: Both) -> None:
    assert all("issues" not in tables for tables in both[:2])
