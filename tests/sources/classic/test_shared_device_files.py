"""What is known of real profiles of devices: steps, calls, kernels and operators."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from device_files import Read

from stepscope import open_run


@pytest.fixture
def profiles(shared: Path) -> Path:
    """The folder of classic profiles."""
    return shared / "data" / "mindspore"


@pytest.fixture
def answers(shared: Path) -> Path:
    """What another tool answers about them."""
    return shared / "golden" / "mindinsight"


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
def test_operators_are_those_of_another_tool(profiles: Path, answers: Path, rank: int) -> None:
    response = json.loads((answers / "synthetic_dp4" / f"ops_aicore_detail_dev{rank}.json").read_bytes())["response"]

    rows = Read(profiles / "synthetic_dp4" / "profiler", rank).totals("AI_CORE", "operator")

    mean_us = pl.col("total_ns") / pl.col("count") / 1e3
    rates = {"mega": pl.col("cube_flops") / 1e6, "rate": pl.col("cube_flops") / mean_us / 1e3}
    ours = rows.select("framework_name", "name", "type", mean_us, "count", **rates).rows()
    assert len(ours) == response["size"]
    for mine, theirs in zip(ours, response["object"], strict=True):
        assert mine == pytest.approx(tuple(theirs[:7]), abs=5.1e-4)
