"""Work that only some ranks or stages do by design: told as what it is, and no slow device. The truth is a simulation
with this work divided evenly."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from simulated.faults import Fault, kernels
from simulated.frames import run_of
from simulated.layouts import Shape, Writer
from simulated.truth import Job
from simulated.uneven import METRICS, OUTPUT, UNEVEN, on_rank, on_stage
from stepscope.advice import advise, worded
from stepscope.analysis.methods.shared_kernels import shared_kernels
from stepscope.run import Run

DATA = Shape(ranks=8, steps=4, layers=2)
STAGES = Shape(ranks=4, stages=4, layers=2, micro_batches=6, steps=4)
LAYER = {"gemm": 10, "softmax": 5, "gelu": 5}


def output_layer(shape: Shape, *slow: Fault) -> Job:
    last = tuple(shape.stage_ranks(shape.stages - 1))
    return Job("output", shape, [Fault(UNEVEN, "stage", last), *slow], source=on_stage(-1, 3.0), uneven=OUTPUT)


def metrics(shape: Shape, *slow: Fault, times: int = 1) -> Job:
    return Job("metrics", shape, [Fault(UNEVEN, "rank", (0,)), *slow], source=on_rank(0, 14.0, times), uneven=METRICS)


def scaled(programs, factors: dict[int, float]):
    for rank, steps in programs.items():
        for one in (each for operations in steps for each in operations):
            if one.what == "kernel" and one.kind == "compute":
                one.ns = round(one.ns * factors[rank])
    return programs


def uneven(run: Run) -> list[dict[str, object]]:
    return run.analyse("extra_work").to_dicts()


@pytest.mark.parametrize(
    ("job", "ranks", "stage", "name"),
    [
        (output_layer(STAGES), "3", 3, OUTPUT),
        (output_layer(replace(STAGES, ranks=8)), "6, 7", 3, OUTPUT),
        (output_layer(replace(STAGES, ranks=2, stages=2)), "1", 1, OUTPUT),
        (metrics(DATA), "0", None, METRICS),
        (metrics(DATA, times=8), "0", None, METRICS),
        (metrics(replace(DATA, ranks=2)), "0", None, METRICS),
    ],
)
def test_extra_work_is_no_slow_device_and_costs_what_an_even_job_saves(job, ranks, stage, name) -> None:
    run = run_of(job)
    [row] = uneven(run)

    assert (row["ranks"], row["stage"], row["names"], row["only"]) == (ranks, stage, [name], True)
    assert row["saving_ns"] == pytest.approx(job.mean_loss_ns, rel=0.02)
    assert run.analyse("slow_ranks").is_empty()
    [finding] = [one for one in advise(run) if one.rule == "uneven-work"]
    assert finding.saving_ns == row["saving_ns"] and row["gone_ns"] <= finding.saving_high_ns
    assert name.removeprefix("void ") in worded(finding).summary


@pytest.mark.parametrize("slow", [1, 3])
def test_a_slow_rank_among_single_stages_is_named_by_the_kernels_that_others_run_too(slow) -> None:
    fault = Fault("computing", "rank", (slow,), kernels(1.4))
    job = output_layer(replace(STAGES, layers=1), fault)
    run = run_of(job)
    [row] = run.analyse("slow_ranks").to_dicts()

    assert (row["ranks"], row["kind"]) == (str(slow), "computing")
    # With the other one mended or not: what mending the rank adds.
    alone = job.loss_without(fault)
    assert row["cost_ns"] == pytest.approx(alone, rel=0.02)
    [cause] = run.analyse("slow_rank_causes").to_dicts()
    assert cause["reason"] == "alike" and cause["factor"] == pytest.approx(1.4, abs=0.02)


def test_extra_work_of_a_slow_rank_is_shared_out_between_both() -> None:
    fault = Fault("computing", "rank", (0,), kernels(1.3))
    job = metrics(DATA, fault)
    run = run_of(job)
    [slow], [extra] = run.analyse("slow_ranks").to_dicts(), uneven(run)

    assert slow["cost_ns"] == pytest.approx(job.loss_without(fault), rel=0.02)
    assert slow["cost_ns"] + extra["saving_ns"] == pytest.approx(job.mean_loss_ns, rel=0.02)
    assert extra["extra_ns"] == pytest.approx(14 * DATA.kernel_ns, rel=0.02)  # as if the rank were not slow


def test_a_stage_with_more_layers_does_more_and_is_not_slow() -> None:
    """Stage 1 has three layers, the others two: the same kernels, more often."""

    def source(shape: Shape):
        layers = [2, 3, 2, 2]
        return {rank: Writer(replace(shape, layers=layers[rank]), rank).program() for rank in range(4)}

    job = Job("layers", STAGES, source=source)
    run = run_of(job)
    [row] = uneven(run)

    assert run.analyse("slow_ranks").is_empty()
    assert (row["ranks"], row["only"], row["last"]) == ("1", False, False)
    assert row["extra_ns"] == pytest.approx(row["computing_ns"] / 3, rel=0.05)
    even = Job("even", STAGES, source=lambda shape: scaled(source(shape), {0: 9 / 8, 1: 9 / 12, 2: 9 / 8, 3: 9 / 8}))
    assert row["saving_ns"] == pytest.approx((job.times.total_ns - even.times.total_ns) / STAGES.steps, rel=0.02)
    slow = Job("layers", STAGES, [Fault("computing", "rank", (1,), kernels(1.3))], source=source)
    assert run_of(slow).analyse("slow_ranks")["ranks"].to_list() == ["1"]


def shared(*does: dict[str, int], factors: dict[int, dict[str, float]] | None = None) -> list[tuple[int, int]]:
    """The program and cluster of ranks that do these, each alone."""
    known = factors or {}
    rows = [
        (rank, what, count, 100.0 * known.get(rank, {}).get(what, 1.0))
        for rank, counts in enumerate(does)
        for what, count in counts.items()
    ]
    counts = pl.DataFrame(
        rows,
        schema={"rank": pl.Int32, "what": pl.String, "count": pl.Int64, "middle_ns": pl.Float64},
        orient="row",
    )
    alone = pl.DataFrame(
        {"rank": range(len(does)), "program": range(len(does))},
        schema_overrides={"rank": pl.Int32, "program": pl.Int32},
    )
    return shared_kernels(alone, counts).select("program", "cluster").rows()


def test_a_single_rank_is_compared_with_those_all_of_whose_kernels_it_runs() -> None:
    more = {**LAYER, "vocabulary": 9}
    assert shared(LAYER, more) == [(0, 0), (0, 0)]
    # Neither runs all that the other runs: mostly the same, but not compared.
    assert shared({**LAYER, "embedding": 5}, {**LAYER, "loss": 5}) == [(0, 0), (1, 0)]
    # Most of what it does, the other does not.
    assert shared(LAYER, {**LAYER, "vocabulary": 40}) == [(0, 0), (1, 1)]
    # All alike longer is a slow device, some longer may be other sizes.
    assert shared(LAYER, more, factors={1: dict.fromkeys(LAYER, 1.5)}) == [(0, 0), (0, 0)]
    assert shared(LAYER, more, factors={1: {"gemm": 1.5}}) == [(0, 0), (1, 0)]


WIDE = Shape(ranks=8, stages=2, layers=2, micro_batches=6, steps=4)


def sized(job: Job, factors: dict[int, float]) -> Run:
    """The job with recorded shapes: as many rows as the kernels of a rank are longer by design."""
    plain = run_of(job)
    frames = {}
    for rank in plain.ranks:
        tables = {name: rank.table(name).drop("rank", strict=False).collect() for name in rank.rows}
        shape = f"[[{round(4096 * factors[rank.rank])}, 4096], [4096, 4096]]"
        tables["operators"] = tables["operators"].with_columns(input_shapes=pl.lit(shape))
        frames[rank.rank] = tables
    return Run.from_frames(frames)


def shaped(factors: dict[int, float], *slow: Fault) -> Job:
    def source(shape: Shape):
        return scaled({rank: Writer(shape, rank).program() for rank in range(shape.ranks)}, factors)

    return Job("shapes", WIDE, list(slow), source=source)


BY_STAGE = {rank: 2.0 if rank >= 4 else 1.0 for rank in range(8)}


def test_a_stage_with_larger_shapes_does_more_and_is_not_slow() -> None:
    job = shaped(BY_STAGE)
    run = sized(job, BY_STAGE)
    [row] = uneven(run)

    assert run.analyse("slow_ranks").is_empty()
    assert (row["ranks"], row["stage"], row["only"], row["larger"]) == ("4, 5, 6, 7", 1, False, True)
    even = shaped(dict.fromkeys(range(8), 1.5))
    assert row["saving_ns"] == pytest.approx((job.times.total_ns - even.times.total_ns) / WIDE.steps, rel=0.03)
    [finding] = [one for one in advise(run) if one.rule == "uneven-work"]
    assert "larger shapes of" in worded(finding).summary and finding.message == "extra_stage"


def test_a_slow_card_of_a_stage_with_larger_shapes_is_a_slow_device() -> None:
    fault = Fault("computing", "rank", (6,), kernels(1.3))
    job = shaped(BY_STAGE, fault)
    run = sized(job, BY_STAGE)
    [slow], [row] = run.analyse("slow_ranks").to_dicts(), uneven(run)

    assert (slow["ranks"], slow["kind"]) == ("6", "computing")
    assert slow["cost_ns"] == pytest.approx(job.loss_without(fault), rel=0.03)
    [cause] = run.analyse("slow_rank_causes").to_dicts()
    assert cause["reason"] == "alike" and cause["factor"] == pytest.approx(1.3, abs=0.02)
    assert row["ranks"] == "4, 5, 6, 7"


def test_a_replica_with_larger_batches_in_all_its_stages_is_found_by_its_shapes() -> None:
    by_replica = {rank: 1.4 if rank % 4 == 1 else 1.0 for rank in range(8)}
    run = sized(shaped(by_replica), by_replica)

    assert run.analyse("alike_ranks")["program"].to_list() == [0] * 8
    assert {rank for text in run.analyse("slow_ranks")["ranks"] for rank in map(int, text.split(", "))} == {1, 5}
    assert set(run.analyse("slow_rank_causes")["reason"]) == {"shapes"}


def test_hosts_are_compared_whatever_the_shapes() -> None:
    own = sized(shaped(BY_STAGE), BY_STAGE).analyse("own_times")

    assert own.filter(kind="dispatch")["program"].unique().to_list() == [0]
    assert own.filter(kind="computing")["program"].unique().sort().to_list() == [0, 4]
