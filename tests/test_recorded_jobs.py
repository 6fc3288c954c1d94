"""Raw recordings opened as a user opens them: which belong together, and what they answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from recordings import EPOCH_NS, MS, MindSporeRun, Raw, op
from stepscope.cli import main
from stepscope.errors import Unavailable
from stepscope.run import Run, open_runs

S = 1000 * MS


def record(root: Path, rank: int, start_ns: int = 0, world_size: int = 4, slow_ns: int = 0, steps: int = 5) -> Raw:
    """A rank of a job on the CPU: it loads, computes and waits for the slowest, in steps of 100 ms."""
    groups = [{"group": "0", "name": "default_pg", "members": list(range(world_size))}]
    span = [[EPOCH_NS + start_ns, EPOCH_NS + start_ns + steps * 100 * MS]]
    about = {"world_size": world_size, "groups": groups, "spans": span, "backend": "gloo"}
    raw = Raw(root, rank, pid=100 + rank, stamp=f"2026{start_ns:013}", about=about)
    for number in range(1, steps + 1):
        begin = start_ns + (number - 1) * 100 * MS
        computed = begin + 20 * MS + slow_ns
        raw.mark("step", str(number), begin, begin + 100 * MS, number)
        raw.mark("data", "_SingleProcessDataLoaderIter", begin, computed - 10 * MS, number)
        us = [time / 1000 for time in (begin, computed - 10 * MS, computed, begin + 90 * MS)]
        loader = op("enumerate(DataLoader)#x.__next__", us[0] + 10, us[1] - us[0] - 20, "user_annotation")
        call = op("gloo:all_reduce", us[2], us[3] - us[2], "user_annotation", 2)
        events = [loader, op("aten::mm", us[1], us[2] - us[1]), call]
        raw.kineto(number - 1, begin, begin + 100 * MS, events, base_ns=number * MS)
    return raw


def open_all(root: Path) -> list[Run]:
    return open_runs(root, use_store=False)


def test_ranks_that_recorded_together_are_one_job(tmp_path: Path) -> None:
    for rank in range(4):
        record(tmp_path, rank, rank * MS)

    (run,) = open_all(tmp_path)

    assert [rank.rank for rank in run.ranks] == [0, 1, 2, 3]
    assert run.name == tmp_path.name
    assert run.table("steps").collect()["step"].n_unique() == 5


def test_recordings_of_one_rank_one_after_the_other_are_runs(tmp_path: Path) -> None:
    for rank in range(2):
        record(tmp_path, rank, world_size=2)
        record(tmp_path, rank, 3 * S, world_size=2, steps=2)

    runs = open_all(tmp_path)

    assert sorted((len(run.ranks), run.table("steps").collect().height) for run in runs) == [(2, 4), (2, 10)]


def test_the_split_of_a_step_counts_nothing_twice(tmp_path: Path) -> None:
    """Loading is marked by the recorder and by PyTorch; calls by marks and windows."""
    raw = record(tmp_path, 0, world_size=1, steps=1)
    detail = {"group": "0", "size_bytes": 8, "element_type": "float32", "group_size": 1, "async": False}
    raw.mark("collective", "all_reduce", 20 * MS - 1, 90 * MS + 1, 1, detail)

    (run,) = open_all(tmp_path)
    row = run.analyse("breakdown").row(0, named=True)

    assert row["window_ns"] == 100 * MS
    assert row["computing_ns"] == 10 * MS
    assert row["communication_ns"] == 70 * MS
    assert row["data_loading_ns"] == 10 * MS
    assert row["free_ns"] == 20 * MS
    assert run.table("collectives").collect().height == 1


def test_the_slow_rank_is_found_as_in_any_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in range(4):
        record(tmp_path, rank, slow_ns=50 * MS if rank == 2 else 0)

    assert main(["analyze", str(tmp_path), "--no-store"]) == 0

    assert capsys.readouterr().out.startswith("Rank 2 waits for data (50.00 ms per step, 50%).")


def test_what_was_recorded_is_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in range(2):
        record(tmp_path, rank, world_size=2)

    assert main(["info", str(tmp_path), "--no-store"]) == 0

    shown = capsys.readouterr().out
    assert "format recording" in shown
    assert "1-5 (5)" in shown


def test_steps_whose_operators_are_missing_are_not_idle(tmp_path: Path) -> None:
    """As after a kill: the marks go on, the last window is missing."""
    raw = record(tmp_path, 0, world_size=1)
    windows = raw.directory / "windows.csv"
    windows.write_text("".join(windows.read_text().splitlines(keepends=True)[:-2]))

    (run,) = open_all(tmp_path)

    assert run.table("steps").collect()["recorded"].to_list() == [True, True, True, False, False]
    assert run.analyse("breakdown")["step"].to_list() == [1, 2, 3]
    assert set(run.analyse("idle")["step"]) == {1, 2, 3}
    assert set(run.analyse("segments")["step"]) == {1, 2, 3}
    assert "in 2 of 5 steps" in " ".join(run.issues["problem"])


def phases(root: Path, **about: object) -> Run:
    raw = Raw(root, about=about).steps((1, 0, 100 * MS))
    raw.mark("data", "x", 0, 10 * MS, 1).mark("forward", "Net", 20 * MS, 40 * MS, 1)
    raw.mark("backward", "", 40 * MS, 70 * MS, 1).mark("optimizer", "SGD", 80 * MS, 90 * MS, 1)
    raw.mark("collective", "all_reduce", 60 * MS, 80 * MS, 1)
    return open_all(root)[0]


def test_without_operators_the_phases_say_when_the_rank_computed(tmp_path: Path) -> None:
    row = phases(tmp_path).analyse("breakdown").row(0, named=True)

    assert (row["computing_ns"], row["communication_not_overlapped_ns"]) == (50 * MS, 20 * MS)
    assert (row["data_loading_ns"], row["free_ns"]) == (10 * MS, 30 * MS)


def test_without_operators_nobody_knows_what_a_device_did(tmp_path: Path) -> None:
    run = phases(tmp_path, device_kind="cuda")

    with pytest.raises(Unavailable, match="device work was not recorded"):
        run.analyse("breakdown")


def test_a_recording_of_nothing_is_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Raw(tmp_path)

    assert main(["info", str(tmp_path), "--no-store"]) == 0

    assert "nothing was recorded" in " ".join("".join(capsys.readouterr()).split())


def test_an_operator_that_communicates_does_not_compute(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 100 * MS))
    runs = [MindSporeRun("Default/MatMul-op0", 0, 30 * MS), MindSporeRun("Default/AllReduce-op0", 40 * MS, 50 * MS)]
    raw.mindspore(0, 0, 100 * MS, runs)

    row = open_all(tmp_path)[0].analyse("breakdown").row(0, named=True)

    assert (row["computing_ns"], row["communication_not_overlapped_ns"]) == (30 * MS, 50 * MS)
