"""What is exported as databases is read back as it was, as far as the format can say it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pytest
from db_exports import KEY, exported, host_run, npu_run, read_back
from hypothesis import HealthCheck, given, settings
from polars.testing import assert_frame_equal

from made_up_jobs import Job, jobs
from stepscope import Run, open_run
from stepscope.errors import Unavailable
from stepscope.sources.ascend.groups import group_key
from traces import write_kineto

ASCEND = (
    "groups",
    "steps",
    "collectives",
    "kernel_counters",
    "communication_tasks",
    "links",
    "transports",
    "memory_curve",
    "allocations",
    "counters",
    "stacks",
)
"""Tables of an Ascend device that lose nothing."""
OPERATOR = [
    "rank",
    "start_ns",
    "duration_ns",
    "name",
    "thread",
    "input_shapes",
    "input_types",
    "sequence",
    "step",
]
CALL = ["rank", "sequence", "operation", "size_bytes", "group_size", "start_ns", "duration_ns", "on_device", "step"]
KERNEL = ["rank", "start_ns", "duration_ns", "kind", "device", "correlation", "launch_start_ns", "size_bytes", "step"]
SUMS = pl.all().exclude("group", "name")


def table(run: Run, name: str, columns: list[str] | None = None) -> pl.DataFrame:
    rows = run.table(name).select(columns or pl.all()).collect()
    return rows.sort([column for column, dtype in rows.schema.items() if not dtype.is_nested()], nulls_last=True)


def lengths(run: Run) -> pl.DataFrame:
    """How often and how long, by category."""
    kept = run.table("slices").filter(~pl.col("category").is_in(["overhead", "compile", "other", "device_annotation"]))
    return kept.group_by("rank", "category").agg(pl.len(), pl.sum("duration_ns")).sort("rank", "category").collect()


def test_an_ascend_job_loses_nothing(tmp_path: Path) -> None:
    run = npu_run()
    again = read_back(exported(run, tmp_path / "out"))

    for name in ASCEND:
        assert_frame_equal(table(run, name), table(again, name))
    known = [name for name in run.table("kernels").collect_schema() if name not in ("wait_ns", "kernel")]
    derived = ["launch_start_ns", "launch_end_ns"]
    columns = [name for name in known if name not in derived]
    assert_frame_equal(table(run, "kernels", columns), table(again, "kernels", columns))
    operators = [*OPERATOR, "self_ns", "stack"]
    assert_frame_equal(table(run, "operators", operators), table(again, "operators", operators))
    assert lengths(run).rows() == [row for row in lengths(again).rows() if row[1] in set(lengths(run)["category"])]
    for before, after in zip(run.ranks, again.ranks, strict=True):
        stated = {name: value for name, value in before.facts.items() if name not in ("format", "rank_origin")}
        assert {name: after.facts[name] for name in stated} == stated
    assert again.issues.filter(pl.col("severity") != "note").is_empty()


def test_answers_about_an_ascend_job_are_the_same(tmp_path: Path) -> None:
    run = npu_run(ranks=3)
    again = read_back(exported(run, tmp_path / "out"))

    for question in ("breakdown", "arrival"):
        assert_frame_equal(run.analyse(question), again.analyse(question))


def test_a_job_without_devices_has_no_device_afterwards_either(tmp_path: Path) -> None:
    run = host_run()
    again = read_back(exported(run, tmp_path / "out"))

    assert not again.has("kernels")
    assert [rank.facts["device"] for rank in again.ranks] == [None, None]
    assert [rank.facts["device_kind"] for rank in again.ranks] == ["cpu", "cpu"]
    assert_frame_equal(table(run, "steps"), table(again, "steps"))
    assert_frame_equal(table(run, "collectives", CALL), table(again, "collectives", CALL))
    assert_frame_equal(run.analyse("breakdown"), again.analyse("breakdown"))
    arrived = [again.analyse("arrival"), run.analyse("arrival")]
    assert_frame_equal(*(rows.select(SUMS) for rows in arrived))
    groups = again.table("groups").collect()
    assert groups["group"].unique().to_list() == [group_key("group 0")]
    assert groups["members"].to_list() == [[0, 1], [0, 1]]
    assert groups["name"].unique().to_list() == ["default_pg"]


def test_the_key_of_a_group_stays(tmp_path: Path) -> None:
    again = read_back(exported(npu_run(), tmp_path / "out"))

    assert again.table("collectives").collect()["group"].unique().to_list() == [KEY]


def test_what_was_exported_can_be_exported_again(tmp_path: Path) -> None:
    first = exported(npu_run(), tmp_path / "first")
    second = exported(read_back(first), tmp_path / "second")

    for name in (*ASCEND, "kernels", "operators", "slices"):
        assert_frame_equal(table(read_back(first), name), table(read_back(second), name))


def test_steps_and_ranks_can_be_chosen(tmp_path: Path) -> None:
    run = npu_run(ranks=3).select(ranks="1-2", steps="5")
    again = read_back(exported(run, tmp_path / "out"))

    assert [rank.rank for rank in again.ranks] == [1, 2]
    assert again.steps == [5]
    assert_frame_equal(table(run, "collectives", CALL), table(again, "collectives", CALL))


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(job=jobs())
def test_any_job_is_read_back(job: Job) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for trace in job.traces:
            write_kineto(Path(folder) / "job", trace, job.dialect)
        run = open_run(Path(folder) / "job", use_store=False)
        again = read_back(exported(run, Path(folder) / "out"))

        assert [rank.rank for rank in again.ranks] == [rank.rank for rank in run.ranks]
        for name, columns in (("operators", OPERATOR), ("collectives", CALL), ("kernels", KERNEL), ("steps", None)):
            if run.has(name):
                # if there is no step but number 0, which stands for none, all work is read as in it
                wanted = [
                    column
                    for column in columns or run.table(name).collect_schema()
                    if run.steps != [0] or column != "step"
                ]
                assert_frame_equal(table(run, name, wanted), table(again, name, wanted))
        assert_frame_equal(lengths(run), lengths(again))
        assert_frame_equal(*(breakdown(each) for each in (run, again)))


def breakdown(run: Run) -> pl.DataFrame:
    """The answer, if there is one."""
    try:
        return run.analyse("breakdown")
    except Unavailable:
        return pl.DataFrame()


@pytest.mark.parametrize("job", ["ascend/db_8rank", "ascend/text_8rank"])
def test_recordings_of_ascend_devices_lose_nothing(shared: Path, tmp_path: Path, job: str) -> None:
    run = open_run(shared / "data" / job, use_store=False)
    again = read_back(exported(run, tmp_path / "out"))

    names = [name for name in (*ASCEND, "operators", "flows", "step_totals", "operator_totals") if run.has(name)]
    for name in names:
        assert_frame_equal(table(run, name), table(again, name))
    known = [name for name in run.table("kernels").collect_schema() if name != "wait_ns"]
    assert_frame_equal(table(run, "kernels", known), table(again, "kernels", known))
    assert_frame_equal(lengths(run), lengths(again))
    for question in ("breakdown", "arrival", "slow_ranks"):
        assert_frame_equal(run.analyse(question), again.analyse(question))


@pytest.mark.parametrize("job", ["pytorch/dlrm_8rank_v100", "mindspore/synthetic_dp4"])
def test_other_recordings_give_the_same_answers(shared: Path, tmp_path: Path, job: str) -> None:
    run = open_run(shared / "data" / job, use_store=False)
    again = read_back(exported(run, tmp_path / "out"))

    assert_frame_equal(table(run, "steps"), table(again, "steps"))
    assert_frame_equal(table(run, "collectives", CALL[:-3]), table(again, "collectives", CALL[:-3]))
    for question in ("breakdown", "arrival", "slow_ranks"):
        assert_frame_equal(run.analyse(question).select(SUMS), again.analyse(question).select(SUMS))


def test_the_example_gives_the_same_answers(tmp_path: Path) -> None:
    run = open_run(Path(__file__).parents[3] / "examples" / "ddp_gloo_4rank_slow_loader", use_store=False)
    again = read_back(exported(run, tmp_path / "out"))

    for question in ("breakdown", "arrival", "slow_ranks"):
        assert_frame_equal(run.analyse(question).select(SUMS), again.analyse(question).select(SUMS))
    assert again.analyse("slow_ranks")["rank"].to_list() == [2]
