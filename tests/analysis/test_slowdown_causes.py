"""Why a job of operations is slow: the truth is known by hand, or from the same job without the cause."""

from __future__ import annotations

from pathlib import Path
from random import Random

import polars as pl
import pytest

from operation_traces import Length, Pipeline, usual, write
from stepscope import open_run
from stepscope.advice import advise, worded
from stepscope.run import Run

SECOND = 10**9


def job(folder: Path, pipeline: Pipeline, length: Length, *, steps: int = 6) -> Run:
    """A job, in a folder of its own."""
    folder.mkdir()
    write(folder, pipeline, length=length, steps=range(steps))
    return open_run(folder)


def mean_step(run: Run) -> float:
    """ns."""
    times = run.analyse("replay")["replayed_ns"]
    return float(sum(times) / len(times))


def uneven(*place: object) -> float:
    """How much longer than others a micro-batch is."""
    return max(0.4, Random(repr(place)).lognormvariate(0, 0.4))


def noisy(*place: object) -> float:
    return 1 + Random(repr(place)).gauss(0, 0.01)


def last_stage(way: str, replica: int, stage: int, one: int, step: int) -> float:
    return usual(way) * (1.5 if stage == 3 else 1) * noisy(way, replica, stage, one, step)


def sequences(way: str, replica: int, stage: int, one: int, step: int) -> float:
    return usual(way) * uneven(replica, one, step) * noisy(way, replica, stage, one, step)


def slow_rank(way: str, replica: int, stage: int, one: int, step: int) -> float:
    return usual(way) * (1.6 if (replica, stage) == (1, 0) else 1) * noisy(way, replica, stage, one, step)


def slow_replica(way: str, replica: int, stage: int, one: int, step: int) -> float:
    return usual(way) * (1.4 if replica == 1 else 1) * noisy(way, replica, stage, one, step)


def slow_later(way: str, replica: int, stage: int, one: int, step: int) -> float:
    return slow_rank(way, replica, stage, one, step) if step > 2 else usual(way)


def test_a_slow_rank_by_hand(tmp_path: Path) -> None:
    """One of two ranks of a stage takes twice as long for 3 passes forward (1 s) and backward (2 s)."""
    run = job(tmp_path / "x", Pipeline(2, 1, micro_batches=3), lambda way, one, *_: usual(way) * (1 + one))
    row = run.analyse("slowdown_causes").row(0, named=True)

    assert (row["cause"], row["ranks"], row["factor"], row["is_named"]) == ("worker", "2", pytest.approx(2), True)
    assert (row["replayed_ns"] / SECOND, row["saving_ns"] / SECOND) == (1 + 18 + 2, 9)
    assert row["slowdown_factor"] == pytest.approx(21 / (1 + 13.5 + 2))


def test_uneven_micro_batches_by_hand(tmp_path: Path) -> None:
    """In each step, one of two ranks, in turns, has a micro-batch that is three times as long as its other one."""

    def length(way: str, replica: int, stage: int, one: int, step: int) -> float:
        return usual(way) * (3 if one == 0 and replica == step % 2 else 1)

    run = job(tmp_path / "x", Pipeline(2, 1, micro_batches=2), length)
    row = run.analyse("slowdown_causes").row(0, named=True)

    # 4 times 3 s instead of 3 times 3 s for all
    assert (row["cause"], row["replayed_ns"] / SECOND, row["saving_ns"] / SECOND) == ("sequence", 1 + 12 + 2, 3)
    assert (row["correlation"], row["factor"]) == (pytest.approx(1), pytest.approx(2))
    assert run.analyse("slow_ranks").is_empty()


@pytest.mark.parametrize("chunks", [1, 2])
def test_an_uneven_stage_takes_what_even_ones_take_after_that(tmp_path: Path, chunks: int) -> None:
    pipeline = Pipeline(2, 2, chunks=chunks, micro_batches=6)
    run = job(tmp_path / "x", pipeline, lambda way, _, stage, *__: usual(way) * (1 + stage), steps=2)
    even = job(tmp_path / "even", pipeline, lambda way, *_: usual(way) * 1.5, steps=2)
    row = run.analyse("slowdown_causes").row(0, named=True)

    assert (row["cause"], row["unit"], row["ranks"], row["factor"]) == ("stage", "1", "4, 6", pytest.approx(2, rel=0.2))
    assert row["saving_ns"] == pytest.approx(mean_step(run) - mean_step(even), rel=1e-6)
    assert row["explained"] == pytest.approx(1) and row["is_last"] and not row["is_alone"]


@pytest.mark.parametrize(
    ("length", "pipeline", "cause", "words"),
    [
        (last_stage, Pipeline(4, 4, micro_batches=8), "stage", "Stage imbalance: pipeline stage 3"),
        (last_stage, Pipeline(1, 4, tensor=1, micro_batches=8), "stage", "Stage imbalance: pipeline stage 3"),
        (sequences, Pipeline(4, 4, micro_batches=8), "sequence", "Sequence length imbalance"),
        (sequences, Pipeline(4, 1, micro_batches=8), "sequence", "Sequence length imbalance"),
        (sequences, Pipeline(1, 4, micro_batches=8), "sequence", "Sequence length imbalance"),
        (sequences, Pipeline(8, 2, micro_batches=1), "sequence", "Sequence length imbalance"),
        (slow_rank, Pipeline(4, 4, micro_batches=8), "worker", "Rank 2 computes slowly"),
        (slow_rank, Pipeline(4, 1, micro_batches=4), "worker", "Rank 2 computes slowly"),
        (slow_later, Pipeline(4, 2, micro_batches=4), "worker", "Rank 2 computes slowly since step 3"),
        (slow_replica, Pipeline(4, 2, micro_batches=4), "replica", "Ranks 2,10 (replica 1) compute slowly"),
    ],
)
def test_the_cause_is_named(tmp_path: Path, length: Length, pipeline: Pipeline, cause: str, words: str) -> None:
    run = job(tmp_path / "x", pipeline, length)
    causes = run.analyse("slowdown_causes")
    findings = [finding for finding in advise(run) if finding.rule in ("uneven-work", "slow-rank")]

    assert causes.filter("is_named")["cause"].to_list() == [cause]
    assert len(findings) == 1 and worded(findings[0]).summary.startswith(words)
    assert sum(causes["saving_ns"]) == pytest.approx(causes["lost_ns"][0], abs=10)


@pytest.mark.parametrize(
    "pipeline", [Pipeline(8, 1, micro_batches=4), Pipeline(2, 4, micro_batches=8), Pipeline(8, 2, micro_batches=2)]
)
def test_one_step_of_uneven_micro_batches_accuses_no_rank(tmp_path: Path, pipeline: Pipeline) -> None:
    run = job(tmp_path / "x", pipeline, sequences, steps=1)

    assert run.analyse("slowdown_causes").filter("is_named")["cause"].to_list() == ["sequence"]
    assert run.analyse("slow_ranks").is_empty()


def test_a_healthy_job_has_no_finding(tmp_path: Path) -> None:
    run = job(tmp_path / "x", Pipeline(4, 4, micro_batches=8), lambda *place: usual(*place) * noisy(*place))

    assert advise(run) == [] or {finding.rule for finding in advise(run)}.isdisjoint({"uneven-work", "slow-rank"})


def test_savings_without_recorded_transfers_are_uncertain(tmp_path: Path) -> None:
    """Stages then seem to wait for nobody, so the replay is far shorter than the recording."""
    is_computing = pl.col("optype").cast(pl.String).str.ends_with("compute")
    write(tmp_path, Pipeline(4, 4, micro_batches=8), length=slow_rank, change=lambda rows: rows.filter(is_computing))
    (finding,) = [finding for finding in advise(open_run(tmp_path)) if finding.rule == "slow-rank"]

    assert finding.saving_low_ns == 0
    assert "off the recording, so this is uncertain" in worded(finding).saving_basis


def test_a_lonely_slow_stage_may_be_a_slow_device(tmp_path: Path) -> None:
    """Its saving reaches to what mending the device would bring."""
    pipeline = Pipeline(1, 4, tensor=1, micro_batches=8)
    run = job(tmp_path / "x", pipeline, lambda way, _, stage, *__: usual(way) * (1.5 if stage == 1 else 1))
    healthy = job(tmp_path / "healthy", pipeline, usual)
    (finding,) = [finding for finding in advise(run) if finding.rule == "uneven-work"]

    assert finding.message == "stage_alone" and finding.where == {"rank": 1}
    # the optimizer is counted to the stage as well
    assert finding.saving_high_ns == pytest.approx(mean_step(run) - mean_step(healthy), rel=0.05)
