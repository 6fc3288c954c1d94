"""Which ranks hold the others up."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import advise, worded
from stepscope.analysis.job.suspects import units_of
from stepscope.analysis.methods.patterns import patterns
from stepscope.analysis.methods.references import references
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import KERNELS, RANKS, STEPS
from tests.analysis.jobs import MS, job


def accused(run) -> list[tuple[int, str]]:
    return run.analyse("slow_ranks").select("rank", "kind").rows()


def test_nobody_is_accused_where_ranks_differ_by_jitter_only() -> None:
    assert accused(job(ranks=16)) == []


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_a_rank_that_computes_longer_is_named(ranks) -> None:
    found = job(ranks=ranks, compute={1: 1.3}).analyse("slow_ranks")

    assert found.select("rank", "kind").rows() == [(1, "computing")]
    assert found["excess_ns"].item() == pytest.approx(6 * MS, rel=0.1)
    assert found["cost_ns"].item() == pytest.approx(6 * MS, rel=0.15)


def test_a_rank_that_dispatches_late_is_named() -> None:
    found = job(gap_ns={2: 2 * MS}).analyse("slow_ranks")

    assert found.select("rank", "kind").rows() == [(2, "dispatch")]
    assert found["excess_ns"].item() == pytest.approx(8 * MS, rel=0.1)


@pytest.mark.parametrize(
    ("marked", "kind"),
    [
        ("compile: forward", "compile"),
        ("checkpoint: torch.save", "checkpoint"),
        ("generation 2", "garbage_collection"),
    ],
)
def test_a_rank_that_stops_for_something_is_named_with_that(marked: str, kind: str) -> None:
    found = job(gap_ns={2: 2 * MS}, marked=marked).analyse("slow_ranks")

    assert found.select("rank", "kind").rows() == [(2, kind)]
    assert found["excess_ns"].item() == pytest.approx(8 * MS, rel=0.1)


def test_a_rank_that_waits_for_data_is_named() -> None:
    found = job(data_ns={3: 9 * MS}).analyse("slow_ranks")

    assert found.select("rank", "kind").rows() == [(3, "data_loading")]
    assert found["times_last"].item() >= 5


def test_two_slow_ranks_at_once_are_both_named_with_their_kinds() -> None:
    assert sorted(accused(job(compute={6: 1.3}, gap_ns={2: 2 * MS}))) == [(2, "dispatch"), (6, "computing")]


def test_two_equally_slow_ranks_share_the_cost() -> None:
    found = job(compute={1: 1.3, 5: 1.3}, jitter=0.0).analyse("slow_ranks")

    assert sorted(found["rank"]) == [1, 5]
    assert found["cost_ns"].to_list() == [3 * MS, 3 * MS]


def test_what_a_slow_rank_loses_while_things_start_up_is_no_saving() -> None:
    slow = job(compute={1: 1.3}, once_ns={("compute", 1, 1): 400 * MS})

    row = slow.analyse("slow_ranks").row(0, named=True)

    assert (row["rank"], row["kind"], row["counted_steps"]) == (1, "computing", 4)
    assert row["cost_ns"] == pytest.approx(6 * MS, rel=0.15)


def test_a_single_recorded_step_is_enough() -> None:
    assert accused(job(steps=1, compute={4: 1.3})) == [(4, "computing")]


def test_clocks_that_differ_accuse_nobody_and_hide_nobody() -> None:
    clocks = {r: r * 700 * MS for r in range(8)}

    assert accused(job(clock_ns=clocks, hosts=True)) == []
    assert accused(job(clock_ns=clocks, hosts=True, compute={5: 1.3})) == [(5, "computing")]


def test_one_rank_alone_cannot_be_compared() -> None:
    with pytest.raises(Unavailable, match="at least two ranks"):
        job(ranks=1).analyse("slow_ranks")


def test_steps_that_are_long_for_all_ranks_accuse_nobody() -> None:
    rows = [(rank, step, 400 if step in (3, 5) else 20 + step % 2) for rank in range(2) for step in range(8)]
    found = pl.DataFrame(rows, schema={"rank": pl.Int32, "step": pl.Int32, "ms": pl.Int64}, orient="row").with_columns(
        kind=pl.lit("dispatch"), peers=pl.lit(None, pl.String), own_ns=pl.col("ms") * 1_000_000
    )
    late = patterns(references(found), 20_000_000.0)
    assert late["rank"].to_list() == [None]

    listed = late.rename({"ranks": "late_ranks", "slow_steps": "count"}).rename({"steps": "slow_steps"})
    ranks = pl.DataFrame({"rank": [0, 1], "host": ["a", "b"]}, schema_overrides={"rank": pl.Int32})
    assert units_of(listed, found, ranks, None).is_empty()


def computing(factor: float, steps: int = 8) -> dict[str, pl.DataFrame]:
    """A rank that computes for about 20 ms in each step, times a factor, and makes no calls."""
    lengths = [round((20 + 0.04 * (step % 5)) * MS * factor) for step in range(steps)]
    ends = [sum(lengths[: step + 1]) for step in range(steps)]
    starts = [end - length for end, length in zip(ends, lengths, strict=True)]
    kernels = {"kernel": range(steps), "kind": ["compute"] * steps, "name": ["gemm"] * steps}
    return {
        "ranks": RANKS.frame(framework=["pytorch"], device_kind=["cuda"], device=[0], world_size=[4]),
        "kernels": KERNELS.frame(step=range(steps), start_ns=starts, duration_ns=lengths, **kernels),
        "steps": STEPS.frame(step=range(steps), start_ns=starts, end_ns=ends, window=["device"] * steps,
                             window_start_ns=starts, window_end_ns=ends),
    }  # fmt: skip


def test_without_calls_between_ranks_a_slow_one_has_a_cost_and_no_saving() -> None:
    run = Run.from_frames({rank: computing(1.5 if rank == 2 else 1.0) for rank in range(4)})

    (finding,) = [one for one in advise(run, strict=True) if one.rule == "slow-rank"]

    assert (finding.ranks, finding.replayed) == ([2], False)
    assert run.analyse("slow_ranks")["error_ratio"].to_list() == [None]
    assert worded(finding).saving.startswith("Costs about 10.0")
