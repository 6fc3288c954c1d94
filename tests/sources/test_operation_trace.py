"""Operation-level traces: what is read of them, and what is said of damaged ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from operation_traces import Pipeline, write
from stepscope import StepscopeError, open_run
from stepscope.run import Run
from stepscope.sources.operation_trace import trace
from stepscope.sources.registry import source_of, starts_threads

SECOND = 10**9


def problems(run: Run) -> str:
    return "\n".join(run.issues["problem"])


def test_operations_become_rows_of_the_tables_of_all_recordings(tmp_path: Path) -> None:
    write(tmp_path)
    run = open_run(tmp_path)
    steps = run.table("steps").filter(pl.col("rank") == 2).select("step", "start_ns", "end_ns").collect().rows()
    ranks = run.table("ranks").collect()

    assert steps == [(3, 0, 13 * SECOND), (5, 13 * SECOND, 26 * SECOND)]
    assert ranks["rank"].to_list() == [0, 2, 4, 6] and set(ranks["world_size"]) == {8}
    assert json.loads(ranks["parallelism"][1]) == {
        "data_parallel_size": 2,
        "pipeline_parallel_size": 2,
        "tensor_parallel_size": 2,
        "virtual_pipeline_size": 1,
        "data_parallel_rank": 1,
        "pipeline_stage": 0,
    }
    kernels = run.table("kernels").filter((pl.col("rank") == 4) & (pl.col("kind") == "compute")).collect()
    first = kernels.select("name", "start_ns", "duration_ns", "stream", "micro_batch", "model_chunk").rows()[:3]
    assert first == [
        ("forward-compute", 25 * SECOND // 10, SECOND, 0, 0, 0),
        ("backward-compute", 35 * SECOND // 10, 2 * SECOND, 0, 0, 0),
        ("forward-compute", 55 * SECOND // 10, SECOND, 0, 1, 0),
    ]


def test_ends_of_transfers_and_members_of_collectives_share_group_and_sequence(tmp_path: Path) -> None:
    write(tmp_path)
    run = open_run(tmp_path)
    calls = run.table("collectives").collect()
    joined = calls.group_by("group", "sequence").agg(
        pl.col("rank").sort(), pl.col("operation").unique().sort(), pl.col("step").n_unique()
    )

    found = {(tuple(ranks), tuple(operations)) for _, _, ranks, operations, _ in joined.rows()}
    pairs = {((0, 4), ("recv", "send")), ((2, 6), ("recv", "send"))}
    assert found == pairs | {(ranks, (one,)) for ranks in [(0, 2), (4, 6)] for one in ("all_gather", "reduce_scatter")}
    assert set(joined["step"]) == {1}
    assert set(calls.filter(rank=0, operation="send")["peer"]) == {4}
    groups = run.table("groups").filter(pl.col("rank") == 0).select("name", "members").collect().rows()
    assert sorted(groups) == [("dp", [0, 2]), ("pp", [0, 4]), ("pp", [0, 4])]
    assert run.analyse("arrival")["members"].unique().to_list() == [2]


def test_virtual_stages_send_from_the_last_stage_to_the_first(tmp_path: Path) -> None:
    write(tmp_path, Pipeline(data=1, chunks=2, micro_batches=3))
    calls = open_run(tmp_path).table("collectives").collect()
    joined = calls.filter(pl.col("stream") > 1).group_by("group", "sequence").agg(pl.col("rank").sort())

    assert set(map(tuple, joined["rank"])) == {(0, 2)} and joined.height == 2 * 2 * 3 * 3
    received = calls.filter(rank=0, name="forward-recv", step=3).select("model_chunk", "micro_batch").rows()
    assert received == [(1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("meta-AB.yaml", "# sizes\ntp_size: 4\nworld_size: 16  # of them\n"),
        ("meta-AB.yml", "tp_size: '4'\nworld_size: 16"),
        ("meta-AB.json", '{"tp_size": 4, "world_size": 16}'),
    ],
)
def test_sizes_that_are_stated(tmp_path: Path, name: str, text: str) -> None:
    file = write(tmp_path)
    (tmp_path / name).write_text(text)
    ranks = open_run(file).table("ranks").collect()

    assert set(ranks["world_size"]) == {16} and json.loads(ranks["parallelism"][0])["tensor_parallel_size"] == 4


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pp_size: 1", "pp_size is 1, but the operations are those of at least 2"),
        ("dp_size: many", "dp_size is many"),
        ("\xff\0 nothing", "no lines of a name"),
    ],
)
def test_sizes_that_cannot_be_are_reported_once(tmp_path: Path, text: str, told: str) -> None:
    file = write(tmp_path)
    (tmp_path / "meta-AB.yaml").write_text(text, "latin-1")
    run = open_run(file)

    assert problems(run).count(told) == 1
    assert set(run.table("ranks").collect()["world_size"]) == {8}


def where(condition: pl.Expr, **values: pl.Expr) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda rows: rows.with_columns(
        pl.when(condition).then(value).otherwise(pl.col(name)).alias(name) for name, value in values.items()
    )


FIRST = pl.int_range(pl.len()) == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (where(FIRST, duration=pl.lit(-1.0)), "1 operation left out: 1 with a negative duration"),
        (where(FIRST, duration=pl.lit(float("nan"))), "1 without a start or a duration"),
        (where(FIRST, start_ts=pl.lit(float("inf"))), "1 without a start or a duration"),
        (where(FIRST, start_ts=pl.lit(-2.0)), "1 with a negative start"),
        (where(FIRST, start_ts=pl.lit(1e7)), "1 that last more than a week"),
        (where(FIRST, rank=pl.lit(None)), "1 without rank, stage, dp_rank, step or optype"),
        (where(FIRST, duration=pl.lit(None)), "1 without a start or a duration"),
        (lambda rows: pl.concat([rows, rows.filter(rank=0)]), "operations of rank 0 are there twice"),
        (lambda rows: rows.filter(pl.col("rank") != 2), "no operation of stage 0 of data-parallel rank 1 is there"),
        (lambda rows: rows.filter(pl.col("optype") != "backward-compute"), "no rank has backward-compute"),
        (lambda rows: rows.filter(pl.col("optype") != "forward-recv"), "forward-send and forward-recv are not both"),
        (lambda rows: rows.filter(~pl.col("optype").cast(pl.String).str.contains("send|recv")), "transfers between"),
        (
            lambda rows: rows.filter((pl.col("rank") != 4) | (pl.col("optype") != "optimizer")),
            "ranks 4 have no optimizer",
        ),
        (where(FIRST, stage=pl.lit(1)), "ranks 0 are at several places in the job"),
        (lambda rows: rows.with_columns(colour=1), "columns that are not read: colour"),
    ],
)
def test_faults_are_told_once_and_the_rest_is_read(
    tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame], told: str
) -> None:
    file = write(tmp_path, change=change)
    run = open_run(file)

    assert problems(run).count(told) == 1
    assert run.analyse("slowdowns").filter(kind="job")["replayed_ns"][0] > 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows.drop("duration", "stage"), "lacks the columns stage, duration"),
        (lambda rows: rows.with_columns(duration=pl.concat_list("duration")), "column duration holds List"),
        (lambda rows: rows.head(0), "without any operation"),
        (lambda rows: rows.with_columns(rank=pl.lit("none")), "without any operation"),
    ],
)
def test_traces_that_cannot_be_read(tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame], told: str) -> None:
    with pytest.raises(StepscopeError, match=told):
        open_run(write(tmp_path, change=change))


@pytest.mark.parametrize("kept", [0.2, 0.9])
def test_a_trace_that_was_cut_off(tmp_path: Path, kept: float) -> None:
    file = write(tmp_path)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * kept)])

    with pytest.raises(StepscopeError, match="cut off or damaged"):
        open_run(file)


def test_other_parquet_files_are_none_of_ours(tmp_path: Path) -> None:
    write(tmp_path)
    pl.DataFrame({"rank": [1], "value": [2]}).write_parquet(tmp_path / "other.parquet")
    run = open_run(tmp_path)

    assert run.table("ranks").collect().height == 4 and "other.parquet" not in "".join(run.issues["file"])


def test_columns_may_be_wider_and_without_positions(tmp_path: Path) -> None:
    """Texts and 64-bit numbers, and no columns but those that are needed."""
    narrow = write(tmp_path / "..", name=f"{tmp_path.name}.parquet")
    wide = write(
        tmp_path,
        change=lambda rows: rows.cast({"optype": pl.String, "rank": pl.Int64, "start_ts": pl.Float64}).drop("gmc"),
    )
    answers = [open_run(file).analyse("step_slowdowns") for file in (narrow, wide)]

    assert answers[0].equals(answers[1])


def test_ranks_of_a_large_trace_are_looked_up_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path)
    kept = trace.trace_of(file)
    trace._read.cache_clear()
    monkeypatch.setattr(trace, "_MOST_ROWS", 1)
    looked_up = trace.trace_of(file)
    trace._read.cache_clear()

    assert looked_up.kept is None
    assert looked_up.layout.steps.equals(kept.layout.steps) and looked_up.layout.places.equals(kept.layout.places)
    for rank in (0, 2, 4, 6, 9):
        assert looked_up.rows_of(rank).equals(kept.rows_of(rank))


def test_a_reader_that_needs_threads_is_not_called_in_the_only_one() -> None:
    found = {name: source_of(name) for name in ("operation_trace", "kineto")}

    assert {name: source is not None and starts_threads(source) for name, source in found.items()} == {
        "operation_trace": True,
        "kineto": False,
    }


def seconds(rows: pl.DataFrame) -> pl.Expr:
    return pl.col("start_ts", "duration").cast(pl.Float64)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows.with_columns((seconds(rows) * 1e6).round().cast(pl.Int64)), "microseconds"),
        (lambda rows: rows.with_columns((seconds(rows) * 1e9).round().cast(pl.Int64)), "nanoseconds"),
        (lambda rows: rows.with_columns(pl.col("start_ts").cast(pl.Float64) + 1.7e9 + pl.col("step") * 60), "run on"),
        (lambda rows: rows.with_columns(pl.col("rank", "step").cast(pl.String)), None),
        (lambda rows: rows.with_columns(rank=pl.format("rank{}", "rank"), step=pl.format("step-{}", "step")), None),
        (lambda rows: rows.drop("seq_id", "mb_id", "gmc"), None),
        (lambda rows: rows.with_columns(pl.col("optype").cast(pl.String).str.replace_all("-", "_")), None),
        (lambda rows: rows.with_columns(pl.col("optype").cast(pl.String).str.to_uppercase()), None),
        (lambda rows: rows.sample(fraction=1, shuffle=True, seed=3), None),
    ],
)
def test_the_same_trace_written_otherwise(
    tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame], told: str | None
) -> None:
    pipeline = Pipeline(data=2, stages=3, micro_batches=4)
    plain = write(tmp_path / "..", pipeline, name=f"{tmp_path.name}.parquet")
    other = open_run(write(tmp_path, pipeline, change=change))
    problems = "".join(other.issues["problem"])

    assert other.analyse("step_slowdowns").equals(open_run(plain).analyse("step_slowdowns"))
    assert (told is None and "times" not in problems and "starts" not in problems) or (told or "-") in problems


def test_positions_of_virtual_stages_follow_from_the_order(tmp_path: Path) -> None:
    pipeline = Pipeline(data=2, stages=2, chunks=2, micro_batches=3)
    plain = write(tmp_path / "..", pipeline, name=f"{tmp_path.name}.parquet")
    other = write(tmp_path, pipeline, change=lambda rows: rows.drop("seq_id", "gmc"))

    assert open_run(other).analyse("step_slowdowns").equals(open_run(plain).analyse("step_slowdowns"))


def test_a_trace_with_other_names_of_operations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="neither forward-compute nor backward-compute"):
        open_run(write(tmp_path, change=lambda rows: rows.with_columns(optype=pl.lit("fwd"))))
