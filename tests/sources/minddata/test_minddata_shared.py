"""Data preparation in profiles of MindSpore itself, and in made ones of its formats."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from parts import golden, taken
from stepscope.sources.minddata.files import Clock, MinddataFiles
from stepscope.sources.minddata.write import write_minddata

MS = 1_000_000
CLASSIC = "data/mindspore/real_minddata_ms210_train/profiler"
RECORDED = "data/mindspore_profiles/2.10.0-minddata_train"


def read(directory: Path) -> tuple[dict[str, pl.DataFrame], list[tuple[str, str]]]:
    """Tables and issues of the files in a directory, of rank 0 if there are several: its names sort first."""
    return taken(lambda sink: write_minddata(MinddataFiles.within(directory), Clock(), sink))


@pytest.mark.parametrize("directory", [CLASSIC, RECORDED])
def test_a_real_training_on_2_10_has_its_empty_queue_and_its_use_of_the_cpu(shared: Path, directory: str) -> None:
    tables, issues = read(shared / directory)

    batches = tables["input_pipeline"].filter(pl.col("operator") == "dataset_iterator")
    assert batches.height == 100
    assert batches.filter(pl.col("queue_size") == 0).height == 44
    assert batches["step"].to_list() == list(range(1, 101))
    assert tables["pipeline_operators"]["operator"].to_list()[::5] == ["EpochCtrlOp_0", "GeneratorOp_5"]
    host = tables["host_usage"].filter(pl.col("scope") == "host")
    assert host["context_switches"].to_list()[:5] == [None, 568, 217, 179, 296]
    assert host["runnable"].null_count() == 0
    assert host["user_ratio"].null_count() == 15  # the first, and the half that the file lost
    busy = host.with_columns(all=pl.sum_horizontal(pl.col("^(user|system|idle|io)_ratio$"))).drop_nulls("user_ratio")
    assert busy["all"][1:].is_between(0.98, 1.02).all()
    process = tables["host_usage"].filter(pl.col("scope") == "process")
    both = host.join(process, on="time_ns", suffix="_process").drop_nulls(["user_ratio", "user_ratio_process"])
    assert (both["user_ratio_process"] <= both["user_ratio"] + 0.02).all()
    assert issues == [("note", "minddata_cpu_utilization_0.json")]


def test_the_recorded_pipeline_gives_the_queues_of_the_analysed_one(shared: Path) -> None:
    analysed, _ = read(shared / CLASSIC)
    recorded, _ = read(shared / RECORDED)

    assert recorded["pipeline_operators"].equals(analysed["pipeline_operators"])
    assert recorded["input_pipeline"].equals(analysed["input_pipeline"])


@pytest.mark.parametrize("run", ["synthetic_dp4", "synthetic_gpu1"])
def test_queues_and_costs_are_those_of_mindinsight(shared: Path, run: str) -> None:
    tables, issues = read(shared / "data" / "mindspore" / run / "profiler")

    rows = tables["input_pipeline"]
    for kind in ("device_queue", "get_next"):
        own = rows.filter(pl.col("operator") == kind)
        queue = golden(shared, run, f"queue_info_{kind}_dev0")
        assert own["queue_size"].to_list() == queue["info"]["queue"]
        empty = queue["summary"]["queue_summary"]["empty_queue"]
        assert own.filter(pl.col("queue_size") == 0).height == empty
    costs = golden(shared, run, "minddata_op_get_next_dev0")["info"]["get_next"]
    own = rows.filter(pl.col("operator") == "get_next")
    assert (own["duration_ns"] / MS).to_list() == pytest.approx(costs, abs=1e-6)
    assert issues == []


def test_samples_of_the_cpu_are_in_the_steps_that_mindinsight_names(shared: Path) -> None:
    tables, _ = read(shared / "data" / "mindspore" / "synthetic_dp4" / "profiler")
    answer = golden(shared, "synthetic_dp4", "minddata_cpu_utilization_dev0")

    host = tables["host_usage"].filter(pl.col("scope") == "host").sort("time_ns")
    batches = tables["input_pipeline"].filter(pl.col("operator") == "device_queue").sort("time_ns")
    steps = host.join_asof(batches.select("time_ns", "step"), on="time_ns")["step"].fill_null(0)

    assert [str(step) for step in steps] == answer["step_info"][1:]  # before the first there is nothing to measure from
    idle = answer["device_info"]["idle_utilization"]["metrics"][1:]
    assert (host["idle_ratio"] * 100).to_list() == pytest.approx(idle)
