"""Runs with missing, odd and very many things."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from db_exports import EPOCH_NS, MS, databases, exported, host_run, npu_rank, npu_run, read_back, select, text

from stepscope import Run
from stepscope.errors import StepscopeError
from stepscope.export.ascend_db.database import LONGEST_TEXT_BYTES
from stepscope.export.ascend_db.directory import write_ascend_db
from stepscope.tables import COLLECTIVES, GROUPS, KERNEL_RESOURCES, KERNELS, OPERATORS, RANKS, SLICES, TABLES


def alone(**changed: pl.DataFrame | None) -> Run:
    """One rank with other tables; None for a missing one."""
    tables = {**npu_rank(0, 1, 1), **changed}
    return Run.from_frames({0: {name: rows for name, rows in tables.items() if rows is not None}})


@pytest.mark.parametrize("missing", sorted(set(npu_rank(0, 1, 1)) - {"ranks"}))
def test_each_table_may_be_missing(tmp_path: Path, missing: str) -> None:
    again = read_back(exported(alone(**{missing: None}), tmp_path / "out"))

    assert [rank.rank for rank in again.ranks] == [0]


def test_a_run_without_events_is_refused(tmp_path: Path) -> None:
    tables = npu_rank(0, 1, 1)
    run = Run.from_frames({0: {name: tables[name] for name in ("ranks", "groups", "steps")}})

    with pytest.raises(StepscopeError, match="no kernels, operators, ranges or communication calls"):
        write_ascend_db(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_is_known_but_operators(tmp_path: Path) -> None:
    rows = OPERATORS.frame(slice=[0], start_ns=[5], duration_ns=[7], name=["aten::mm"])
    again = read_back(exported(Run.from_frames({3: {"operators": rows}}), tmp_path / "out"))

    assert [rank.rank for rank in again.ranks] == [3]
    found = again.table("operators").collect()
    assert found.select("start_ns", "duration_ns", "name").rows() == [(5, 7, "aten::mm")]


def test_odd_names(tmp_path: Path) -> None:
    names = ["a\0b", "tab\tand\nline \x1b[31m", "N/A", "", "ü😀", "x" * 1_000_000, "y" * (LONGEST_TEXT_BYTES + 5)]
    count = len(names)
    slices = SLICES.frame(
        slice=range(count),
        start_ns=[EPOCH_NS + MS + n for n in range(count)],
        duration_ns=[1] * count,
        category=["operator"] * count,
        name=names,
        thread=["1"] * count,
    )
    operators = OPERATORS.conform(slices.select("slice", "start_ns", "duration_ns", "name", "thread"))
    made = write_ascend_db(alone(slices=slices, operators=operators), tmp_path / "out")
    found = select(databases(tmp_path / "out")["events"], f"SELECT {text('name')} FROM PYTORCH_API ORDER BY startNs")

    cut = "y" * LONGEST_TEXT_BYTES
    assert [name for (name,) in found] == ["a\N{REPLACEMENT CHARACTER}b", *names[1:-1], cut]
    assert "rank 0: a NUL in 1 text is replaced by U+FFFD, as many readers would end the text there." in made.notes
    assert "rank 0: 1 text longer than 1 MiB, cut to that." in made.notes
    again = read_back(tmp_path / "out").table("operators").sort("start_ns").collect()["name"].to_list()
    assert again[-2:] == ["x" * 1_000_000, cut]


def test_impossible_numbers(tmp_path: Path) -> None:
    most = 2**63 - 1
    kernels = KERNELS.frame(
        kernel=[0, 1, 2],
        start_ns=[EPOCH_NS, EPOCH_NS + 5, most - 1],
        duration_ns=[-5, 0, most],
        kind=["compute"] * 3,
        name=["a", "b", "c"],
        correlation=[-1, None, most],
        size_bytes=[-7, None, most],
    )
    made = write_ascend_db(alone(kernels=kernels), tmp_path / "out")
    rows = select(
        databases(tmp_path / "out")["events"], "SELECT startNs, endNs FROM TASK WHERE globalTaskId BETWEEN 0 AND 2"
    )

    assert rows == [(EPOCH_NS, EPOCH_NS), (EPOCH_NS + 5, EPOCH_NS + 5), (most - 1, most)]
    assert any("2 ranges" in note for note in made.notes)


def test_odd_processes_and_threads(tmp_path: Path) -> None:
    places = [("77", "5"), (str(1 << 40), "5"), ("loader", str(1 << 40)), (None, None), ("77", "main"), ("77", "-3")]
    count = len(places)
    slices = SLICES.frame(
        slice=range(count),
        start_ns=[EPOCH_NS + MS + n for n in range(count)],
        duration_ns=[1] * count,
        category=["annotation"] * count,
        name=[str(n) for n in range(count)],
        process=[process for process, _ in places],
        thread=[thread for _, thread in places],
    )
    events = databases(exported(alone(slices=slices, operators=None), tmp_path / "out"))["events"]
    found = [number for (number,) in select(events, "SELECT globalTid FROM PYTORCH_API ORDER BY startNs")]

    assert all(0 <= number < 2**63 for number in found)
    assert found[0] == 77 << 32 | 5
    assert found[1] >> 32 == found[2] >> 32 == 4000
    assert len(set(found)) == count


def test_ranks_and_facts_may_be_missing(tmp_path: Path) -> None:
    frames = {rank: npu_rank(rank, 8, 1) for rank in (1, 6)}
    for tables in frames.values():
        bare = {name: tables["ranks"][name] for name in ("world_size",)}
        tables["ranks"] = RANKS.frame(rank=[None], **bare)
    made = write_ascend_db(Run.from_frames(frames), tmp_path / "out")
    again = read_back(tmp_path / "out")

    assert [rank.rank for rank in again.ranks] == [1, 6]
    assert again.world_size == 8
    assert any("no process id" in note for note in made.notes)


def test_ranks_with_one_process_id_have_a_directory_each(tmp_path: Path) -> None:
    frames = {rank: npu_rank(rank, 2, 1) for rank in range(2)}
    for tables in frames.values():
        tables["ranks"] = tables["ranks"].with_columns(process=pl.lit(1, pl.Int64))
    exported(Run.from_frames(frames), tmp_path / "out")

    assert len(list((tmp_path / "out").iterdir())) == 2


def test_ten_thousand_groups(tmp_path: Path) -> None:
    count = 10_000
    names = [f"group of {n}" for n in range(count)]
    calls = COLLECTIVES.frame(
        collective=range(count),
        group=names,
        sequence=[0] * count,
        operation=["all_reduce"] * count,
        name=["ncclAllReduce"] * count,
        start_ns=[EPOCH_NS + n for n in range(count)],
        duration_ns=[1] * count,
        on_device=[True] * count,
        step=[4] * count,
    )
    groups = GROUPS.frame(group=names, name=names, members=[[0]] * count)
    again = read_back(exported(alone(collectives=calls, groups=groups), tmp_path / "out"))

    assert again.table("groups").collect().height == count
    assert again.table("collectives").collect()["group"].n_unique() == count


@pytest.mark.parametrize(
    "change",
    [
        "SET step = 1 << 40",
        "SET step = -1",
        "SET window = 'odd'",
        "SET window = 'repetition'",
        "SET window_end_ns = start_ns - 5",
        "SET window_start_ns = NULL",
        "SET start_ns = 5, end_ns = 9",
        "SET step = 4",
    ],
)
def test_damaged_windows_are_not_believed(tmp_path: Path, change: str) -> None:
    directory = exported(npu_run(ranks=1), tmp_path / "out")
    with closing(sqlite3.connect(databases(directory)["events"])) as connection:
        connection.execute(f"UPDATE STEPSCOPE_STEPS {change}")
        connection.commit()
    again = read_back(directory)

    assert again.steps == [4, 5]
    assert again.table("steps").collect()["window"].to_list() == ["device", "device"]
    assert any("STEPSCOPE_STEPS" in problem for problem in again.issues["problem"])


def test_iterations_that_were_found_are_steps(tmp_path: Path) -> None:
    steps = npu_rank(0, 1, 1)["steps"].with_columns(window=pl.lit("repetition"))
    again = read_back(exported(alone(steps=steps), tmp_path / "out"))

    assert again.table("steps").collect()["window"].to_list() == ["stated"]


def test_a_recording_without_steps(tmp_path: Path) -> None:
    bare = {
        name: rows.drop("step") if "step" in rows.columns else rows
        for name, rows in npu_rank(0, 1, 1).items()
        if name != "steps"
    }
    bare = {name: TABLES[name].conform(rows) if name != "ranks" else rows for name, rows in bare.items()}
    directory = exported(Run.from_frames({0: bare}), tmp_path / "out")
    found = databases(directory)

    assert select(found["events"], "SELECT * FROM STEP_TIME") == []
    assert {step for (step,) in select(found["analysis"], "SELECT step FROM CommAnalyzerTime")} <= {"step"}


def test_what_has_no_place_is_reported(tmp_path: Path) -> None:
    tables = npu_rank(0, 1, 1)
    rows = [("overhead", "Lazy Loading"), ("compile", "torch.compile"), ("other", "?"), ("device_annotation", "mine")]
    more = SLICES.frame(
        slice=[500 + n for n in range(4)],
        start_ns=[EPOCH_NS + n for n in range(4)],
        duration_ns=[1] * 4,
        category=[category for category, _ in rows],
        name=[name for _, name in rows],
        thread=["1"] * 4,
    )
    counters = tables["counters"].with_columns(name=pl.lit("gpu_power_w"))
    run = alone(
        slices=pl.concat([tables["slices"], more]),
        counters=counters,
        kernel_resources=KERNEL_RESOURCES.frame(kernel=[1], registers_per_thread=[32]),
    )
    made = write_ascend_db(run, tmp_path / "out")

    assert made.left_out == {
        "annotations of a GPU's work of rank 0": "the format has no place for them (1 row)",
        "host ranges of the category compile of rank 0": "the format has no place for them (1 row)",
        "host ranges of the category other of rank 0": "the format has no place for them (1 row)",
        "host ranges of the category overhead of rank 0": "the format has no place for them (1 row)",
        "table kernel_resources of rank 0": "the format has no place for them (1 row)",
        "samples of gpu_power_w of rank 0": "the format has no place for them (4 rows)",
    }


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("stepscope.export.ascend_db.directory.write_host", full)
    with pytest.raises(StepscopeError, match="No space left"):
        write_ascend_db(npu_run(), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


def test_batches_give_what_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = npu_run(ranks=1)
    whole = exported(run, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr("stepscope.analysis.methods.batches.BATCH_ROWS", 3)
        parts = exported(run, tmp_path / "parts")

    for name in ("kernels", "operators", "collectives", "kernel_counters", "communication_tasks", "counters", "groups"):
        assert read_back(whole).table(name).collect().equals(read_back(parts).table(name).collect()), name


def test_the_host_alone_is_enough(tmp_path: Path) -> None:
    again = read_back(exported(host_run(ranks=1), tmp_path / "out"))

    assert again.table("collectives").collect()["on_device"].unique().to_list() == [False]
