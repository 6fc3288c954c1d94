"""Figures of clusters draw the numbers that MindInsight answers on the same directories, in its six digits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepscope.figures import figure_named
from stepscope.figures.base import Drawn
from stepscope.run import open_run

SHARED = Path(__file__).parents[3] / "shared"
GOLDEN, DATA = SHARED / "golden" / "mindinsight", SHARED / "data" / "mindspore"
PIPELINE, DATA_PARALLEL = "real_cluster_pipeline4", "synthetic_dp4"

pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason="no folder of reference answers beside the repository")


def answered(name: str, job: str) -> Any:
    return json.loads((GOLDEN / job / f"{name}.json").read_text())["response"]


def drawn(name: str, job: str, **options: Any) -> Drawn:
    return figure_named(name).drawn(open_run(DATA / job / "profiler"), **options)


def bars(one: Drawn) -> list[list[float]]:
    """The heights of each part, by rank."""
    return [trace["y"] for trace in one.spec["data"] if trace["type"] == "bar"]


def test_parts_of_a_step_of_a_pipeline_are_the_same() -> None:
    theirs = sorted(answered("cluster_step_step2_sorted", PIPELINE)["info"], key=lambda row: row["rank_id"])
    computing, receiving, collective = bars(drawn("rank-steps", PIPELINE, step=2, split="activity"))

    for at, row in enumerate(theirs):
        _, computation, alone, _, receive_alone, collective_alone = row["step_bottleneck_info"]
        assert computing[at] == pytest.approx(computation, rel=1e-5)
        assert (receiving[at], collective[at]) == pytest.approx((receive_alone, collective_alone), rel=1e-5)
        assert receiving[at] + collective[at] == pytest.approx(alone, rel=1e-5)


def test_phases_of_a_step_are_the_same() -> None:
    theirs = sorted(answered("cluster_step_step2_sorted", DATA_PARALLEL)["info"], key=lambda row: row["rank_id"])
    parts = bars(drawn("rank-steps", DATA_PARALLEL, step=2, split="phase"))

    for at, row in enumerate(theirs):
        expected = row["step_trace_info"][:3]
        assert [part[at] for part in parts] == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize("job", [PIPELINE, DATA_PARALLEL])
@pytest.mark.parametrize("step", [1, 2])
def test_communication_and_waiting_are_the_same(job: str, step: int) -> None:
    theirs = sorted(answered(f"cluster_communication_step{step}", job)["communication"], key=lambda row: row["rank_id"])
    shown = drawn("rank-communication", job, step=step)
    unit = {"(ms)": 1, "(s)": 1000}[shown.spec["layout"]["yaxis"]["title"]["text"].split()[-1]]
    sent, waited = bars(shown)

    for at, row in enumerate(theirs):
        assert (sent[at] * unit, waited[at] * unit) == pytest.approx(tuple(row["communication_info"][:2]), rel=1e-5)


def test_cells_of_flops_are_the_same() -> None:
    """Of the other job, what its profile states of a rank is not what its operators add up to; we believe these."""
    shares = drawn("rank-flops", PIPELINE).spec["data"][0]["z"][0]

    for row in answered("cluster_flops", PIPELINE):
        assert shares[row["rank_id"]] / 100 == pytest.approx(row["FLOPs_norm"], rel=1e-3)


def test_cells_of_memory_are_the_same() -> None:
    shares = drawn("rank-memory", DATA_PARALLEL).spec["data"][0]["z"][0]

    for row in answered("cluster_peak_memory", DATA_PARALLEL):
        assert shares[row["rank_id"]] / 100 == pytest.approx(row["peak_mem"] / row["capacity"], rel=1e-3)


def test_cells_of_links_are_the_same() -> None:
    time = drawn("link-matrix", DATA_PARALLEL, step=1, value="time").spec["data"][0]["z"]
    rate = drawn("link-matrix", DATA_PARALLEL, step=1, value="bandwidth").spec["data"][0]["z"]

    for ends, _, ms, _, kb_per_s in answered("cluster_link_dst_regex", DATA_PARALLEL)["cluster_link_info"]:
        source, end = map(int, ends.split("-"))
        if source != end:
            assert time[source][end] == pytest.approx(ms, rel=1e-3)
            assert rate[source][end] == pytest.approx(kb_per_s / 1e3, rel=1e-3)
