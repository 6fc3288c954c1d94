"""The communication calls of steps as columns of `step_trace_raw`: the k-th call of each kind in each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.export.formatting import TICK_NS

MAX_REDUCES = 200
"""Three columns each; the first ones of a step are kept."""

_OPERATIONS = {
    "all_reduce": "AllReduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "broadcast": "Broadcast",
    "all_to_all": "AlltoAll",
    "reduce": "Reduce",
    "gather": "Gather",
    "scatter": "Scatter",
    "barrier": "Barrier",
    "send": "Send",
    "recv": "Receive",
}


@dataclass(frozen=True)
class Reduce:
    """One call in each step that has it.

    Args:
        name: Of its columns.
        calls: Step to start and end in ticks.
    """

    name: str
    calls: Mapping[int, tuple[int, int]]

    @property
    def header(self) -> str:
        """The names of its three columns."""
        return f"{self.name},{self.name}_start_point,{self.name}_end_point"

    def cells(self, step: int, step_end: int) -> list[int]:
        """Length, start and end in a step. One without the call has it, without length, at its end: readers take
        whole numbers only."""
        start, end = self.calls.get(step, (step_end, step_end))
        return [end - start, start, end]

    def mean(self, starts: Mapping[int, int], mean_start: int, mean_end: int) -> list[int]:
        """Length, start and end in the average step, from the steps that have the call.

        Args:
            starts: The steps that count, and where they start.
            mean_start: Start of the average step.
            mean_end: Its end.
        """
        mine = [(at - starts[step], end - at) for step, (at, end) in self.calls.items() if step in starts]
        if not mine:
            return [0, mean_end, mean_end]
        start = mean_start + rounded_mean([offset for offset, _ in mine])
        length = rounded_mean([length for _, length in mine])
        return [length, start, start + length]


def find_reduces(collectives: pl.DataFrame, steps: Sequence[int]) -> list[Reduce]:
    """The calls, in the order in which they come in a step.

    Args:
        collectives: All calls of the rank.
        steps: The steps that are told.
    """
    found: dict[str, dict[int, tuple[int, int]]] = {}
    columns = named_reduces(collectives, steps).select("reduce", "step", "start_ns", "duration_ns")
    for name, step, start_ns, ns in columns.iter_rows():
        found.setdefault(name, {})[step] = (start_ns // TICK_NS, (start_ns + ns) // TICK_NS)
    return [Reduce(name, calls) for name, calls in found.items()]


def named_reduces(collectives: pl.DataFrame, steps: Sequence[int]) -> pl.DataFrame:
    """The calls of some steps under the names that they have in all classic files.

    Args:
        collectives: All calls of the rank.
        steps: The steps that are told.

    Returns:
        Columns of `collectives`, and `reduce` (`stream_0_2_AllReduce`: stream, place among the calls of a step,
        operation), which is the same for the k-th call of its kind in each step; by place, then by step.
    """
    calls = (
        collectives.filter(pl.col("step").is_in(steps))
        .sort("start_ns", maintain_order=True)
        .with_columns(_stream=pl.col("stream").fill_null(0), _word=pl.col("operation").replace(_OPERATIONS))
        .with_columns(
            _number=pl.int_range(pl.len()).over("step", "_stream", "_word"),
            _place=pl.int_range(pl.len()).over("step"),
        )
    )
    same = ["_stream", "_word", "_number"]
    kinds = calls.group_by(same).agg(pl.col("_place").mean()).sort("_place", *same).drop("_place")
    name = pl.format("stream_{}_{}_{}", "_stream", "_order", "_word")
    named = calls.join(kinds.with_row_index("_order"), on=same).with_columns(reduce=name).sort("_order", "start_ns")
    return named.select(*collectives.columns, "reduce")


def rounded_mean(values: Sequence[int]) -> int:
    """The mean as a whole number, exact for numbers that a float would not hold."""
    return (2 * sum(values) + len(values)) // (2 * len(values))
