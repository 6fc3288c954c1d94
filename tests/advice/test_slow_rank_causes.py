"""The recorded reason in the words of a finding about a slow rank."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import advise, worded
from stepscope.advice.rules.slow_rank import slow_rank
from stepscope.analysis.job.slow_rank_causes import slow_kinds
from stepscope.analysis.job.slow_rank_causes import slow_rank_causes as causes_of
from stepscope.errors import Unavailable
from tests.advice.examples import breakdown, slow_rank_causes, slow_ranks
from tests.analysis.jobs import MS, job


def test_slow_kernels_are_named_with_their_factor() -> None:
    (found,) = [one for one in advise(job(compute={1: 1.3}, jitter=0.0)) if one.rule == "slow-rank"]

    assert found.message == "computing/some"
    assert worded(found).cause.endswith(
        " Mostly gemm: 1.30x as long as on other ranks, 6.00 ms more per step. Input shapes were not recorded, so it "
        "may also have more work."
    )
    assert found.evidence["recorded_cause"]["names"] == ["gemm"]


@pytest.mark.parametrize(
    ("marked", "reason"),
    [
        ("compile: forward", "compiling: compile: forward, 8.00 ms per step."),
        ("checkpoint: torch.save", "writing checkpoints: checkpoint: torch.save, 8.00 ms per step."),
        ("generation 2", "garbage collection: generation 2, 8.00 ms per step."),
    ],
)
def test_what_the_host_stops_for_is_named(marked: str, reason: str) -> None:
    (found,) = [one for one in advise(job(gap_ns={2: 2 * MS}, marked=marked)) if one.rule == "slow-rank"]

    assert worded(found).cause.endswith(f" Mostly {reason}")


def test_a_clock_that_fell_is_told() -> None:
    causes = slow_rank_causes("computing", "alike").with_columns(level=pl.lit(1450.0), typical_level=pl.lit(1800.0))

    (found, *_) = [one for one in slow_rank(slow_ranks(), breakdown(), causes) if one.message == "computing/alike"]

    assert "7.00x as long as on other ranks. Its clock is 1450 MHz, against 1800 MHz. The clock fell in step 2." in (
        worded(found).cause
    )


def test_the_named_part_is_never_more_than_the_whole() -> None:
    run = job(compute={1: 1.1}, jitter=0.0)
    slow = pl.DataFrame({"rank": [1], "ranks": ["1"], "kind": ["computing"], "excess_ns": [MS], "steps": [4]})

    found = causes_of(slow_kinds(slow), run.analyse("kernel_classes"), None, None)

    assert found["named_ns"].to_list() == [MS]


def test_a_rank_that_is_slow_in_some_steps_only_has_the_factor_of_these() -> None:
    run = job(compute={1: 1.1}, jitter=0.0)
    slow = {
        "rank": [1],
        "ranks": ["1"],
        "kind": ["computing"],
        "excess_ns": [8 * MS],
        "slow_steps": [[4]],
        "steps": [4],
    }

    found = causes_of(slow_kinds(pl.DataFrame(slow)), run.analyse("kernel_classes"), None, None).row(0, named=True)

    assert found["factor"] == pytest.approx(1.4) and found["named_ns"] == 8 * MS


@pytest.mark.parametrize(("counter", "level"), [("sm_clock_mhz", 1450), ("memory_clock_mhz", None)])
def test_kernels_that_all_take_longer_are_put_down_to_the_clock_of_the_cores(counter: str, level: int | None) -> None:
    slow = {"rank": [1], "kind": ["computing"], "excess_ns": [4 * MS]}
    clocks = {"name": counter, "role": "clock", "step": 1, "mean": 1800.0, "busy_mean": 1800.0, "least": 1450.0}
    levels = pl.DataFrame([{"rank": rank, **clocks} for rank in range(3)]).with_columns(
        busy_mean=pl.when(pl.col("rank") == 1).then(1450.0).otherwise("busy_mean")
    )
    classes = [
        {"rank": rank, "name": name, "kind": "compute", "core": None, "variant": None, "sized_by": None, "calls": 2,
         "steps": 1, "total_ns": (12 if rank == 1 else 10) * MS, "on_host": False}
        for rank in range(3) for name in ("gemm", "add")
    ]  # fmt: skip

    found = causes_of(slow_kinds(pl.DataFrame(slow)), pl.DataFrame(classes), None, levels).row(0, named=True)

    assert (found["reason"], found["named_ns"], found["level"]) == ("alike", 4 * MS, level)


def test_nothing_is_looked_for_if_no_rank_is_slow() -> None:
    with pytest.raises(Unavailable, match="no rank is slow"):
        job().analyse("slow_rank_causes")


def test_another_delay_of_the_same_rank_is_not_another_rank() -> None:
    two = pl.concat([slow_ranks().head(1)] * 2).with_columns(kind=pl.Series(["computing", "dispatch"]))
    hiding = two.with_columns(alone_ns=pl.lit(9, pl.Int64))
    two = two.with_columns(alone_ns=pl.lit(1, pl.Int64))
    other = two.with_columns(ranks=pl.Series(["1", "2"]), rank=pl.Series([1, 2], dtype=pl.Int32))

    same, apart = (
        next(worded(one).saving_basis for one in slow_rank(rows, breakdown(), None)) for rows in (two, other)
    )
    assert "less if 1 other delay of its own stays; " in same
    assert "other slow rank" not in same
    assert "less if 1 other slow rank stays as late; " in apart
    assert "less if" not in next(worded(one).saving_basis for one in slow_rank(hiding, breakdown(), None))
