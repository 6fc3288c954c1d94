"""Communication totals and links of a classic profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from device_files import cell

from parts import golden, profile, read_part, taken
from stepscope.analysis.communication.slow_links import slow_links
from stepscope.analysis.communication.suspected_links import suspected_links
from stepscope.errors import UnreadableInput
from stepscope.sources.classic.calls import write_calls
from stepscope.sources.classic.files import Seat, rank_files
from stepscope.tables import LINKS

CALLS, INFO, TRACE = "hccl_raw_0.csv", "profiler_info_0.json", "step_trace_raw_0_detail_time.csv"
HEADER = "step_num,communication_cost,wait_cost,link_info,communication_operator_cost\n"
MS, US = 1_000_000, 1_000
SDMA = {"0-1": {"SDMA": [0.5, 100.0, 200_000.0]}}
"""100 KB in half a ms: 200,000 KB/s."""
NAME = "stream_11_0_AllReduce-op201"


def row(step: object, cost: object, wait: object, links: Any = None, calls: Any = None) -> str:
    """A row of `hccl_raw`."""
    called = {NAME: [str(step), cost, wait, SDMA]} if calls is None else calls
    return f"{step},{cost},{wait},{cell(SDMA if links is None else links)},{cell(called)}\n"


def info(version: str | None) -> dict[str, str | bytes]:
    """The file with the version of MindSpore, if it is known."""
    return {} if version is None else {INFO: json.dumps({"ms_version": version})}


def totals(tables: dict[str, pl.DataFrame]) -> list[tuple[object, ...]]:
    """Rows of `communication_totals`."""
    return tables["communication_totals"].rows()


def test_steps_and_calls_have_their_cost_and_wait_and_links_without_a_bandwidth(tmp_path: Path) -> None:
    text = HEADER + row(1, 0.5, 2.0) + row(2, 0.7, 3.0) + row("-", 0.6, 2.5)

    tables, issues = read_part(write_calls, tmp_path, {CALLS: text})

    assert totals(tables) == [
        (1, None, 500_000, 2_000_000),
        (2, None, 700_000, 3_000_000),
        (1, NAME, 500_000, 2_000_000),
        (2, NAME, 700_000, 3_000_000),
    ]
    columns = ("step", "name", "operation", "source", "destination", "transport", "size_bytes", "duration_ns")
    assert tables["links"].sort("step", "name").select(columns).rows() == [
        (1, None, None, 0, 1, "SDMA", 100_000, 500_000),
        (1, NAME, "all_reduce", 0, 1, "SDMA", 100_000, 500_000),
        (2, None, None, 0, 1, "SDMA", 100_000, 500_000),
        (2, NAME, "all_reduce", 0, 1, "SDMA", 100_000, 500_000),
    ]
    assert issues == []


def test_the_wait_within_a_transfer_over_rdma_is_told_apart(tmp_path: Path) -> None:
    text = HEADER + row(1, 0.5, 2.0, {"0-4": {"RDMA": [0.5, 100.0, 200_000.0, 0.2]}, "0-0": {"SDMA": [0.1, 50, 1]}})

    tables, _ = read_part(write_calls, tmp_path, {CALLS: text})

    links = tables["links"].filter(pl.col("name").is_null()).select("destination", "transport", "wait_ns", "size_bytes")
    assert links.rows() == [(4, "RDMA", 200_000, 100_000), (0, "SDMA", None, 50_000)]


def test_the_oldest_files_know_no_calls(tmp_path: Path) -> None:
    header = HEADER.replace(",communication_operator_cost", "")
    text = header + f"1,0.5,2.0,{cell(SDMA)}\n-,0.5,2.0,{cell(SDMA)}\n"

    tables, issues = read_part(write_calls, tmp_path, {CALLS: text, INFO: '{"ms_version": "1.3.0"}'})

    assert totals(tables) == [(1, None, 500_000, 2_000_000)]
    assert tables["links"].height == 1
    assert issues == []


@pytest.mark.parametrize(
    ("version", "stated", "unit", "is_told"),
    [
        ("2.0.0", 200_000.0, MS, False),
        ("2.3.1", 200.0, US, False),
        ("2.3.1", 200_000.0, MS, True),
        ("2.0.0", 200.0, US, True),
        ("2.3.1", 200_000_000.0, US, False),
        (None, 200_000.0, MS, False),
        (None, 200.0, US, False),
        ("2.3.1", 17.0, US, False),
        ("2.0.0", 17.0, MS, False),
        ("2.1.0", 17.0, US, False),
        (None, 17.0, MS, True),
    ],
)
def test_the_unit_of_times_is_what_bandwidths_of_calls_show_then_what_the_version_writes(
    tmp_path: Path, version: str | None, stated: float, unit: int, is_told: bool
) -> None:
    calls = {NAME: ["1", 0.5, 2.0, {"0-1": {"SDMA": [0.5, 100.0, stated]}}]}

    tables, issues = read_part(write_calls, tmp_path, {CALLS: HEADER + row(1, 0.5, 2.0, calls=calls), **info(version)})

    assert totals(tables)[0] == (1, None, unit // 2, unit * 2)
    assert issues == ([("note", CALLS)] if is_told else [])


@pytest.mark.parametrize(
    ("version", "spent", "unit"),
    [("2.0.0", 90_000.0, US), (None, 90_000.0, US), ("2.0.0", 1900, MS), ("2.0.0", 2100, US)],
)
def test_communication_many_times_as_long_as_its_step_was_in_us(
    tmp_path: Path, version: str | None, spent: float, unit: int
) -> None:
    ticks = 100 * MS // 10
    trace = f"step_num,start_point,end_point,total,fp_point\n1,0,{ticks},{ticks},0\n-,0,{ticks},{ticks},0\n"
    files: dict[str, str | bytes] = {CALLS: HEADER + row(1, spent, 0.0, {}, {}), TRACE: trace, **info(version)}

    tables, issues = read_part(write_calls, tmp_path, files)

    assert totals(tables) == [(1, None, spent * unit, 0)]
    assert issues == ([("note", CALLS)] if unit == US else [])


def test_what_this_tool_exports_is_in_ms_whatever_the_version(tmp_path: Path) -> None:
    exported = json.dumps({"ms_version": "2.9.0", "framework": "pytorch"})

    tables, issues = read_part(write_calls, tmp_path, {CALLS: HEADER + row(1, 0.5, 2, {}, {}), INFO: exported})

    assert totals(tables) == [(1, None, 500_000, 2_000_000)]
    assert issues == []


def ends(directory: Path, rank: int, seat: Seat | None, links: Any, about: Any) -> tuple[list[Any], list[Any]]:
    """Ends of links of a rank, and issues."""
    name = f"hccl_raw_{rank}.csv"
    profile(directory, {name: HEADER + row(1, 0.5, 2, links, {}), f"profiler_info_{rank}.json": json.dumps(about)})
    named = [(file.name, file) for file in directory.iterdir()]
    tables, issues = taken(lambda sink: write_calls(rank_files(directory, rank, named, seat), sink))
    found = tables.get("links", LINKS.frame())
    return sorted(found.select("source", "destination").rows()), issues


OLD = {"ms_version": "1.9.0", "rank_size": 8, "stage_num": 2}


@pytest.mark.parametrize(
    ("rank", "seat", "links", "about", "found", "severity"),
    [
        pytest.param(6, None, ["3-2", "2-2"], OLD, [(6, 6), (7, 6)], "note", id="of a pipeline stage"),
        pytest.param(9, Seat(9, 1, "10.0.0.2", 16, None), ["1-0"], {}, [(9, 8)], "note", id="of devices of a host"),
        pytest.param(6, None, ["0-1", "1-4"], OLD, [], "warning", id="of unknown ranks"),
    ],
)
def test_links_become_those_of_the_job_or_are_left_out(
    tmp_path: Path, rank: int, seat: Seat | None, links: list[str], about: Any, found: list[Any], severity: str
) -> None:
    moved = dict.fromkeys(links, SDMA["0-1"])

    assert ends(tmp_path, rank, seat, moved, {"ms_version": "1.3.0"} | about) == (
        found,
        [(severity, f"hccl_raw_{rank}.csv")],
    )


@pytest.mark.parametrize(
    ("text", "steps", "issues"),
    [
        ("", [], [("error", CALLS)]),
        (HEADER, [], [("error", "raised")]),
        ("kernel_type,total_time\nAdd,1\n", [], [("error", CALLS)]),
        (HEADER + row(1, 0.5, 2) + row(2, 0.5, 2)[:40], [1], [("error", CALLS)]),
        (HEADER + row(1, 0.5, 2) + row(2, "soon", 2), [1], [("error", CALLS)]),
        (HEADER + row(1, 0.5, 2) + row("x", 0.5, 2), [1], [("error", CALLS)]),
        (HEADER + row(1, 0.5, 2) + "2,0.5,2,{,{\n", [1, 2], [("error", CALLS)]),
        (HEADER + row(1, 0.5, 2, links={"0": 3, "0-1": {"SDMA": ["a"]}}), [1], [("error", CALLS)]),
        (HEADER + row(1, 0.5, 2, calls={"a": [], "b": ["1", -1, None]}), [1], [("error", CALLS)]),
        (HEADER + row(1, 0.5, 2) + row("-", 9.9, 2), [1], [("note", CALLS)]),
        (HEADER + "1,0.5,2," + '"' + "[" * 5000 + '",{}\n', [1], [("error", CALLS)]),
        (HEADER.replace("\n", ",colour\n") + row(1, 0.5, 2).replace("\n", ",red\n"), [1], [("note", CALLS)]),
        (HEADER + row("-", 0.5, 2) + row("-", 0.5, 2), [1], []),
    ],
)
def test_damage_costs_the_damaged_part_alone_and_is_told(
    tmp_path: Path, text: str, steps: list[int], issues: list[tuple[str, str]]
) -> None:
    told: list[tuple[str, str]]
    try:
        tables, told = read_part(write_calls, tmp_path, {CALLS: text, INFO: '{"ms_version": "2.0.0"}'})
    except UnreadableInput as error:
        assert str(tmp_path / CALLS) in str(error)
        tables, told = {}, [("error", "raised")]

    found = tables.get("communication_totals", pl.DataFrame(schema={"step": pl.Int32, "name": pl.String}))
    assert found.filter(pl.col("name").is_null())["step"].to_list() == steps
    assert told == issues


def test_a_profile_without_the_file_has_no_communication(tmp_path: Path) -> None:
    assert read_part(write_calls, tmp_path, {INFO: "{}"}) == ({}, [])


@pytest.mark.parametrize("run", ["real_cluster_pipeline4", "synthetic_dp4"])
def test_costs_and_links_are_those_of_mindinsight(shared: Path, run: str) -> None:
    for device, steps in golden(shared, run, "communication_data").items():
        rank = int(device.removeprefix("device"))
        directory = shared / "data/mindspore" / run / "profiler"
        files = rank_files(directory, rank, [(f"hccl_raw_{rank}.csv", directory / f"hccl_raw_{rank}.csv")])
        tables, _ = taken(lambda sink, files=files: write_calls(files, sink))
        of_steps = tables["communication_totals"].filter(pl.col("name").is_null()).sort("step")
        stated = [step for step in steps if step["step_num"] != "-"]
        assert of_steps["step"].to_list() == [int(step["step_num"]) for step in stated]
        assert (of_steps["duration_ns"] / MS).to_list() == pytest.approx([s["communication_cost"] for s in stated])
        assert (of_steps["wait_ns"] / MS).to_list() == pytest.approx([s["wait_cost"] for s in stated])
        calls = tables["communication_totals"].filter(pl.col("name").is_not_null())
        assert calls.height == sum(len(step["communication_operator_cost"]) for step in stated)


def test_totals_of_links_count_once_beside_those_of_calls(tmp_path: Path) -> None:
    tables, _ = read_part(write_calls, tmp_path, {CALLS: HEADER + row(1, 0.5, 2)})
    links = tables["links"].with_columns(rank=pl.lit(0, pl.Int32))
    slow = links.with_columns(duration_ns=pl.col("duration_ns") * 10, destination=pl.lit(9, pl.Int32))
    others = [links.with_columns(destination=pl.lit(k, pl.Int32)) for k in range(2, 6)]

    every = pl.concat([links, slow, *others]).lazy()
    found = slow_links(every, suspected_links(every))

    assert found.select("rank_b", "size_bytes").rows() == [(9, 100_000)]
