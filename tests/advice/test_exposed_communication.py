"""What is told of communication that computing does not cover: how much, of which step, and what is unknown of it."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import worded
from stepscope.advice.finding import Finding
from stepscope.advice.rules.exposed_communication import exposed_communication
from stepscope.tables import RANKS

MS = 1_000_000


def found(transmit_ms: list[int], *, unsplit: bool = False, world: int | None = 2, ranks: int = 2) -> Finding:
    """The finding about ranks whose steps of 100 ms transmit for so long each."""
    rows = [(rank, step, ms * MS) for rank in range(ranks) for step, ms in enumerate(transmit_ms)]
    spent = pl.DataFrame(rows, schema={"rank": pl.Int32, "step": pl.Int32, "spent": pl.Int64}, orient="row")
    zero = pl.lit(0, pl.Int64)
    known, unknown = (zero, pl.col("spent")) if unsplit else (pl.col("spent"), zero)
    segments = spent.select("rank", "step", transmit_ns=known, unsplit_ns=unknown, wait_ns=zero)
    breakdown = spent.select("rank", "step", window=pl.lit("host"), window_ns=pl.lit(100 * MS))
    facts = RANKS.frame(
        rank=list(range(ranks)), world_size=[world] * ranks, framework=["pytorch"] * ranks, device_kind=["cpu"] * ranks
    ).lazy()
    (one,) = exposed_communication(segments, breakdown, None, None, None, None, facts)
    return one


def test_where_median_and_mean_step_differ_both_are_told() -> None:
    summary = worded(found([20, 20, 20, 80])).summary

    assert "takes 20.0 ms of a 100 ms step (20%; in the mean step, 35%)" in summary
    assert "mean" not in worded(found([20, 20, 20, 24])).summary


@pytest.mark.parametrize(
    ("world", "ranks", "message"), [(2, 2, "unmatched"), (4, 2, "unsplit"), (None, 2, "unsplit"), (1, 1, "unsplit")]
)
def test_only_where_ranks_are_missing_more_ranks_are_asked_for(world, ranks, message) -> None:
    finding = found([20, 20], unsplit=True, world=world, ranks=ranks)

    assert finding.message == message
    assert ("Record all ranks" in worded(finding).action) == (message == "unsplit")
