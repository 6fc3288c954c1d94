"""What is known of sample profiles: steps, calls, kernels, operators, memory, host events, shapes and advice."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from device_files import Read

from parts import golden, read_rank
from stepscope import open_run

GIB = 1 << 30


@pytest.fixture
def profiles(shared: Path) -> Path:
    """The folder of classic profiles."""
    return shared / "data" / "mindspore"


def test_a_long_profile_of_1_0(profiles: Path) -> None:
    read = Read(profiles / "real_run1_widedeep_lenet" / "profiler", rank=1)

    steps = read.table("steps")
    assert steps.height == 322
    assert steps["recorded"].sum() == 15  # its timeline was cut
    assert read.table("collectives").height == 322 * 11
    kernels = read.table("kernels")
    assert kernels.height == 2817
    assert kernels["start_ns"].min() == 438_068_415_920
    assert read.stated()["timeline_total_ns"] == pytest.approx(kernels["duration_ns"].sum(), rel=1e-9)
    assert read.told("error") == read.told("warning") == []


def test_a_real_pipeline(profiles: Path) -> None:
    run = open_run(profiles / "real_cluster_pipeline4")

    assert run.table("steps").collect().height == 20
    arrival = run.analyse("arrival")
    pairs = arrival.filter(operation="all_reduce").group_by("group", "sequence").agg(pl.col("rank").sort())
    assert set(map(tuple, pairs["rank"].to_list())) == {(0, 1), (2, 3)}  # the stages
    assert arrival.filter(pl.col("operation").is_in(["send", "recv"]))["members"].unique().to_list() == [1]
    totals = run.table("step_totals").filter(pl.col("rank") == 0).sort("step").collect()
    assert totals["computing_and_free_ns"].to_list() == [13_820_200, 14_580_600, 14_811_900, 15_015_900, 14_697_400]


def test_a_mixed_directory(profiles: Path) -> None:
    directory = profiles / "real_mixed_dev0_1_10" / "profiler"

    first, second, third = (Read(directory, rank) for rank in (0, 1, 10))

    assert [read.table("steps").height for read in (first, second, third)] == [20, 0, 40]
    assert first.table("collectives").height == third.table("collectives").height == 80  # recorded in 20 steps only
    assert first.table("kernels").is_empty()  # its timeline has a clock of its own
    assert second.totals("AI_CORE", "operator").height == 10
    assert first.table("flop_scopes").height == 34
    assert [read.told("error") for read in (first, second, third)] == [[], [], []]


@pytest.mark.parametrize(
    ("profile", "rank"),
    [("synthetic_dp4", 3), ("synthetic_gpu1", 0), ("synthetic_hetero1", 0), ("synthetic_dynamic1", 0)],
)
def test_whole_profiles_raise_no_doubt(profiles: Path, profile: str, rank: int) -> None:
    read = Read(profiles / profile / "profiler", rank)

    assert read.told("error") == read.told("warning") == []
    assert read.table("steps").height == 8


@pytest.mark.parametrize("rank", range(4))
def test_operators_are_those_of_another_tool(shared: Path, profiles: Path, rank: int) -> None:
    response = golden(shared, "synthetic_dp4", f"ops_aicore_detail_dev{rank}")

    rows = Read(profiles / "synthetic_dp4" / "profiler", rank).totals("AI_CORE", "operator")

    mean_us = pl.col("total_ns") / pl.col("count") / 1e3
    rates = {"mega": pl.col("cube_flops") / 1e6, "rate": pl.col("cube_flops") / mean_us / 1e3}
    ours = rows.select("framework_name", "name", "type", mean_us, "count", **rates).rows()
    assert len(ours) == response["size"]
    for mine, theirs in zip(ours, response["object"], strict=True):
        assert mine == pytest.approx(tuple(theirs[:7]), abs=5.1e-4)


@pytest.mark.parametrize("rank", range(4))
def test_the_memory_curve_and_its_totals_are_those_of_mindinsight(shared: Path, profiles: Path, rank: int) -> None:
    tables, _ = read_rank(profiles / "synthetic_dp4/profiler", rank)
    curve = golden(shared, "synthetic_dp4", f"memory_graphics_dev{rank}")["1"]
    totals = golden(shared, "synthetic_dp4", f"memory_summary_dev{rank}")["summary"]

    nodes = tables["graph_nodes"].sort("node")
    assert (nodes["total_bytes"] / GIB).to_list() == pytest.approx(curve["lines"], abs=1e-9)
    assert tables["graphs"].select("forward_start", "backward_end").row(0) == (curve["fp_start"], curve["bp_end"])
    stated = dict(tables["rank_figures"].drop_nulls("value").select("name", "value").iter_rows())
    assert stated["memory_peak_bytes"] / GIB == pytest.approx(totals["peak_mem"], abs=1e-9)
    assert stated["memory_capacity_bytes"] == totals["capacity"] * GIB


def test_lifetimes_of_tensors_make_up_the_memory_at_each_node(profiles: Path) -> None:
    tables, _ = read_rank(profiles / "synthetic_dp4/profiler", 0)

    living = tables["graph_nodes"].join_where(
        tables["graph_tensors"].select("life_start", "life_end", tensor_bytes="size_bytes"),
        pl.col("life_start") <= pl.col("node"),
        pl.col("life_end") >= pl.col("node"),
    )
    sums = living.group_by("node").agg(pl.col("tensor_bytes").sum(), pl.col("total_bytes").first())
    static = tables["graphs"]["static_bytes"].item()
    assert sums.height == tables["graph_nodes"].height
    assert (sums["tensor_bytes"] + static == sums["total_bytes"]).all()


def test_host_events_pair_as_mindspore_paired_them(profiles: Path) -> None:
    directory = profiles / "synthetic_dp4/profiler"
    tables, _ = read_rank(directory, 0)
    drawn = json.loads((directory / "host_info" / "timeline_0.json").read_bytes())

    ranges = tables["host_events"].drop_nulls("duration_ns")
    # The raw profile has the same iterations as the step trace, by the clock of the host.
    apart_us = 1_714_528_800_000_000 - 45_000_000_000
    times = ranges.select(pl.col("start_ns", "duration_ns") / 1000)
    own = {(round(start) + apart_us, round(length)) for start, length in times.iter_rows()}
    assert own == {(event["ts"], event["dur"]) for event in drawn if event["ph"] == "X"}
    assert tables["host_events"].height - ranges.height == sum(event["ph"] != "X" for event in drawn)


def test_executions_of_dynamic_shapes_are_all_there(shared: Path, profiles: Path) -> None:
    real, _ = read_rank(profiles / "real_mixed_dev0_1_10/profiler", 0)
    made, _ = read_rank(profiles / "synthetic_dynamic1/profiler", 0)

    told = golden(shared, "real_mixed_dev0_1_10", "dynamic_shape_detail_dev0")
    rows = real["operator_steps"].filter(pl.col("unit") == "CUDA")
    assert (rows["duration_ns"] / 1000).to_list() == pytest.approx(
        [k["dur"] for step in told["kernel"].values() for k in step]
    )
    assert rows["block"].unique().to_list() == ["256,1,1"]
    first = made["operator_steps"].filter(pl.col("name") == "MatMul-op1")
    assert (first["duration_ns"] / 1e6).to_list() == pytest.approx([0.2246, 0.2484, 0.259, 0.2885, 0.248, 0.2845])
    assert "AICPUModel" in made["rank_figures"].filter(pl.col("name") == "recommendation")["text"].item()
