"""Graphs with their parallel strategy: what of a file becomes rows, and what damage costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope import open_run
from tests.strategy_files import node, two_stages, write_graph


def rows(path: Path, table: str) -> list[dict[str, object]]:
    return open_run(path).table(table).collect().to_dicts()


def test_each_rank_has_its_stage_and_mode(tmp_path: Path) -> None:
    two_stages(tmp_path)

    found = rows(tmp_path, "parallel_graphs")

    assert [(row["rank"], row["stage"]) for row in found] == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert {row["parallel_mode"] for row in found} == {"semi_auto_parallel"}
    assert {row["stage_devices"] for row in found} == {"[[0, 1], [2, 3]]"}


def test_nodes_keep_what_the_file_says_of_them(tmp_path: Path) -> None:
    two_stages(tmp_path)

    nodes = {(row["rank"], row["node"]): row for row in rows(tmp_path, "parallel_nodes")}

    product, gather, send, channels = nodes[0, "2"], nodes[0, "3"], nodes[0, "4"], nodes[3, "2"]
    assert (product["type"], product["name"], product["inputs"]) == ("MatMul", "Default/net/MatMul-op2", ["1", "w"])
    assert (product["given_strategy"], product["strategy"]) == ("[[2, 1], [1, 1]]", "[[2, 1], [1, 2]]")
    assert (product["output_types"], product["output_shapes"]) == (["float16"], "[32, 64]")
    assert (gather["group"], gather["group_ranks"], gather["instance"]) == ("tp-0", "0-1", "redistribution_op")
    assert (send["tag"], send["peer"], send["group"]) == (0, 1, "pp-0")
    assert channels["group"] is None  # a convolution's groups of channels
    assert json.loads(str(channels["attributes"])) == {"group": 3}
    assert [(row["kind"], row["node"]) for row in nodes.values() if row["rank"] == 0][4:] == [
        ("parameter", "w"),
        ("constant", "cst1"),
    ]


def test_a_tuple_has_several_outputs(tmp_path: Path) -> None:
    one = node("1", "GetNext", shapes=[[32, 3], [32]])
    part = {"dataType": "DT_TENSOR", "tensorType": {"elemType": "DT_INT32"}}
    one["outputType"] = {"dataType": "DT_TUPLE", "sequenceType": {"elemTypes": [part, part]}}
    write_graph(tmp_path, 0, [one])

    found = rows(tmp_path, "parallel_nodes")[0]

    assert (found["output_types"], found["output_shapes"]) == (["int32", "int32"], "[[32, 3], [32]]")


def test_long_attributes_are_left_out(tmp_path: Path) -> None:
    write_graph(tmp_path, 0, [node("1", "Mul", long="x" * 1000, short="y")])

    assert json.loads(str(rows(tmp_path, "parallel_nodes")[0]["attributes"])) == {"short": "y"}


def test_a_file_of_another_rank_is_told(tmp_path: Path) -> None:
    write_graph(tmp_path, 1, [node("1", "Mul")], stated_rank=5)

    run = open_run(tmp_path)

    assert run.table("parallel_graphs").collect()["rank"].to_list() == [1]
    assert run.issues["problem"].str.contains("gives rank 5 in a file named for rank 1").any()


def test_nodes_without_a_name_are_counted(tmp_path: Path) -> None:
    write_graph(tmp_path, 0, [node("1", "Mul"), node("", "Add"), node("1", "Sub"), {"input": 3, "attribute": [4]}])

    run = open_run(tmp_path)

    assert run.table("parallel_nodes").collect()["type"].to_list() == ["Mul", None]
    assert run.issues["lost"].to_list() == [3]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"config": [], "graph": {"node": {}, "parameters": [1]}}'])
def test_damage_costs_no_other_rank(tmp_path: Path, text: str) -> None:
    two_stages(tmp_path)
    (tmp_path / "parallel_strategy_1.json").write_text(text)

    assert 0 in [row["rank"] for row in rows(tmp_path, "parallel_nodes")]
    assert 1 not in [row["rank"] for row in rows(tmp_path, "parallel_nodes")]
