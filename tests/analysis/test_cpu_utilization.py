"""CPU of host, process, workers and dataset operators, and the step of each sample."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.run import Run
from stepscope.tables import RANKS
from tests.analysis.inputs import batches, steps, usage_of


def operators() -> pl.DataFrame:
    return pl.concat(
        [usage_of("operator", [0.1, 0.3], name="MapOp_1"), usage_of("operator", [0.2, 0.2], name="BatchOp_2")]
    )


def test_operators_are_summed_at_each_time() -> None:
    found = Run.from_frames({0: {"host_usage": operators()}}).analyse("cpu_utilization")

    total = found.filter(pl.col("scope") == "operators")
    assert total["user_ratio"].to_list() == pytest.approx([0.3, 0.5])
    assert total["busy_processors"].to_list() == pytest.approx([1.2, 2.0])


def test_a_sample_belongs_to_the_last_batch_taken_by_then() -> None:
    tables = {"host_usage": usage_of("host", [0.5] * 4), "input_pipeline": batches("device_queue", [1, 1, 1])}

    found = Run.from_frames({0: tables}).analyse("cpu_utilization")

    assert found["step"].to_list() == [None, 1, 2, 3]  # samples at 5, 15, 25, 35 ms; batches at 10, 20, 30 ms


def test_batches_may_count_from_any_number() -> None:
    late = batches("dataset_iterator", [1, 1]).with_columns(pl.col("batch") + 100)

    found = Run.from_frames({0: {"host_usage": usage_of("host", [0.5] * 3), "input_pipeline": late}})

    assert found.analyse("cpu_utilization")["step"].to_list() == [None, 1, 2]


def test_where_steps_have_the_same_clock_they_count() -> None:
    known = RANKS.frame(start_ns=[0], end_ns=[10**9])
    tables = {"host_usage": usage_of("host", [0.5] * 4), "steps": steps(2, first_ms=10), "ranks": known}

    found = Run.from_frames({0: tables}).analyse("cpu_utilization")

    assert found["step"].to_list() == [None, 1, 2, None]


def test_steps_of_another_clock_do_not_count() -> None:
    tables = {"host_usage": usage_of("host", [0.5] * 2), "steps": steps(4)}

    assert Run.from_frames({0: tables}).analyse("cpu_utilization")["step"].to_list() == [None, None]


def test_some_steps_can_be_chosen_for_samples_and_their_averages() -> None:
    tables = {
        "host_usage": usage_of("host", [0.0, 0.2, 0.4, 0.9]),
        "input_pipeline": batches("device_queue", [1, 1, 1]),
    }
    run = Run.from_frames({0: tables})

    assert run.analyse("cpu_utilization", chosen="1-2")["user_ratio"].to_list() == [0.2, 0.4]
    assert run.analyse("cpu_summary", chosen="1-2")["mean_user_ratio"].to_list() == pytest.approx([0.3])


def test_of_a_selection_of_steps_the_samples_are_theirs() -> None:
    known = RANKS.frame(start_ns=[0], end_ns=[10**9])
    tables = {"host_usage": usage_of("host", [0.5, 0.1, 0.3, 0.9]), "steps": steps(4), "ranks": known}
    run = Run.from_frames({0: tables})

    chosen = run.select(steps="2-3")

    assert chosen.analyse("cpu_utilization").select("step", "user_ratio").rows() == [(2, 0.1), (3, 0.3)]
    assert chosen.analyse("cpu_summary")["max_user_ratio"].to_list() == [0.3]
    assert chosen.analyse("cpu_utilization", chosen="3-4")["step"].to_list() == [3]  # of both
    assert chosen.analyse("cpu_utilization", chosen="4").is_empty()
    assert chosen.analyse("cpu_utilization", chosen="all").height == 2


def test_samples_whose_step_is_unknown_stay() -> None:
    tables = {"host_usage": usage_of("host", [0.5] * 2), "steps": steps(4)}

    assert Run.from_frames({0: tables}).select(steps=3).analyse("cpu_utilization").height == 2


def test_averages_are_of_what_is_known() -> None:
    half = usage_of("host", [0.2, 0.4, 0.6]).with_columns(
        user_ratio=pl.Series([0.2, 0.4, None]), system_ratio=pl.Series([None, None, None], dtype=pl.Float64)
    )

    row = Run.from_frames({0: {"host_usage": half}}).analyse("cpu_summary").row(0, named=True)

    assert (row["samples"], row["mean_user_ratio"], row["max_user_ratio"]) == (3, pytest.approx(0.3), 0.4)
    assert row["mean_system_ratio"] is None
    assert row["max_busy_processors"] == pytest.approx(1.6)


def test_samples_of_memory_alone_are_no_samples_of_the_cpu() -> None:
    memory = usage_of("process", [0.1]).with_columns(
        pl.lit(None, pl.Float64).alias("user_ratio"), pl.lit(None, pl.Float64).alias("system_ratio"), rss_bytes=5
    )

    assert Run.from_frames({0: {"host_usage": memory}}).analyse("cpu_utilization").is_empty()
