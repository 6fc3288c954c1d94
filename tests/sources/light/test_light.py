"""Light records, ours and TaskD's, become tables."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from light_records import MS, START_NS, LightJob
from stepscope.errors import UnreadableInput
from stepscope.live.store.lines import call_name, host_range
from stepscope.recording_format.marks import collective_text
from stepscope.sources.discover import Discovered, discover
from stepscope.sources.light import LightSource
from stepscope.store import MemorySink

JOB = LightJob(ranks=2, steps=4, noise=0)
Tables = dict[str, pl.DataFrame]


def found_in(path: Path) -> Discovered:
    """What is found below a path."""
    found = discover([path])
    assert {item.source for item in found.inputs} <= {LightSource.name}
    return found


def read(path: Path, number: int = 0) -> tuple[Tables, dict[str, Any]]:
    """Tables and facts of one input, found as a user finds it."""
    sink = MemorySink(LightSource.name)
    LightSource().read(found_in(path).inputs[number], sink)
    return sink.close(), sink.facts


def problems(tables: Tables) -> str:
    """What the issues say."""
    return "\n".join(tables["issues"]["problem"]) if "issues" in tables else ""


def step(number: int, ranges: int = 0, *, pid: int = 1, first_id: int = 0, at_ns: int | None = None) -> str:
    """A step of 10 ms with some forward passes."""
    start = START_NS + number * 10 * MS if at_ns is None else at_ns
    lines = [
        host_range(first_id + k, "forward", "default", start + k * MS, start + (k + 1) * MS, pid, 1)
        for k in range(ranges)
    ]
    return "".join(lines) + host_range(first_id + 999, f"step {number}", "default", start, start + 10 * MS, pid, 1)


def rank_directory(base: Path, text: str | bytes, name: str = "1700000000") -> Path:
    """A directory of rank 0 with one file."""
    directory = base / "job/0"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return directory


@pytest.mark.parametrize("part", ["", "job", "job/1"])
def test_the_base_a_job_or_a_rank_can_be_given(tmp_path: Path, part: str) -> None:
    JOB.write(tmp_path)

    found = found_in(tmp_path / part)

    assert len(found.inputs) == (1 if part == "job/1" else 2)
    assert found.problems == []


def test_one_file_by_itself_is_read(tmp_path: Path) -> None:
    file = next((JOB.write(tmp_path) / "1").glob("[0-9]*"))

    tables, facts = read(file)

    assert tables["steps"]["step"].to_list() == [1, 2, 3, 4]
    assert facts["rank"] == 1


def test_tables_of_our_records(tmp_path: Path) -> None:
    job = dataclasses.replace(JOB, checkpoint=lambda rank, step: 3 if step == 2 else 0)

    tables, facts = read(job.write(tmp_path), 1)

    known = [facts[name] for name in ("rank", "world_size", "host", "process", "format")]
    assert known == [1, 2, "node0", 101, "light"]
    assert tables["groups"].select("group", "name", "members").rows() == [("0", "default_pg", [0, 1])]
    steps = tables["steps"]
    assert steps["step"].to_list() == [1, 2, 3, 4] and steps["start_ns"][1:].to_list() == steps["end_ns"][:-1].to_list()
    slices = tables["slices"].group_by("name").agg(pl.len(), pl.col("duration_ns").first()).sort("name")
    counted = {name: (count, length) for name, count, length in slices.iter_rows()}
    assert counted["forward"] == (4, 10 * MS) and counted["data: DataLoader"] == (4, MS)
    assert counted["checkpoint"] == (1, 3 * MS)
    calls = tables["collectives"]
    assert calls.select("operation", "group", "size_bytes", "element_type", "group_size").unique().rows() == [
        ("all_reduce", "0", 4096, "float32", 2)
    ]
    assert calls["step"].to_list() == [1, 1, 2, 2, 3, 3, 4, 4]
    loads = tables["input_pipeline"]
    assert loads.select("operator", "duration_ns", "step").rows() == [("DataLoader", MS, n) for n in (1, 2, 3, 4)]


def test_taskds_records_of_a_device_give_the_same_tables_at_the_times_of_the_device(tmp_path: Path) -> None:
    job = dataclasses.replace(JOB, on_device=True)
    ours, _ = read(job.write(tmp_path / "ours"))
    theirs, facts = read(job.write_as_taskd(tmp_path / "theirs"))

    assert facts["world_size"] == 2
    columns = ["operation", "size_bytes", "start_ns", "duration_ns", "step", "sequence"]
    assert theirs["collectives"].select(columns).rows() == ours["collectives"].select(columns).rows()
    forward = [tables["slices"].filter(pl.col("name") == "forward") for tables in (ours, theirs)]
    assert forward[0]["start_ns"].to_list() == forward[1]["start_ns"].to_list()
    assert theirs["steps"]["step"].to_list() == [1, 2, 3, 4]
    assert "times of the device" in problems(theirs)


def test_a_call_has_the_same_place_on_ranks_that_begin_at_different_steps(tmp_path: Path) -> None:
    whole, _ = read(JOB.write(tmp_path / "whole"))
    late = dataclasses.replace(JOB, communicates=lambda rank, step: rank == 1 or step > 2)

    tables, _ = read(late.write(tmp_path / "late"))

    sequences = dict(whole["collectives"].select("start_ns", "sequence").iter_rows())
    found = dict(tables["collectives"].select("start_ns", "sequence").iter_rows())
    assert found == {at: place for at, place in sequences.items() if at in found} and len(found) == 4


def test_calls_of_a_step_that_began_before_the_records_are_left_out(tmp_path: Path) -> None:
    name = call_name("all_reduce", collective_text('"0"', 2, 4, "int8", None, is_async=False))
    text = ""
    for number, calls in ((7, 1), (8, 3), (9, 3)):
        start = START_NS + number * 10 * MS
        for call in range(calls):
            at = start + (5 + call) * MS
            text += host_range(100 * number + call, name, "communication", at, at + MS // 2, 1, 1)
        text += step(number, first_id=1000 * number)

    tables, _ = read(rank_directory(tmp_path, text))

    assert tables["collectives"]["step"].to_list() == [8, 8, 8, 9, 9, 9]
    assert "1 call left out" in problems(tables)


def test_each_process_of_a_rank_is_a_recording_of_its_own(tmp_path: Path) -> None:
    first = "".join(step(n, 2, pid=10, first_id=1000 * n) for n in (1, 2, 3))
    later = START_NS + 10**12
    second = "".join(step(n, 1, pid=20, first_id=1000 * n, at_ns=later + n * 10 * MS) for n in (1, 2))
    directory = rank_directory(tmp_path, first + second)

    inputs = found_in(directory).inputs
    both = [read(directory, number) for number in range(2)]
    tables = [table for table, _ in both]

    assert [item.label for item in inputs] == ["process 10", "process 20"]
    assert [table["steps"]["step"].to_list() for table in tables] == [[1, 2, 3], [1, 2]]
    assert [facts["process"] for _, facts in both] == [10, 20]
    assert [table["slices"].filter(pl.col("name") == "forward").height for table in tables] == [6, 2]


def test_a_restart_with_the_same_process_id_continues_the_steps_and_is_reported(tmp_path: Path) -> None:
    later = START_NS + 10**12
    text = step(1) + step(2) + step(1, at_ns=later) + step(2, at_ns=later + 10 * MS)

    tables, _ = read(rank_directory(tmp_path, text))

    assert tables["steps"]["step"].to_list() == [1, 2, 3, 4]
    assert "restart" in problems(tables)


def test_damage_costs_only_itself_and_is_reported(tmp_path: Path) -> None:
    name = "x" * (6 << 20)
    parts = [
        step(1, 1, first_id=10),
        '{"Kind":1,"Flag":2,"SourceKind":0,"Timest\n\n\n',
        host_range(5, name, "default", START_NS, START_NS + 1, 1, 1),
        '{"Kind":2,"Start":1,"End":2,"Ds":{"DeviceId":0,"StreamId":1},"CorrelationId":1,"Type":"","Name":"k"}\n',
        host_range(6, "a mark of a user", "default", START_NS, START_NS + 1, 1, 1),
        '{"Kind":99}\n',
        step(2, 1, first_id=2000),
        '{"Kind":1,"Flag":2,"SourceKind":0,"Timestamp":170000000000',
    ]

    tables, _ = read(rank_directory(tmp_path, "".join(parts)))

    assert tables["steps"]["step"].to_list() == [1, 2]
    said = problems(tables)
    assert "3 lines damaged" in said and "3 records of other kinds" in said and "without a recorded start" in said


def test_impossible_times_are_left_out_and_reported(tmp_path: Path) -> None:
    back = host_range(1, "forward", "default", START_NS + 50 * MS, START_NS + 40 * MS, 1, 1)
    huge = host_range(2, "forward", "default", START_NS, 2**63 - 1, 1, 1)
    beyond = host_range(3, "forward", "default", START_NS, 2**64, 1, 1)
    negative = host_range(4, "forward", "default", -5, 10, 1, 1)
    far = host_range(5, "forward", "default", 10, 20, 1, 1)

    tables, _ = read(rank_directory(tmp_path, step(1) + back + huge + beyond + negative + far + step(2)))

    assert tables["steps"]["step"].to_list() == [1, 2]
    assert "forward" not in tables["slices"]["name"].to_list()
    assert "end before they start" in problems(tables) and "week" in problems(tables)


def test_an_open_range_is_left_out_and_reported(tmp_path: Path) -> None:
    start = host_range(1, "forward", "default", START_NS, START_NS + 1, 1, 1).split("\n")[0] + "\n"

    tables, _ = read(rank_directory(tmp_path, step(1) + start))

    assert "forward" not in tables["slices"]["name"].to_list()
    assert "1 range without a recorded end" in problems(tables)


def test_damaged_files_beside_the_records_are_reported(tmp_path: Path) -> None:
    directory = rank_directory(tmp_path, step(1) + step(2))
    (directory / "parallel_group.json").write_text("{")
    (directory / "worker.json").write_text("[1]")

    tables, facts = read(directory)

    assert tables["steps"].height == 2 and facts["rank"] == 0
    assert set(
        tables["issues"]
        .filter(pl.col("severity") == "warning")["file"]
        .map_elements(lambda file: Path(file).name, pl.String)
    ) == {"parallel_group.json", "worker.json"}


@pytest.mark.parametrize(
    "content",
    [
        {"w": {"group_name": 5, "global_ranks": ["x", -1, 2**70]}, "v": [], "": None},
        {"w": {"global_ranks": {"a": 1}}},
        {str(n): {"group_name": "g", "global_ranks": [n]} for n in range(50)},
    ],
)
def test_strange_groups_do_no_harm(tmp_path: Path, content: object) -> None:
    directory = rank_directory(tmp_path, step(1) + step(2))
    (directory / "parallel_group.json").write_text(json.dumps(content))

    tables, _ = read(directory)

    assert tables["steps"].height == 2


def test_all_ranges_are_kept_as_they_are_stored(tmp_path: Path) -> None:
    job = dataclasses.replace(JOB, on_device=True)
    ranges = [each for rank, _, found in job.ranges() if rank == 1 for each in found]

    tables, _ = read(job.write(tmp_path), 1)
    rows = tables["light_ranges"]

    kinds = {"call": "communication", "step": "step", "forward": "forward", "dataloader": "dataloader"}
    on_host = [(kinds[kind.split()[0]], start, end - start) for _, kind, start, end, *_ in ranges]
    timed = [(kinds[kind.split()[0]], start, end - start) for _, kind, *_, start, end in ranges if kind != "dataloader"]
    for on_device, expected in ((False, on_host), (True, timed)):
        kept = rows.filter(pl.col("on_device") == on_device)
        assert sorted(kept.select("kind", "start_ns", "duration_ns").rows()) == sorted(expected)
    assert rows.filter("on_device")["delay_ns"].unique().to_list() == [MS]
    assert rows.filter(pl.col("kind") == "forward")["step"].to_list() == [1, 1, 2, 2, 3, 3, 4, 4]


def test_ranges_that_analyses_leave_out_are_kept_but_for_impossible_times(tmp_path: Path) -> None:
    begun, _ = host_range(7, "forward", "default", START_NS + 30 * MS, 0, 1, 1).splitlines(keepends=True)
    long_ago = START_NS - 20 * 86_400 * 10**9  # records may be of weeks
    text = host_range(1, "forward", "default", long_ago, long_ago + MS, 1, 1)
    text += step(1) + host_range(5, "mine", "theirs", START_NS, START_NS + MS, 1, 2) + begun
    text += host_range(6, "forward", "default", 5, 6, 1, 1)

    tables, _ = read(rank_directory(tmp_path, text))
    rows = tables["light_ranges"].sort("start_ns").select("name", "kind", "domain", "duration_ns", "thread")

    assert rows.rows() == [
        ("forward", "forward", "default", MS, "1"),
        ("mine", "other", "theirs", MS, "2"),
        ("step 1", "step", "default", 10 * MS, "1"),
        ("forward", "forward", "default", None, "1"),
    ]
    assert "1 stored range with impossible times left out" in problems(tables)


def test_a_rank_in_its_first_range_has_only_that(tmp_path: Path) -> None:
    begun, _ = host_range(7, "forward", "default", START_NS, 0, 1, 1).splitlines(keepends=True)

    tables, facts = read(rank_directory(tmp_path, begun))

    assert {"light_ranges", "issues"} == tables.keys() - {"ranks"}
    assert (facts["start_ns"], facts["end_ns"]) == (START_NS, START_NS)
    assert "no range of light tracing has ended yet" in problems(tables)


@pytest.mark.parametrize("text", ['{"Kind":1,"Flag":2,"SourceKind":0}\n', '{"Kind":1,"Flag":2, nonsense\n'])
def test_records_without_a_range_are_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    directory = rank_directory(tmp_path, text)

    with pytest.raises(UnreadableInput, match="no range") as error:
        read(directory)

    assert "live switch" in error.value.remedy


def test_other_files_in_a_directory_of_a_rank_are_left_to_others(tmp_path: Path) -> None:
    directory = rank_directory(tmp_path, step(1))
    (directory / "notes.txt").write_text("mine")
    (directory / "2000000000").write_text("not a record")

    found = LightSource().find(directory, sorted(entry.name for entry in directory.iterdir()))

    assert found is not None and sorted(found.rest) == ["2000000000", "notes.txt"]
    assert [file.name for item in found.inputs for file in item.files] == ["1700000000"]


@pytest.mark.parametrize("text", ["", "[1, 2]", '{"Kind": "x"}', '{"kind":1,"Flag":2}'])
def test_other_directories_named_by_numbers_are_none_of_ours(tmp_path: Path, text: str) -> None:
    directory = rank_directory(tmp_path, text)

    assert LightSource().find(directory, ["1700000000"]) is None


def test_a_large_recording_is_read_in_blocks_with_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = dataclasses.replace(JOB, steps=300, on_device=True)
    directory = job.write_as_taskd(tmp_path) / "0"
    whole, _ = read(directory)
    monkeypatch.setattr("stepscope.sources.light.ranges._BLOCK", 5000)
    monkeypatch.setattr("stepscope.sources.light.ranges._HELD", 50)

    parts, _ = read(directory)

    for name in ("steps", "collectives", "input_pipeline"):
        assert parts[name].equals(whole[name]), name
    assert parts["slices"].height == whole["slices"].height
