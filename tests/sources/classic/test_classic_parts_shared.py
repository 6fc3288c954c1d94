"""Memory, host events, dynamic shapes and advice in sample profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from parts import taken
from stepscope.sources.classic import ClassicSource

GIB = 1 << 30


def read(directory: Path, rank: int = 0) -> tuple[dict[str, pl.DataFrame], list[tuple[str, str]]]:
    """Tables and issues of one rank."""
    found = ClassicSource().find(directory, [entry.name for entry in directory.iterdir()])
    assert found is not None
    item = next(item for item in found.inputs if item.label == f"rank {rank}")
    return taken(lambda sink: ClassicSource().read(item, sink))


def golden(shared: Path, run: str, request: str) -> Any:
    """What MindInsight answered."""
    return json.loads((shared / "golden" / "mindinsight" / run / f"{request}.json").read_bytes())["response"]


@pytest.mark.parametrize("rank", range(4))
def test_the_memory_curve_and_its_totals_are_those_of_mindinsight(shared: Path, rank: int) -> None:
    tables, _ = read(shared / "data/mindspore/synthetic_dp4/profiler", rank)
    curve = golden(shared, "synthetic_dp4", f"memory_graphics_dev{rank}")["1"]
    totals = golden(shared, "synthetic_dp4", f"memory_summary_dev{rank}")["summary"]

    nodes = tables["graph_nodes"].sort("node")
    assert (nodes["total_bytes"] / GIB).to_list() == pytest.approx(curve["lines"], abs=1e-9)
    assert tables["graphs"].select("forward_start", "backward_end").row(0) == (curve["fp_start"], curve["bp_end"])
    stated = dict(tables["rank_figures"].drop_nulls("value").select("name", "value").iter_rows())
    assert stated["memory_peak_bytes"] / GIB == pytest.approx(totals["peak_mem"], abs=1e-9)
    assert stated["memory_capacity_bytes"] == totals["capacity"] * GIB


def test_lifetimes_of_tensors_make_up_the_memory_at_each_node(shared: Path) -> None:
    tables, _ = read(shared / "data/mindspore/synthetic_dp4/profiler")

    living = tables["graph_nodes"].join_where(
        tables["graph_tensors"].select("life_start", "life_end", tensor_bytes="size_bytes"),
        pl.col("life_start") <= pl.col("node"),
        pl.col("life_end") >= pl.col("node"),
    )
    sums = living.group_by("node").agg(pl.col("tensor_bytes").sum(), pl.col("total_bytes").first())
    static = tables["graphs"]["static_bytes"].item()
    assert sums.height == tables["graph_nodes"].height
    assert (sums["tensor_bytes"] + static == sums["total_bytes"]).all()


def test_host_events_pair_as_mindspore_paired_them(shared: Path) -> None:
    directory = shared / "data/mindspore/synthetic_dp4/profiler"
    tables, _ = read(directory)
    drawn = json.loads((directory / "host_info" / "timeline_0.json").read_bytes())

    ranges = tables["host_events"].drop_nulls("duration_ns")
    own = {(start // 1000, length // 1000) for start, length in ranges.select("start_ns", "duration_ns").iter_rows()}
    assert own == {(event["ts"], event["dur"]) for event in drawn if event["ph"] == "X"}
    assert tables["host_events"].height - ranges.height == sum(event["ph"] != "X" for event in drawn)


def test_executions_of_dynamic_shapes_are_all_there(shared: Path) -> None:
    real, _ = read(shared / "data/mindspore/real_mixed_dev0_1_10/profiler")
    made, _ = read(shared / "data/mindspore/synthetic_dynamic1/profiler")

    told = golden(shared, "real_mixed_dev0_1_10", "dynamic_shape_detail_dev0")
    rows = real["operator_steps"].filter(pl.col("unit") == "CUDA")
    assert (rows["duration_ns"] / 1000).to_list() == pytest.approx(
        [k["dur"] for step in told["kernel"].values() for k in step]
    )
    assert rows["block"].unique().to_list() == ["256,1,1"]
    first = made["operator_steps"].filter(pl.col("name") == "MatMul-op1")
    assert (first["duration_ns"] / 1e6).to_list() == pytest.approx([0.2246, 0.2484, 0.259, 0.2885, 0.248, 0.2845])
    assert "AICPUModel" in made["rank_figures"].filter(pl.col("name") == "recommendation")["text"].item()
