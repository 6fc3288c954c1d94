"""Graphs put together by pipeline stage: counts, nodes that differ between ranks, edges between stages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope import open_run
from stepscope.errors import Unavailable
from tests.builders import make_run
from tests.strategy_files import node, two_stages, write_graph


def test_stages_are_counted(tmp_path: Path) -> None:
    two_stages(tmp_path)

    first, second = open_run(tmp_path).analyse("strategy_stages").to_dicts()

    assert (first["stage"], first["ranks"], first["recorded"]) == (0, "0, 1", "0, 1")
    assert (first["operators"], first["parameters"], first["constants"], first["edges"]) == (4, 1, 1, 4)
    assert (first["divided"], first["redistributions"], first["sends"], first["receives"]) == (1, 1, 1, 0)
    assert (second["ranks"], second["gradient_aggregations"], second["receives"]) == ("2, 3", 1, 1)
    assert second["divided"] == 0  # a strategy of ones divides nothing
    assert (first["differing"], second["differing"]) == (1, 2)


def test_nodes_are_those_of_the_lowest_rank_and_say_what_differs(tmp_path: Path) -> None:
    two_stages(tmp_path)

    nodes = {(row["stage"], row["node"]): row for row in open_run(tmp_path).analyse("strategy_nodes").to_dicts()}

    assert (nodes[0, "2"]["divided"], nodes[0, "3"]["role"], nodes[1, "3"]["role"]) == (
        True,
        "redistribution",
        "gradient aggregation",
    )
    assert (nodes[0, "4"]["role"], nodes[0, "4"]["differing"]) == ("send", ["group"])
    assert (nodes[1, "2"]["differing"], json.loads(nodes[1, "2"]["attributes"])) == (["attributes"], {"group": 2})
    assert (nodes[1, "3"]["inputs"], nodes[1, "3"]["unknown_inputs"]) == (["2"], ["gone"])


def test_nodes_that_only_some_ranks_have_are_told(tmp_path: Path) -> None:
    write_graph(tmp_path, 0, [node("1", "Mul"), node("2", "Add")])
    write_graph(tmp_path, 1, [node("1", "Mul"), node("3", "Sub")])

    run = open_run(tmp_path)

    nodes = {row["node"]: row["differing"] for row in run.analyse("strategy_nodes").to_dicts()}
    assert nodes == {"1": [], "2": ["missing"], "cst1": []}
    assert run.analyse("strategy_stages")["differing"].to_list() == [2]


def test_a_send_and_its_receive_join_stages(tmp_path: Path) -> None:
    two_stages(tmp_path)

    edges = open_run(tmp_path).analyse("strategy_edges")

    between = edges.filter("between_stages").row(0, named=True)
    assert (between["stage"], between["source"], between["to_stage"], between["target"]) == (0, "4", 1, "1")
    assert between["paired"]
    within = edges.filter(~edges["between_stages"], stage=0)
    assert within.select("source", "target", "input").rows() == [
        ("1", "2", 0),
        ("w", "2", 1),
        ("2", "3", 0),
        ("3", "4", 0),
    ]


def test_a_send_without_its_receive_has_one_end(tmp_path: Path) -> None:
    two_stages(tmp_path, tag=7)

    edges = open_run(tmp_path).analyse("strategy_edges").filter("between_stages")

    assert edges.select("stage", "source", "to_stage", "target", "paired").rows() == [
        (0, "4", None, None, False),
        (None, None, 1, "1", False),
    ]


def test_several_sends_of_one_tag_are_not_guessed(tmp_path: Path) -> None:
    sends = [node(name, "Send", group="pp", sr_tag=0) for name in ("1", "2")]
    write_graph(tmp_path, 0, sends, stage=0)
    write_graph(tmp_path, 1, [node("1", "Receive", group="pp", sr_tag=0)], stage=1)

    edges = open_run(tmp_path).analyse("strategy_edges").filter("between_stages")

    assert edges["paired"].to_list() == [False, False, False]


def test_a_stage_without_a_graph_is_listed(tmp_path: Path) -> None:
    two_stages(tmp_path)
    for rank in (2, 3):
        (tmp_path / f"parallel_strategy_{rank}.json").unlink()
    info = {"rank_id": 0, "rank_size": 4, "stage_num": 2, "parallel_mode": "semi_auto_parallel"}
    (tmp_path / "profiler_info_0.json").write_text(json.dumps(info))

    stages = open_run(tmp_path).analyse("strategy_stages")

    assert stages.select("stage", "ranks", "recorded", "operators").rows() == [
        (0, "0, 1", "0, 1", 4),
        (1, "2, 3", None, None),
    ]


def test_a_job_of_which_nothing_is_known_has_no_answer() -> None:
    with pytest.raises(Unavailable, match="no parallel sizes"):
        make_run().analyse("strategy_stages")
