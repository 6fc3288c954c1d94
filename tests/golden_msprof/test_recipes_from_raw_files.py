"""Statistics over ranks against sums over the raw files, made without our readers."""

from __future__ import annotations

import csv
import json
import sqlite3
import statistics
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stepscope import open_run
from stepscope.run import Run

KERNELS = """SELECT type.value, core.value, t.endNs - t.startNs FROM TASK t
    JOIN COMPUTE_TASK_INFO c ON c.globalTaskId = t.globalTaskId
    JOIN STRING_IDS type ON type.id = c.opType JOIN STRING_IDS core ON core.id = c.taskType"""
SHAPES = """SELECT name.value, shapes.value, t.endNs - t.startNs FROM TASK t
    JOIN COMPUTE_TASK_INFO c ON c.globalTaskId = t.globalTaskId
    JOIN STRING_IDS name ON name.id = c.name JOIN STRING_IDS shapes ON shapes.id = c.inputShapes"""
CALLS = "SELECT 'all_reduce', NULL, endNs - startNs FROM COMMUNICATION_OP"
API = """SELECT name.value, level.name, a.endNs - a.startNs FROM CANN_API a
    JOIN STRING_IDS name ON name.id = a.name JOIN ENUM_API_TYPE level ON level.id = a.type"""

Durations = dict[tuple[Any, Any], list[tuple[int, int]]]


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder with the made-up clusters."""
    found = Path(__file__).parents[3] / "shared" / "data" / "ascend"
    if not found.is_dir():
        pytest.skip("no folder of recordings beside the repository")
    return found


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """The one with databases."""
    return open_run(folder / "db_8rank", use_store=False)


def _durations(folder: Path, query: str) -> Durations:
    """Durations and ranks by the first two columns of a query."""
    found: Durations = defaultdict(list)
    for file in sorted((folder / "db_8rank").glob("*/*/ascend_pytorch_profiler_*.db")):
        rank = int(file.stem.rpartition("_")[2])
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as opened:
            for first, second, length in opened.execute(query):
                found[first, second].append((length, rank))
    return found


def _expected(rows: list[tuple[int, int]]) -> dict[str, float]:
    lengths = sorted(length for length, _ in rows)
    count = len(lengths)
    quartiles = {name: lengths[-(-count * q // 4) - 1] for name, q in (("q1_ns", 1), ("median_ns", 2), ("q3_ns", 3))}
    return {
        "count": count,
        "total_ns": sum(lengths),
        "mean_ns": round(sum(lengths) / count),
        "std_ns": round(statistics.stdev(lengths)),
        "min_ns": lengths[0],
        **quartiles,
        "max_ns": lengths[-1],
        "min_rank": min(rows)[1],
        "max_rank": min(rank for length, rank in rows if length == lengths[-1]),
    }


def _compare(found: list[dict[str, Any]], keys: tuple[str, str], raw: Durations) -> None:
    ours = {tuple(row[key] for key in keys): row for row in found}
    for about, rows in raw.items():
        row = ours[about]
        expected = _expected(rows)
        assert {name: row[name] for name in expected} == expected, about


def test_kernels_by_type(run: Run, folder: Path) -> None:
    raw = _durations(folder, KERNELS)

    assert len(raw) > 10
    _compare(run.analyse("kernel_type_statistics").to_dicts(), ("type", "core"), raw)


def test_kernels_by_name_and_shapes(run: Run, folder: Path) -> None:
    raw = _durations(folder, SHAPES)

    assert len(raw) > 10
    _compare(run.analyse("kernel_statistics").to_dicts(), ("name", "input_shapes"), raw)


def test_calls_by_operation(run: Run, folder: Path) -> None:
    rows = run.analyse("call_statistics").to_dicts()

    _compare([{**row, "none": None} for row in rows], ("operation", "none"), _durations(folder, CALLS))


def test_calls_of_the_runtime(run: Run, folder: Path) -> None:
    raw = _durations(folder, API)
    layers = {"acl": "AscendCL", "node": "Node", "model": "Model", "runtime": "Runtime", "communication": "HCCL"}

    assert len(raw) > 10
    named = {(name, layers[level]): rows for (name, level), rows in raw.items()}
    _compare(run.analyse("api_statistics").to_dicts(), ("name", "layer"), named)


def test_the_statistics_that_a_text_export_states_of_each_rank(folder: Path) -> None:
    run = open_run(folder / "text_8rank", use_store=False)
    ours = {(row["rank"], row["type"], row["core"]): row for row in run.analyse("kernel_type_totals").to_dicts()}
    compared = 0
    for file in (folder / "text_8rank").glob("*/*/op_statistic.csv"):
        rank = json.loads(next(file.parents[1].glob("profiler_info_*.json")).read_text())["rank_id"]
        with file.open() as opened:
            for row in csv.DictReader(opened):
                if row["Core Type"] in ("HCCL", "COMMUNICATION"):
                    continue
                found = ours[int(rank), row["OP Type"], row["Core Type"]]
                stated = [float(row[f"{name} Time(us)"]) for name in ("Total", "Min", "Avg", "Max")]
                assert found["count"] == int(row["Count"])
                assert [found[f"{name}_ns"] / 1e3 for name in ("total", "min", "mean", "max")] == pytest.approx(
                    stated, abs=2e-3
                )
                compared += 1
    assert compared > 80
