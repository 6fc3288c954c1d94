"""What is exported to `*_ascend_ms` directories is read back as it was, as far as the format can say it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from exports import export, host_run, read_back
from polars.testing import assert_frame_equal

from builders import make_run
from stepscope import Run, open_run
from stepscope.sources.ascend.groups import group_key

CALL = [
    "rank",
    "sequence",
    "operation",
    "size_bytes",
    "group_size",
    "peer",
    "start_ns",
    "duration_ns",
    "on_device",
    "step",
]
OPERATOR = [
    "rank",
    "start_ns",
    "duration_ns",
    "self_ns",
    "name",
    "thread",
    "input_shapes",
    "input_types",
    "sequence",
    "step",
]


def rows(run: Run, table: str, columns: list[str]) -> pl.DataFrame:
    return run.table(table).select(columns).collect().sort(pl.all(), nulls_last=True)


def same(first: Run, second: Run, table: str, columns: list[str]) -> None:
    assert_frame_equal(rows(first, table, columns), rows(second, table, columns))


@pytest.fixture
def hosts(tmp_path: Path) -> tuple[Run, Run]:
    run = host_run()
    export(run, tmp_path / "out")
    return run, read_back(tmp_path / "out")


def test_ranks_say_who_they_are(hosts: tuple[Run, Run]) -> None:
    columns = [
        "rank",
        "world_size",
        "host",
        "process",
        "device_kind",
        "framework",
        "framework_version",
        "mode",
        "backend",
    ]

    same(*hosts, "ranks", columns)


def test_steps_and_operators_of_hosts_come_back(hosts: tuple[Run, Run]) -> None:
    run, again = hosts

    same(
        run,
        again,
        "steps",
        [name for name in run.table("steps").collect_schema() if not name.startswith(("forw", "backw"))],
    )
    same(run, again, "operators", OPERATOR)
    same(run, again, "flows", ["rank", "kind", "flow", "from_ns", "from_thread", "to_ns", "to_thread"])
    ranges = ["rank", "start_ns", "duration_ns", "category", "name", "thread"]
    assert_frame_equal(
        rows(run, "slices", ranges),
        rows(again, "slices", ranges).filter(~pl.col("name").str.starts_with("ProfilerStep")),
    )


def test_calls_of_hosts_come_back_on_the_host(hosts: tuple[Run, Run]) -> None:
    run, again = hosts

    same(run, again, "collectives", CALL)
    groups = again.table("groups").select("group", "name", "members").unique().collect()
    assert groups.rows() == [(group_key("pair"), "dp", [0, 1])]
    assert again.table("collectives").select(pl.col("group").unique()).collect().item() == group_key("pair")


def test_links_are_the_sends_and_receives(hosts: tuple[Run, Run]) -> None:
    columns = ["source", "destination", "operation", "transport", "size_bytes", "duration_ns"]
    totals = hosts[1].table("links").filter(pl.col("name").is_null() & (pl.col("step") == 2)).collect()

    assert totals.sort("rank").select("rank", *columns).rows() == [
        (0, 0, 1, "send", "GLOO", 2_000_000, 1_000_000),
        (1, 0, 1, "recv", "GLOO", 2_000_000, 1_000_000),
    ]


def test_memory_comes_back(hosts: tuple[Run, Run]) -> None:
    same(*hosts, "allocations", ["rank", "name", "size_bytes", "allocation_ns", "release_ns", "device"])
    same(*hosts, "memory_curve", ["rank", "time_ns", "component", "device", "allocated_bytes", "reserved_bytes"])


def test_the_split_of_time_comes_back_and_is_the_stated_one(hosts: tuple[Run, Run]) -> None:
    run, again = hosts
    ours = run.analyse("breakdown")

    assert_frame_equal(again.analyse("breakdown"), ours)
    stated = again.table("step_totals").collect()
    for name in ("computing_ns", "communication_ns", "overlapped_ns", "stage_ns", "bubble_ns"):
        assert stated[name].to_list() == ours[name].to_list()
    assert stated["preparing_ns"].null_count() == stated.height
    assert again.issues.is_empty()


def test_device_work_comes_back(tmp_path: Path) -> None:
    run = make_run(ranks=2, late={1: 5_000_007})
    export(run, tmp_path / "out")
    again = read_back(tmp_path / "out")

    same(run, again, "steps", ["rank", "step", "start_ns", "end_ns", "window"])
    same(run, again, "collectives", [name for name in CALL if name not in ("size_bytes", "group_size")])
    kernels = ["rank", "start_ns", "duration_ns", "kind", "step"]
    same(run, again, "kernels", kernels)
    work = ["rank", "step", "computing_ns", "communication_ns", "overlapped_ns", "communication_not_overlapped_ns"]
    assert_frame_equal(again.analyse("breakdown").select(work), run.analyse("breakdown").select(work))
    assert again.table("transports").select(pl.col("size_bytes").unique()).collect().item() == 1 << 20
    assert again.issues.is_empty()


def test_a_recording_without_steps_stays_one(tmp_path: Path) -> None:
    run = host_run(steps=1)
    frames = {rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in run.ranks}
    for tables in frames.values():
        tables["steps"] = tables["steps"].with_columns(step=pl.lit(0, pl.Int32), window=pl.lit("recording"))
        tables["collectives"] = tables["collectives"].with_columns(step=pl.lit(0, pl.Int32))
    whole = Run.from_frames(frames)
    export(whole, tmp_path / "out")
    again = read_back(tmp_path / "out")

    assert again.table("steps").collect()["window"].to_list() == ["recording"] * 2
    assert again.steps == [0]
    same(whole, again, "collectives", CALL)


def test_a_recorded_job_comes_back(shared: Path, tmp_path: Path) -> None:
    run = open_run(shared / "data/pytorch/cpu_gloo_4rank_straggler_r2")
    export(run, tmp_path / "out")
    again = read_back(tmp_path / "out")

    assert again.issues.is_empty()
    for table, columns in (
        ("steps", ["rank", "step", "start_ns", "end_ns"]),
        ("collectives", CALL),
        ("operators", OPERATOR),
    ):
        same(run, again, table, columns)
    assert_frame_equal(again.analyse("breakdown"), run.analyse("breakdown"))
