"""Host events of a classic profile."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from every_kind import HOST_HEADER, T0_US

from parts import read_part
from stepscope.sources.classic.host_info import write_host_info

EVENTS, STAGES = "host_info/host_info_0.csv", "host_info/dataset_0.csv"
START, END, POINT = 0, 1, 2


def row(edge: int | str, at_us: int, event: str = "Pipeline", thread: int = 101, memory: int = 4) -> str:
    """A row of `host_info`."""
    module = "Dataset" if event == "Pipeline" else "graph"
    return f"{thread},100,1,{module},{event},getNext,1,{edge},info,{memory},{T0_US + at_us}\n"


def events(directory: Path, *rows: str) -> tuple[list[tuple[object, ...]], list[tuple[str, str]]]:
    """Thread, event, start and duration (us) of the events of a file."""
    tables, issues = read_part(write_host_info, directory, {EVENTS: HOST_HEADER + "".join(rows)})
    found = tables.get("host_events", pl.DataFrame())
    if not found.height:
        return [], issues
    us = (pl.col("start_ns") // 1000 - T0_US, pl.col("duration_ns") // 1000)
    return found.select("thread", "event", *us).rows(), issues


def test_a_range_is_a_start_and_its_end_with_the_memory_at_both(tmp_path: Path) -> None:
    text = HOST_HEADER + row(START, 0, memory=4) + row(POINT, 3, "marker", memory=0) + row(END, 9, memory=6)

    tables, issues = read_part(write_host_info, tmp_path, {EVENTS: text})

    first, point = tables["host_events"].rows(named=True)
    assert first["start_ns"] == T0_US * 1000
    assert (first["duration_ns"], first["memory_start_bytes"], first["memory_end_bytes"]) == (9000, 4096, 6144)
    assert (first["module"], first["event"], first["stage"], first["level"]) == ("Dataset", "Pipeline", "getNext", 1)
    assert (first["process"], first["parent_process"], first["thread"], first["custom"]) == (100, 1, 101, "info")
    assert (point["event"], point["duration_ns"], point["memory_start_bytes"]) == ("marker", None, None)
    assert issues == []


def test_ranges_of_one_name_nest_and_threads_do_not_mix(tmp_path: Path) -> None:
    rows = [row(START, 0), row(START, 2), row(START, 3, thread=7), row(END, 4), row(END, 8, thread=7), row(END, 9)]
    rows += [row(START, 10), row(END, 12)]

    found, issues = events(tmp_path, *rows)

    assert found == [(101, "Pipeline", 0, 9), (101, "Pipeline", 2, 2), (7, "Pipeline", 3, 5), (101, "Pipeline", 10, 2)]
    assert issues == []


def test_starts_without_an_end_are_kept_and_ends_without_a_start_are_not(tmp_path: Path) -> None:
    rows = [row(END, 0), row(START, 1), row(END, 2), row(END, 3), row(START, 4), row(END, 6), row(START, 8)]

    found, issues = events(tmp_path, *rows)

    assert found == [(101, "Pipeline", 1, 1), (101, "Pipeline", 4, 2), (101, "Pipeline", 8, None)]
    assert issues == [("note", "host_info_0.csv")] * 2


def test_totals_of_dataset_stages_stand_in_where_there_are_no_such_events(tmp_path: Path) -> None:
    stages = "Operation,Stage,Occurrences,Avg. time (us),Custom Info\nPipeline,getNext,8,900.5,\n"

    alone, issues = read_part(write_host_info, tmp_path / "a", {STAGES: stages})
    beside, _ = read_part(write_host_info, tmp_path / "b", {STAGES: stages, EVENTS: HOST_HEADER + row(START, 0)})

    columns = ("unit", "level", "type", "name", "full_name", "count", "total_ns")
    assert alone["operator_totals"].select(columns).rows() == [
        ("DATASET", "stage", "Pipeline", "getNext", "Pipeline::getNext", 8, 7_204_000)
    ]
    assert "operator_totals" not in beside
    assert issues == []


DAMAGE: dict[str, tuple[str, str | bytes, str, int]] = {
    "empty": (EVENTS, "", "error", 0),
    "header only": (EVENTS, HOST_HEADER, "warning", 0),
    "cut": (EVENTS, HOST_HEADER + row(START, 0) + row(END, 1)[:20], "error", 1),
    "other header": (EVENTS, "tid,name,ts\n1,a,2\n", "error", 0),
    "text for a time": (EVENTS, HOST_HEADER + row(START, 0) + row(END, 1).replace(str(T0_US + 1), "now"), "error", 1),
    "text for an edge": (EVENTS, HOST_HEADER + row("begin", 0) + row(POINT, 1), "error", 1),
    "unknown edge": (EVENTS, HOST_HEADER + row(9, 0) + row(POINT, 1), "error", 1),
    "far time": (EVENTS, HOST_HEADER + row(POINT, 0) * 3 + row(POINT, 10**15), "error", 3),
    "binary": (EVENTS, b"\x00\xff\x01\n" * 5, "error", 0),
    "empty stages": (STAGES, "", "error", 0),
    "text in stages": (STAGES, "Operation,Stage,Occurrences,Avg. time (us)\na,b,many,1\n", "error", 0),
    "impossible stages": (STAGES, "Operation,Stage,Occurrences,Avg. time (us)\na,b,-1,1\n", "error", 0),
    "other stages": (STAGES, "Operation,Time\na,1\n", "error", 0),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_told_and_the_rest_is_read(tmp_path: Path, case: str) -> None:
    name, content, severity, left = DAMAGE[case]

    tables, issues = read_part(write_host_info, tmp_path, {name: content})

    assert tables.get("host_events", pl.DataFrame()).height == left
    file = Path(name).name
    assert ((severity, file) in issues) if severity else issues == []
