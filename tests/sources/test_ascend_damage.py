"""Damage in an Ascend recording is named, costs its own part only, and never passes for work that was not done."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ascend_files import (
    EPOCH_NS,
    KERNEL_HEADER,
    call_row,
    kernel_row,
    rank_directory,
    read,
    read_db,
    read_text,
    sql,
    write_communication,
    write_database,
    write_kernels,
    write_trace,
)

from stepscope import open_run
from stepscope.errors import UnreadableInput
from stepscope.sources.ascend import AscendText

WEEK_NS = 7 * 24 * 3600 * 10**9


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """The output folder of a rank directory, with nothing in it."""
    return rank_directory(tmp_path)


@contextmanager
def edited(path: Path) -> Iterator[Any]:
    """Change the content of a JSON file in the body."""
    content = json.loads(path.read_text())
    yield content
    path.write_text(json.dumps(content))


def record_activities(output: Path, *names: str) -> None:
    """State in the options what was recorded."""
    with edited(output.parent / "profiler_info_0.json") as info:
        info["config"]["common_config"]["activities"] = [f"ProfilerActivity.{name}" for name in names]


def errors(tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    return tables["issues"].filter(severity="error")


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize(
    ("table", "place"),
    [
        ("TASK", "kernels"),
        ("COMPUTE_TASK_INFO", "kernels"),
        ("COMMUNICATION_OP", "collectives"),
        ("STRING_IDS", "operators"),
        ("CANN_API", "slices"),
        ("PYTORCH_API", "operators"),
    ],
)
def test_a_database_without_an_essential_table_says_what_is_lost(
    output: Path, table: str, place: str, empty: bool
) -> None:
    path = write_database(output)
    sql(path, f"DELETE FROM {table}" if empty else f"DROP TABLE {table}")

    issue = errors(read_db(output.parent)).row(0, named=True)

    assert (issue["file"], issue["place"]) == (str(path), place)
    assert f"table {table} is {'empty' if empty else 'missing'}, so " in issue["problem"]
    assert "Export the profile again" in issue["remedy"]


@pytest.mark.parametrize("table", ["TASK", "COMPUTE_TASK_INFO"])
def test_without_its_table_no_compute_kernel_is_made_up(output: Path, table: str) -> None:
    write_database(output, leave_out=(table,))

    tables = read_db(output.parent)

    assert tables["kernels"]["kind"].to_list() == ["communication"]


def test_kernels_that_no_task_belongs_to_are_told(output: Path) -> None:
    sql(write_database(output), "UPDATE TASK SET globalTaskId = 7")

    assert "no kernels are known" in errors(read_db(output.parent))["problem"][0]


def test_a_missing_table_of_steps_is_a_note_where_the_host_tells_them(output: Path) -> None:
    write_database(output, leave_out=("STEP_TIME",))

    tables = read_db(output.parent)

    assert tables["issues"].select("severity", "place").rows() == [("note", "table STEP_TIME")]
    assert tables["steps"]["step"].to_list() == [5]


def test_without_any_work_of_the_device_there_are_no_steps_to_compare(output: Path) -> None:
    write_database(output, leave_out=("TASK", "COMPUTE_TASK_INFO", "COMMUNICATION_OP"))

    tables = read_db(output.parent)

    assert "steps" not in tables
    assert "operators" in tables
    assert "steps" in errors(tables)["place"].to_list()


def test_a_recording_of_the_host_alone_lacks_nothing(output: Path) -> None:
    write_database(output, leave_out=("TASK", "COMPUTE_TASK_INFO", "COMMUNICATION_OP", "TASK_PMU_INFO"))
    record_activities(output, "CPU")

    tables = read_db(output.parent)

    assert "issues" not in tables
    assert tables["steps"]["step"].to_list() == [5]


@pytest.mark.parametrize("damage", ["emptied", "tables gone", "rows gone"])
def test_a_database_without_anything_usable_cannot_be_read(output: Path, damage: str) -> None:
    path = write_database(output)
    if damage == "emptied":
        path.write_bytes(b"")
    else:
        names = [row[0] for row in sqlite3.connect(path).execute("SELECT name FROM sqlite_master")]
        sql(path, *(f"{'DROP TABLE' if damage == 'tables gone' else 'DELETE FROM'} {name}" for name in names))

    with pytest.raises(UnreadableInput, match="is empty or not a readable database"):
        read_db(output.parent)


def test_an_emptied_database_leaves_the_analysis_beside_it(output: Path) -> None:
    write_database(output).write_bytes(b"")
    start_us = EPOCH_NS / 1000
    sql(
        output / "analysis.db",
        "CREATE TABLE CommAnalyzerTime (hccl_op_name, group_name, start_timestamp, elapse_time, step)",
        f"INSERT INTO CommAnalyzerTime VALUES ('hcom_allReduce__653_0_1', 'g', {start_us}, 0.5, 'step5')",
        f"INSERT INTO CommAnalyzerTime VALUES ('hcom_allReduce__653_1_1', 'g', {start_us + 1000}, 0.5, 'step5')",
        "INSERT INTO CommAnalyzerTime VALUES ('hcom_allReduce__653_2_1', 'g', -5, 0.5, 'step5')",
    )

    tables = read_db(output.parent)

    assert tables["collectives"].height == 2
    assert "kernels" not in tables
    told = errors(tables).select("place", "problem", "lost").rows()
    assert told[0][0] == "kernels"
    assert "is empty; everything it should hold is lost" in told[0][1]
    assert told[1][0] == "collectives"
    assert (told[1][1].startswith("table CommAnalyzerTime: 1 of 3 rows start more"), told[1][2]) == (True, 1)


BAD_TIMES = {
    "null": "startNs = NULL",
    "text": "startNs = 'abc'",
    "negative": f"startNs = -{EPOCH_NS}",
    "zero": "startNs = 0",
    "huge": f"startNs = {2**63 - 1}",
    "no end": "endNs = NULL",
    "end before start": "endNs = startNs - 1",
    "longer than a week": f"endNs = startNs + {WEEK_NS + 1}",
}


@pytest.mark.parametrize("table", ["TASK", "COMMUNICATION_OP", "CANN_API", "PYTORCH_API", "STEP_TIME"])
@pytest.mark.parametrize("change", BAD_TIMES.values(), ids=BAD_TIMES.keys())
def test_rows_of_a_database_with_impossible_times_are_left_out_and_counted(
    output: Path, change: str, table: str
) -> None:
    path = write_database(output)
    copied = [row[1] for row in sqlite3.connect(path).execute(f"PRAGMA table_info({table})")]
    again = f"INSERT INTO {table} ({', '.join(copied)}) SELECT {', '.join(copied)} FROM {table} LIMIT 1"
    sql(path, again, f"UPDATE {table} SET {change} WHERE rowid = (SELECT max(rowid) FROM {table})")

    tables = read_db(output.parent)

    if table == "STEP_TIME":  # not needed, as the host tells the steps
        assert "issues" not in tables
    else:
        problem, lost = errors(tables).select("problem", "lost").row(0)
        assert problem.startswith(f"table {table} is damaged, 1 of ")
        assert (errors(tables).height, lost) == (1, 1)
    step = tables["steps"].row(0, named=True)
    assert 0 < step["window_end_ns"] - step["window_start_ns"] < 10_000
    assert tables["kernels"]["duration_ns"].max() == 2000


def test_a_call_without_a_name_is_told(output: Path) -> None:
    sql(write_database(output), "DELETE FROM STRING_IDS WHERE value LIKE 'hcom%'")

    tables = read_db(output.parent)

    assert "collectives" not in tables
    assert "1 rows with names that are not in STRING_IDS" in errors(tables)["problem"][0]


def every_other(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(output: Path) -> None:
        with edited(output / "trace_view.json") as events:
            for event in [event for event in events if event["ph"] == "X"][::3]:
                change(event)

    return damage


@pytest.mark.parametrize("time", [0, -1e15, "1"])
def test_events_of_a_trace_view_at_impossible_times_are_left_out(output: Path, time: object) -> None:
    write_trace(output)
    every_other(lambda event: event.update(ts=time))(output)

    tables = read_text(output.parent)

    issue = tables["issues"].row(0, named=True)
    assert issue["problem"] == "10 events left out: more than a week from the middle of the recording"
    assert issue["lost"] == 10
    assert tables["slices"]["start_ns"].max() - tables["slices"]["start_ns"].min() < 20_000_000


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (kernel_row(5, 1100).replace("176000000000", "000000000000"), "start more than a week from"),
        (kernel_row(5, 1100).replace(",100.5,", ",-3,"), "end before they start"),
        (kernel_row(5, 1100).replace(",100.5,", ",7e11,"), "last longer than a week"),
        (kernel_row(5, 1100).replace(",100.5,", ",soon,"), "have no readable name or start_time or duration"),
        ("5,3,1,8,2,cut", "have no readable name or start_time or duration"),
    ],
)
def test_damaged_rows_of_a_kernel_list_are_left_out_and_counted(output: Path, row: str, problem: str) -> None:
    write_kernels(output, rows=[kernel_row(5, 1000), row, call_row(5, 1400, 0)])

    tables = read_text(output.parent)

    (issue,) = tables["issues"].iter_rows(named=True)
    assert issue["problem"].startswith(f"1 of 3 rows {problem}")
    assert (issue["severity"], issue["lost"]) == ("error", 1)
    assert tables["kernels"].height == 2


@pytest.mark.parametrize("characters", [-59, kernel_row(5, 1000).index('"') + 6], ids=["in a cell", "within quotes"])
def test_a_kernel_list_that_is_cut_loses_its_last_row_only(output: Path, characters: int) -> None:
    rows = [kernel_row(5, 1000 + number) for number in range(5)]
    (output / "kernel_details.csv").write_text("\n".join([KERNEL_HEADER, *rows[:4], rows[4][:characters]]))

    tables = read_text(output.parent)

    assert tables["kernels"].height == 4
    assert errors(tables).select("problem", "lost").rows() == [("its last row is truncated and is left out", 1)]


def test_an_empty_kernel_list_is_called_empty(output: Path) -> None:
    write_trace(output)
    (output / "kernel_details.csv").write_bytes(b"")

    assert errors(read_text(output.parent))["problem"].to_list() == ["is empty"]


def test_a_text_export_without_the_device_part_has_no_steps_to_compare(output: Path) -> None:
    record_activities(output, "CPU", "NPU")
    with edited(write_trace(output) / "trace_view.json") as events:
        events[:] = [event for event in events if "cat" in event]

    tables = read_text(output.parent)

    assert errors(tables)["place"].to_list() == ["kernels", "steps"]
    assert "steps" not in tables
    assert tables["operators"].height == 4


def test_calls_at_impossible_times_are_left_out(output: Path) -> None:
    with edited(write_communication(output) / "communication.json") as content:
        (call,) = (entry for name, entry in content["step5"]["collective"].items() if name.startswith("hcom"))
        call["Communication Time Info"]["Elapse Time(ms)"] = -0.5

    tables = read_text(output.parent)

    assert tables["collectives"]["step"].to_list() == [6]
    assert errors(tables)["problem"][0].startswith("1 of 2 rows end before they start")


def test_names_and_values_that_are_not_utf8_leave_valid_json(tmp_path: Path) -> None:
    output = rank_directory(tmp_path, name="host\udcff_4242_20251009163000000_ascend_pt")
    write_kernels(output)
    with edited(output.parent / "profiler_metadata.json") as metadata:
        metadata["ENV_VARIABLES"]["HCCL_ALGO"] = "\x1b \U0001f600"

    _, facts = read(AscendText(), output.parent)

    assert facts["host"] == "host\\xff"
    assert facts["rank"] == 0
    for column in ("options", "environment", "parallelism"):
        assert json.loads(facts[column])


def test_an_environment_that_is_nested_too_deeply_costs_itself_only(output: Path) -> None:
    write_kernels(output)
    metadata = output.parent / "profiler_metadata.json"
    deep = "[" * 900 + "]" * 900
    metadata.write_text(metadata.read_text().replace('"HCCL_ALGO": ""', f'"HCCL_ALGO": {deep}'))

    tables, facts = read(AscendText(), output.parent)

    assert tables["kernels"].height == 6
    assert facts["environment"] is None or json.loads(facts["environment"])


def truncated(path: Path) -> None:
    path.write_bytes(b"")


WHOLE_JOB = {
    "no TASK": ("db", lambda path: sql(path, "DROP TABLE TASK")),
    "no COMPUTE_TASK_INFO": ("db", lambda path: sql(path, "DROP TABLE COMPUTE_TASK_INFO")),
    "no STRING_IDS": ("db", lambda path: sql(path, "DROP TABLE STRING_IDS")),
    "empty database": ("db", truncated),
    "starts of 0": ("db", lambda path: sql(path, "UPDATE TASK SET startNs = 0 WHERE rowid % 7 = 0")),
    "empty kernel list": ("text", truncated),
    "times of 0": ("text", lambda path: every_other(lambda event: event.update(ts=0))(path.parent)),
}


@pytest.mark.parametrize(("kind", "damage"), WHOLE_JOB.values(), ids=WHOLE_JOB.keys())
def test_a_damaged_rank_of_a_job_is_named_and_not_blamed(
    tmp_path: Path, shared: Path, kind: str, damage: Callable[[Path], None]
) -> None:
    job = tmp_path / "job"
    shutil.copytree(shared / "data" / "ascend" / f"{kind}_8rank", job)
    damaged = "ascend_pytorch_profiler_3.db" if kind == "db" else "kernel_details.csv"
    damage(next(job.glob(f"*430003*/ASCEND_PROFILER_OUTPUT/{damaged}")))

    run = open_run(job)

    assert set(run.analyse("slow_ranks")["rank"]) == {2, 6}
    told = run.issues.filter(pl.col("severity") != "note", rank=3)
    assert told.height
    assert told["file"].str.contains("430003").all()
