"""All tables of a run as Parquet files."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from builders import MS, make_run
from stepscope import __version__
from stepscope.analysis.methods import batches
from stepscope.errors import StepscopeError
from stepscope.export import parquet
from stepscope.export.parquet import write_parquet
from stepscope.run import Run, open_runs
from stepscope.tables import OPERATORS, STEPS, TABLES


def read(directory: Path) -> dict[str, Any]:
    """What describes the files."""
    told: dict[str, Any] = json.loads((directory / "schema.json").read_text("utf-8"))
    return told


def test_each_table_with_rows_is_a_file_with_all_its_columns(tmp_path: Path) -> None:
    run = make_run(2, 3)
    made = write_parquet(run, tmp_path / "out")
    told = read(tmp_path / "out")
    assert list(told["tables"]) == ["ranks", "steps", "kernels", "collectives"]
    assert {file.name for file in made.files} == {each.name for each in (tmp_path / "out").iterdir()}
    for name, about in told["tables"].items():
        rows = pl.read_parquet(tmp_path / "out" / about["file"])
        assert rows.equals(run.table(name).collect())
        assert rows.schema == TABLES[name].schema
        assert [column["name"] for column in about["columns"]] == rows.columns
        assert about["rows"] == rows.height
    assert told["stepscope_version"] == __version__
    (start,) = (column for column in told["tables"]["kernels"]["columns"] if column["name"] == "start_ns")
    meaning = "Start, ns since the epoch."
    assert start == {"name": "start_ns", "type": "int64", "unit": "ns", "nullable": False, "meaning": meaning}
    assert not made.left_out
    assert not made.notes


def test_rows_are_those_of_the_chosen_ranks_and_steps(tmp_path: Path) -> None:
    write_parquet(make_run(3, 4).select(ranks="1-2", steps="2"), tmp_path / "out")
    told = read(tmp_path / "out")
    assert (told["ranks"], told["steps"]) == ([1, 2], [2])
    rows = pl.read_parquet(tmp_path / "out" / "kernels.parquet")
    assert rows.select("rank", "step").unique().sort("rank").rows() == [(1, 2), (2, 2)]
    assert rows.height == 4


def test_a_table_without_rows_in_the_chosen_steps_is_no_file(tmp_path: Path) -> None:
    run = make_run(1, 2)
    frames = {name: run.table(name).collect() for name in ("steps", "kernels", "collectives")}
    frames["collectives"] = frames["collectives"].filter(pl.col("step") == 1)
    write_parquet(Run.from_frames({0: frames}).select(steps="2"), tmp_path / "out")
    assert "collectives" not in read(tmp_path / "out")["tables"]
    assert not (tmp_path / "out" / "collectives.parquet").exists()


def test_times_that_are_not_since_1970_are_told(tmp_path: Path) -> None:
    run = make_run(1, 1)
    made = write_parquet(Run.from_frames({0: {"kernels": run.table("kernels").collect()}}), tmp_path / "out")
    assert "count from the zero of their recording" in made.notes[0]
    assert "zero of the recording" in read(tmp_path / "out")["sources"][0]["clock"]


def test_answers_are_written_where_there_are_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: parquet.ANALYSES[name] for name in ("arrival", "python_threads")}
    monkeypatch.setattr(parquet, "ANALYSES", some)
    run = make_run(2, 2)
    made = write_parquet(run, tmp_path / "out", answers=True)
    told = read(tmp_path / "out")
    rows = pl.read_parquet(tmp_path / "out" / "answers" / "arrival.parquet")
    assert rows.equals(run.analyse("arrival"))
    assert [column["name"] for column in told["answers"]["arrival"]["columns"]] == rows.columns
    assert told["left_out"] == made.left_out
    assert list(made.left_out) == ["answers/python_threads.parquet"]
    assert tmp_path / "out" / "answers" / "arrival.parquet" in made.files


def looping() -> Run:
    """Four times the same six operators, in a recording that marks no steps."""
    names = ["aten::conv2d", "aten::relu", "aten::mm", "aten::nll_loss", "MmBackward0", "ConvolutionBackward0"] * 4
    starts = [n * 20_000 for n in range(24)]
    operators = OPERATORS.frame(
        slice=range(24), name=names, thread=["1"] * 24, start_ns=starts, duration_ns=[10_000] * 24, step=[0] * 24
    )
    whole = {"start_ns": [0], "end_ns": [480_000], "window_start_ns": [0], "window_end_ns": [480_000]}
    return Run.from_frames({0: {"operators": operators, "steps": STEPS.frame(step=[0], window=["recording"], **whole)}})


@pytest.mark.parametrize("batch_rows", [4, 200_000])
def test_a_run_without_marked_steps_has_its_iterations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int
) -> None:
    monkeypatch.setattr(batches, "BATCH_ROWS", batch_rows)
    write_parquet(looping(), tmp_path / "out")
    assert read(tmp_path / "out")["steps_are_iterations"]
    rows = pl.read_parquet(tmp_path / "out" / "operators.parquet")
    assert rows["step"].to_list() == [1 + n // 6 for n in range(24)]
    assert pl.read_parquet(tmp_path / "out" / "steps.parquet")["step"].to_list() == [1, 2, 3, 4]
    write_parquet(looping().select(steps="2-3"), tmp_path / "some")
    assert pl.read_parquet(tmp_path / "some" / "operators.parquet").equals(rows.filter(pl.col("step").is_in([2, 3])))


def test_nothing_is_overwritten_and_nothing_is_written_into_a_recording(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    with pytest.raises(StepscopeError, match="has files already"):
        write_parquet(make_run(1, 1), full)
    with pytest.raises(StepscopeError, match="this is a file"):
        write_parquet(make_run(1, 1), full / "notes.txt")
    assert (full / "notes.txt").read_text() == "mine"
    empty = tmp_path / "empty"
    empty.mkdir()
    write_parquet(make_run(1, 1), empty)
    assert (empty / "schema.json").exists()


@pytest.mark.parametrize("is_there", [False, True])
def test_nothing_is_left_of_an_export_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    if is_there:
        (tmp_path / "out").mkdir()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(parquet, "_described", full)
    with pytest.raises(StepscopeError, match=r"out: cannot be written: No space left on device\. Nothing was left"):
        write_parquet(make_run(1, 1), tmp_path / "out")
    assert {file.name for file in tmp_path.rglob("*")} <= {"out", "cache"}


def test_odd_names_come_back_as_they_are(tmp_path: Path) -> None:
    names = ["a\x00b\n\x1b[31m", "n" * 1_000_000, "", "\u202e名"]
    kernels = TABLES["kernels"].frame(
        kernel=range(4), start_ns=[-5, 0, 1, 2], duration_ns=[1, -MS, 0, 2], kind=["compute"] * 4, name=names
    )
    write_parquet(Run.from_frames({0: {"kernels": kernels}}), tmp_path / "out")
    rows = pl.read_parquet(tmp_path / "out" / "kernels.parquet")
    assert rows["name"].to_list() == names
    assert rows["start_ns"].to_list() == [-5, 0, 1, 2]


@pytest.mark.parametrize("name", ["pytorch/dlrm_8rank_v100", "ascend/text_8rank", "mindspore/synthetic_dp4"])
def test_real_recordings_have_all_their_rows(
    shared: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_ROWS", 500)
    (run,) = open_runs([shared / "data" / name])
    write_parquet(run, tmp_path / "out")
    tables = read(tmp_path / "out")["tables"]
    coverage = run.coverage()
    for table in coverage.columns[1:]:
        rows = coverage[table].sum() if table != "issues" else run.issues.height
        assert tables.get(table, {"rows": 0})["rows"] == rows, table
        if rows:
            found = pl.read_parquet(tmp_path / "out" / f"{table}.parquet")
            assert found.equals(run.table(table).collect()), table
    with pytest.raises(StepscopeError, match="inside the recording"):
        write_parquet(run, shared / "data" / name / "out")
