"""The iterations of a recording without marked steps, if its operators repeat beyond doubt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.each_rank import each_rank
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.methods.operator_phases import OPERATORS
from stepscope.analysis.methods.step_windows import is_whole_recording
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.step.phase_ranges import MARKED
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables import SLICES
from stepscope.tables.base import Column

ONCE = {
    **{phase: f"(?:{OPERATORS[phase]})|(?:{MARKED[phase]})" for phase in ("backward", "optimizer")},
    "loading": r"__next__",
}
"""What a training iteration does at least once: other repetition may come from the layers of a model."""

MOST_TRIED = 20
"""How many numbers of iterations are tried, largest first."""


@dataclass(frozen=True)
class Limits:
    """When a repetition is certain."""

    repeats: int = limit(3, "iterations", "two equal ones may be chance")
    covered_ratio: float = limit(
        0.9, "of the top-level operators, inside iterations", "the rest is start-up and shutdown"
    )
    differing_ratio: float = limit(
        0.1, "of an iteration's operators, more or fewer than usual", "logging and first use cause differences"
    )
    multiples_ratio: float = limit(
        0.5,
        "of the calls, by operators that run a whole number of times per iteration; more are needed",
        "chosen by us: with fewer, the number of iterations is a different one",
    )


NOT_REPEATED = "no sequence of operators repeats regularly enough to be certain of iterations"


@analysis(
    "rank",
    columns(
        "rank",
        meaning("step", "Number of the iteration, from 1."),
        "start_ns",
        meaning("end_ns", "Start of the next iteration, or end of the last operator."),
        Column("operators", "int64", "Number of top-level operators in the median iteration."),
        nulls="",
    ),
    together=True,
    nothing=NOT_REPEATED,
    as_recorded=True,
)
def iterations(
    steps: pl.LazyFrame, operators: pl.LazyFrame, slices: pl.LazyFrame | None, limits: Limits = Limits()
) -> pl.DataFrame:
    """Find iterations by the top-level operators (inside no other) of the main thread, else of all threads.

    The number of iterations is the largest call count of an operator at whose starts the recording can be cut so that
    all iterations have nearly the same operators (except the first, which may set things up, and the last, which may
    finish them), together contain nearly all operators, and each has what a training iteration has (`ONCE`), as far as
    that was recorded.

    Returns:
        One row per iteration, in order.

    Raises:
        Unavailable: If steps are marked or no repetition is certain.
    """
    if marked := ranks_of(steps.filter(~is_whole_recording().fill_null(True))):
        raise Unavailable("the recording marks its steps", of=marked)
    calls = operators.select("rank", "thread", "start_ns", "name", end_ns=END)
    rows = calls.sort("start_ns", -pl.col("end_ns"), "thread", "name", nulls_last=True)
    marks = SLICES.or_empty(slices).filter(pl.col("category") == "annotation").select("rank", "name", end_ns=END)
    numbers = ranks_of(operators)
    parts = [_of_rank(own, own_marks, limits) for _, (own, own_marks) in each_rank(numbers, rows, marks)]
    found = [part for part in parts if part is not None]
    if not found:
        raise Unavailable(NOT_REPEATED)
    return pl.concat(found)


def _of_rank(rows: pl.DataFrame, annotations: pl.DataFrame, limits: Limits) -> pl.DataFrame | None:
    """The iterations of one rank; None if none are certain."""
    marks = _marks(rows, annotations)
    found = next((found for top in _tops(rows) if (found := _repeated(top, marks, limits)) is not None), None)
    return (
        None
        if found is None
        else found.select(
            pl.lit(rows["rank"][0], pl.Int32).alias("rank"),
            pl.int_range(1, pl.len() + 1, dtype=pl.Int32).alias("step"),
            "start_ns",
            pl.col("start_ns").shift(-1).fill_null(rows["end_ns"].max()).alias("end_ns"),
            "operators",
        )
    )


def _marks(rows: pl.DataFrame, annotations: pl.DataFrame) -> list[pl.Series]:
    """When each kind of `ONCE` that was recorded ended: a loader's mark begins before its first operator."""
    every = pl.concat([rows.select("name", "end_ns"), annotations.select("name", "end_ns")])
    kinds = (every.filter(pl.col("name").str.contains(words))["end_ns"] for words in ONCE.values())
    return [kind for kind in kinds if kind.len()]


def _tops(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Top-level operators of the thread with the most outside backward, then of all threads."""
    before = pl.col("end_ns").cum_max().shift(1).over("thread")
    top = rows.filter((pl.col("start_ns") >= before).fill_null(value=True))
    forward = top.filter(~pl.col("name").str.contains(ONCE["backward"]))
    threads = forward.group_by("thread").len().sort("len", "thread", descending=[True, False], nulls_last=True)
    if threads.height and top["thread"].n_unique() > 1:
        yield top.filter(pl.col("thread").eq_missing(threads["thread"][0]))
    yield top


def _repeated(top: pl.DataFrame, marks: list[pl.Series], limits: Limits) -> pl.DataFrame | None:
    """`start_ns` and `operators` of each iteration, None if none are certain."""
    if not marks:
        return None
    counts = top.group_by("name").agg(pl.len(), first=pl.col("start_ns").min())
    numbers = counts.filter(pl.col("len") >= limits.repeats)["len"].unique().sort(descending=True)
    likely = [number for number in numbers if _share_of_multiples(counts, number) > limits.multiples_ratio]
    for number in likely[:MOST_TRIED]:
        for anchors in (pl.col("len") == number, pl.col("len") % number == 0):
            anchor, calls, _ = counts.filter(anchors).sort("first", "name").row(0)
            found = _cut(top, anchor, calls // number, limits)
            if found is not None and all(_in_each(mark, found["start_ns"]) for mark in marks):
                return found
    return None


def _share_of_multiples(counts: pl.DataFrame, number: int) -> float:
    """Share of the calls by operators that run a whole number of times per iteration; with more than four iterations,
    one extra call is allowed."""
    whole = (pl.col("len") >= number) & (pl.col("len") % number <= (1 if number > 4 else 0))
    return float(counts.select(pl.col("len").filter(whole).sum() / pl.col("len").sum()).item())


def _cut(top: pl.DataFrame, anchor: str, each: int, limits: Limits) -> pl.DataFrame | None:
    """The iterations that begin with every `each`-th call of the operator `anchor`; None if they are not nearly equal.

    The first iteration may set up what the others use, with up to as many extra operators as an iteration has. Extra
    operators of the last iteration, and those before the first, count as outside iterations.
    """
    parts = top.with_columns(part=((pl.col("name") == anchor).cum_sum() + each - 1) // each).filter(pl.col("part") > 0)
    calls = parts.group_by("part", "name").len("calls")
    usual = calls.pivot("part", index="name", values="calls").fill_null(0)
    columns = [str(part) for part in sorted(calls["part"].unique())]
    medians = usual.select(usual=pl.concat_list(columns).list.median())["usual"]
    expected = float(medians.sum())
    missing = [float((medians - usual[column]).clip(lower_bound=0).sum()) for column in columns]
    more = [float((usual[column] - medians).clip(lower_bound=0).sum()) for column in columns]
    inner = [fewer + further for fewer, further in zip(missing, more, strict=True)][1:-1]
    if max(missing[0], missing[-1], *inner) > limits.differing_ratio * expected or more[0] > expected:
        return None
    if top.height - parts.height + more[-1] > (1 - limits.covered_ratio) * top.height:
        return None
    starts = parts.group_by("part").agg(pl.col("start_ns").min()).sort("part")
    return starts.select("start_ns", operators=pl.lit(round(expected), pl.Int64))


def _in_each(times: pl.Series, starts: pl.Series) -> bool:
    """Whether each part contains some of the times; the last part has no end."""
    return len({*starts.search_sorted(times, side="right").to_list()} - {0}) == starts.len()
