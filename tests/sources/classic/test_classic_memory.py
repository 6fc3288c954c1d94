"""Memory of a classic profile: plans as JSON and as protobuf, totals, allocations."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from every_kind import MEMORY_TOTALS, graph, tensor

from parts import read_part
from stepscope.sources.classic.memory import write_memory

GIB = 1 << 30
SUMMARY, DETAILS, PROTO = "memory_usage_summary_0.json", "memory_usage_details_0.json", "memory_usage_0.pb"
ALLOCATIONS = "operator_memory_0.csv"


PLAN = json.dumps({"1": graph()})


def test_a_plan_becomes_graphs_nodes_and_tensors_in_bytes(tmp_path: Path) -> None:
    details = json.dumps({"1": graph(1), "2": graph(2, fp_start=-1)})

    tables, issues = read_part(write_memory, tmp_path, {DETAILS: details})

    quarter = GIB // 4
    assert tables["graphs"].rows() == [(1, quarter, 0, 1), (2, quarter, None, 1)]
    nodes = tables["graph_nodes"].filter(pl.col("graph") == 2)
    columns = ("node", "name", "full_name", "size_bytes", "allocated_bytes", "total_bytes", "allocations")
    assert nodes.select(columns).rows() == [
        (0, "op0", "Default/op0", quarter, quarter, 2 * quarter, 1),
        (1, "op1", "Default/op1", quarter, -3 * quarter, 3 * quarter, 1),
    ]
    tensors = tables["graph_tensors"].filter(pl.col("graph") == 1)
    columns = ("tensor", "node", "name", "size_bytes", "lifetime", "life_start", "life_end", "shape", "data_type")
    assert tensors.select(columns).rows() == [
        (5, 0, "t5", quarter, None, 0, 1, "2,3", "FLOAT16"),
        (6, 1, "t6", quarter, "LifeLongGraphEnd", 1, 1, "2,3", "FLOAT16"),
    ]
    assert issues == []


def test_what_lives_at_each_node_is_not_read_and_may_be_cut_off(tmp_path: Path) -> None:
    whole = json.dumps({"1": graph(1), "2": graph(2)})

    tables, issues = read_part(write_memory, tmp_path, {DETAILS: whole[:-40]})

    assert tables["graph_tensors"]["graph"].to_list() == [1, 1, 2, 2]
    assert issues == [("note", DETAILS)]


def test_totals_are_stated_in_bytes_and_another_peak_is_told(tmp_path: Path) -> None:
    tables, silent = read_part(write_memory, tmp_path, {SUMMARY: json.dumps(MEMORY_TOTALS), DETAILS: PLAN})
    _, told = read_part(write_memory, tmp_path, {SUMMARY: json.dumps(MEMORY_TOTALS | {"peak_mem": 5}), DETAILS: PLAN})

    assert dict(tables["rank_figures"].select("name", "value").iter_rows()) == {
        "memory_capacity_bytes": 31 * GIB,
        "memory_peak_bytes": 0.75 * GIB,
        "memory_static_bytes": 0.25 * GIB,
        "memory_allocations": 2,
        "memory_deallocations": 1,
    }
    assert (silent, told) == ([], [("note", SUMMARY)])


def varint(number: int) -> bytes:
    """A number of the wire format."""
    number &= (1 << 64) - 1
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    """A message of numbered fields."""
    out = b""
    for at, value in fields:
        content = value.encode() if isinstance(value, str) else value
        out += (
            varint(at << 3) + varint(content)
            if isinstance(content, int)
            else varint(at << 3 | 2) + varint(len(content)) + content
        )
    return out


def proto(*, packed: bool = True) -> bytes:
    """The plan of `graph` as MindSpore writes it; numbers that are 0 are not written."""
    nodes = []
    for k in range(2):
        outputs = [(4, varint(5 + k)), (5, varint(5 + k))] if packed else [(4, 5 + k), (5, 5 + k)]
        nodes.append(message((1, f"Default/op{k}"), *([(2, k)] if k else []), *outputs))
    tensors = [
        message((1, 5), (2, GIB // 4), (3, "OutputOnly"), (5, 1), (6, "LifeLongNone")),
        message((1, 6), (2, GIB // 4), (3, "Common"), (4, 1), (5, 1), (6, "LifeLongGraphEnd")),
    ]
    parts = [(3, node) for node in nodes] + [(4, tensor) for tensor in tensors]
    plan = message((1, 1), (2, GIB // 4), *parts, (5, "Default/op0"), (6, "Default/op1"))
    return message((1, plan), (2, 31 * GIB))


@pytest.mark.parametrize("packed", [True, False])
def test_the_protobuf_plan_gives_what_the_json_plan_gives(tmp_path: Path, packed: bool) -> None:
    expected, _ = read_part(write_memory, tmp_path / "json", {DETAILS: PLAN})

    tables, issues = read_part(write_memory, tmp_path / "pb", {PROTO: proto(packed=packed)})

    assert tables["graphs"].equals(expected["graphs"])
    columns = ["node", "name", "full_name", "size_bytes", "allocations"]
    assert tables["graph_nodes"].select(columns).equals(expected["graph_nodes"].select(columns))
    columns = ["tensor", "node", "size_bytes", "lifetime", "life_start", "life_end"]
    assert tables["graph_tensors"].select(columns).equals(expected["graph_tensors"].select(columns))
    assert tables["graph_tensors"]["type"].to_list() == ["OutputOnly", "Common"]
    assert tables["rank_figures"].select("name", "value").rows() == [("memory_capacity_bytes", 31 * GIB)]
    assert issues == []


def test_a_damaged_json_plan_gives_way_to_the_protobuf_one(tmp_path: Path) -> None:
    tables, issues = read_part(write_memory, tmp_path, {DETAILS: '{"1": {"graph_id"', PROTO: proto()})

    assert tables["graph_nodes"].height == 2
    assert issues == [("error", DETAILS)]


def test_a_protobuf_plan_that_is_cut_anywhere_gives_what_comes_before(tmp_path: Path) -> None:
    content = proto()
    untold, nodes = [], []
    for length in range(1, len(content)):
        tables, issues = read_part(write_memory, tmp_path, {PROTO: content[:length]})
        nodes.append(tables.get("graph_nodes", pl.DataFrame()).height)
        if issues != [("error", PROTO)]:
            untold.append(length)

    after_graph = len(content) - len(message((2, 31 * GIB)))  # the graph is whole, what follows is not there at all
    assert untold == [after_graph]
    assert nodes == sorted(nodes)
    assert nodes[-1] == 2


def test_allocations_of_operators_have_sizes_and_times(tmp_path: Path) -> None:
    text = "Name,Size(KB),Allocation Time(us),Release Time(us),Duration(us),Device Type\n"
    text += "MatMul,4,1714528800000000.125,1714528800000010.5,10.375,NPU:3\nAdd,1,1714528800000001,,,NPU:3\n"

    tables, issues = read_part(write_memory, tmp_path, {ALLOCATIONS: text})

    rows = tables["allocations"].select("name", "size_bytes", "allocation_ns", "release_ns", "device").rows()
    assert rows == [
        ("MatMul", 4096, 1714528800000000125, 1714528800000010500, 3),
        ("Add", 1024, 1714528800000001000, None, 3),
    ]
    assert issues == []


DAMAGE: dict[str, tuple[str, str | bytes, str]] = {
    "empty details": (DETAILS, "", "error"),
    "cut details": (DETAILS, PLAN[:200], "error"),
    "deep details": (DETAILS, '{"1":' * 100_000, "error"),
    "no graphs": (DETAILS, '{"1": 5, "2": {"graph_id": "x", "nodes": []}}', "error"),
    "list": (DETAILS, "[]", "error"),
    "empty totals": (SUMMARY, "", "error"),
    "text in totals": (SUMMARY, json.dumps(MEMORY_TOTALS | {"peak_mem": "much"}), "warning"),
    "huge totals": (SUMMARY, json.dumps(MEMORY_TOTALS).replace("31.0", "1e400"), "error"),
    "empty proto": (PROTO, b"", "warning"),
    "no proto": (PROTO, b"\x07\x07\x07", "error"),
    "endless number": (PROTO, b"\xff" * 20, "error"),
    "text for proto": (PROTO, b"graph_id: 1\n", "error"),
    "empty allocations": (ALLOCATIONS, "", "error"),
    "other allocations": (ALLOCATIONS, "a,b\n1,2\n", "error"),
    "text for sizes": (ALLOCATIONS, "Name,Size(KB),Allocation Time(us)\nx,big,1\ny,1,2\n", "error"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_costs_its_own_file_only_and_is_told(tmp_path: Path, case: str) -> None:
    name, content, severity = DAMAGE[case]
    sound: dict[str, str | bytes] = {SUMMARY: json.dumps(MEMORY_TOTALS)}
    if name not in (DETAILS, PROTO):
        sound[DETAILS] = PLAN

    tables, issues = read_part(write_memory, tmp_path, {**sound, name: content})

    assert issues == [(severity, name)]
    assert "rank_figures" in tables or name == SUMMARY
    assert "graphs" in tables or name in (DETAILS, PROTO)


def test_values_of_another_kind_are_unknown(tmp_path: Path) -> None:
    odd = graph(static_mem="x", fp_start=2**40, lines="none")
    odd["nodes"][0] |= {"size": None, "outputs": [{"tensor_id": "a"}, tensor(7, 2**40, 1), 5], "name": 3}

    tables, _ = read_part(write_memory, tmp_path, {DETAILS: json.dumps({"1": odd})})

    assert tables["graphs"].rows() == [(1, None, None, 1)]
    assert tables["graph_nodes"].select("name", "size_bytes", "total_bytes").row(0) == (None, None, None)
    assert tables["graph_tensors"].select("tensor", "life_start").rows() == [(7, None), (6, 1)]
