"""What is known of the input, processors and memory of shared profiles, and what their own tool does not say."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from stepscope import Run, open_run
from stepscope.advice import Finding, advise, worded
from stepscope.report.answers import answers
from stepscope.report.verdict import verdict

GIB = 2**30


def mindspore(shared: Path, name: str) -> Run:
    return open_run(shared / "data" / "mindspore" / name)


def by_rule(run: Run) -> dict[str, Finding]:
    return {finding.rule: finding for finding in advise(run)}


def test_a_host_queue_that_is_empty_for_44_of_100_batches_is_named_without_a_step_trace(shared: Path) -> None:
    run = mindspore(shared, "real_minddata_ms210_train")
    finding = by_rule(run)["host-queue"]

    assert (finding.evidence["empty"], finding.evidence["batches"]) == (44, 100)
    assert finding.evidence["operators"] == ["MapOp_4"]
    # 129 ms of waiting over 99 batches, one every 14.9 ms
    assert finding.saving_ns == pytest.approx(129e6 / 99, abs=1)
    assert finding.saving_ratio == pytest.approx(0.0873, abs=1e-4)
    assert verdict(answers(run)).startswith(worded(finding).summary)


def test_the_slow_rank_of_four_is_the_one_whose_input_is_slow(shared: Path) -> None:
    findings = by_rule(mindspore(shared, "synthetic_dp4"))

    assert findings["host-queue"].where == {"rank": 3}
    assert findings["pipeline-bottleneck"].where == {"rank": 3, "operators": ["MapOp_3"]}
    assert findings["iteration-interval"].where == {"ranks": [0, 1, 2, 3]}
    assert findings["ai-cpu"].where == {"ranks": [0, 1, 2, 3]}


def test_two_readers_are_told_as_one_chain(shared: Path) -> None:
    findings = by_rule(mindspore(shared, "real_mixed_dev0_1_10"))

    assert findings["pipeline-bottleneck"].evidence["chain"] == "TFReader_3/TFReader_2"
    assert findings["cpu-busy"].evidence["busy_ratio"] == pytest.approx(0.9)


@pytest.mark.parametrize("rank", range(4))
def test_what_is_alive_at_each_node_is_what_the_file_lists(shared: Path, rank: int) -> None:
    run = mindspore(shared, "synthetic_dp4").select(ranks=rank)
    file = run.path / "profiler" / f"memory_usage_details_{rank}.json"
    graph = json.loads((file if file.exists() else next(run.path.rglob(file.name))).read_bytes())["1"]

    for node, listed in list(enumerate(graph["breakdowns"]))[::5]:
        alive = run.analyse("memory_breakdown", graph=1, node=node)
        ours = alive.select("tensor", pl.col("size_bytes") / GIB, "life_start", "life_end").sort("tensor").rows()
        assert ours == [
            (t["tensor_id"], t["size"], t["life_start"], t["life_end"])
            for t in sorted(listed, key=lambda t: t["tensor_id"])
        ]
    assert (run.analyse("memory_usage")["total_bytes"] / GIB).to_list() == pytest.approx(graph["lines"])
