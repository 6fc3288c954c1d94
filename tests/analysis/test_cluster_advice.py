"""The formulas of MindInsight's cluster advice, and the findings that state them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rank_tables import MS, calls, figures, job, links

from builders import make_run
from stepscope import open_run
from stepscope.advice import advise, worded
from stepscope.analysis.job.cluster_advice import Limits
from stepscope.analysis.methods.call_patterns import Limits as CallLimits
from stepscope.run import Run

RULES = {"step-interval", "flops-per-second", "cluster-link", "communication-rate", "pipeline-flops"}


def said(run: Run, advice: str) -> list[dict[str, Any]]:
    return run.analyse("cluster_advice").filter(advice=advice).rows(named=True)


def found(run: Run) -> dict[str, Any]:
    """What the rules state, by rule and message."""
    return {f"{one.rule}: {one.message}": one for one in advise(run, strict=True) if one.rule in RULES}


def test_an_interval_is_compared_with_the_mean_that_it_is_part_of() -> None:
    (row,) = said(job(), "step_interval")

    assert (row["rank"], row["interval_ns"], row["mean_of"]) == (2, 2 * MS, 4)
    assert row["off_ratio"] == pytest.approx(2 / 1.25 - 1)


def test_a_rank_without_steps_hides_nothing_about_the_others() -> None:
    run = job()
    frames = {rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in run.ranks}
    del frames[0]["steps"], frames[0]["step_totals"]

    (row,) = said(Run.from_frames(frames), "step_interval")

    assert (row["rank"], row["mean_of"]) == (2, 3)


def test_receiving_is_a_share_of_all_ranks_and_collectives_of_those_of_their_stage() -> None:
    run = job()

    (between,) = said(run, "pipeline_parallel_between_stage")
    within = said(run, "pipeline_parallel_within_stage")

    assert between["off_ratio"] == pytest.approx(110 / (160 + 160))  # ranks of 80 ms each, of which 50 and 5
    assert [(row["stage"], row["off_ratio"]) for row in within] == [
        (1, pytest.approx(15 / 80)),
        (0, pytest.approx(10 / 80)),
    ]
    assert not said(run, "data_parallel_communication_rate")


def test_without_a_pipeline_exposed_communication_is_of_data_or_model_parallelism() -> None:
    """Where nothing says how the job is parallel, neither is named."""
    nothing = CallLimits(small_bytes=1 << 40)  # calls show nothing
    unknown = make_run().with_options({"parallel_layout": {"limits": nothing}})

    (row,) = said(unknown, "communication_rate")

    assert row["off_ratio"] == pytest.approx(0.2)
    world = unknown.table("ranks").collect().height
    data = unknown.with_options({"parallel_layout": {"layout": f"dp={world}"}})
    tensor = unknown.with_options({"parallel_layout": {"layout": f"tp={world}"}})
    assert [len(said(one, "data_parallel_communication_rate")) for one in (unknown, data, tensor)] == [0, 1, 0]
    assert [len(said(one, "model_parallel_communication_rate")) for one in (unknown, data, tensor)] == [0, 0, 1]


def test_a_link_is_compared_by_its_bandwidth_and_told_by_the_sum_of_rates_as_well() -> None:
    slow = {(0, 1): (5_000_000, MS)}
    moved = {0: links(slow), 1: links({(1, 0): (20_000_000, MS)}), 2: links({(2, 3): (20_000_000, MS)})}

    (row,) = said(job(links=moved), "cluster_link")

    assert (row["source"], row["destination"], row["transport"]) == (0, 1, "SDMA")
    assert row["off_ratio"] == row["summed_ratio"] == pytest.approx(1 - 5 / 15)


def test_flops_of_ranks_and_stages_are_compared_with_their_means() -> None:
    rates = {0: 4e12, 1: 4e12, 2: 1e12, 3: 4e12}
    stated = {rank: figures(flops=1e9 if rank < 2 else 3e9, flops_per_s=rate) for rank, rate in rates.items()}
    run = job(rank_figures=stated)

    (rate,) = said(run, "flops_per_second")
    (stage,) = said(run, "pipeline_parallel_flops")

    assert (rate["rank"], rate["off_ratio"]) == (2, pytest.approx(1 - 1 / 3.25))
    assert (stage["stage"], stage["off_ratio"]) == (1, pytest.approx(0.5))


def test_limits_can_be_changed() -> None:
    run = job().with_limits({"cluster_advice": Limits(interval_ratio=0.7, between_ratio=0.9, within_ratio=0.9)})

    assert run.analyse("cluster_advice").is_empty()


def test_findings_state_facts_without_a_saving() -> None:
    stated = {rank: figures(flops=1e9 if rank < 2 else 3e9, flops_per_s=1e12) for rank in range(4)}
    moved = {0: links({(0, 1): (5_000_000, MS)}), 1: links({(1, 0): (20_000_000, MS)})}
    run = job(rank_figures=stated, links=moved, communication_totals={0: calls()})

    findings = found(run)

    assert set(findings) == {
        "step-interval: late",
        "cluster-link: slow",
        "communication-rate: pipeline_parallel_between_stage",
        "communication-rate: pipeline_parallel_within_stage",
        "pipeline-flops: more",
    }
    assert {(one.saving_ns, one.severity) for one in findings.values()} == {(0, "low")}
    assert findings["step-interval: late"].where == {"rank": 2}


def test_what_a_replay_tells_is_not_told_again() -> None:
    late = make_run(late={1: 30 * MS})

    assert late.analyse("slow_ranks")["ranks"].to_list() == ["1"]
    assert not found(late)


def test_a_real_pipeline_gets_the_figures_of_mindinsight(shared: Path) -> None:
    run = open_run(shared / "data/mindspore/real_cluster_pipeline4", use_store=False)

    told = " ".join(worded(one).summary + worded(one).cause for one in found(run).values())

    for figure in ("22.23%", "74.26%", "60.30%", "25.82%", "50.94%"):
        assert figure in told
    assert run.analyse("cluster_advice").filter(pl.col("advice") == "step_interval")["rank"][0] == 2
